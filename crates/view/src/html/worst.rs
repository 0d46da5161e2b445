//! The longest stalls, with links into the timeline.

use super::markup::{Cell, Head, Markup};
use crate::chart::words as chart;
use crate::drawn::Drawn;
use crate::number::{count, moment, percent_cell, utc};
use crate::text::headline;
use crate::words;
use jitterscope_analyze::WorstStall;
use jitterscope_analyze::picture::CurveOf;
use jitterscope_model::{CulpritSums, KeyLevel, Nanos, Phase};

/// The number of rows shown at first.
const FEW: usize = 20;
/// The number of listed parts of a stall.
const PARTS: usize = 3;

pub(super) fn render(body: &mut Markup, run: &Drawn) {
    let noun = chart::noun(run);
    body.section("worst", &format!("Worst {}", noun.many));
    let worst = &run.summary.worst;
    if worst.is_empty() {
        body.note(&format!("No {} was recorded.", noun.one)).end();
        return;
    }
    let doubt = headline::unproven(&run.summary);
    if let Some(why) = &doubt {
        body.note(why);
    }
    if let Some(note) = only_counted(run) {
        body.note(&note);
    }
    let row = |stall: &WorstStall| row(stall, doubt.is_none());
    let mut heads = vec![Head::Number("rank"), Head::Number("length")];
    // The doubt replaces the column: it would be empty.
    heads.extend(
        doubt
            .is_none()
            .then_some(Head::Text("whose time it became")),
    );
    heads.extend(["since the start", "UTC", "where"].map(Head::Text));
    let (first, rest) = worst.split_at(worst.len().min(FEW));
    body.table("The longest first", &heads, first.iter().map(row).collect());
    if !rest.is_empty() {
        body.details(&format!("{} more", rest.len()), |body| {
            body.table("Shorter ones", &heads, rest.iter().map(row).collect());
        });
    }
    body.end();
}

/// The messages missing from the list, if more were slow than have rows.
fn only_counted(run: &Drawn) -> Option<String> {
    let slow = chart::slow_messages(run)?;
    let note = format!(
        "Of {} slow messages {} were recorded one by one, and these are the longest of those",
        count(slow),
        count(run.picture.stalls_read)
    );
    let intended = run
        .picture
        .curves
        .iter()
        .filter(|curve| matches!(curve.of, CurveOf::FromIntended(_)));
    let longest = intended.map(|curve| curve.longest().1).fold(0.0, f64::max);
    let here = run
        .summary
        .worst
        .iter()
        .map(|stall| stall.duration_ns.0)
        .max()
        .unwrap_or(0);
    // Distributions keep three digits.
    match longest > here as f64 * 1.01 {
        true => Some(format!(
            "{note}: the longest of all, {}, has no row.",
            Nanos(longest as u64)
        )),
        false => Some(format!("{note}; the others have no row.")),
    }
}

/// `proven`: whether the verdicts on culprits hold.
fn row(stall: &WorstStall, proven: bool) -> Vec<Cell> {
    // The parts of each culprit together, as in the panel beside the timeline.
    let mut sums: CulpritSums<Option<Phase>, Nanos> =
        CulpritSums::new(KeyLevel::Program, usize::MAX);
    for part in stall.parts.iter().filter(|_| proven) {
        *sums.of(part.phase.clone(), &part.culprit.subject) += part.net;
    }
    let mut parts = sums.into_rows();
    parts.sort_by_key(|part| std::cmp::Reverse(part.value));
    let mut lines: Vec<String> = parts
        .iter()
        .take(PARTS)
        .map(|part| {
            let share = percent_cell(part.value.0 as f64 / stall.duration_ns.0.max(1) as f64);
            let phase = part
                .extra
                .as_ref()
                .map(|phase| format!("{phase}: "))
                .unwrap_or_default();
            format!("{share} {phase}{}", words::kind_and_name(&part.subject))
        })
        .collect();
    if parts.len() > PARTS {
        lines.push(format!("{} more", parts.len() - PARTS));
    }
    let mut place = vec![format!("CPU {}", stall.cpu), stall.victim.clone()];
    place.extend(
        stall
            .together
            .as_ref()
            .map(|together| format!("together on CPUs {}", together.cpus)),
    );
    let nanos = stall.start_realtime_ns % 1_000_000_000;
    let mut cells = vec![
        Cell::Number(stall.rank.map(|rank| rank.to_string()).unwrap_or_default()),
        Cell::Number(stall.duration_ns.to_string()),
    ];
    cells.extend(proven.then_some(Cell::Lines(lines)));
    cells.extend([
        Cell::Stall {
            id: stall.stall.0,
            text: moment(stall.start_offset_ns),
        },
        Cell::Text(format!(
            "{}.{:06}",
            utc(stall.start_realtime_ns),
            nanos / 1000
        )),
        Cell::Lines(place),
    ]);
    cells
}
