//! Attribution of a whole recording, stall by stall, in bounded memory.

use crate::bandwidth::{Bandwidth, GroupThrottled};
use crate::costs::EdgeCosts;
use crate::culprits::{self, Host, Naming, OutsideQuestion, Waits};
use crate::frequencies::{Frequencies, FrequencyChanges};
use crate::lexicon::Lexicon;
use crate::measured_cpu::MeasuredCpus;
use crate::occupancy::{Beside, Class, Frame, NameTable, Window};
use crate::senders::Senders;
use crate::tally::EventTally;
use crate::windows::late_wakeup::{self, Woken};
use crate::windows::{Named, Scratch, gap};
use jitterscope_model::{
    Attribution, Confidence, CpuId, DrainTurn, EventKind, EventsInGaps, Evidence, Gap, KernelAddr,
    KernelEvent, Nanos, Part, Phase, SleepingWork, Stall, TickRate, Ticks,
};
use std::collections::BTreeMap;

/// What attribution knows of the machine.
#[derive(Clone, Copy, Debug)]
pub struct AttributorSettings {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    /// Whether a hypervisor can have taken the CPU.
    pub virtual_machine: bool,
    /// How many CPUs are measured.
    pub measured: usize,
}

/// What was counted elsewhere around a stall, at the grain of the drain interval: evidence for stalls
/// without events.
#[derive(Clone, Debug, Default)]
pub struct OutsideHints {
    /// System management interrupts; `None` where they cannot be counted.
    pub smi: Option<u64>,
    /// Interrupt vectors without a tracepoint that counted up on the stall's CPU.
    pub untraced: Vec<String>,
    /// Time that the host gave to others, as the kernel counts it on a virtual machine.
    pub stolen: Nanos,
    /// Page faults of the victim that the kernel counted and did not record.
    pub faults: u64,
}

/// Stalls of different CPUs that begin within this time began together.
const TOGETHER: Nanos = Nanos(5_000);
/// A change of frequency is near a stall within this time of it.
const NEAR_FREQUENCY_CHANGE: Nanos = Nanos(100_000);
/// Smallest shift of the control comparison.
const CONTROL_SHIFT: Nanos = Nanos(250_000_000);

/// Attributes the stalls of a recording. For each CPU hand over events and stalls in time order; a stall
/// only when all events up to its end were handed over.
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
    /// That of the stall being attributed.
    window: Window,
    /// And its names.
    scratch: Scratch,
    /// Stalled time of which only sums were kept.
    folded: Ticks,
}

impl Attributor {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(settings: AttributorSettings) -> Attributor {
        Attributor {
            settings,
            cpus: MeasuredCpus::new(settings.rate),
            names: NameTable::default(),
            senders: Senders::new(settings.rate),
            bandwidth: Bandwidth::default(),
            costs: EdgeCosts::default(),
            tally: EventTally::new(settings.rate.ticks(CONTROL_SHIFT)),
            frequencies: Frequencies::default(),
            window: Window::default(),
            scratch: Scratch::default(),
            folded: Ticks(0),
        }
    }

    /// Goes on from costs learnt elsewhere: before the measurement of a stored run.
    #[must_use]
    pub fn with_costs(mut self, costs: EdgeCosts) -> Attributor {
        self.costs = costs;
        self
    }

    /// Goes on from work items that slept before: those of a stored run.
    #[must_use]
    pub fn with_sleeping_works(mut self, works: &[SleepingWork]) -> Attributor {
        for row in works {
            let frame = Frame::item(row.tid, row.work, row.function.0, row.begun);
            self.cpus.of(row.cpu).feed.parked(row.tid, row.left, frame);
        }
        self
    }

    /// The work items that slept on a CPU when its last stall ended, as far as their workers did not come back
    /// from another CPU by `until`.
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

    /// Says which events count for [`Attributor::events_in_gaps`]; until then none does.
    pub fn measure(&mut self, from: Ticks, until: Ticks) {
        self.tally.measure(from, until);
        self.frequencies.measure(from, until);
    }

    /// What the probes call a stall: what the kernel does in less need not be in one.
    pub fn threshold(&mut self, threshold: Ticks) {
        self.tally.threshold(threshold, self.settings.rate);
    }

    /// The probe of this CPU read the clock for the first time at `from`, somewhat after the planned
    /// start: what the kernel did between warm-up and that read lies in no gap and does not count.
    pub fn begin(&mut self, cpu: CpuId, from: Ticks) {
        self.tally.begin(cpu, from);
    }

    /// The lexicon may say other names from here on than it has said so far.
    pub fn forget_names(&mut self) {
        self.scratch.forget_names();
    }

    /// What was counted of CPU quotas up to the end of the stalls that come next. `counts`: they belong to the
    /// measurement.
    pub fn quotas(&mut self, turn: &DrainTurn, counts: bool) {
        self.bandwidth.turn(turn, counts);
    }

    /// Control groups that were throttled in the measurement.
    pub fn throttled(&self) -> impl Iterator<Item = &GroupThrottled> {
        self.bandwidth.throttled()
    }

    /// CPUs whose frequency was changed in the measurement.
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
            // A wake-up of before a sleep is not that of the turn after it.
            self.senders.note(event);
        }
    }

    /// An event of a sender, from any CPU.
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
            _ => {}
        }
        self.senders.note(event);
    }

    /// Records of a CPU were lost between two times: stalls that touch them get no verdict.
    pub fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks) {
        self.cpus.of(cpu).lost(from, to);
        // When threads went to sleep is recorded by the measured CPUs themselves.
        self.senders.lost(from, to);
    }

    /// Records of the sending side were lost between two times.
    pub fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        self.senders.lost(from, to);
    }

    /// A gap that will be attributed soon, so that stalls of other CPUs can be seen to begin with it.
    pub fn announce(&mut self, cpu: CpuId, gap: Gap) {
        self.cpus.of(cpu).announced(gap);
        self.tally.gap(cpu, gap);
    }

    /// Learns the entry and exit costs from a stall of the warm-up, whose events it discards.
    pub fn learn(&mut self, stall: &Stall, lexicon: &dyn Lexicon) {
        if self.look(stall, true) > 0 {
            self.due(stall, lexicon);
            let rate = self.settings.rate;
            let Attributor {
                window,
                names,
                senders,
                bandwidth,
                costs,
                scratch,
                ..
            } = self;
            let naming = naming(stall, names, senders, lexicon, bandwidth);
            let named =
                Named::reusing(std::mem::take(scratch), window, naming, &[], rate).named_once();
            gap::learn(&named, costs);
            *scratch = named.into_scratch();
        }
    }

    /// Passes over a stall that is neither warm-up nor measured: its events are gone, nothing is learnt.
    pub fn pass_over(&mut self, stall: &Stall) {
        self.look(stall, true);
    }

    /// Splits a late wake-up, whose victim slept when it began.
    pub fn attribute_wakeup(&mut self, stall: &Stall, lexicon: &dyn Lexicon) -> Attribution {
        let rate = self.settings.rate;
        self.look(stall, false);
        if self.is_near_loss(stall) {
            return whole(stall, lost(stall, rate).in_phase(Phase::LostRecords));
        }
        let woken = self.take_woken(stall);
        let naming = naming(stall, &self.names, &self.senders, lexicon, &self.bandwidth);
        late_wakeup::split(stall, &self.window, &woken, &naming, rate)
    }

    /// When the victim was woken in a stall, in order; wakings of before its end are given up.
    fn take_woken(&mut self, stall: &Stall) -> Vec<Woken> {
        self.cpus.of(stall.cpu).take_woken(stall)
    }

    /// Gives up events before a time, which no stall will want: wake-ups in time leave theirs behind.
    pub fn forget(&mut self, before: Ticks) {
        for (id, cpu) in self.cpus.iter_mut() {
            let mut tally = self.tally.of(id);
            cpu.feed
                .advance(before, false, |at, turns| tally.outside(at, turns));
            cpu.expiries.forget(before);
        }
    }

    /// Splits a spinning thread's stall among its culprits, exactly.
    pub fn attribute(
        &mut self,
        stall: &Stall,
        hints: &OutsideHints,
        lexicon: &dyn Lexicon,
    ) -> Attribution {
        self.senders.spins(stall.victim.tid);
        let inside = self.look(stall, true);
        let rate = self.settings.rate;
        if self.is_near_loss(stall) {
            return whole(stall, lost(stall, rate));
        }
        if inside == 0 {
            return whole(stall, culprits::unseen(&self.question(stall, hints)));
        }
        // Only who was stopped meanwhile is woken in the middle of a stall: from there on it waits.
        let waits: Vec<Waits> = self.take_woken(stall).iter().map(Woken::waits).collect();
        let (present, due) = (self.settings.virtual_machine, self.due(stall, lexicon));
        let Attributor {
            window,
            names,
            senders,
            bandwidth,
            costs,
            scratch,
            ..
        } = self;
        let naming = naming(stall, names, senders, lexicon, bandwidth);
        let named =
            Named::reusing(std::mem::take(scratch), window, naming, &waits, rate).named_once();
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

    /// Since when the interrupt was due that is the first record of a stall, as far as records tell.
    fn due(&mut self, stall: &Stall, lexicon: &dyn Lexicon) -> Option<Ticks> {
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
                lexicon,
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
        // On its way it may be for as long as stalls begin together; one that was sent before that is another.
        (sent + settings.rate.ticks(TOGETHER) >= stall.start).then(|| sent.max(stall.start))
    }

    /// Counts the events that no stall took, each CPU's up to the last read of its probe, and forgets
    /// them.
    pub fn finish(&mut self, ends: &[(CpuId, Ticks)]) {
        for (cpu, until) in ends {
            self.tally.end(*cpu, *until);
        }
        self.forget(Ticks(u64::MAX));
    }

    /// Stalled time in which more happened than is kept: each culprit's sum is exact there, the order of events
    /// and their senders are not known.
    #[must_use]
    pub fn folded(&self) -> Ticks {
        self.folded
    }

    /// Records of senders that were dropped though somebody might have asked for them: there were too many at once.
    #[must_use]
    pub fn senders_dropped(&self) -> u64 {
        self.senders.dropped()
    }

    /// Switches that must have been and are not recorded, by CPU.
    #[must_use]
    pub fn unrecorded_switches(&self) -> BTreeMap<CpuId, u64> {
        let all = self
            .cpus
            .iter()
            .map(|(id, cpu)| (id, cpu.feed.machine.unrecorded_switches()));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Events of measured CPUs inside and outside their gaps.
    #[must_use]
    pub fn events_in_gaps(&self) -> EventsInGaps {
        self.tally.counts()
    }

    /// The costs learnt so far.
    #[must_use]
    pub fn costs(&self) -> &EdgeCosts {
        &self.costs
    }

    /// Feeds the stall's CPU to the stall's end, and fills the window with what it did in between; how many
    /// records lie inside. A spinning victim ran when the stall began, any did when it ended.
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
        // A stall may have begun before the one before it had ended.
        window.begin_at(stall.start);
        self.folded = self.folded + window.folded();
        feed.machine.running(stall.victim.tid, stall.end);
        inside
    }

    fn is_near_loss(&self, stall: &Stall) -> bool {
        self.cpus
            .get(stall.cpu)
            .is_some_and(|cpu| cpu.is_near_loss(stall))
    }

    fn question<'h>(&mut self, stall: &Stall, hints: &'h OutsideHints) -> OutsideQuestion<'h> {
        let rate = self.settings.rate;
        let (together, near) = (rate.ticks(TOGETHER), rate.ticks(NEAR_FREQUENCY_CHANGE));
        let others = self.cpus.iter().filter(|(id, _)| *id != stall.cpu);
        let simultaneous = others
            .filter(|(_, cpu)| cpu.stalled_with(stall, together))
            .count();
        let cpu = self.cpus.of(stall.cpu);
        OutsideQuestion {
            length: rate.nanos(stall.length()),
            virtual_machine: self.settings.virtual_machine,
            simultaneous,
            measured: self.settings.measured,
            smi: hints.smi,
            untraced: &hints.untraced,
            stolen: hints.stolen,
            faults: hints.faults,
            frequency_change: cpu.has_changed_frequency(stall, near),
            adjacent: cpu.stalled_until(stall.start),
        }
    }
}

fn naming<'a>(
    stall: &Stall,
    names: &'a NameTable,
    senders: &'a Senders,
    lexicon: &'a dyn Lexicon,
    bandwidth: &'a Bandwidth,
) -> Naming<'a> {
    let (cpu, victim) = (stall.cpu, stall.victim.tid);
    Naming {
        cpu,
        victim,
        names,
        senders,
        lexicon,
        bandwidth,
        folded: false,
    }
}

/// A stall that has one culprit, or none.
fn whole(stall: &Stall, part: Part) -> Attribution {
    Attribution {
        stall: stall.id,
        parts: vec![part],
    }
}

/// A stall near which records were lost.
fn lost(stall: &Stall, rate: TickRate) -> Part {
    Part::whole(
        culprits::lost(),
        rate.nanos(stall.length()),
        Confidence::High,
        Evidence::LostRecords,
    )
}
