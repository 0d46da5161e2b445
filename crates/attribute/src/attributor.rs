//! Attribution of a whole recording, stall by stall, in bounded memory.

use crate::bandwidth::{Bandwidth, GroupThrottled};
use crate::costs::EdgeCosts;
use crate::culprits::{self, Host, Naming, OutsideQuestion, Waits};
use crate::frequencies::{Frequencies, FrequencyChanges};
use crate::lateness::late_ticks;
use crate::measured_cpu::MeasuredCpus;
use crate::name_resolver::NameResolver;
use crate::occupancy::{Beside, Class, Frame, NameTable, Window};
use crate::senders::Senders;
use crate::tally::EventTally;
use crate::windows::late_wakeup::{self, Woken};
use crate::windows::throttled::{self, Throttling};
use crate::windows::{Named, Scratch, gap};
use jitterscope_model::{
    Attribution, CpuId, CpuSet, DrainTurn, EventKind, EventsInGaps, Gap, KernelAddr, KernelEvent,
    Nanos, Part, Phase, SleepingWork, Stall, TickRate, Ticks, Verdict,
};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
pub struct AttributorSettings {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    /// Whether a hypervisor can have taken the CPU.
    pub virtual_machine: bool,
    /// The number of measured CPUs.
    pub measured: usize,
}

/// Counts from other sources around a stall, with the resolution of a drain turn: evidence for stalls without events.
#[derive(Clone, Debug, Default)]
pub struct OutsideHints {
    /// System management interrupts; `None` if they cannot be counted.
    pub smi: Option<u64>,
    /// Interrupt vectors without a tracepoint whose counters rose on the stall's CPU.
    pub untraced: Vec<String>,
    /// Stolen time, as the kernel counts it on a virtual machine.
    pub stolen: Nanos,
    /// Page faults of the victim that the kernel counted but did not record.
    pub faults: u64,
}

/// Stalls of different CPUs that begin within this time count as simultaneous.
const TOGETHER: Nanos = Nanos(5_000);
/// A change of frequency within this time of a stall counts as near it.
const NEAR_FREQUENCY_CHANGE: Nanos = Nanos(100_000);
/// Smallest shift of the control comparison.
const CONTROL_SHIFT: Nanos = Nanos(250_000_000);

/// Attributes the stalls of a recording. Pass the events and stalls of each CPU in order of time, and each stall only
/// after all events up to its end.
#[derive(Debug)]
pub struct Attributor {
    settings: AttributorSettings,
    cpus: MeasuredCpus,
    names: NameTable,
    senders: Senders,
    bandwidth: Bandwidth,
    costs: EdgeCosts,
    tally: EventTally,
    frequencies: Frequencies,
    /// The window of the current stall.
    window: Window,
    /// Memory for its names.
    scratch: Scratch,
    /// Stalled time for which only sums were kept.
    folded: Ticks,
}

impl Attributor {
    #[must_use]
    pub fn new(settings: AttributorSettings) -> Attributor {
        Attributor {
            settings,
            cpus: MeasuredCpus::new(settings.rate),
            names: NameTable::default(),
            senders: Senders::of_some_wakings(settings.rate),
            bandwidth: Bandwidth::default(),
            costs: EdgeCosts::default(),
            tally: EventTally::new(settings.rate.ticks(CONTROL_SHIFT)),
            frequencies: Frequencies::default(),
            window: Window::default(),
            scratch: Scratch::default(),
            folded: Ticks(0),
        }
    }

    /// Sets costs that were measured before: those of a stored run.
    pub fn set_costs(&mut self, costs: EdgeCosts) {
        self.costs = costs;
    }

    /// Sets work items that already slept: those of a stored run.
    pub fn set_sleeping_works(&mut self, works: &[SleepingWork]) {
        for row in works {
            let frame = Frame::item(row.tid, row.work, row.function.0, row.begun);
            self.cpus.of(row.cpu).feed.parked(row.tid, row.left, frame);
        }
    }

    /// The work items that slept on a CPU when its last stall ended, except those whose workers came back from another
    /// CPU by `until`.
    #[must_use]
    pub fn sleeping_works(&self, cpu: CpuId, until: Ticks) -> Vec<SleepingWork> {
        let Some(feed) = self.cpus.get(cpu).map(|cpu| &cpu.feed) else {
            return Vec::new();
        };
        feed.machine
            .parked()
            .filter(|(tid, left, _)| !feed.arrives(*tid, *left, until))
            .flat_map(|(tid, left, frames)| frames.into_iter().map(move |frame| (tid, left, frame)))
            .filter(|(.., frame)| frame.class == Class::Work)
            .map(|(tid, left, frame)| {
                let (work, function) = (frame.key, KernelAddr(frame.subject));
                SleepingWork {
                    cpu,
                    tid,
                    left,
                    begun: frame.opened,
                    work,
                    function,
                }
            })
            .collect()
    }

    /// Sets the time span of events that count for [`Attributor::events_in_gaps`]; before this call none count.
    pub fn measure(&mut self, from: Ticks, until: Ticks) {
        self.tally.measure(from, until);
        self.frequencies.measure(from, until);
    }

    /// Sets the probes' threshold for stalls: shorter kernel activity need not be in a stall.
    pub fn threshold(&mut self, threshold: Ticks) {
        self.tally.threshold(threshold, self.settings.rate);
    }

    /// The probe of this CPU first read the clock at `from`, some time after the planned start. Kernel activity between
    /// the warm-up and that read is in no gap and does not count.
    pub fn begin(&mut self, cpu: CpuId, from: Ticks) {
        self.tally.begin(cpu, from);
        self.cpus.of(cpu).known_from = from;
        self.senders.records_wakings_of(cpu);
    }

    /// From now on the resolver may return other names than before.
    pub fn forget_names(&mut self) {
        self.scratch.forget_names();
    }

    /// The counts of CPU quotas up to the end of the next stalls. `counts`: whether they belong to the measurement.
    pub fn quotas(&mut self, turn: &DrainTurn, counts: bool) {
        self.bandwidth.turn(turn, counts);
    }

    /// Control groups that were throttled during the measurement.
    pub fn throttled(&self) -> impl Iterator<Item = &GroupThrottled> {
        self.bandwidth.throttled()
    }

    /// CPUs whose frequency changed during the measurement.
    #[must_use]
    pub fn frequencies(&self) -> &BTreeMap<CpuId, FrequencyChanges> {
        self.frequencies.of_cpus()
    }

    /// An event of a measured CPU.
    pub fn event(&mut self, event: &KernelEvent) {
        if let EventKind::CpuFrequency { target, khz } = event.kind {
            self.frequencies.note(target, event.time, khz);
            self.cpus.of(target).frequency_changed(event.time);
        }
        let cpu = self.cpus.of(event.cpu);
        cpu.feed.event(event, &mut self.names);
        if self.settings.virtual_machine {
            cpu.expiries.note(event);
        }
        if matches!(event.kind, EventKind::SchedSwitch { .. }) {
            // A wake-up from before a sleep does not belong to the turn after it.
            self.senders.note(event);
        }
    }

    /// An event of a sender, on any CPU.
    pub fn sender_event(&mut self, event: &KernelEvent) {
        match event.kind {
            EventKind::SchedWaking { task, target } => {
                let woken = Woken {
                    at: event.time,
                    prio: task.prio,
                };
                self.cpus.of(target).woken(task.tid, woken);
            }
            EventKind::SchedMigrate { task, to, .. } => {
                self.cpus.of(to).feed.arrived(task.tid, event.time);
            }
            EventKind::TaskNew { tid, .. } => {
                self.cpus
                    .iter_mut()
                    .for_each(|(_, cpu)| cpu.feed.arrived(tid, event.time));
            }
            EventKind::TaskRename { tid, old, comm } => {
                let names = (self.names.comm_id(old), self.names.comm_id(comm));
                self.cpus
                    .iter_mut()
                    .for_each(|(_, cpu)| cpu.feed.renamed(tid, names, event.time));
            }
            _ => {}
        }
        self.senders.note(event);
    }

    /// Records of a CPU were lost between two times: stalls that touch them get no verdict.
    pub fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks) {
        self.cpus.of(cpu).lost(from, to, Verdict::TraceDataLost);
        // The measured CPUs themselves record when threads go to sleep.
        self.senders.lost(from, to);
    }

    /// Records of these CPUs and of the sending side between two times are not trusted: stalls that touch this time get
    /// no verdict. Must be called before any attribution of this time.
    pub fn disturbed(&mut self, cpus: &CpuSet, from: Ticks, to: Ticks) {
        for cpu in cpus.iter() {
            let cpu = self.cpus.of(cpu);
            cpu.feed.forget_since(from);
            cpu.lost(from, to, Verdict::TraceDisturbed);
        }
        self.senders.lost(from, to);
    }

    /// Records of the sending side were lost between two times.
    pub fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        self.senders.lost(from, to);
    }

    /// A gap that will be attributed soon, so that simultaneous stalls of other CPUs can be detected.
    pub fn announce(&mut self, cpu: CpuId, gap: Gap) {
        self.cpus.of(cpu).announced(gap);
        self.tally.gap(cpu, gap);
    }

    /// Measures the entry and exit costs on a stall of the warm-up, and discards its events.
    pub fn learn(&mut self, stall: &Stall, resolver: &dyn NameResolver) {
        if self.look(stall, true) > 0 {
            self.due(stall, resolver);
            let rate = self.settings.rate;
            let Attributor {
                window,
                names,
                senders,
                costs,
                scratch,
                ..
            } = self;
            let naming = naming(stall, window, names, senders, resolver);
            let named =
                Named::reusing(std::mem::take(scratch), window, naming, &[], rate).named_once();
            gap::learn(&named, costs);
            *scratch = named.into_scratch();
        }
    }

    /// Skips a stall that belongs neither to the warm-up nor to the measurement: discards its events.
    pub fn pass_over(&mut self, stall: &Stall) {
        self.look(stall, true);
    }

    /// Splits a late wake-up, whose victim slept when the stall began.
    pub fn attribute_wakeup(&mut self, stall: &Stall, resolver: &dyn NameResolver) -> Attribution {
        let rate = self.settings.rate;
        self.look(stall, false);
        if let Some(why) = self.loss_near(stall) {
            let part = culprits::no_verdict(why, rate.nanos(stall.length()));
            return whole(stall, part.in_phase(Phase::LostRecords));
        }
        let woken = self.take_woken(stall);
        let waits: Vec<Waits> = woken.iter().map(Woken::waits).collect();
        self.mark_throttled(stall, &waits, resolver);
        let naming = naming(stall, &self.window, &self.names, &self.senders, resolver);
        let split = late_wakeup::split(stall, &self.window, &woken, &naming, rate);
        let shared = |part| self.scratch.shared(part);
        Attribution {
            parts: split.parts.into_iter().map(shared).collect(),
            ..split
        }
    }

    /// Assigns throttled time of the current stall to CPU quotas.
    fn mark_throttled(&mut self, stall: &Stall, waits: &[Waits], resolver: &dyn NameResolver) {
        let throttling = Throttling {
            cpu: stall.cpu,
            victim: stall.victim.tid,
            waits,
            bandwidth: &self.bandwidth,
            resolver,
            rate: self.settings.rate,
            is_over: false,
        };
        throttled::mark(&mut self.window, &throttling);
    }

    /// The victim's wake-ups in a stall, in order; discards wake-ups from before its end.
    fn take_woken(&mut self, stall: &Stall) -> Vec<Woken> {
        self.cpus.of(stall.cpu).take_woken(stall)
    }

    /// Discards events before a time, which no stall needs: punctual wake-ups leave theirs behind.
    pub fn forget(&mut self, before: Ticks) {
        for (id, cpu) in self.cpus.iter_mut() {
            let mut tally = self.tally.of(id);
            cpu.feed
                .advance(before, false, |at, turns| tally.outside(at, turns));
            cpu.expiries.forget(before);
        }
    }

    /// Splits a spinning thread's stall exactly among its culprits.
    pub fn attribute(
        &mut self,
        stall: &Stall,
        hints: &OutsideHints,
        resolver: &dyn NameResolver,
    ) -> Attribution {
        self.senders.spins(stall.victim.tid);
        let inside = self.look(stall, true);
        let rate = self.settings.rate;
        if let Some(why) = self.loss_near(stall) {
            return whole(stall, culprits::no_verdict(why, rate.nanos(stall.length())));
        }
        if inside == 0 {
            return whole(stall, culprits::unseen(&self.question(stall, hints)));
        }
        // A spinning thread is only woken within a stall if it was stopped: from then on it waits.
        let waits: Vec<Waits> = self.take_woken(stall).iter().map(Woken::waits).collect();
        let (present, due) = (self.settings.virtual_machine, self.due(stall, resolver));
        self.mark_throttled(stall, &waits, resolver);
        let late = if present {
            let expiries = &mut self.cpus.of(stall.cpu).expiries;
            late_ticks(&self.window, stall.victim.tid, expiries, resolver, rate)
        } else {
            Vec::new()
        };
        let Attributor {
            window,
            names,
            senders,
            costs,
            scratch,
            ..
        } = self;
        let naming = naming(stall, window, names, senders, resolver);
        let named = Named::reusing(std::mem::take(scratch), window, naming, &waits, rate)
            .named_once()
            .with_late_ticks(late);
        let host = Host {
            present,
            stolen: hints.stolen,
            due,
        };
        let attribution = gap::split(stall, &named, costs, host, rate);
        gap::learn(&named, costs);
        *scratch = named.into_scratch();
        attribution
    }

    /// Since when the interrupt that is a stall's first record was due, if records show it.
    fn due(&mut self, stall: &Stall, resolver: &dyn NameResolver) -> Option<Ticks> {
        let Attributor {
            settings,
            cpus,
            window,
            names,
            senders,
            ..
        } = self;
        if !settings.virtual_machine {
            return None;
        }
        let expiries = &mut cpus.of(stall.cpu).expiries;
        expiries.forget(stall.start);
        let first = window
            .slices
            .first()
            .filter(|first| first.began.is_none())?;
        if first.ended != Some(Beside::InterruptEntry) {
            return None;
        }
        let (at, frame) = window
            .frames
            .iter()
            .enumerate()
            .find(|(_, frame)| frame.opened == first.end)?;
        if frame.class == Class::LocalTimer {
            return expiries.tick_due(
                stall.start,
                (frame.start, frame.end),
                resolver,
                settings.rate,
            );
        }
        let is_call = |inside: &&Frame| inside.class == Class::Call && inside.parent == at as u32;
        let sent = match window.frames.iter().find(is_call) {
            Some(call) => senders.called_at(call.key, KernelAddr(call.subject), call.opened),
            None if frame.is_vector_of(names, "reschedule") => {
                senders.rescheduled_at(stall.cpu, first.end)
            }
            None => None,
        }?;
        // It can be under way for as long as stalls count as simultaneous; an interrupt that was sent earlier is
        // another one.
        (sent + settings.rate.ticks(TOGETHER) >= stall.start).then(|| sent.max(stall.start))
    }

    /// Counts the events outside of stalls, for each CPU up to its probe's last read, and discards them.
    pub fn finish(&mut self, ends: &[(CpuId, Ticks)]) {
        for (cpu, until) in ends {
            self.tally.end(*cpu, *until);
        }
        self.forget(Ticks(u64::MAX));
    }

    /// Stalled time with more activity than can be kept: sums per culprit are exact there, but the order of events and
    /// their senders are unknown.
    #[must_use]
    pub fn folded(&self) -> Ticks {
        self.folded
    }

    /// Records of senders that were dropped although they might have been needed, because there were too many at once.
    #[must_use]
    pub fn senders_dropped(&self) -> u64 {
        self.senders.dropped()
    }

    /// Switches that must have happened but were not recorded, by CPU.
    #[must_use]
    pub fn unrecorded_switches(&self) -> BTreeMap<CpuId, u64> {
        let all = self
            .cpus
            .iter()
            .map(|(id, cpu)| (id, cpu.feed.machine.unrecorded_switches()));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Events of measured CPUs inside and outside of their gaps.
    #[must_use]
    pub fn events_in_gaps(&self) -> EventsInGaps {
        self.tally.counts()
    }

    /// The costs measured so far.
    #[must_use]
    pub fn costs(&self) -> &EdgeCosts {
        &self.costs
    }

    /// Feeds the stall's CPU up to the stall's end, and fills the window with its activity. Returns the number of
    /// records inside. A spinning victim ran when the stall began; every victim ran when it ended.
    fn look(&mut self, stall: &Stall, spins: bool) -> u64 {
        let Attributor {
            cpus,
            tally,
            window,
            ..
        } = self;
        let feed = &mut cpus.of(stall.cpu).feed;
        let mut tally = tally.of(stall.cpu);
        feed.advance(stall.start, false, |at, turns| tally.outside(at, turns));
        tally.gap_begins();
        if spins {
            feed.machine.running(stall.victim.tid, stall.start);
        }
        let mark = feed.machine.open_mark(stall.start);
        let mut inside = 0;
        feed.advance(stall.end, true, |at, _| {
            inside += 1;
            tally.inside(at);
        });
        feed.machine.close_mark(mark, stall.end, window);
        // A stall may begin before the previous one has ended.
        window.begin_at(stall.start);
        self.folded = self.folded + window.folded();
        feed.machine.running(stall.victim.tid, stall.end);
        inside
    }

    fn loss_near(&self, stall: &Stall) -> Option<Verdict> {
        self.cpus.get(stall.cpu)?.loss_near(stall)
    }

    fn question<'h>(&mut self, stall: &Stall, hints: &'h OutsideHints) -> OutsideQuestion<'h> {
        let rate = self.settings.rate;
        let (together, near) = (rate.ticks(TOGETHER), rate.ticks(NEAR_FREQUENCY_CHANGE));
        let length = rate.nanos(stall.length());
        let others = |at: Ticks| {
            let others = self.cpus.iter().filter(|(id, _)| *id != stall.cpu);
            others.map(move |(_, cpu)| cpu.stalled_with(at, stall.length(), together))
        };
        let simultaneous = others(stall.start).filter(|with| *with == Some(true));
        let simultaneous = simultaneous.count();
        let mut question = OutsideQuestion {
            length,
            virtual_machine: self.settings.virtual_machine,
            simultaneous,
            measured: self.settings.measured,
            smi: hints.smi,
            untraced: &hints.untraced,
            stolen: hints.stolen,
            faults: hints.faults,
            ..OutsideQuestion::default()
        };
        if question.asks_for_others()
            && let Some(cpu) = self.cpus.get(stall.cpu)
        {
            let mut coincidences = cpu.coincidences.clone();
            // Whether any of the others stalled then, if all of them are known.
            let any = |at| others(at).try_fold(false, |any, with| Some(any | with?));
            question.beyond_chance = coincidences.take_in(stall.start, rate, any);
            self.cpus.of(stall.cpu).coincidences = coincidences;
        }
        let cpu = self.cpus.of(stall.cpu);
        question.frequency_change = cpu.has_changed_frequency(stall, near);
        question.adjacent = cpu.stalled_until(stall.start);
        question
    }
}

fn naming<'a>(
    stall: &Stall,
    window: &'a Window,
    names: &'a NameTable,
    senders: &'a Senders,
    resolver: &'a dyn NameResolver,
) -> Naming<'a> {
    let (cpu, victim) = (stall.cpu, stall.victim.tid);
    Naming {
        cpu,
        victim,
        names,
        senders,
        resolver,
        quotas: &window.quotas,
        folded: false,
    }
}

/// A stall with a single part.
fn whole(stall: &Stall, part: Part) -> Attribution {
    Attribution {
        stall: stall.id,
        parts: vec![part],
    }
}
