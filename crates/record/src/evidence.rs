//! Kernel events on their way to attribution.

use crate::hints::HintReader;
use crate::names::LiveNames;
use jitterscope_attribute::{Attributor, AttributorSettings, EdgeCosts, OutsideHints};
use jitterscope_model::{
    Attribution, ClockKind, CpuId, CpuSet, EventsInGaps, Gap, Nanos, SourceReport, SourceStatus, Stall,
    TickRate, Ticks,
};
use jitterscope_platform::Machine;
use jitterscope_trace::{
    ContextError, Decoder, PageInfo, PageLoss, Recorder, RecorderSettings, Role, Symbols, TraceContext,
    TraceError, Tracefs,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often the kernel's own notes of thread names are read: they also name threads that have ended.
const ASK_KERNEL_EVERY: Duration = Duration::from_secs(1);

/// Takes raw pages into the run.
pub(crate) trait PageKeeper {
    fn keep(&mut self, role: Role, cpu: CpuId, first: Ticks, last: Ticks, page: &[u8]);
}

/// Why there are no kernel events.
pub(crate) enum NoEvents {
    Trace(TraceError),
    Context(ContextError),
}

/// The kernel events of a recording. Dropping it removes the tracing instances, and the mount if it was
/// made for them.
pub(crate) struct Evidence {
    // Before `tracefs`: the instances go before the mount that holds them.
    recorder: Recorder,
    tracefs: Tracefs,
    local: Decoder,
    senders: Decoder,
    names: LiveNames,
    attributor: Attributor,
    /// Time of the last record of each measured CPU, where a loss begins.
    last_record: HashMap<CpuId, Ticks>,
    hints: HintReader,
    current_hints: HashMap<CpuId, OutsideHints>,
    symbols_report: SourceReport,
    /// How long events are kept for wake-ups; `None` when the victims spin.
    wakeups: Option<Ticks>,
    asked_kernel: Instant,
    /// CPUs whose buffer is gone: they went offline.
    pub(crate) gone: CpuSet,
    pub(crate) leftovers_removed: usize,
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
        let tracefs = Tracefs::open(machine).map_err(NoEvents::Trace)?;
        let (removed, _) = tracefs.clean_leftovers();
        let recorder = Recorder::start(
            &tracefs,
            &RecorderSettings {
                measured: settings.measured.clone(),
                online: settings.online.clone(),
                clock: settings.clock,
                buffer_kb_per_cpu: u64::from(settings.buffer_kib),
            },
        )
        .map_err(NoEvents::Trace)?;
        let decoder = || Decoder::new(recorder.context()).map_err(NoEvents::Context);
        let (local, senders) = (decoder()?, decoder()?);
        let (symbols, symbols_report) = load_symbols(machine);
        Ok(Evidence {
            recorder,
            tracefs,
            local,
            senders,
            names: LiveNames::new(machine.clone(), symbols),
            attributor: Attributor::new(AttributorSettings {
                rate: settings.rate,
                virtual_machine: settings.virtual_machine,
                measured: settings.measured.len(),
            }),
            last_record: HashMap::new(),
            hints: HintReader::new(machine.clone(), &settings.measured, settings.helper),
            current_hints: HashMap::new(),
            symbols_report,
            wakeups: settings.wakeups.then(|| settings.rate.ticks(KEPT_FOR_WAKEUPS)),
            asked_kernel: Instant::now(),
            gone: CpuSet::new(),
            leftovers_removed: removed.len(),
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
        let sleepers = self.wakeups.is_some();
        for cpu in self.recorder.cpus(Role::Senders).iter() {
            let (decoder, attributor, names) = (&mut self.senders, &mut self.attributor, &self.names);
            let mut page = |bytes: &[u8]| {
                let info = decoder.page(cpu, bytes, |event| {
                    names.learn(&event, true);
                    if sleepers {
                        names.learn_functions(&event);
                    }
                    attributor.sender_event(&event);
                });
                keep(keeper, Role::Senders, cpu, bytes, info.ok());
            };
            // A CPU that went offline sends nothing; the local side reports it.
            let _ = self.recorder.drain(Role::Senders, cpu, &mut page);
        }
        for cpu in self.recorder.cpus(Role::Local).iter() {
            let (decoder, attributor, names) = (&mut self.local, &mut self.attributor, &self.names);
            let last_record = self.last_record.entry(cpu).or_default();
            let mut page = |bytes: &[u8]| {
                // The loss concerns what lies before the page, so it is told before its events.
                let mut events = Vec::new();
                let info = decoder.page(cpu, bytes, |event| events.push(event)).ok();
                note_loss(attributor, cpu, last_record, info);
                for event in events {
                    names.learn(&event, false);
                    if sleepers {
                        names.learn_functions(&event);
                    }
                    attributor.event(event);
                }
                keep(keeper, Role::Local, cpu, bytes, info);
            };
            if self.recorder.drain(Role::Local, cpu, &mut page).is_err() {
                self.gone.insert(cpu);
            }
        }
        if let (Some(kept), Some(last)) = (self.wakeups, self.last_record.values().min().copied()) {
            self.attributor.forget(last - kept);
        }
        self.current_hints = self.hints.read();
        if self.asked_kernel.elapsed() > ASK_KERNEL_EVERY {
            self.asked_kernel = Instant::now();
            self.names.learn_all(self.tracefs.saved_comms());
        }
    }

    pub(crate) fn announce(&mut self, cpu: CpuId, gap: Gap) {
        self.attributor.announce(cpu, gap);
    }

    pub(crate) fn learn(&mut self, stall: &Stall) {
        self.attributor.learn(stall, &self.names);
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
        self.attributor.attribute(stall, hints, &self.names)
    }

    /// Ends recording, so that no more pages come; what the buffers hold can still be drained.
    pub(crate) fn stop(&mut self) {
        // A kernel that refuses to stop is ended by removing the instances.
        let _ = self.recorder.stop();
    }

    /// Counts the events that no stall took.
    pub(crate) fn finish(&mut self, until: Ticks) -> EventsInGaps {
        self.attributor.finish(until);
        self.attributor.events_in_gaps()
    }

    pub(crate) fn costs(&self) -> &EdgeCosts {
        self.attributor.costs()
    }

    /// The state of the sources, with their losses. After the last drain.
    pub(crate) fn reports(&self) -> Vec<SourceReport> {
        let mut reports = self.recorder.reports();
        reports.push(self.symbols_report.clone());
        reports.push(self.hints.report());
        reports
    }

    /// What a later reader needs to decode the kept pages.
    pub(crate) fn context(&self) -> TraceContext {
        let mut context = self.recorder.context().clone();
        self.names.save(&mut context);
        context
    }
}

fn keep(keeper: &mut dyn PageKeeper, role: Role, cpu: CpuId, bytes: &[u8], info: Option<PageInfo>) {
    if let Some((first, last)) = info.and_then(|info| info.range) {
        keeper.keep(role, cpu, first, last, bytes);
    }
}

fn note_loss(attributor: &mut Attributor, cpu: CpuId, last_record: &mut Ticks, info: Option<PageInfo>) {
    let Some(info) = info else { return };
    let (first, last) = info.range.unwrap_or((*last_record, *last_record));
    if info.loss != PageLoss::None {
        attributor.lost(cpu, *last_record, first);
    }
    if info.damaged {
        attributor.lost(cpu, first, last);
    }
    *last_record = last;
}

fn load_symbols(machine: &Machine) -> (Symbols, SourceReport) {
    let mut report = SourceReport {
        name: "symbols".into(),
        status: SourceStatus::Available,
        reason: String::new(),
        loses: String::new(),
        fix: String::new(),
        lost: 0,
    };
    match Symbols::load(machine) {
        Ok(symbols) => (symbols, report),
        Err(error) => {
            report.status = SourceStatus::Degraded;
            report.reason = error.to_string();
            report.loses = "names of kernel functions: addresses are shown instead".into();
            report.fix = "sysctl kernel.kptr_restrict=1 and read /proc/kallsyms as root".into();
            (Symbols::default(), report)
        }
    }
}
