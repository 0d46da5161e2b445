//! The data of SLJ Test's screen, gathered during the measurement.

use super::DeltaBins;
use crate::periods::PeriodSearch;
use jitterscope_model::{
    Attribution, CpuId, Delivery, ProbeResult, Row, RunFacts, RunManifest, Sink, SinkError, Stall,
    Ticks,
};
use std::collections::{BTreeMap, VecDeque};

/// The data of one CPU.
#[derive(Debug)]
struct OfCpu {
    bins: DeltaBins,
    last: VecDeque<(Ticks, Ticks)>,
    seen: u64,
}

/// Counts stalls exactly, and keeps the last of them.
#[derive(Debug)]
pub struct Outliers {
    empty: DeltaBins,
    room: usize,
    cpus: BTreeMap<CpuId, OfCpu>,
    periods: Option<PeriodSearch>,
}

/// The deltas of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuBins {
    /// All deltas, in their bins.
    pub bins: DeltaBins,
    /// The number of outliers added one by one.
    pub seen: u64,
}

impl Outliers {
    /// Counts in copies of these empty bins, keeps the last `room` outliers of each CPU, and passes them to a period
    /// search, if there is one.
    #[must_use]
    pub fn new(empty: DeltaBins, room: usize, periods: Option<PeriodSearch>) -> Outliers {
        Outliers {
            empty,
            room,
            cpus: BTreeMap::new(),
            periods,
        }
    }

    /// The deltas of a CPU; its result has those below the threshold. If stalls were dropped, those above it are to
    /// three digits.
    #[must_use]
    pub fn bins(&self, result: &ProbeResult) -> CpuBins {
        let own = self.cpus.get(&result.cpu);
        let mut bins = own.map_or_else(|| self.empty.clone(), |own| own.bins.clone());
        if result.dropped_records > 0 {
            bins = self.empty.clone();
            bins.add_above(result);
        }
        bins.add_below(result);
        CpuBins {
            bins,
            seen: own.map_or(0, |own| own.seen),
        }
    }

    /// The kept outliers, CPU by CPU: start and length.
    pub fn last(&self) -> impl Iterator<Item = (Ticks, Ticks)> + '_ {
        self.cpus.values().flat_map(|cpu| cpu.last.iter().copied())
    }

    /// The search, with all outliers.
    pub fn take_periods(&mut self) -> Option<PeriodSearch> {
        self.periods.take()
    }

    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        let empty = &self.empty;
        let cpu = self.cpus.entry(stall.cpu).or_insert_with(|| OfCpu {
            bins: empty.clone(),
            last: VecDeque::new(),
            seen: 0,
        });
        cpu.bins.add(stall.length(), 1);
        cpu.seen += 1;
        if cpu.last.len() == self.room {
            cpu.last.pop_front();
        }
        cpu.last.push_back((stall.start, stall.length()));
        if let Some(periods) = &mut self.periods {
            periods.add(stall, attribution);
        }
    }
}

impl Sink for Outliers {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            if let Row::Stall(stall, attribution) = row {
                self.stall(stall, *attribution);
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(self.cpus.values().map(|cpu| cpu.seen).sum()))
    }
}
