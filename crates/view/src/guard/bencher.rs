//! Bencher's metric format: a benchmark, its measures, a value of each.

use jitterscope_analyze::guard::Series;
use serde::Serialize;
use std::collections::BTreeMap;

/// A value, with the bounds that were seen.
#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Bencher takes names of at most 1024 characters; this leaves room for a number.
const LONGEST_NAME: usize = 1000;

fn measures(
    [value, lower, upper]: [f64; 3],
    contaminated: usize,
    unknown: usize,
) -> BTreeMap<&'static str, Metric> {
    let number = |n: usize| Metric {
        value: n as f64,
        lower_value: None,
        upper_value: None,
    };
    BTreeMap::from([
        (
            "latency",
            Metric {
                value,
                lower_value: Some(lower),
                upper_value: Some(upper),
            },
        ),
        ("contaminated-iterations", number(contaminated)),
        ("unknown-iterations", number(unknown)),
    ])
}

/// The series for Bencher, under its label: `latency` in nanoseconds (median, least and most), and how many iterations
/// were contaminated or unknown; and each benchmark of a tool within it, under the label, a slash and its name. `None`
/// if no iteration ran to its end.
///
/// # Errors
/// None in practice: JSON can represent all fields.
pub fn bencher(series: &Series) -> Result<Option<String>, serde_json::Error> {
    let headline = series.headline();
    let (Some(median), Some(min), Some(max)) = (headline.median, headline.min, headline.max) else {
        return Ok(None);
    };
    let of_all = [median, min, max].map(|time| time.0 as f64);
    let of_all = measures(of_all, headline.contaminated, headline.unknown);
    let mut file = BTreeMap::from([(series.label.clone(), of_all)]);
    for of in series.benchmarks() {
        let times = [of.median, of.min, of.max].map(|time| time.0);
        let full = format!("{}/{}", series.label, of.name);
        let name: String = full.chars().take(LONGEST_NAME).collect();
        // Names that were cut may be equal.
        let others = (2..).map(|n| format!("{name} ({n})"));
        let mut names = std::iter::once(name.clone()).chain(others);
        if let Some(name) = names.find(|name| !file.contains_key(name)) {
            file.insert(name, measures(times, of.contaminated, of.unknown));
        }
    }
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    Ok(Some(text))
}
