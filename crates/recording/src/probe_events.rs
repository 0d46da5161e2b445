//! Kernel events on their way to attribution.

use crate::faults::FaultWatch;
use crate::gaps::GapAttribution;
use crate::graph::{GraphChoice, GraphError};
use crate::hints::HintReader;
use crate::kernel_events::{EventsEnded, KernelEvents};
use jitterscope_attribute::{AttributorSettings, EdgeCosts, FrequencyChanges, GroupThrottled};
use jitterscope_model::{
    Attribution, CpuId, CpuSet, DrainTurn, EventsInGaps, Gap, Record, RunManifest, Setup, Sink,
    SinkError, SleepingWork, Source, Stall, TickRate, Ticks,
};
use jitterscope_platform::Machine;
use std::collections::BTreeMap;

/// The kernel events of a recording, attributed stall by stall.
pub(crate) struct ProbeEvents {
    pub(crate) events: KernelEvents,
    gaps: GapAttribution,
    hints: HintReader,
    faults: FaultWatch,
    measuring: bool,
}

pub(crate) struct ProbeEventsSettings<'a> {
    pub(crate) measured: &'a CpuSet,
    pub(crate) rate: TickRate,
    pub(crate) virtual_machine: bool,
    /// A CPU that is not measured, if there is one.
    pub(crate) helper: CpuId,
    /// Whether the victims sleep and wake.
    pub(crate) wakeups: bool,
}

impl ProbeEvents {
    pub(crate) fn new(
        machine: &Machine,
        mut events: KernelEvents,
        settings: &ProbeEventsSettings<'_>,
    ) -> ProbeEvents {
        events.names.keep_functions(settings.wakeups);
        let gaps = AttributorSettings {
            rate: settings.rate,
            virtual_machine: settings.virtual_machine,
            measured: settings.measured.len(),
        };
        ProbeEvents {
            events,
            gaps: GapAttribution::new(gaps, settings.wakeups),
            hints: HintReader::new(
                machine,
                settings.measured,
                settings.helper,
                settings.virtual_machine,
            ),
            faults: FaultWatch::new(machine),
            measuring: false,
        }
    }

    /// Also traces kernel functions.
    pub(crate) fn look_into(
        &mut self,
        machine: &Machine,
        choice: &GraphChoice<'_>,
    ) -> Result<(), GraphError> {
        self.events.look_into(machine, choice)
    }

    /// Watches the thread that measures a CPU.
    pub(crate) fn watch(&mut self, cpu: CpuId, tid: i32) {
        self.events.quotas.watch(tid);
        self.events.cross_check.watch(tid);
        self.faults.watch(cpu, tid);
    }

    /// Counts events for the proof of the correlation from here on, if the threshold can show them.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks, threshold: Ticks) {
        self.events.set(Setup::Measure { from, until });
        self.gaps.threshold(threshold);
        self.gaps.attributor.measure(from, until);
        self.measuring = true;
    }

    /// Reads everything that the kernel has recorded so far. Afterwards all events of a stall received before this call
    /// have arrived: its thread was back in user code by then, so the kernel had finished writing them.
    pub(crate) fn drain(&mut self, keep: &mut dyn Sink) -> Result<(), SinkError> {
        self.faults.read();
        let (gaps, faults) = (&mut self.gaps, &mut self.faults);
        self.events.turn(keep, &mut |record| {
            if let Record::Local(event) = record {
                faults.event(event);
            }
            gaps.take(record);
        })?;
        self.gaps
            .attributor
            .quotas(self.events.count_quotas(), self.measuring);
        let mut hints = self.hints.read();
        for (cpu, faults) in self.faults.take() {
            hints.entry(cpu).or_default().faults = faults;
        }
        self.gaps.pages_done(self.events.seen_until(), hints);
        Ok(())
    }

    pub(crate) fn end_turn(
        &mut self,
        keep: &mut dyn Sink,
        turn: DrainTurn,
    ) -> Result<(), SinkError> {
        let turn = self.gaps.keep_hints(turn);
        self.events.end_turn(keep, turn)
    }

    pub(crate) fn begin(&mut self, cpu: CpuId, from: Ticks) {
        self.gaps.attributor.begin(cpu, from);
    }

    /// The work items that sleep on a CPU when its probe begins.
    pub(crate) fn sleeping_works(&self, cpu: CpuId, from: Ticks) -> Vec<SleepingWork> {
        self.gaps.attributor.sleeping_works(cpu, from)
    }

    /// Another run takes what follows: fills in what attribution has learnt so far, as a replay of that run needs it.
    pub(crate) fn next_section(&mut self, manifest: &mut RunManifest, at: Ticks) {
        self.events.describe_again();
        manifest.edge_costs = self.costs().to_rows();
        manifest.sleeping_works = manifest
            .probe
            .cpus
            .iter()
            .flat_map(|cpu| self.sleeping_works(cpu, at))
            .collect();
        manifest.attributed = true;
    }

    pub(crate) fn announce(&mut self, cpu: CpuId, gap: Gap) {
        self.gaps.attributor.announce(cpu, gap);
    }

    pub(crate) fn learn(&mut self, stall: &Stall) {
        self.gaps.attributor.learn(stall, &self.events.names);
    }

    pub(crate) fn pass_over(&mut self, stall: &Stall) {
        self.gaps.attributor.pass_over(stall);
    }

    pub(crate) fn attribute(&mut self, stall: &Stall) -> Attribution {
        self.gaps.attribute(stall, &self.events.names)
    }

    /// Stops recording, so that no more pages arrive; the buffers can still be drained.
    pub(crate) fn stop(&mut self) {
        self.events.stop();
    }

    /// Counts the events outside all stalls, on each CPU up to its probe's last read.
    pub(crate) fn finish(&mut self, ends: &[(CpuId, Ticks)]) -> EventsInGaps {
        self.gaps.attributor.finish(ends);
        self.gaps.attributor.events_in_gaps()
    }

    pub(crate) fn costs(&self) -> &EdgeCosts {
        self.gaps.attributor.costs()
    }

    /// Control groups that were throttled during the measurement.
    pub(crate) fn throttled(&self) -> Vec<GroupThrottled> {
        self.gaps.attributor.throttled().cloned().collect()
    }

    /// Sender records dropped because there were too many at once.
    pub(crate) fn senders_dropped(&self) -> u64 {
        self.gaps.attributor.senders_dropped()
    }

    /// CPUs whose frequency changed during the measurement.
    pub(crate) fn frequencies(&self) -> BTreeMap<CpuId, FrequencyChanges> {
        self.gaps.attributor.frequencies().clone()
    }

    /// Switches that the kernel did not record, and stalled time for which only sums were kept.
    pub(crate) fn limits(&self) -> (BTreeMap<CpuId, u64>, Ticks) {
        (
            self.gaps.attributor.unrecorded_switches(),
            self.gaps.attributor.folded(),
        )
    }

    /// The results of the recording. Called after the last drain.
    pub(crate) fn ended(&mut self) -> EventsEnded {
        let mut ended = self.events.ended();
        ended.sources.push(self.hints.report());
        ended
    }
}
