//! One stretch in which a followed thread did not get on, and who had the CPU instead.

use crate::culprits;
use crate::windows::Slice;
use jitterscope_model::{
    Attribution, Confidence, CpuId, CulpritKind, Evidence, Part, Phase, Sender, Stall, StallId, ThreadRef,
    TickRate, Ticks,
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
    /// A signal or a tracer had stopped it.
    Stopped,
}

impl EpisodeKind {
    /// The phase of its parts.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self {
            EpisodeKind::Preempted => Phase::Preempted,
            EpisodeKind::WaitAfterWakeUp => Phase::WaitAfterWakeUp,
            EpisodeKind::Interrupted => Phase::Interrupted,
            EpisodeKind::Stopped => Phase::Stopped,
        }
    }
}

/// A stretch in which a followed thread was runnable, or stopped, and did not get on. Its slices are in order, touch,
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

    /// Whether the next may be told as one with it: a stop is another matter than what others took.
    pub(super) fn joins(&self, next: &Episode) -> bool {
        (self.kind == EpisodeKind::Stopped) == (next.kind == EpisodeKind::Stopped)
    }

    /// It and what followed at once as one.
    pub(super) fn join(&mut self, next: Episode) {
        if next.start > self.end {
            let turn = self.slices.last().map_or(0, |slice| slice.turn + 1);
            let culprit = culprits::context_switch();
            let evidence = Evidence::ThreadRecords;
            self.slices.push(Slice { start: self.end, end: next.start, culprit, evidence, turn });
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
            let part = Part::inside(slice.culprit.clone(), net, slice.evidence.clone());
            add_part(&mut parts, Part { moved_from: self.migrated_from, ..part.in_phase(self.kind.phase()) });
        }
        (stall, Attribution { stall: id, parts })
    }
}

/// Adds time to the part of the same culprit, phase and evidence, or begins one. It is as sure as its
/// culprit's kind.
pub(crate) fn add_part(parts: &mut Vec<Part>, part: Part) {
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
    let confidence = match part.evidence {
        Evidence::SwitchRecordsWhileThrottled => Confidence::Medium,
        _ => confidence(part.culprit.kind()),
    };
    parts.push(Part { confidence, ..part });
}

/// How sure a slice's culprit is.
fn confidence(kind: CulpritKind) -> Confidence {
    match kind {
        CulpritKind::Unresolved | CulpritKind::Hypervisor | CulpritKind::Loss => Confidence::Low,
        CulpritKind::Switch | CulpritKind::PageFault | CulpritKind::Quota => Confidence::Medium,
        _ => Confidence::High,
    }
}
