//! What a selftest found, as data.

use super::PASS_PERCENT;
use jitterscope_inject::{DisturbKind, Expectation};
use jitterscope_model::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};

/// Injections within reach for a verdict, when others were not.
const ENOUGH: u64 = 20;

/// What was said of injections instead of the truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongVerdict {
    /// In words: the culprit named, `no stall`, or a wrong sender.
    pub said: String,
    /// Of how many injections.
    pub count: u64,
}

/// One kind of disturbance, scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelftestRow {
    /// What was injected.
    pub kind: DisturbKind,
    /// The verdict that was expected; `None` when the child never told.
    pub expected: Option<Expectation>,
    /// How many disturbances were injected.
    pub injected: u64,
    /// How many of them met a stall on the victim's CPU.
    pub found: u64,
    /// How many of them met a stall with the expected culprit in its attribution.
    pub named: u64,
    /// Injections that could not reach the victim, because another thread ran on its CPU all the while
    /// (only of kinds that reach a running victim); they are not among `injected`.
    pub out_of_reach: u64,
    /// The control: how many would be named if each had been logged half a period later. Far fewer than
    /// `named`, else the naming is chance.
    pub named_when_shifted: u64,
    /// Median of |culprit's net time - injected length| / injected length, where lengths are known.
    pub length_error: Option<f64>,
    /// What was said instead, the most frequent first.
    pub wrong: Vec<WrongVerdict>,
    /// Whether enough was found and named.
    pub passed: bool,
    /// Why not; empty when passed.
    pub reason: String,
}

impl SelftestRow {
    /// A kind whose injecting or recording failed in the middle.
    #[must_use]
    pub fn failed(kind: DisturbKind, reason: String) -> SelftestRow {
        SelftestRow {
            kind,
            expected: None,
            injected: 0,
            found: 0,
            named: 0,
            out_of_reach: 0,
            named_when_shifted: 0,
            length_error: None,
            wrong: Vec::new(),
            passed: false,
            reason,
        }
    }

    /// Whether others had the CPU in so many cases that what is left decides nothing.
    pub(super) fn is_undecided(&self) -> bool {
        self.out_of_reach > 0 && self.injected < ENOUGH
    }

    /// Fills in the verdict from the counts.
    pub(super) fn judge(mut self) -> SelftestRow {
        let enough =
            |part: u64| u128::from(part) * 100 >= u128::from(self.injected) * u128::from(PASS_PERCENT);
        let instead = || match self.wrong.first() {
            Some(wrong) => format!("; most often instead: {}, {} times", wrong.said, wrong.count),
            None => String::new(),
        };
        self.reason = if self.injected == 0 && self.out_of_reach == 0 {
            "nothing was injected".into()
        } else if self.is_undecided() {
            format!(
                "another thread ran on the CPU during {} of {} injections: too busy to test",
                self.out_of_reach,
                self.out_of_reach + self.injected
            )
        } else if !enough(self.found) {
            format!("found {} of {}, {PASS_PERCENT} % are needed", self.found, self.injected)
        } else if !enough(self.named) {
            format!("named {} of {}, {PASS_PERCENT} % are needed{}", self.named, self.injected, instead())
        } else {
            String::new()
        };
        self.passed = self.reason.is_empty();
        self
    }
}

/// A kind that this machine cannot run, or was too busy for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedKind {
    /// Which.
    pub kind: DisturbKind,
    /// Why.
    pub reason: String,
}

/// A whole selftest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelftestReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The kinds that ran.
    pub rows: Vec<SelftestRow>,
    /// The kinds that could not.
    pub skipped: Vec<SkippedKind>,
    /// Whether something ran, and all of it passed.
    pub passed: bool,
}

impl SelftestReport {
    /// Sums up.
    #[must_use]
    pub fn new(rows: Vec<SelftestRow>, skipped: Vec<SkippedKind>) -> SelftestReport {
        let passed = !rows.is_empty() && rows.iter().all(|row| row.passed);
        SelftestReport { schema_version: SCHEMA_VERSION, rows, skipped, passed }
    }
}
