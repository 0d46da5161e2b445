//! The sums of a run's rows, in bounded memory: the part of a summary that the manifest does not contain.
//!
//! The recorder computes it while it records and stores it with the run, so that a report need not read the rows again.
//! For a pipeline it is computed from the stored rows ([`SummaryBuilder::into_sums`]), because the messages above the
//! 99th percentile are known only at the end.
//!
//! [`SummaryBuilder::into_sums`]: crate::SummaryBuilder::into_sums

use crate::blame::Blame;
use crate::culprit_row::CulpritRow;
use crate::culprits::CulpritTable;
use crate::ours::Ours;
use crate::owners::{OwnerRow, OwnerTable};
use crate::periods::{Effort, FALSE_ALARM, PeriodSearch, PeriodSummary, TickOf};
use crate::rows_of::RowsOf;
use crate::simultaneous::Grouper;
use crate::summary::{Simultaneous, WorstStall};
use crate::wakeup::{PhaseRow, PhaseTable};
use crate::worst::Worst;
use jitterscope_model::{
    Attribution, Confidence, CulpritTotals, CulpritTotalsBuilder, Delivery, Evidence, KeyLevel,
    Nanos, Part, Row, RunManifest, Sink, SinkError, Stall, StallId, Subject, Verdict,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The default number of separate culprits.
const MAX_CULPRITS: usize = 4096;
/// The default number of the longest stalls to keep.
const WORST: usize = 10;
/// The number of stalls that may wait for their attribution. A recording attributes each at once; a stored run is read
/// with its tables in step.
const PENDING: usize = 1 << 16;

/// The sums of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowSums {
    /// The hash of the code that computed the sums: other code may differ in any way.
    code: String,
    pub(crate) stalls: u64,
    pub(crate) stalled: Nanos,
    /// The number of contradictory rows.
    pub(crate) inconsistent: u64,
    /// Explained culprits, and the classes of unexplained time.
    pub(crate) culprits: [Vec<CulpritRow>; 2],
    pub(crate) control_culprits: Vec<CulpritRow>,
    pub(crate) owners: Vec<OwnerRow>,
    /// The phases of the measured CPUs, and of the control.
    pub(crate) phases: [Vec<PhaseRow>; 2],
    pub(crate) worst: Vec<WorstStall>,
    pub(crate) simultaneous: Option<Simultaneous>,
    pub(crate) periods: Option<PeriodSummary>,
    /// What delayed a pipeline's messages: it needs their percentiles, which are known at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blame: Vec<Blame>,
    /// The time of each culprit alone and with others, for advice; without an idle control.
    totals: CulpritTotals,
}

impl RowSums {
    /// The level, the number of the worst stalls and the effort of stored sums.
    pub const STORED: (KeyLevel, usize, Effort) = (KeyLevel::Program, WORST, Effort::BRIEF);

    /// Whether this version of the code computed the sums.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.code == code()
    }

    /// The time of each culprit alone and with others.
    #[must_use]
    pub fn into_totals(self) -> CulpritTotals {
        self.totals
    }

    #[must_use]
    pub fn without_periods(self) -> RowSums {
        RowSums {
            periods: None,
            ..self
        }
    }

    /// Limits the number of the worst stalls.
    #[must_use]
    pub fn with_worst(mut self, limit: usize) -> RowSums {
        self.worst.truncate(limit);
        self
    }

    /// Adds what delayed a pipeline's messages.
    pub(crate) fn with_blame(self, blame: Vec<Blame>) -> RowSums {
        RowSums { blame, ..self }
    }

    /// Replaces the worst stalls.
    #[must_use]
    pub fn showing(self, worst: Vec<WorstStall>) -> RowSums {
        RowSums { worst, ..self }
    }
}

/// The hash of the source code of the sums.
fn code() -> &'static str {
    env!("JITTERSCOPE_SUMMARY_CODE")
}

/// A stall that waits for its attribution.
#[derive(Debug)]
struct Pending {
    stall: Stall,
    length: Nanos,
    control: bool,
}

/// The idle control's stalls, separate from those of the measured CPUs.
#[derive(Debug)]
struct ControlSums {
    stalled: Nanos,
    culprits: CulpritTable,
    phases: PhaseTable,
}

/// Sums a run's stalls and attributions, in order of their ids. An attribution follows its stall; up to [`PENDING`]
/// stalls may lie between.
#[derive(Debug)]
pub struct RowSummer {
    of: RowsOf,
    stalls: u64,
    stalled: Nanos,
    pending: VecDeque<Pending>,
    culprits: CulpritTable,
    owners: OwnerTable,
    totals: CulpritTotalsBuilder,
    phases: PhaseTable,
    control: ControlSums,
    /// A part for time without a verdict.
    nobody: Part,
    inconsistent: u64,
    worst: Worst,
    simultaneous: Grouper,
    periods: Option<PeriodSearch>,
}

impl RowSummer {
    #[must_use]
    pub fn new(of: RowsOf) -> RowSummer {
        RowSummer {
            of,
            stalls: 0,
            stalled: Nanos::ZERO,
            pending: VecDeque::new(),
            culprits: CulpritTable::new(KeyLevel::Program, MAX_CULPRITS),
            owners: OwnerTable::default(),
            totals: CulpritTotalsBuilder::default(),
            phases: PhaseTable::default(),
            control: ControlSums {
                stalled: Nanos::ZERO,
                culprits: CulpritTable::new(KeyLevel::Program, MAX_CULPRITS),
                phases: PhaseTable::default(),
            },
            nobody: nobody(),
            inconsistent: 0,
            worst: Worst::of(of, WORST),
            simultaneous: Grouper::new(of, WORST),
            periods: None,
        }
    }

    /// With the settings of stored sums.
    #[must_use]
    pub fn stored(of: RowsOf) -> RowSummer {
        let mut summer = RowSummer::new(of);
        let (level, worst, effort) = RowSums::STORED;
        summer.level(level);
        summer.worst(worst);
        summer.periods(effort);
        summer
    }

    /// Keeps this many of the longest stalls.
    pub(crate) fn worst(&mut self, limit: usize) {
        self.worst = Worst::of(self.of, limit);
        self.simultaneous = Grouper::new(self.of, limit);
    }

    /// Keeps only the stall of this id instead of the worst ones.
    pub(crate) fn only(&mut self, stall: StallId) {
        self.worst = Worst::only(stall);
    }

    /// Keeps at most this many separate culprits.
    pub(crate) fn max_culprits(&mut self, cap: usize) {
        self.culprits = CulpritTable::new(KeyLevel::Program, cap);
    }

    /// Sets the level at which culprits are separate.
    pub(crate) fn level(&mut self, level: KeyLevel) {
        self.culprits = CulpritTable::new(level, MAX_CULPRITS);
        self.control.culprits = CulpritTable::new(level, MAX_CULPRITS);
    }

    /// Searches for periods in the stalls of a spinning probe, with this effort.
    pub(crate) fn periods(&mut self, effort: Effort) {
        let spun = !self.of.sleeps && self.of.probed > 0;
        self.periods = spun.then(|| PeriodSearch::new(effort));
    }

    /// The properties given at the start.
    #[must_use]
    pub fn of(&self) -> RowsOf {
        self.of
    }

    /// The number of stalls so far, without those of an idle control.
    pub(crate) fn taken(&self) -> u64 {
        self.stalls
    }

    pub fn stall(&mut self, stall: &Stall) {
        let length = self.of.rate.nanos(stall.length());
        let control = self.of.control == Some(stall.cpu);
        if control {
            self.control.stalled += length;
        } else {
            self.stalls += 1;
            self.stalled += length;
            self.worst.stall(stall);
            self.simultaneous.stall(stall);
        }
        if self.of.attributed {
            self.pending.push_back(Pending {
                stall: *stall,
                length,
                control,
            });
            if self.pending.len() > PENDING {
                self.give_up_first();
            }
        } else if let Some(periods) = &mut self.periods {
            periods.add(stall, None);
        }
    }

    /// Adds the attribution of an earlier stall.
    pub fn attribution(&mut self, attribution: &Attribution) {
        // Looks it up first: an attribution without a stall must not discard pending stalls.
        let at = self
            .pending
            .binary_search_by_key(&attribution.stall, |pending| pending.stall.id);
        let Ok(at) = at else {
            self.inconsistent += 1;
            self.totals.add(attribution);
            return;
        };
        for _ in 0..at {
            self.give_up_first();
        }
        let Some(Pending {
            stall,
            length,
            control,
        }) = self.pending.pop_front()
        else {
            return;
        };
        if let Some(periods) = &mut self.periods {
            periods.add(&stall, Some(attribution));
        }
        if !control {
            self.totals.add(attribution);
            self.owners.add(nets(attribution, length));
        }
        self.worst.attribution(attribution);
        // Parts sum to their stall; in damaged rows, the stall's length counts.
        let attributed: u128 = attribution
            .parts
            .iter()
            .map(|part| u128::from(part.net.0))
            .sum();
        self.inconsistent += u64::from(attributed != u128::from(length.0));
        let left = length.saturating_sub(Nanos(u64::try_from(attributed).unwrap_or(u64::MAX)));
        let rest = (left > Nanos::ZERO).then_some((&self.nobody, left));
        let (culprits, phases) = match control {
            true => (&mut self.control.culprits, &mut self.control.phases),
            false => (&mut self.culprits, &mut self.phases),
        };
        if self.of.sleeps {
            phases.add(nets(attribution, length).chain(rest));
        }
        culprits.add(nets(attribution, length).chain(rest));
    }

    fn give_up_first(&mut self) {
        if let Some(Pending {
            stall,
            length,
            control,
        }) = self.pending.pop_front()
        {
            if let Some(periods) = &mut self.periods {
                periods.add(&stall, None);
            }
            self.inconsistent += 1;
            let culprits = if control {
                &mut self.control.culprits
            } else {
                &mut self.culprits
            };
            let phases = if control {
                &mut self.control.phases
            } else {
                &mut self.phases
            };
            culprits.add([(&self.nobody, length)]);
            phases.add([(&self.nobody, length)]);
        }
    }

    /// The sums of a finished run.
    #[must_use]
    pub fn finish(mut self, manifest: &RunManifest, kernel_hz: Option<u32>) -> RowSums {
        while !self.pending.is_empty() {
            self.give_up_first();
        }
        let seconds = manifest.duration().as_secs_f64();
        let ours = Ours::of(manifest);
        let per_sec = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let (simultaneous, groups) = self.simultaneous.finish(manifest);
        RowSums {
            code: code().into(),
            stalls: self.stalls,
            stalled: self.stalled,
            inconsistent: self.inconsistent,
            culprits: self.culprits.finish(self.stalled, per_sec, &ours),
            control_culprits: self
                .control
                .culprits
                .finish(self.control.stalled, per_sec, &ours)
                .concat(),
            owners: self.owners.finish(self.stalled),
            phases: [
                self.phases.finish(self.stalled),
                self.control.phases.finish(self.control.stalled),
            ],
            worst: self.worst.finish(manifest, &groups),
            simultaneous,
            periods: self.periods.map(|search| {
                let start = manifest
                    .results
                    .iter()
                    .map(|r| r.start)
                    .min()
                    .unwrap_or_default();
                let end = manifest
                    .results
                    .iter()
                    .map(|r| r.end)
                    .max()
                    .unwrap_or_default();
                let of = TickOf {
                    kernel_hz,
                    virtual_machine: manifest.host.hypervisor.is_some(),
                };
                PeriodSummary::new(search.finish(start, end, manifest.rate, FALSE_ALARM), of)
            }),
            blame: Vec::new(),
            totals: self.totals.finish(),
        }
    }
}

/// The parts of a stall with their times, limited to its length.
fn nets(attribution: &Attribution, length: Nanos) -> impl Iterator<Item = (&Part, Nanos)> {
    attribution.parts.iter().scan(length, |left, part| {
        let net = part.net.min(*left);
        *left = left.saturating_sub(net);
        Some((part, net))
    })
}

/// A part for time that no row accounts for.
fn nobody() -> Part {
    let verdict = Subject::verdict(Verdict::NoVerdict);
    Part::whole(verdict, Nanos::ZERO, Confidence::Low, Evidence::Nothing)
}

impl Sink for RowSummer {
    /// The properties are known already.
    fn begin(&mut self, _facts: &jitterscope_model::RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            if let Row::Stall(stall, attribution) = row {
                self.stall(stall);
                if let Some(attribution) = attribution {
                    self.attribution(attribution);
                }
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(self.stalls))
    }
}
