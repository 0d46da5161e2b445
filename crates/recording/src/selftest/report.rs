//! The results of a selftest as data.

use jitterscope_inject::{DisturbKind, Expectation, Unavailable};
use jitterscope_model::{CulpritKind, ExecutionContext, Name, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;

/// Percentage of injections that must be found, and named, for a kind to pass.
pub const PASS_PERCENT: u32 = 95;
/// Minimum of injections within reach for a verdict, if others were out of reach.
const ENOUGH: u64 = 20;

/// What a recording reports for an injection that it does not name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Instead {
    /// No stall of the victim's CPU overlaps it.
    NoStall,
    /// A stall without an attribution.
    NoAttribution,
    /// The right culprit without its sender.
    NoSender,
    /// The right culprit with another sender.
    OtherSender {
        context: ExecutionContext,
        /// The name of the sender's thread, if it is known by name.
        comm: Option<Name>,
        /// The id of the sender's thread, if it is not known by name.
        tid: Option<i32>,
    },
    /// Another culprit: the one with the most time.
    OtherCulprit { kind: CulpritKind, name: Name },
}

/// Wrong reports for injections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WrongVerdict {
    pub instead: Instead,
    /// For how many injections.
    pub count: u64,
}

/// Why a kind failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Shortfall {
    NothingInjected,
    /// Another thread had the CPU during so many injections that the others allow no verdict.
    TooBusy {
        out_of_reach: u64,
        /// Out of how many.
        of: u64,
    },
    /// Too few injections overlapped a stall: see [`SelftestRow::found`].
    TooFewFound,
    /// Too few were named: see [`SelftestRow::named`].
    TooFewNamed,
    /// Injecting or recording failed partway.
    Broken {
        /// The error of the system or of the injecting child.
        error: String,
    },
}

/// One kind of disturbance, scored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SelftestRow {
    pub kind: DisturbKind,
    /// The expected verdict; `None` if the child never reported it.
    pub expected: Option<Expectation>,
    /// Injections that could reach the victim.
    pub injected: u64,
    /// How many of them overlapped a stall on the victim's CPU.
    pub found: u64,
    /// How many of them overlapped a stall with the expected culprit in its attribution.
    pub named: u64,
    /// Injections that could not reach the victim because another thread ran on its CPU all the time (only kinds that
    /// need a running victim). Not included in `injected`.
    pub out_of_reach: u64,
    /// The control: injections without any effect half a period later, because no stall there reaches back to one.
    pub controls: u64,
    /// How many of those would be named if each had been logged half a period later. This must be far less than
    /// `controls`, or else the naming is chance.
    pub named_when_shifted: u64,
    /// Median of |culprit's net time - injected length| / injected length, over known lengths.
    pub length_error: Option<f64>,
    /// Wrong reports, the most frequent first. In JSON, view adds them with their words.
    #[serde(skip)]
    pub wrong: Vec<WrongVerdict>,
    /// Whether enough was found and named.
    pub passed: bool,
    /// Why it failed; `None` if it passed.
    pub shortfall: Option<Shortfall>,
}

impl SelftestRow {
    /// A kind without injections.
    #[must_use]
    pub fn of(kind: DisturbKind) -> SelftestRow {
        SelftestRow {
            kind,
            expected: None,
            injected: 0,
            found: 0,
            named: 0,
            out_of_reach: 0,
            controls: 0,
            named_when_shifted: 0,
            length_error: None,
            wrong: Vec::new(),
            passed: false,
            shortfall: Some(Shortfall::NothingInjected),
        }
    }

    /// A kind whose injecting or recording failed partway.
    #[must_use]
    pub fn broken(kind: DisturbKind, error: &dyn std::error::Error) -> SelftestRow {
        SelftestRow {
            shortfall: Some(Shortfall::Broken {
                error: error.to_string(),
            }),
            ..SelftestRow::of(kind)
        }
    }

    /// Whether other threads had the CPU so often that the rest allows no verdict.
    pub(super) fn is_undecided(&self) -> bool {
        self.out_of_reach > 0 && self.injected < ENOUGH
    }

    /// Derives the verdict from the counts.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum SkipCause {
    /// This machine cannot run it.
    Unavailable { cause: Unavailable },
    /// The injecting child ended before it was ready.
    NotReady { error: String },
    /// See [`Shortfall::TooBusy`].
    TooBusy {
        /// Injections while another thread had the CPU.
        out_of_reach: u64,
        /// Out of how many.
        of: u64,
    },
}

/// A kind that this machine cannot run, or was too busy to test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedKind {
    pub kind: DisturbKind,
    pub cause: SkipCause,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SelftestReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// In JSON, view adds them with their words.
    #[serde(skip)]
    pub rows: Vec<SelftestRow>,
    /// The kinds that were skipped. In JSON, view adds them with their words.
    #[serde(skip)]
    pub skipped: Vec<SkippedKind>,
    /// Whether at least one kind ran, and all of them passed.
    pub passed: bool,
}

impl SelftestReport {
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
