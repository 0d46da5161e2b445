//! What a selftest found, as data.

use jitterscope_inject::{DisturbKind, Expectation, Unavailable};
use jitterscope_model::{CulpritKind, ExecutionContext, Name, SCHEMA_VERSION};
use serde::{Deserialize, Serialize};

/// The share of the injections that must be found, and named, for a kind to pass.
pub const PASS_PERCENT: u32 = 95;
/// Injections within reach for a verdict, when others were not.
const ENOUGH: u64 = 20;

/// What a recording says of an injection that it does not name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Instead {
    /// No stall of the victim's CPU meets it.
    NoStall,
    /// A stall that has no attribution.
    NoAttribution,
    /// The right culprit, without its sender.
    NoSender,
    /// The right culprit, sent by somebody else.
    OtherSender {
        /// What ran there.
        context: ExecutionContext,
        /// The name of its thread, where one had a part in it that is known by name.
        comm: Option<Name>,
        /// The id of its thread, where one had a part in it that is not known by name.
        tid: Option<i32>,
    },
    /// Another culprit: that with the most time.
    OtherCulprit {
        /// Its kind.
        kind: CulpritKind,
        /// Its name.
        name: Name,
    },
}

/// What was said of injections instead of the truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongVerdict {
    /// What.
    pub instead: Instead,
    /// Of how many injections.
    pub count: u64,
}

/// Why a kind did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Shortfall {
    /// Nothing was injected.
    NothingInjected,
    /// Another thread had the CPU during so many injections that the others decide nothing.
    TooBusy {
        /// So many.
        out_of_reach: u64,
        /// Of how many.
        of: u64,
    },
    /// Too few injections met a stall: see [`SelftestRow::found`].
    TooFewFound,
    /// Too few were named: see [`SelftestRow::named`].
    TooFewNamed,
    /// Injecting or recording failed in the middle.
    Broken {
        /// What the system, or the child that injects, said.
        error: String,
    },
}

/// One kind of disturbance, scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelftestRow {
    /// What was injected.
    pub kind: DisturbKind,
    /// The verdict that was expected; `None` when the child never reported it.
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
    /// Why not; `None` when passed.
    pub shortfall: Option<Shortfall>,
}

impl SelftestRow {
    /// A kind of which nothing was injected.
    #[must_use]
    pub fn of(kind: DisturbKind) -> SelftestRow {
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
            shortfall: Some(Shortfall::NothingInjected),
        }
    }

    /// A kind whose injecting or recording failed in the middle.
    #[must_use]
    pub fn broken(kind: DisturbKind, error: &dyn std::error::Error) -> SelftestRow {
        SelftestRow {
            shortfall: Some(Shortfall::Broken {
                error: error.to_string(),
            }),
            ..SelftestRow::of(kind)
        }
    }

    /// Whether others had the CPU in so many cases that what is left decides nothing.
    pub(super) fn is_undecided(&self) -> bool {
        self.out_of_reach > 0 && self.injected < ENOUGH
    }

    /// Fills in the verdict from the counts.
    pub(super) fn judge(mut self) -> SelftestRow {
        let enough = |part: u64| {
            u128::from(part) * 100 >= u128::from(self.injected) * u128::from(PASS_PERCENT)
        };
        self.shortfall = if self.injected == 0 && self.out_of_reach == 0 {
            Some(Shortfall::NothingInjected)
        } else if self.is_undecided() {
            let of = self.out_of_reach + self.injected;
            Some(Shortfall::TooBusy {
                out_of_reach: self.out_of_reach,
                of,
            })
        } else if !enough(self.found) {
            Some(Shortfall::TooFewFound)
        } else if !enough(self.named) {
            Some(Shortfall::TooFewNamed)
        } else {
            None
        };
        self.passed = self.shortfall.is_none();
        self
    }
}

/// Why a kind was not tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum SkipCause {
    /// This machine cannot run it.
    Unavailable {
        /// Why.
        cause: Unavailable,
    },
    /// The child that was to inject it ended before it was ready.
    NotReady {
        /// What it said.
        error: String,
    },
    /// As [`Shortfall::TooBusy`].
    TooBusy {
        /// Injections while another thread had the CPU.
        out_of_reach: u64,
        /// Of how many.
        of: u64,
    },
}

/// A kind that this machine cannot run, or was too busy for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedKind {
    /// Which.
    pub kind: DisturbKind,
    /// Why.
    pub cause: SkipCause,
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
        SelftestReport {
            schema_version: SCHEMA_VERSION,
            rows,
            skipped,
            passed,
        }
    }
}
