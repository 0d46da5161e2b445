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

/// The series for Bencher, under its label: `latency` in nanoseconds (median, least and most), and how many iterations
/// were contaminated or unknown. `None` if no iteration ran to its end.
///
/// # Errors
/// None in practice: JSON can represent all fields.
pub fn bencher(series: &Series) -> Result<Option<String>, serde_json::Error> {
    let headline = series.headline();
    let (Some(median), Some(min), Some(max)) = (headline.median, headline.min, headline.max) else {
        return Ok(None);
    };
    let number = |n: usize| Metric {
        value: n as f64,
        lower_value: None,
        upper_value: None,
    };
    let measures = BTreeMap::from([
        (
            "latency",
            Metric {
                value: median.0 as f64,
                lower_value: Some(min.0 as f64),
                upper_value: Some(max.0 as f64),
            },
        ),
        ("contaminated-iterations", number(headline.contaminated)),
        ("unknown-iterations", number(headline.unknown)),
    ]);
    let file = BTreeMap::from([(series.label.as_str(), measures)]);
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    Ok(Some(text))
}
