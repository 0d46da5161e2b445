//! Attribution of a whole recording, stall by stall, in bounded memory.

use crate::costs::EdgeCosts;
use crate::culprits::{self, OutsideQuestion, Scene};
use crate::lexicon::Lexicon;
use crate::senders::Senders;
use crate::split;
use crate::tally::EventTally;
use crate::timeline::{Left, Suspended, Timeline};
use jitterscope_model::{
    Attribution, Confidence, CpuId, EventKind, EventsInGaps, Evidence, ExecutionContext, Gap, KernelEvent,
    Nanos, Part, Phase, SleepingWork, Stall, TickRate, Ticks,
};
use std::collections::{BTreeMap, VecDeque};

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
}

/// Stalls of different CPUs that begin within this time began together.
const TOGETHER: Nanos = Nanos(5_000);
/// A change of frequency is near a stall within this time of it.
const NEAR_FREQUENCY_CHANGE: Nanos = Nanos(100_000);
/// Losses remembered a CPU; older ones can only matter to stalls long since attributed.
const KEPT_LOSSES: usize = 256;
/// Gaps remembered a CPU to see stalls that begin together.
const KEPT_GAPS: usize = 4096;
/// Wake-ups remembered a CPU: those of a late wake-up are among the last.
const KEPT_WAKINGS: usize = 1024;
/// Smallest shift of the control comparison.
const CONTROL_SHIFT: Nanos = Nanos(250_000_000);

#[derive(Debug, Default)]
struct Cpu {
    /// Events not yet inside an attributed stall, in order.
    pending: VecDeque<KernelEvent>,
    suspended: Suspended,
    /// Windows in which records were lost.
    losses: VecDeque<(Ticks, Ticks)>,
    recent: VecDeque<Gap>,
    /// Wake-ups on this CPU, recorded where the waker ran.
    wakings: VecDeque<KernelEvent>,
    frequency_change: Option<Ticks>,
}

/// Attributes the stalls of a recording. For each CPU hand over events and stalls in time order; a stall
/// only when all events up to its end were handed over.
#[derive(Debug)]
pub struct Attributor {
    settings: AttributorSettings,
    cpus: BTreeMap<CpuId, Cpu>,
    senders: Senders,
    costs: EdgeCosts,
    tally: EventTally,
}

impl Attributor {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(settings: AttributorSettings) -> Attributor {
        Attributor {
            settings,
            cpus: BTreeMap::new(),
            senders: Senders::default(),
            costs: EdgeCosts::default(),
            tally: EventTally::new(settings.rate.ticks(CONTROL_SHIFT)),
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
            let kind = EventKind::WorkStart { work: row.work, function: row.function };
            let opening = KernelEvent {
                time: row.begun,
                cpu: row.cpu,
                tid: row.tid,
                context: ExecutionContext::Thread,
                kind,
            };
            if let Some(rule) = culprits::rule_opened_by(&opening) {
                let suspended = &mut self.cpus.entry(row.cpu).or_default().suspended;
                let left = Left { at: row.left, frames: Vec::new() };
                suspended.entry(row.tid).or_insert(left).frames.push((rule, opening));
            }
        }
        self
    }

    /// The work items that sleep on a CPU now, as far as their workers did not come back from another CPU
    /// by `until`.
    #[must_use]
    pub fn sleeping_works(&self, cpu: CpuId, until: Ticks) -> Vec<SleepingWork> {
        let suspended = self.cpus.get(&cpu).into_iter().flat_map(|of| &of.suspended);
        suspended
            .filter(|(tid, left)| !self.senders.has_arrived(**tid, cpu, left.at, until))
            .flat_map(|(tid, left)| left.frames.iter().map(move |f| (*tid, left.at, &f.1)))
            .filter_map(|(tid, left, opening)| match opening.kind {
                EventKind::WorkStart { work, function } => {
                    Some(SleepingWork { cpu, tid, left, begun: opening.time, work, function })
                }
                _ => None,
            })
            .collect()
    }

    /// Says which events count for [`Attributor::events_in_gaps`]; until then none does.
    pub fn measure(&mut self, from: Ticks, until: Ticks) {
        self.tally.measure(from, until);
    }

    /// The probe of this CPU read the clock for the first time at `from`, somewhat after the planned
    /// start: what the kernel did between warm-up and that read lies in no gap and does not count.
    pub fn begin(&mut self, cpu: CpuId, from: Ticks) {
        self.tally.begin(cpu, from);
    }

    /// An event of a measured CPU.
    pub fn event(&mut self, event: KernelEvent) {
        if let EventKind::CpuFrequency { target, .. } = event.kind {
            self.cpus.entry(target).or_default().frequency_change = Some(event.time);
        }
        self.cpus.entry(event.cpu).or_default().pending.push_back(event);
    }

    /// An event of a sender, from any CPU.
    pub fn sender_event(&mut self, event: &KernelEvent) {
        if let EventKind::SchedWaking { target, .. } = event.kind {
            let wakings = &mut self.cpus.entry(target).or_default().wakings;
            if wakings.len() >= KEPT_WAKINGS {
                wakings.pop_front();
            }
            wakings.push_back(event.clone());
        }
        self.senders.note(event);
    }

    /// Records of a CPU were lost between two times: stalls that touch them get no verdict.
    pub fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks) {
        let cpu = self.cpus.entry(cpu).or_default();
        cpu.suspended.clear();
        if cpu.losses.len() >= KEPT_LOSSES {
            cpu.losses.pop_front();
        }
        cpu.losses.push_back((from, to));
    }

    /// A gap that will be attributed soon, so that stalls of other CPUs can be seen to begin with it.
    pub fn announce(&mut self, cpu: CpuId, gap: Gap) {
        let recent = &mut self.cpus.entry(cpu).or_default().recent;
        if recent.len() >= KEPT_GAPS {
            recent.pop_front();
        }
        recent.push_back(gap);
        self.tally.gap(cpu, gap);
    }

    /// Learns the entry and exit costs from a stall of the warm-up, whose events it discards.
    pub fn learn(&mut self, stall: &Stall, lexicon: &dyn Lexicon) {
        let timeline = self.take_timeline(stall);
        if !timeline.events.is_empty() {
            let scene = Scene { stall, timeline: &timeline, senders: &self.senders, lexicon };
            split::learn(&scene, &mut self.costs);
        }
    }

    /// Passes over a stall that is neither warm-up nor measured: its events are gone, nothing is learnt.
    pub fn pass_over(&mut self, stall: &Stall) {
        self.take_timeline(stall);
    }

    /// Splits a late wake-up, whose victim slept when it began.
    pub fn attribute_wakeup(&mut self, stall: &Stall, lexicon: &dyn Lexicon) -> Attribution {
        let rate = self.settings.rate;
        let mut events = self.take_events(stall);
        if self.is_near_loss(stall) {
            return whole(stall, lost(stall, rate).in_phase(Phase::LostRecords));
        }
        let wakings = &mut self.cpus.entry(stall.cpu).or_default().wakings;
        // Each CPU's are in order, all CPUs' together are not.
        wakings.retain(|waking| {
            let inside = stall.contains(waking.time);
            if inside {
                events.push(waking.clone());
            }
            waking.time > stall.end
        });
        events.sort_by_key(|event| event.time);
        crate::wakeup::attribute_wakeup(stall, &events, rate, lexicon)
    }

    /// Gives up events before a time, which no stall will want: wake-ups in time leave theirs behind.
    pub fn forget(&mut self, before: Ticks) {
        for (id, cpu) in &mut self.cpus {
            let count = cpu.pending.partition_point(|event| event.time < before);
            for event in cpu.pending.drain(..count) {
                self.tally.event(*id, event.time, false);
            }
        }
    }

    /// Splits a spinning thread's stall among its culprits, exactly.
    pub fn attribute(&mut self, stall: &Stall, hints: &OutsideHints, lexicon: &dyn Lexicon) -> Attribution {
        self.senders.spins(stall.victim.tid);
        let timeline = self.take_timeline(stall);
        let rate = self.settings.rate;
        if self.is_near_loss(stall) {
            return whole(stall, lost(stall, rate));
        }
        if timeline.events.is_empty() {
            return whole(stall, culprits::unseen(&self.question(stall, hints)));
        }
        let scene = Scene { stall, timeline: &timeline, senders: &self.senders, lexicon };
        let attribution = split::split(&scene, &self.costs, self.settings.virtual_machine, rate);
        split::learn(&scene, &mut self.costs);
        attribution
    }

    /// Counts the events that no stall took, each CPU's up to the last read of its probe, and forgets
    /// them.
    pub fn finish(&mut self, ends: &[(CpuId, Ticks)]) {
        for (cpu, until) in ends {
            self.tally.end(*cpu, *until);
        }
        self.forget(Ticks(u64::MAX));
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

    /// Takes the events up to the stall's end: those inside become its timeline.
    fn take_timeline(&mut self, stall: &Stall) -> Timeline {
        let events = self.take_events(stall);
        let cpu = self.cpus.entry(stall.cpu).or_default();
        Timeline::build_with(stall, &events, self.settings.rate, &self.senders, &mut cpu.suspended)
    }

    /// Takes the events up to the stall's end and counts them.
    fn take_events(&mut self, stall: &Stall) -> Vec<KernelEvent> {
        let cpu = self.cpus.entry(stall.cpu).or_default();
        let count = cpu.pending.partition_point(|e| e.time <= stall.end);
        let events: Vec<KernelEvent> = cpu.pending.drain(..count).collect();
        for event in &events {
            self.tally.event(stall.cpu, event.time, stall.contains(event.time));
        }
        events
    }

    fn is_near_loss(&self, stall: &Stall) -> bool {
        self.cpus
            .get(&stall.cpu)
            .is_some_and(|cpu| cpu.losses.iter().any(|(from, to)| *from <= stall.end && stall.start <= *to))
    }

    fn question<'h>(&mut self, stall: &Stall, hints: &'h OutsideHints) -> OutsideQuestion<'h> {
        let rate = self.settings.rate;
        let (together, near) = (rate.ticks(TOGETHER), rate.ticks(NEAR_FREQUENCY_CHANGE));
        let close = |a: Ticks, b: Ticks, within: Ticks| a.0.abs_diff(b.0) <= within.0;
        let simultaneous = self
            .cpus
            .iter()
            .filter(|(id, cpu)| {
                **id != stall.cpu && cpu.recent.iter().rev().any(|g| close(g.start, stall.start, together))
            })
            .count();
        let cpu = self.cpus.entry(stall.cpu).or_default();
        let before = cpu.recent.partition_point(|g| g.start < stall.start);
        let adjacent = before.checked_sub(1).is_some_and(|i| cpu.recent[i].end() == stall.start);
        OutsideQuestion {
            length: rate.nanos(stall.length()),
            virtual_machine: self.settings.virtual_machine,
            simultaneous,
            measured: self.settings.measured,
            smi: hints.smi,
            untraced: &hints.untraced,
            frequency_change: cpu.frequency_change.is_some_and(|at| close(at, stall.start, near)),
            adjacent,
        }
    }
}

/// A stall that has one culprit, or none.
fn whole(stall: &Stall, part: Part) -> Attribution {
    Attribution { stall: stall.id, parts: vec![part] }
}

/// A stall near which records were lost.
fn lost(stall: &Stall, rate: TickRate) -> Part {
    Part::whole(culprits::lost(), rate.nanos(stall.length()), Confidence::High, Evidence::LostRecords)
}
