//! The culprits.

use super::charts;
use super::markup::{Cell, Head, Markup};
use crate::chart::{ChartKind, words as chart_words};
use crate::drawn::Drawn;
use crate::number::{count, percent_cell, rate};
use crate::text::headline;
use crate::words;
use jitterscope_analyze::CulpritRow;
use jitterscope_model::Subject;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The number of rows shown at first.
const FEW: usize = 14;
/// Columns of a name.
const NAME: usize = 96;

pub(super) fn render(body: &mut Markup, run: &Drawn) {
    body.section("culprits", "Culprits");
    if let Some(why) = headline::unproven(&run.summary) {
        body.note(&why).end();
        return;
    }
    let mut all: Vec<&CulpritRow> = run
        .summary
        .attribution
        .iter()
        .flat_map(|of| of.culprits.iter().chain(&of.unexplained.classes))
        .filter(|row| row.total_ns.0 > 0)
        .collect();
    all.sort_by_key(|row| Reverse(row.total_ns));
    let names = chart_words::culprits(run, NAME);
    let numbers: HashMap<&Subject, usize> = run
        .picture
        .culprits
        .iter()
        .zip(0..)
        .map(|(culprit, number)| (&culprit.subject, number))
        .collect();
    let mut rows: Vec<Vec<Cell>> = all
        .into_iter()
        .map(|of| {
            let number = numbers.get(&of.subject).copied();
            let name = number.and_then(|number| names.get(number).cloned());
            let text = name.unwrap_or_else(|| words::kind_and_name(&of.subject));
            let culprit = match number {
                Some(number) => Cell::Culprit { number, text },
                None => Cell::Text(text),
            };
            row(of, culprit)
        })
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

fn row(of: &CulpritRow, culprit: Cell) -> Vec<Cell> {
    let mut lines = vec![words::row_explanation(of)];
    let detail = words::further_detail(&of.subject, of.threads);
    lines.extend(
        Some(detail).filter(|detail| !detail.is_empty() && !lines[0].contains(detail.as_str())),
    );
    if let Some(sender) = &of.sender {
        let who = words::sent_from(
            sender.context,
            sender
                .comm
                .as_deref()
                .or(sender.tid.map(|_| words::ENDED))
                .or(sender.beneath.as_deref()),
        );
        let via = sender
            .via
            .as_deref()
            .map(|via| format!(" through {via}"))
            .unwrap_or_default();
        // A stall may have several parts of one culprit, each with a trigger.
        let known = of.senders_known.max(sender.count).max(1);
        let share = percent_cell(sender.count as f64 / known as f64);
        lines.push(format!(
            "{} by {who}{via} (most often: {share} of the times that are known)",
            words::sender_verb(of.subject.kind())
        ));
    }
    vec![
        culprit,
        Cell::Number(percent_cell(of.share)),
        Cell::Number(of.total_ns.to_string()),
        Cell::Number(count(of.count)),
        Cell::Number(rate(of.per_sec)),
        Cell::Number(of.mean_ns.to_string()),
        Cell::Number(of.max_ns.to_string()),
        Cell::Lines(lines),
    ]
}
