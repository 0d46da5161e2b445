//! Who stole the time.

use super::charts;
use super::markup::{Cell, Head, Markup};
use crate::chart::{ChartKind, words as chart_words};
use crate::drawn::Drawn;
use crate::number::{count, percent_cell, rate};
use crate::text::headline;
use crate::words;
use jitterscope_analyze::picture::{DrawnCulprit, summary_row};

/// Rows at first sight.
const FEW: usize = 14;
/// Columns of a name.
const NAME: usize = 96;

pub(super) fn render(body: &mut Markup, run: &Drawn) {
    body.section("culprits", "Culprits");
    if let Some(why) = headline::unproven(&run.summary) {
        body.note(&why).end();
        return;
    }
    let mut rows: Vec<Vec<Cell>> = run
        .picture
        .culprits
        .iter()
        .zip(chart_words::culprits(run, NAME))
        .enumerate()
        .filter(|(_, (culprit, _))| culprit.total.0 > 0)
        .map(|(number, (culprit, name))| row(run, number, culprit, name))
        .collect();
    if rows.is_empty() {
        let why = match run.summary.attribution {
            Some(_) => "Nothing was stolen.",
            None => {
                "Stalls were only counted: nothing recorded what ran instead. Under Trust is what would show it."
            }
        };
        body.note(why).end();
        return;
    }
    charts::figure(body, run, ChartKind::Culprits);
    let heads = [
        Head::Text("culprit"),
        Head::Number("share"),
        Head::Number("total"),
        Head::Number(chart_words::noun(run).many),
        Head::Number("a second"),
        Head::Number("mean"),
        Head::Number("longest"),
        Head::Text("what it is"),
    ];
    let rest = if rows.len() > FEW + 4 {
        rows.split_off(FEW)
    } else {
        Vec::new()
    };
    body.table("Culprits, by their time", &heads, rows);
    if !rest.is_empty() {
        body.details(&format!("{} more", rest.len()), |body| {
            body.table("Culprits with less time", &heads, rest);
        });
    }
    if let Some(text) = words::possibilities(&run.summary) {
        body.note(&text);
    }
    body.note(
        "Dashed bars, and names after \u{201c}hypervisor\u{201d}, \u{201c}unresolved\u{201d} and the like, are \
         time that nothing recorded explains: a verdict by exclusion, or none.",
    );
    body.end();
}

fn row(run: &Drawn, number: usize, culprit: &DrawnCulprit, name: String) -> Vec<Cell> {
    let all: u64 = run
        .picture
        .culprits
        .iter()
        .map(|culprit| culprit.total.0)
        .sum();
    let seconds = run.picture.duration.as_secs_f64();
    let per_sec = if seconds > 0.0 {
        culprit.count as f64 / seconds
    } else {
        0.0
    };
    let mut lines = vec![words::explain(&culprit.subject).to_owned()];
    let detail = words::further_detail(&culprit.subject, culprit.threads);
    lines.extend(
        Some(detail).filter(|detail| !detail.is_empty() && !lines[0].contains(detail.as_str())),
    );
    let summed = summary_row(&run.summary, &culprit.subject);
    if let Some((sender, known)) =
        summed.and_then(|row| Some((row.sender.as_ref()?, row.senders_known)))
    {
        let who = words::sent_from(
            sender.context,
            sender.comm.as_deref().or(sender.tid.map(|_| words::ENDED)),
        );
        let via = sender
            .via
            .as_deref()
            .map(|via| format!(" through {via}"))
            .unwrap_or_default();
        // A stall may have several parts of one culprit, each triggered by somebody.
        let share = percent_cell(sender.count as f64 / known.max(sender.count).max(1) as f64);
        lines.push(format!(
            "triggered by {who}{via} (most often: {share} of the times that are known)"
        ));
    }
    vec![
        Cell::Culprit { number, text: name },
        Cell::Number(percent_cell(culprit.total.0 as f64 / all.max(1) as f64)),
        Cell::Number(culprit.total.to_string()),
        Cell::Number(count(culprit.count)),
        Cell::Number(rate(per_sec)),
        Cell::Number(jitterscope_model::Nanos(culprit.total.0 / culprit.count.max(1)).to_string()),
        Cell::Number(culprit.max.to_string()),
        Cell::Lines(lines),
    ]
}
