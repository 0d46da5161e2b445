//! Conditions against a comparison.

use super::condition::{Change, Condition, Quantity};
use super::evaluate::{GateResult, GateVerdict};
use super::quantities::is_meant;
use crate::compare::{Against, Comparison, CulpritDiff, Verdict};

/// Holds conditions about changes against a comparison; the others are left out, for they are about runs.
#[must_use]
pub fn evaluate_changes(conditions: &[Condition], against: &Against) -> Vec<GateResult> {
    conditions
        .iter()
        .filter_map(|condition| match &condition.quantity {
            Quantity::Worse(change) => Some(one(condition, change, against)),
            _ => None,
        })
        .collect()
}

fn one(condition: &Condition, change: &Change, against: &Against) -> GateResult {
    let total =
        || against.figures.iter().filter(|row| row.is_total).filter_map(|row| row.comparison.as_ref());
    let figures = || against.figures.iter().filter_map(|row| row.comparison.as_ref());
    let culprits = against.culprits.as_deref();
    // A worse figure of a culprit is worse. Where neither is, the one that can be decided speaks for both.
    let of_culprits = |pattern: &str| -> Option<Vec<&Comparison>> {
        let rows = culprits?.iter().filter(|row| is_meant(pattern, &row.subject));
        let telling = |row: &'_ CulpritDiff| {
            let is = |verdict| [&row.stolen, &row.events].into_iter().position(|c| c.verdict == verdict);
            let fine = [&row.stolen, &row.events].into_iter().position(|c| c.not_worse());
            is(Verdict::Worse).or(fine).unwrap_or(0)
        };
        Some(rows.map(|row| if telling(row) == 0 { &row.stolen } else { &row.events }).collect())
    };
    let (verdict, why) = match change {
        Change::Total => judge(&total().collect::<Vec<_>>(), true),
        Change::Any => {
            let judged = figures()
                .chain(culprits.unwrap_or_default().iter().flat_map(|row| [&row.stolen, &row.events]));
            let worse = judged.filter(|c| c.verdict == Verdict::Worse).count();
            match worse {
                // What was not found to be worse is as good as the total says.
                0 => judge(&total().collect::<Vec<_>>(), true),
                _ => (GateVerdict::Exceeded, None),
            }
        }
        Change::Culprit(pattern) => match of_culprits(pattern) {
            None => (GateVerdict::Undecided, Some("not every run names culprits".into())),
            Some(rows) => judge(&rows, false),
        },
    };
    let told = match verdict {
        GateVerdict::Exceeded => Some("worse".into()),
        GateVerdict::Kept => Some("not worse".into()),
        GateVerdict::Undecided => None,
    };
    GateResult { condition: condition.to_string(), verdict, value: told, why }
}

/// Worse if any is, kept if all are known not to be. Of none at all: kept where none is needed, for what no
/// run has did not become worse.
fn judge(all: &[&Comparison], needs_one: bool) -> (GateVerdict, Option<String>) {
    if all.iter().any(|comparison| comparison.verdict == Verdict::Worse) {
        return (GateVerdict::Exceeded, None);
    }
    if all.is_empty() && needs_one {
        return (GateVerdict::Undecided, Some("nothing could be compared".into()));
    }
    match all.iter().find(|comparison| !comparison.not_worse()) {
        Some(open) => {
            let why = match open.more_runs {
                Some(more) => format!("it may be worse: {more} more runs of each might decide"),
                None => "it may be worse".into(),
            };
            (GateVerdict::Undecided, Some(why))
        }
        None => (GateVerdict::Kept, None),
    }
}
