//! The table of culprits.

use super::report::tone;
use super::words::{became, verdict};
use crate::number;
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::Tone;
use crate::words::{detail, kind_and_name};
use jitterscope_analyze::compare::{Against, CulpritDiff, Verdict};

/// The number of undecided culprits shown, for predicted ones and for others.
const UNDECIDED: usize = 8;

pub(super) fn culprits(report: &mut Report, against: &Against, [a, b]: &[String; 2]) {
    let Some(culprits) = &against.culprits else {
        let text = "No culprits are named: some run has no kernel events, its evidence fails its check, or the runs \
                    are not comparable.";
        report.sentence(Tone::Dim, text);
        return;
    };
    // For other culprits, and for predicted ones.
    let mut undecided = [0; 2];
    let row = |row: &CulpritDiff| {
        // The verdict rests on every decided prediction.
        let decided = matches!(row.verdict, Verdict::Better | Verdict::Worse)
            || row.predicted && row.verdict != Verdict::Inconclusive;
        let count = &mut undecided[usize::from(row.predicted)];
        *count += usize::from(!decided);
        Row {
            aside: !decided && *count > UNDECIDED,
            ..cells(row)
        }
    };
    report.table(Table {
        title: "Culprits".into(),
        columns: vec![
            Column::text("culprit"),
            Column::number(format!("{a}/s")),
            Column::number(format!("{b}/s")),
            Column::number(format!("{a} stolen")),
            Column::number(format!("{b} stolen")),
            Column::text("became"),
            Column::text("verdict"),
        ],
        rows: culprits.iter().map(row).collect(),
        aside: "none of them better or worse",
        ..Table::default()
    });
    let knobs = against.knobs.join(", ");
    if culprits.iter().any(|row| row.predicted) {
        let text = format!(
            "* predicted, because a knob that affects it differs ({knobs}); judged apart from the others"
        );
        report.sentence(Tone::Dim, text);
    } else if !against.knobs.is_empty() {
        let text = format!("Knobs that differ: {knobs}. No culprit that they affect was seen.");
        report.sentence(Tone::Dim, text);
    }
}

fn cells(row: &CulpritDiff) -> Row {
    let mark = if row.predicted { "* " } else { "" };
    let rate = |of: Option<f64>| number::rate(of.unwrap_or(0.0));
    let share = |of: Option<f64>| number::percent(of.unwrap_or(0.0));
    // The figure with the verdict, if only one has it.
    let of = match (
        row.verdict == row.events.verdict,
        row.verdict == row.stolen.verdict,
    ) {
        _ if row.verdict == Verdict::Inconclusive => "",
        (true, false) => ", count",
        (false, true) if row.events.verdict != Verdict::Inconclusive => ", time",
        _ => "",
    };
    Row {
        minor: true,
        ..Row::from([
            Cell {
                detail: detail(&row.subject, 0),
                ..format!("{mark}{}", kind_and_name(&row.subject)).into()
            },
            rate(row.events.first).into(),
            rate(row.events.second).into(),
            share(row.stolen.first).into(),
            share(row.stolen.second).into(),
            became(row.became).into(),
            Cell::toned(format!("{}{of}", verdict(row.verdict)), tone(row.verdict)),
        ])
    }
}
