//! The series as Markdown, for the summary page of a build.

use super::words;
use crate::number::percent;
use crate::report::cell;
use jitterscope_analyze::guard::{Contamination, Series};

/// A title, the headline, and a table of all iterations.
#[must_use]
pub fn markdown(series: &Series) -> String {
    let headline = series.headline();
    let mut page = format!("### {}\n\n", cell(&words::command(series)));
    let mut sentences = vec![
        format!("**{}**", cell(&words::times(series, &headline))),
        cell(&words::disturbed(series, &headline)),
    ];
    sentences.extend(words::ended(series).as_deref().map(cell));
    sentences.extend(words::disturbed_by_us(series).as_deref().map(cell));
    sentences.extend(words::own(series).as_deref().map(cell));
    page += &sentences.join("\n\n");
    page += "\n\n| # | time | lost | share | verdict | most to | run |\n|--:|--:|--:|--:|---|---|---|\n";
    for (at, one) in series.iterations.iter().enumerate() {
        let verdict = match one.contamination {
            Contamination::Clean => "clean".into(),
            Contamination::Contaminated => "**contaminated**".into(),
            Contamination::Unknown => {
                format!("**unknown**: {}", cell(&words::all_unsure(one)))
            }
        };
        let time = match one.is_whole() {
            true => one.time.to_string(),
            false => "ended".into(),
        };
        page += &format!(
            "| {} | {time} | {} | {} | {verdict} | {} | {} |\n",
            words::number(at, one).trim_end(),
            one.stolen.lost(),
            percent(one.stolen.share()),
            cell(&words::culprit(one)),
            cell(&one.run)
        );
    }
    page += &format!("\n{}\n", cell(words::COST));
    page
}
