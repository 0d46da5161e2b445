//! Whether a change does what it declares.

use super::{Asked, Decision};
use jitterscope_analyze::compare::{Against, Comparison, CulpritDiff, FigureUnit, Scale, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

/// The share of the predicted culprits' time that must be missing from the total, and that other culprits must have taken
/// over to count as having taken it over.
const MOST_OF_IT: f64 = 0.5;

/// Whether the change does what it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// The predicted culprits fell beyond the margin, and the total fell with them; where their time is within the margin
    /// of the total, it is not worse.
    Yes,
    /// The predicted culprits fell; whether the total is worse, or fell with them, is undecided.
    CulpritsOnly,
    /// The predicted culprits fell, but their time went to others: the total did not fall with them.
    Moved,
    /// A predicted culprit did not fall beyond the margin, or the total is worse.
    No,
    Undecided,
    /// Nothing was predicted, or nothing predicted was seen: only the total counts.
    NothingPredicted,
}

/// Whether the decisions and the last comparison verify the change, and the culprits that took over the time.
pub(super) fn verified(against: &Against, decisions: &[Decision]) -> (Verified, Vec<String>) {
    let decided = |what: Asked| decisions.iter().find(|d| d.what == what).map(|d| d.verdict);
    let rows = || against.culprits.iter().flatten();
    // Culprits that a knob answers but neither arm saw verify nothing.
    let predicted: Vec<&CulpritDiff> = rows()
        .filter(|row| row.predicted && row.verdict != Verdict::NotSeen)
        .collect();
    let verdicts: Vec<Option<Verdict>> = predicted
        .iter()
        .map(|row| decided(Asked::Culprit(row.title())))
        .collect();
    // A decided total has the row of the look that decided it.
    let totals: Vec<&Comparison> = against.totals().map(|(_, of)| of).collect();
    let is_worse = |of: &&Comparison| of.verdict == Verdict::Worse;
    let total_fine = !totals.is_empty() && totals.iter().all(|of| of.not_worse());
    let missed = |(verdict, row): (&Option<Verdict>, &&CulpritDiff)| match verdict {
        Some(Verdict::Worse | Verdict::Equivalent) => true,
        Some(Verdict::Better) => !fell_beyond_the_margin(row),
        _ => false,
    };
    let verdict = if predicted.is_empty() {
        Verified::NothingPredicted
    } else if totals.iter().any(is_worse) || verdicts.iter().zip(&predicted).any(missed) {
        Verified::No
    } else if verdicts.iter().any(|v| *v != Some(Verdict::Better)) {
        Verified::Undecided
    } else {
        let fall: f64 = predicted.iter().map(|row| -gained(&row.stolen)).sum();
        let grown: Vec<&CulpritDiff> = rows()
            .filter(|row| !row.predicted && row.verdict == Verdict::Worse)
            .filter(|row| row.stolen.change.is_some_and(|of| of > row.stolen.margin))
            .collect();
        let taken: f64 = grown.iter().map(|row| gained(&row.stolen)).sum();
        let taken_over = fall > 0.0 && taken >= MOST_OF_IT * fall;
        return match (total_follows(against, fall), total_fine) {
            (Some(false), _) if taken_over => (Verified::Moved, titles(&grown)),
            (Some(false), _) => (Verified::Moved, Vec::new()),
            (None, _) if taken_over => (Verified::Moved, titles(&grown)),
            (Some(true) | None, false) => (Verified::CulpritsOnly, Vec::new()),
            (Some(true), true) => (Verified::Yes, Vec::new()),
            (None, true) => match expects_a_fall(against, fall) {
                true => (Verified::CulpritsOnly, Vec::new()),
                false => (Verified::Yes, Vec::new()),
            },
        };
    };
    (verdict, Vec::new())
}

fn titles(rows: &[&CulpritDiff]) -> Vec<String> {
    rows.iter().map(|row| row.title()).collect()
}

/// The change from the first arm to the second, in the figure's unit.
fn gained(of: &Comparison) -> f64 {
    of.second.unwrap_or(0.0) - of.first.unwrap_or(0.0)
}

/// Its time or its count: either shows that a culprit went away.
fn fell_beyond_the_margin(row: &CulpritDiff) -> bool {
    [&row.stolen, &row.events]
        .iter()
        .any(|of| of.change.is_some_and(|change| change < -of.margin))
}

/// The comparison of the total that is a share of the time, as the culprits' times are.
fn share_of_time(against: &Against) -> Option<&Comparison> {
    let rows = against.figures.iter().filter(|row| row.is_total);
    let share = rows.filter(|row| row.unit == FigureUnit::Fraction);
    share.filter_map(|row| row.comparison.as_ref()).next()
}

/// Whether a fall of the culprits by this share of the time exceeds the margin of the total, so that it must be seen there.
fn expects_a_fall(against: &Against, fall: f64) -> bool {
    share_of_time(against).is_some_and(|total| {
        let margin = match total.scale {
            Scale::Ratio => total.margin * total.first.unwrap_or(0.0),
            Scale::Difference => total.margin,
        };
        fall > margin
    })
}

/// Whether the total fell with the culprits; `None` if that is undecided, or too little to be seen in the total.
fn total_follows(against: &Against, fall: f64) -> Option<bool> {
    let total = share_of_time(against).filter(|_| expects_a_fall(against, fall))?;
    match total.verdict {
        Verdict::Inconclusive | Verdict::NotSeen => None,
        Verdict::Better => Some(-gained(total) >= MOST_OF_IT * fall),
        Verdict::Equivalent | Verdict::Worse => Some(false),
    }
}
