//! One stretch in which a followed thread did not get on, and who had the CPU instead.

use crate::culprits::{self, Scene};
use crate::lexicon::Lexicon;
use crate::senders::Senders;
use crate::timeline::{Left, Suspended, Timeline};
use jitterscope_model::{
    About, Attribution, Confidence, CpuId, Culprit, CulpritKind, EventKind, Evidence, KernelEvent, Part,
    Phase, Sender, Stall, StallId, Subject, ThreadRef, TickRate, Ticks, Verdict,
};

/// Why the thread did not get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EpisodeKind {
    /// The CPU was taken from it while it was runnable.
    Preempted,
    /// It was woken, and had to wait for a CPU.
    WaitAfterWakeUp,
    /// It kept its CPU, and an interrupt ran on it.
    Interrupted,
}

impl EpisodeKind {
    /// The phase of its parts.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self {
            EpisodeKind::Preempted => Phase::Preempted,
            EpisodeKind::WaitAfterWakeUp => Phase::WaitAfterWakeUp,
            EpisodeKind::Interrupted => Phase::Interrupted,
        }
    }
}

/// A piece of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// From.
    pub start: Ticks,
    /// To.
    pub end: Ticks,
    /// Who had the CPU.
    pub culprit: Culprit,
    /// Number of the turn on the CPU within its episode: slices that an interrupt parts belong to one turn.
    pub turn: usize,
}

/// A stretch in which a followed thread was runnable and did not get on. Its slices are in order, touch,
/// and fill it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// Whose.
    pub thread: ThreadRef,
    /// Why; of several that were joined, that of the first.
    pub kind: EpisodeKind,
    /// Where it ended.
    pub cpu: CpuId,
    /// Where it began, when the thread was moved meanwhile.
    pub migrated_from: Option<CpuId>,
    /// From.
    pub start: Ticks,
    /// To.
    pub end: Ticks,
    /// Who had the CPU.
    pub slices: Vec<Slice>,
    /// Who woke it, of a wait after a wake-up.
    pub waker: Option<Sender>,
}

impl Episode {
    /// How long.
    #[must_use]
    pub fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// What of it lies between two times; empty when nothing does.
    pub(crate) fn clipped(&self, from: Ticks, to: Ticks) -> impl Iterator<Item = Slice> + '_ {
        self.slices.iter().filter_map(move |slice| {
            let (start, end) = (slice.start.max(from), slice.end.min(to));
            (start < end).then(|| Slice { start, end, ..slice.clone() })
        })
    }

    /// It and what followed at once as one.
    pub(super) fn join(&mut self, next: Episode) {
        if next.start > self.end {
            let turn = self.slices.last().map_or(0, |slice| slice.turn + 1);
            let culprit = culprits::context_switch();
            self.slices.push(Slice { start: self.end, end: next.start, culprit, turn });
        }
        let base = self.slices.last().map_or(0, |slice| slice.turn + 1);
        self.slices.extend(next.slices.into_iter().map(|s| Slice { turn: s.turn + base, ..s }));
        if next.cpu != self.cpu {
            self.migrated_from.get_or_insert(self.cpu);
        }
        self.cpu = next.cpu;
        self.end = next.end;
    }

    /// The same as a stall and its attribution, for the store.
    #[must_use]
    pub fn as_stall(&self, id: StallId, rate: TickRate) -> (Stall, Attribution) {
        let stall = Stall { id, cpu: self.cpu, victim: self.thread, start: self.start, end: self.end };
        let at = |time: Ticks| rate.nanos(time.since(self.start));
        let mut parts: Vec<Part> = Vec::new();
        for slice in &self.slices {
            let net = at(slice.end).saturating_sub(at(slice.start));
            let part = Part::inside(slice.culprit.clone(), net, Evidence::ThreadRecords);
            add_part(&mut parts, Part { moved_from: self.migrated_from, ..part.in_phase(self.kind.phase()) });
        }
        (stall, Attribution { stall: id, parts })
    }
}

/// Adds time to the part of the same culprit, phase and evidence, or begins one. It is as sure as its
/// culprit's kind.
pub(super) fn add_part(parts: &mut Vec<Part>, part: Part) {
    let same = |other: &&mut Part| {
        other.culprit == part.culprit
            && other.phase == part.phase
            && other.moved_from == part.moved_from
            && other.evidence == part.evidence
    };
    if let Some(known) = parts.iter_mut().find(same) {
        known.net += part.net;
        known.gross += part.net;
        return;
    }
    parts.push(Part { confidence: confidence(part.culprit.kind()), ..part });
}

/// How sure a slice's culprit is.
fn confidence(kind: CulpritKind) -> Confidence {
    match kind {
        CulpritKind::Unresolved | CulpritKind::Hypervisor | CulpritKind::Loss => Confidence::Low,
        CulpritKind::Switch | CulpritKind::PageFault => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// What is needed to name who had a CPU.
pub(super) struct Naming<'a> {
    pub(super) senders: &'a Senders,
    pub(super) lexicon: &'a dyn Lexicon,
    pub(super) rate: TickRate,
}

/// Takes the beginnings of work items that a turn goes on with out of a CPU's records: those of before
/// `first` are what sleeps then, the others stand where they happened, too.
fn in_order<'e>(events: &[&'e KernelEvent], first: Ticks) -> (Vec<&'e KernelEvent>, Suspended) {
    let (mut ordered, mut sleeping) = (Vec::with_capacity(events.len()), Suspended::new());
    let mut latest = first;
    for event in events {
        if event.time >= latest || !matches!(event.kind, EventKind::WorkStart { .. }) {
            latest = latest.max(event.time);
            ordered.push(*event);
        } else if event.time < first
            && let Some(rule) = culprits::rule_opened_by(event)
        {
            sleeping.insert(event.tid, Left { at: first, frames: vec![(rule, (*event).clone())] });
        }
    }
    (ordered, sleeping)
}

/// Who had a CPU between `from` and `to`, while `victim` did not get on. `events` are records of that CPU
/// as [`Cpu::since`](super::cpu::Cpu::since) has them, and may begin earlier, with the switch that began
/// the turn under way at `from`.
pub(super) fn slices(
    victim: ThreadRef,
    cpu: CpuId,
    (from, to): (Ticks, Ticks),
    events: &[&KernelEvent],
    naming: &Naming<'_>,
) -> Vec<Slice> {
    let first = events.first().map_or(from, |event| event.time.min(from));
    let stall = Stall { id: StallId(0), cpu, victim, start: first, end: to };
    let (events, mut sleeping) = in_order(events, first);
    let timeline = Timeline::build_with(&stall, events, naming.rate, naming.senders, &mut sleeping);
    let scene =
        Scene { stall: &stall, timeline: &timeline, senders: naming.senders, lexicon: naming.lexicon };
    let named: Vec<Culprit> = (0..timeline.frames.len()).map(|index| culprit_of(index, &scene, to)).collect();
    // The turn that a frame belongs to: the outermost frame around it of the same culprit.
    let turn = |index: usize| {
        let mut turn = index;
        let mut at = index;
        while let Some(parent) = timeline.frames[at].parent {
            if named[parent] == named[index] {
                turn = parent;
            }
            at = parent;
        }
        turn
    };
    let mut found: Vec<Slice> = Vec::new();
    for stretch in &timeline.stretches {
        let (start, end) = (stretch.start.max(from), stretch.end.min(to));
        if start >= end {
            continue;
        }
        let (culprit, turn) = match stretch.frame {
            Some(index) => (named[index].clone(), turn(index)),
            None => (frameless(&stall, &timeline, start), timeline.frames.len()),
        };
        match found.last_mut().filter(|last| last.culprit == culprit && last.turn == turn) {
            Some(last) => last.end = end,
            None => found.push(Slice { start, end, culprit, turn }),
        }
    }
    found
}

/// As elsewhere, but that a turn still under way at the end is the culprit's, and that the idle thread in
/// a runnable thread's stead is the way out of idle.
fn culprit_of(index: usize, scene: &Scene<'_>, until: Ticks) -> Culprit {
    let frame = &scene.timeline.frames[index];
    if let EventKind::SchedSwitch { next, .. } = &frame.opening.kind
        && next.tid == 0
        && frame.is_thread()
    {
        return Subject::verdict(Verdict::IdleExit).into();
    }
    let cut_off = !frame.closed && frame.end >= until;
    if cut_off { culprits::culprit_while_open(index, scene) } else { culprits::culprit_of(index, scene) }
}

/// Time with no frame: the scheduler's own after a record, unknown before the first.
fn frameless(stall: &Stall, timeline: &Timeline, at: Ticks) -> Culprit {
    match timeline.events.first() {
        Some(first) if first.time <= at => culprits::context_switch(),
        _ => Subject::Verdict(Verdict::NotSeen, About::Cpu(stall.cpu)).into(),
    }
}
