//! Conditions on a comparison.

use super::condition::{Change, Condition, Quantity};
use super::evaluate::{GateResult, GateVerdict};
use super::names::note_of_change;
use super::pattern::is_meant;
use super::reason::{GateReason, MoreRuns};
use super::value::{Changed, GateValue, SeenChange};
use crate::compare::{
    Against, Comparison, CulpritDiff, FigureKind, FigureUnit, Undecided, Verdict,
};

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

/// A comparison, and what it compares.
type Row<'a> = (Changed, FigureUnit, &'a Comparison);

fn one(condition: &Condition, change: &Change, against: &Against) -> GateResult {
    let figures = |totals_only: bool| {
        let rows = against.figures.iter();
        let rows = rows.filter(move |row| row.is_total || !totals_only);
        rows.filter_map(|row| {
            let comparison = row.comparison.as_ref()?;
            Some((Changed::Figure(row.kind), row.unit, comparison))
        })
    };
    let culprits = against.culprits.as_deref();
    let of_culprits = |meant: &dyn Fn(&CulpritDiff) -> bool| -> Option<Vec<Row<'_>>> {
        let rows = culprits?.iter().filter(|row| meant(row));
        Some(rows.map(telling).collect())
    };
    let (verdict, why, value) = match change {
        Change::Total => judge(&figures(true).collect::<Vec<_>>(), true),
        // To pass means that nothing became worse: every judged figure must be known not to be worse. A culprit that
        // nobody predicted is not among them: of many, one is always open.
        Change::Any => {
            let mut all: Vec<Row<'_>> = figures(false).collect();
            let measured = !all.is_empty();
            let predicted = of_culprits(&|row| row.predicted);
            all.extend(predicted.iter().flatten().cloned());
            match judge(&all, true) {
                (GateVerdict::Kept, ..) if !measured => undecided(GateReason::NoFigureCompared),
                (GateVerdict::Kept, ..) if predicted.is_none() => {
                    undecided(GateReason::NotAllNamed)
                }
                other => other,
            }
        }
        Change::Culprit(pattern) => match of_culprits(&|row| is_meant(pattern, &row.subject)) {
            None => undecided(GateReason::NotAllNamed),
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
    GateResult {
        condition: condition.to_string(),
        verdict,
        value,
        why,
        note,
    }
}

/// A culprit, by the comparison that its row states.
fn telling(row: &CulpritDiff) -> Row<'_> {
    let title = Changed::Culprit(row.title());
    (title, row.telling_unit(), row.telling())
}

/// The single-run quantity whose sources a change depends on.
fn needs(change: &Change, against: &Against) -> Quantity {
    let told_by_events = || {
        let mut figures = against.figures.iter();
        figures.any(|row| row.kind == FigureKind::Lost)
    };
    match change {
        Change::Culprit(pattern) => Quantity::Culprit(pattern.clone()),
        Change::Any if against.culprits.iter().flatten().any(|row| row.predicted) => {
            Quantity::Culprit("*".into())
        }
        _ if told_by_events() => Quantity::Lost,
        _ => Quantity::Stolen,
    }
}

type Judged = (GateVerdict, Option<GateReason>, Option<GateValue>);

fn undecided(why: GateReason) -> Judged {
    (GateVerdict::Undecided, Some(why), None)
}

/// Exceeded if any figure is worse, kept if all are known not to be; with the change of the figure that decides. With
/// no figure: kept unless one is needed, because what no run has did not become worse.
fn judge(all: &[Row<'_>], needs_one: bool) -> Judged {
    let value = |row: Option<&Row<'_>>| {
        row.map_or(GateValue::NoChange, |(of, unit, comparison)| {
            GateValue::Change(SeenChange::new(of.clone(), *unit, comparison))
        })
    };
    let surest = |a: &&Row<'_>, b: &&Row<'_>| {
        let chance = |row: &Row<'_>| row.2.probability.unwrap_or(1.0);
        chance(a).total_cmp(&chance(b))
    };
    let worse = all.iter().filter(|row| row.2.verdict == Verdict::Worse);
    if let Some(row) = worse.min_by(surest) {
        return (GateVerdict::Exceeded, None, Some(value(Some(row))));
    }
    if all.is_empty() && needs_one {
        return undecided(GateReason::NothingCompared);
    }
    // How much of its margin a figure may have used up.
    let used = |row: &Row<'_>| match row.2.equivalence_interval {
        Some(interval) => interval.high / row.2.margin.max(f64::MIN_POSITIVE),
        None => f64::NEG_INFINITY,
    };
    let nearest = |a: &&Row<'_>, b: &&Row<'_>| used(a).total_cmp(&used(b));
    let open: Vec<&Row<'_>> = all.iter().filter(|row| !row.2.not_worse()).collect();
    if open.is_empty() {
        let row = all.iter().max_by(nearest);
        return (GateVerdict::Kept, None, Some(value(row)));
    }
    // What no number of runs decides takes most.
    let takes = |row: &&&Row<'_>| match row.2.undecided {
        Some(Undecided::NotMeasured) => (3, 0),
        Some(Undecided::OneAfterTheOther) => (2, 0),
        _ => row.2.more_runs.map_or((1, 0), |more| (0, more)),
    };
    let most = open.iter().max_by_key(takes).copied();
    let help = match most.map(|row| (row.2.undecided, row.2.more_runs)) {
        Some((Some(Undecided::NotMeasured), _)) => MoreRuns::NotMeasured,
        Some((Some(Undecided::OneAfterTheOther), _)) => MoreRuns::OneAfterTheOther,
        Some((_, Some(more))) => MoreRuns::Some(more),
        _ => MoreRuns::Unknown,
    };
    let why = GateReason::MayBeWorse {
        open: open.len(),
        all: all.len(),
        help,
    };
    (GateVerdict::Undecided, Some(why), Some(value(most)))
}
