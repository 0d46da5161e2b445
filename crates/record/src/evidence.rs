//! Kernel events on their way to attribution.

use crate::hints::HintReader;
use crate::kernel_events::{Item, KernelEvents, NoEvents, PageKeeper};
use jitterscope_attribute::{Attributor, AttributorSettings, EdgeCosts, OutsideHints};
use jitterscope_model::{
    Attribution, ClockKind, CpuId, CpuSet, EventsInGaps, Gap, Nanos, SleepingWork, SourceReport, Stall,
    TickRate, Ticks,
};
use jitterscope_platform::Machine;
use jitterscope_trace::TraceContext;
use std::collections::HashMap;

/// The kernel events of a recording, attributed stall by stall.
pub(crate) struct Evidence {
    pub(crate) events: KernelEvents,
    attributor: Attributor,
    hints: HintReader,
    current_hints: HashMap<CpuId, OutsideHints>,
    /// How long events are kept for wake-ups; `None` when the victims spin.
    wakeups: Option<Ticks>,
}

/// A late wake-up asks what ran when it was due; the stall and its queues are shorter than this but for
/// the worst of outages, of which only the end is then told.
const KEPT_FOR_WAKEUPS: Nanos = Nanos(3_000_000_000);

/// What evidence needs to know.
pub(crate) struct EvidenceSettings {
    pub(crate) measured: CpuSet,
    pub(crate) online: CpuSet,
    pub(crate) clock: ClockKind,
    pub(crate) rate: TickRate,
    pub(crate) virtual_machine: bool,
    /// A CPU that is not measured, if there is one.
    pub(crate) helper: CpuId,
    pub(crate) buffer_kib: u32,
    /// Whether the victims sleep and wake.
    pub(crate) wakeups: bool,
}

impl Evidence {
    pub(crate) fn start(machine: &Machine, settings: &EvidenceSettings) -> Result<Evidence, NoEvents> {
        let EvidenceSettings { measured, online, clock, buffer_kib, .. } = settings;
        let events = KernelEvents::start(machine, measured, online, *clock, *buffer_kib, false)?;
        Ok(Evidence {
            events,
            attributor: Attributor::new(AttributorSettings {
                rate: settings.rate,
                virtual_machine: settings.virtual_machine,
                measured: settings.measured.len(),
            }),
            hints: HintReader::new(machine.clone(), &settings.measured, settings.helper),
            current_hints: HashMap::new(),
            wakeups: settings.wakeups.then(|| settings.rate.ticks(KEPT_FOR_WAKEUPS)),
        })
    }

    /// From here on events count for the proof of the correlation.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        self.attributor.measure(from, until);
    }

    /// Reads everything that the kernel has recorded so far. A stall whose record was received before
    /// this call has all its events behind it afterwards: its thread was back in user code by then, so
    /// the kernel had finished writing them.
    pub(crate) fn drain(&mut self, keeper: &mut dyn PageKeeper) {
        let attributor = &mut self.attributor;
        let sleepers = self.wakeups.is_some();
        self.events.drain(keeper, |item, names| match item {
            Item::Sender(event) => {
                if sleepers {
                    names.learn_functions(&event);
                }
                attributor.sender_event(&event);
            }
            Item::Local(event) => {
                if sleepers {
                    names.learn_functions(&event);
                }
                attributor.event(event);
            }
            Item::Lost(cpu, from, to) => attributor.lost(cpu, from, to),
        });
        if let (Some(kept), Some(last)) = (self.wakeups, self.events.seen_until()) {
            self.attributor.forget(last - kept);
        }
        self.current_hints = self.hints.read();
    }

    /// The first read of a CPU's probe.
    pub(crate) fn begin(&mut self, cpu: CpuId, from: Ticks) {
        self.attributor.begin(cpu, from);
    }

    /// The work items that sleep on a CPU when its probe begins.
    pub(crate) fn sleeping_works(&self, cpu: CpuId, from: Ticks) -> Vec<SleepingWork> {
        self.attributor.sleeping_works(cpu, from)
    }

    pub(crate) fn announce(&mut self, cpu: CpuId, gap: Gap) {
        self.attributor.announce(cpu, gap);
    }

    pub(crate) fn learn(&mut self, stall: &Stall) {
        self.attributor.learn(stall, &self.events.names);
    }

    pub(crate) fn pass_over(&mut self, stall: &Stall) {
        self.attributor.pass_over(stall);
    }

    pub(crate) fn attribute(&mut self, stall: &Stall) -> Attribution {
        if self.wakeups.is_some() {
            return self.attributor.attribute_wakeup(stall);
        }
        let none = OutsideHints::default();
        let hints = self.current_hints.get(&stall.cpu).unwrap_or(&none);
        self.attributor.attribute(stall, hints, &self.events.names)
    }

    /// Ends recording, so that no more pages come; what the buffers hold can still be drained.
    pub(crate) fn stop(&mut self) {
        self.events.stop();
    }

    /// Counts the events that no stall took, each CPU's up to the last read of its probe.
    pub(crate) fn finish(&mut self, ends: &[(CpuId, Ticks)]) -> EventsInGaps {
        self.attributor.finish(ends);
        self.attributor.events_in_gaps()
    }

    pub(crate) fn costs(&self) -> &EdgeCosts {
        self.attributor.costs()
    }

    /// The state of the sources, with their losses. After the last drain.
    pub(crate) fn reports(&self) -> Vec<SourceReport> {
        let mut reports = self.events.reports();
        reports.push(self.hints.report());
        reports
    }

    /// What a later reader needs to decode the kept pages.
    pub(crate) fn context(&self) -> TraceContext {
        self.events.context()
    }
}
