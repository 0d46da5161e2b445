//! Conditions on a comparison.

use super::condition::{Change, Condition, Quantity};
use super::evaluate::{GateResult, GateVerdict};
use super::names::note_of_change;
use super::pattern::is_meant;
use super::reason::{GateReason, MoreRuns};
use super::value::GateValue;
use crate::compare::{Against, Comparison, CulpritDiff, FigureKind, Undecided, Verdict};

/// Evaluates conditions about changes on a comparison. Ignores the others: they are about runs.
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
    let total = || {
        against
            .figures
            .iter()
            .filter(|row| row.is_total)
            .filter_map(|row| row.comparison.as_ref())
    };
    let figures = || {
        against
            .figures
            .iter()
            .filter_map(|row| row.comparison.as_ref())
    };
    let culprits = against.culprits.as_deref();
    // One worse figure makes a culprit worse. If neither is, a decided figure stands for both.
    let of_culprits = |pattern: &str| -> Option<Vec<&Comparison>> {
        let rows = culprits?
            .iter()
            .filter(|row| is_meant(pattern, &row.subject));
        let telling = |row: &'_ CulpritDiff| {
            let is = |verdict| {
                [&row.stolen, &row.events]
                    .into_iter()
                    .position(|c| c.verdict == verdict)
            };
            let fine = [&row.stolen, &row.events]
                .into_iter()
                .position(|c| c.not_worse());
            is(Verdict::Worse).or(fine).unwrap_or(0)
        };
        Some(
            rows.map(|row| {
                if telling(row) == 0 {
                    &row.stolen
                } else {
                    &row.events
                }
            })
            .collect(),
        )
    };
    let (verdict, why) = match change {
        Change::Total => judge(&total().collect::<Vec<_>>(), true),
        // To pass means that nothing became worse: every judged figure must be known not to be worse.
        Change::Any => {
            let mut all: Vec<&Comparison> = figures().collect();
            let measured = !all.is_empty();
            let of_culprits = of_culprits("*");
            all.extend(of_culprits.iter().flatten());
            match judge(&all, true) {
                (GateVerdict::Kept, _) if !measured => {
                    (GateVerdict::Undecided, Some(GateReason::NoFigureCompared))
                }
                (GateVerdict::Kept, _) if of_culprits.is_none() => {
                    (GateVerdict::Undecided, Some(GateReason::NotAllNamed))
                }
                other => other,
            }
        }
        Change::Culprit(pattern) => match of_culprits(pattern) {
            None => (GateVerdict::Undecided, Some(GateReason::NotAllNamed)),
            Some(rows) => judge(&rows, false),
        },
    };
    // Data missing from the first side can make the second look worse; data missing from either can hide a change for
    // the worse.
    let [of_first, of_second] = against
        .unseen
        .each_ref()
        .map(|unseen| unseen.doubt(&needs(change, against)));
    let doubt = match verdict {
        GateVerdict::Exceeded => of_first,
        GateVerdict::Kept => of_second.or(of_first),
        GateVerdict::Undecided => None,
    };
    // If the sides are not comparable, that is the reason, whatever else is missing.
    let apart = against
        .conditions
        .iter()
        .find(|condition| condition.incomparable);
    let apart = apart.map(|of| GateReason::NotComparable(of.clone()));
    let (verdict, why) = match apart.or(doubt) {
        Some(why) => (GateVerdict::Undecided, Some(why)),
        None => (verdict, why),
    };
    let note = if verdict == GateVerdict::Kept {
        note_of_change(change, culprits)
    } else {
        None
    };
    let value = match verdict {
        GateVerdict::Exceeded => Some(GateValue::BecameWorse(true)),
        GateVerdict::Kept => Some(GateValue::BecameWorse(false)),
        GateVerdict::Undecided => None,
    };
    GateResult {
        condition: condition.to_string(),
        verdict,
        value,
        why,
        note,
    }
}

/// The single-run quantity whose sources a change depends on.
fn needs(change: &Change, against: &Against) -> Quantity {
    let told_by_events = || {
        let kinds = against.figures.iter().map(|row| row.kind);
        kinds
            .into_iter()
            .any(|kind| matches!(kind, FigureKind::Lost))
    };
    match change {
        Change::Culprit(pattern) => Quantity::Culprit(pattern.clone()),
        Change::Any => Quantity::Culprit("*".into()),
        Change::Total if told_by_events() => Quantity::Lost,
        Change::Total => Quantity::Stolen,
    }
}

/// Exceeded if any figure is worse, kept if all are known not to be. With no figure: kept unless one is needed, because
/// what no run has did not become worse.
fn judge(all: &[&Comparison], needs_one: bool) -> (GateVerdict, Option<GateReason>) {
    if all
        .iter()
        .any(|comparison| comparison.verdict == Verdict::Worse)
    {
        return (GateVerdict::Exceeded, None);
    }
    if all.is_empty() && needs_one {
        return (GateVerdict::Undecided, Some(GateReason::NothingCompared));
    }
    let open: Vec<&&Comparison> = all
        .iter()
        .filter(|comparison| !comparison.not_worse())
        .collect();
    let Some(first) = open.first() else {
        return (GateVerdict::Kept, None);
    };
    let help = match open
        .iter()
        .map(|comparison| comparison.more_runs)
        .max()
        .flatten()
    {
        _ if first.undecided == Some(Undecided::NotMeasured) => MoreRuns::NotMeasured,
        Some(more) => MoreRuns::Some(more),
        None => MoreRuns::Unknown,
    };
    let why = GateReason::MayBeWorse {
        open: open.len(),
        all: all.len(),
        help,
    };
    (GateVerdict::Undecided, Some(why))
}
