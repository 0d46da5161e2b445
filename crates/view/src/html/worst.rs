//! The longest stalls, each of which leads into the timeline.

use super::markup::{Cell, Head, Markup};
use crate::drawn::Drawn;
use crate::number::{moment, percent_cell, utc};
use crate::text::headline;
use crate::words;
use jitterscope_analyze::WorstStall;

/// Rows at first sight.
const FEW: usize = 20;
/// Parts of a stall that are told.
const PARTS: usize = 3;

pub(super) fn render(body: &mut Markup, run: &Drawn) {
    body.section("worst", "Worst stalls");
    let worst = &run.summary.worst;
    if worst.is_empty() {
        body.note("No stall was recorded.").end();
        return;
    }
    let doubt = headline::unproven(&run.summary);
    if let Some(why) = &doubt {
        body.note(why);
    }
    let row = |stall: &WorstStall| row(stall, doubt.is_none());
    let heads = [
        Head::Number(""),
        Head::Number("length"),
        Head::Text("since the start"),
        Head::Text("UTC"),
        Head::Text("where"),
        Head::Text("whose time it became"),
    ];
    let (first, rest) = worst.split_at(worst.len().min(FEW));
    body.table("The longest first", &heads, first.iter().map(row).collect());
    if !rest.is_empty() {
        body.details(&format!("{} more", rest.len()), |body| {
            body.table("Shorter ones", &heads, rest.iter().map(row).collect());
        });
    }
    body.end();
}

/// `proven`: whether what is said of culprits holds.
fn row(stall: &WorstStall, proven: bool) -> Vec<Cell> {
    let mut parts: Vec<_> = stall.parts.iter().filter(|_| proven).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.net));
    let mut told: Vec<String> = parts
        .iter()
        .take(PARTS)
        .map(|part| {
            let share = percent_cell(part.net.0 as f64 / stall.duration_ns.0.max(1) as f64);
            let phase = part.phase.as_ref().map(|phase| format!("{phase}: ")).unwrap_or_default();
            format!("{share} {phase}{}", words::kind_and_name(&part.culprit.subject))
        })
        .collect();
    if parts.len() > PARTS {
        told.push(format!("{} more", parts.len() - PARTS));
    }
    let mut place = vec![format!("CPU {}", stall.cpu), stall.victim.clone()];
    place.extend(stall.together.as_ref().map(|together| format!("together on CPUs {}", together.cpus)));
    let nanos = stall.start_realtime_ns % 1_000_000_000;
    vec![
        Cell::Number(stall.rank.map(|rank| rank.to_string()).unwrap_or_default()),
        Cell::Number(stall.duration_ns.to_string()),
        Cell::Link { to: format!("stall={}", stall.stall.0), text: moment(stall.start_offset_ns) },
        Cell::Text(format!("{}.{:06}", utc(stall.start_realtime_ns), nanos / 1000)),
        Cell::Lines(place),
        Cell::Lines(told),
    ]
}
