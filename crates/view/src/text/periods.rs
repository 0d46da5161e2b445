//! Periodic stalls.

use super::{Page, short_cpus_text};
use crate::number::{count, percent_cell};
use crate::style::{Style, Tone, fit, tame};
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::periods::{PeriodRow, PeriodSummary, Regularity};
use jitterscope_model::CpuSet;

/// The number of rows if the user did not ask for periods.
const FEW: usize = 6;
/// Periods of one culprit on several CPUs with a smaller relative difference are one.
const SAME: f64 = 0.002;

/// A culprit's period, on all CPUs that show it.
struct Merged<'r> {
    first: &'r PeriodRow,
    cpus: CpuSet,
    stalls: u64,
    in_pulse: u64,
    /// The smallest of them.
    hit: f64,
}

pub(crate) fn render(page: &mut Page, summary: &RunSummary) {
    let asked = page.style.periods;
    if let Some(periods) = &summary.periods {
        if asked || !periods.rows.is_empty() {
            table(page, periods, summary.probe.cpus.len() > 1);
        }
        return;
    }
    if asked {
        page.heading("PERIODS", "");
        page.prose(None, 2, not_looked_for(summary));
    }
}

/// Why a run has no periods.
pub(crate) fn not_looked_for(summary: &RunSummary) -> &'static str {
    if summary.wakeup.is_some() {
        return "Not looked for: wake-ups begin at deadlines, which are periodic themselves.";
    }
    if summary.pipeline.is_some() {
        return "Not looked for: messages are published at a rate, which is periodic itself. Measure the \
                pipeline's CPUs with `record spin` to see what comes regularly there.";
    }
    "Not looked for: threads that were followed are stalled only when they want to run, so a period need not \
     show. Measure their CPUs with `record spin` to see what comes regularly there."
}

/// Periods alone, each line within `style`'s width.
#[must_use]
pub fn periods_table(periods: &PeriodSummary, several_cpus: bool, style: Style) -> String {
    let mut page = Page::new(Style {
        periods: true,
        ..style
    });
    table(&mut page, periods, several_cpus);
    page.into_text()
}

fn table(page: &mut Page, periods: &PeriodSummary, several: bool) {
    page.heading("PERIODS", "stalls that come regularly");
    if periods.rows.is_empty() {
        let text = match periods.searched {
            0 => "No culprit stalled a CPU ten times, which is the least to tell a period from."
                .to_owned(),
            n => format!("No significant period in {n} series of stalls, one a culprit and CPU."),
        };
        page.prose(None, 2, &text);
        return remarks(page, periods, 0);
    }
    let merged = merged(&periods.rows);
    let shown = if page.style.periods {
        merged.len()
    } else {
        FEW.min(merged.len())
    };
    page.line(
        &page
            .style
            .paint(Tone::Dim, "    every  looked at  in step     hit  culprit"),
    );
    for (at, row) in merged[..shown].iter().enumerate() {
        line(page, row, several);
        // Once for all rows with it.
        let last = merged[..shown]
            .get(at + 1)
            .is_none_or(|next| !same(next.first, row.first));
        if let Some(known) = row.first.known.filter(|_| last) {
            page.prose(Some(Tone::Dim), 9, &format!("the period of: {known}"));
        }
    }
    remarks(page, periods, merged.len() - shown);
}

fn same(a: &PeriodRow, b: &PeriodRow) -> bool {
    (a.period_ns.0 as f64 / b.period_ns.0.max(1) as f64 - 1.0).abs() < SAME
}

/// One row for each culprit and period, the most significant first, followed by all others of its period.
fn merged(rows: &[PeriodRow]) -> Vec<Merged<'_>> {
    let mut merged: Vec<Merged<'_>> = Vec::new();
    for row in rows {
        let known = |known: &&mut Merged<'_>| {
            (known.first.kind, &known.first.name) == (row.kind, &row.name) && same(known.first, row)
        };
        match merged.iter_mut().find(known) {
            Some(known) => {
                known.cpus.insert(row.cpu);
                known.stalls += row.stalls;
                known.in_pulse += row.in_pulse;
                known.hit = known.hit.min(row.hit_fraction);
            }
            None => {
                let last = merged.iter().rposition(|known| same(known.first, row));
                let at = last.map_or(merged.len(), |last| last + 1);
                merged.insert(
                    at,
                    Merged {
                        first: row,
                        cpus: [row.cpu].into_iter().collect(),
                        stalls: row.stalls,
                        in_pulse: row.in_pulse,
                        hit: row.hit_fraction,
                    },
                );
            }
        }
    }
    merged
}

fn line(page: &mut Page, row: &Merged<'_>, several: bool) {
    let first = row.first;
    let numbers = format!(
        "{:>9} {:>10} {:>8} {:>7}  ",
        first.period_ns.to_string(),
        count(row.stalls),
        percent_cell(row.in_pulse as f64 / row.stalls.max(1) as f64),
        percent_cell(row.hit),
    );
    let room = page.style.columns() - numbers.len();
    let culprit = match (&first.kind, &first.name) {
        (Some(kind), Some(name)) => format!("{kind} {}", tame(name)),
        _ => "all stalls".into(),
    };
    let place = if several {
        format!("  {}", fit(&short_cpus_text(&row.cpus), room / 2))
    } else {
        String::new()
    };
    let drifts = match first.regularity {
        Regularity::Drifting => "  drifting",
        Regularity::Clocked | Regularity::Undecided => "",
    };
    let left = room.saturating_sub(place.len() + drifts.len());
    let culprit = page.style.paint(Tone::Strong, &fit(&culprit, left));
    page.line(&format!(
        "{numbers}{culprit}{}",
        page.style.paint(Tone::Dim, &format!("{drifts}{place}"))
    ));
}

fn remarks(page: &mut Page, periods: &PeriodSummary, more: usize) {
    if !periods.rows.is_empty() {
        let text = format!(
            "looked at: stalls, the first ones of each culprit. in step: of them, those in the same tenth of the \
             period. hit: periods that have one. Tested against stalls that come at random, singly or in \
             bursts: of {} such runs one would show any period.",
            count((1.0 / periods.false_alarm).round() as u64)
        );
        page.prose(Some(Tone::Dim), 2, &text);
    }
    let mut hidden = Vec::new();
    if more > 0 {
        hidden.push(format!("{more} more"));
    }
    if periods.left_out > 0 {
        hidden.push(format!(
            "{} series of those who stole less were not searched",
            count(periods.left_out as u64)
        ));
    }
    if !hidden.is_empty() {
        let how = if page.style.periods {
            ""
        } else {
            " (report --periods)"
        };
        page.prose(Some(Tone::Dim), 2, &format!("{}{how}.", hidden.join("; ")));
    }
}
