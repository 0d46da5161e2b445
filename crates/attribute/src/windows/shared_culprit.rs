//! Culprits of waits, each named once: many threads that wait for a CPU at the same time see the same turns on it.

use super::Named;
use super::holder::culprit;
use crate::culprits;
use crate::occupancy::{CommId, Frame, Outcome};
use crate::subjects::{SubjectNo, Subjects};
use jitterscope_model::{CpuId, Culprit, Ticks};
use rustc_hash::FxHashMap;
use std::ops::Deref;
use std::sync::Arc;

/// Maximum of frames with known culprits, some seconds of busy CPUs; beyond it all are forgotten.
const MOST_FRAMES: usize = 1 << 14;

/// A culprit that slices share.
#[derive(Clone, Debug)]
pub struct SharedCulprit {
    culprit: Arc<Culprit>,
    /// Its number; `None` if its creator has none.
    number: Option<SubjectNo>,
}

impl SharedCulprit {
    pub(crate) fn shared(&self) -> &Arc<Culprit> {
        &self.culprit
    }
}

impl Deref for SharedCulprit {
    type Target = Culprit;

    fn deref(&self) -> &Culprit {
        &self.culprit
    }
}

impl PartialEq for SharedCulprit {
    fn eq(&self, other: &SharedCulprit) -> bool {
        self.culprit == other.culprit
    }
}

impl Eq for SharedCulprit {}

impl From<Culprit> for SharedCulprit {
    fn from(culprit: Culprit) -> SharedCulprit {
        SharedCulprit {
            culprit: Arc::new(culprit),
            number: None,
        }
    }
}

/// The identity of a closed frame. Equal values have the same culprit for every victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Known {
    cpu: CpuId,
    opened: Ticks,
    start: Ticks,
    end: Ticks,
    key: u64,
    subject: u64,
    tid: i32,
    class: u8,
    comm: CommId,
    was: Option<CommId>,
    prio: i16,
}

impl Known {
    fn of(cpu: CpuId, frame: &Frame) -> Known {
        let Frame {
            opened,
            start,
            end,
            key,
            subject,
            tid,
            class,
            ..
        } = *frame;
        let (comm, prio, class) = (frame.named(), frame.priority(), class as u8);
        let was = frame.was();
        Known {
            cpu,
            opened,
            start,
            end,
            key,
            subject,
            tid,
            class,
            comm,
            was,
            prio,
        }
    }
}

/// Culprits of the frames in waits so far.
#[derive(Debug, Default)]
pub(crate) struct CulpritCache {
    frames: FxHashMap<Known, Arc<SharedCulprit>>,
    /// The culprit of the scheduler's own time, once it is needed.
    context_switch: Option<Arc<SharedCulprit>>,
    pub(crate) subjects: Subjects,
}

impl CulpritCache {
    pub(crate) fn number(&mut self, culprit: &SharedCulprit) -> SubjectNo {
        culprit
            .number
            .unwrap_or_else(|| self.subjects.number(&culprit.subject))
    }

    /// The scheduler's own time.
    pub(super) fn context_switch(&mut self) -> Arc<SharedCulprit> {
        Arc::clone(
            self.context_switch
                .get_or_insert_with(|| Arc::new(culprits::context_switch().into())),
        )
    }

    /// The culprit of a frame in a thread's wait.
    pub(super) fn culprit(&mut self, owner: u32, named: &Named<'_>) -> Arc<SharedCulprit> {
        let known = named
            .is_the_same_for_all(owner)
            .then(|| Known::of(named.naming.cpu, named.frame(owner)));
        if let Some(culprit) = known.and_then(|known| self.frames.get(&known)) {
            return Arc::clone(culprit);
        }
        let culprit = culprit(owner, named);
        let number = Some(self.subjects.number(&culprit.subject));
        let culprit = Arc::new(SharedCulprit { culprit, number });
        if let Some(known) = known.filter(|_| !named.has_folded()) {
            if self.frames.len() >= MOST_FRAMES {
                self.frames.clear();
            }
            self.frames.insert(known, Arc::clone(&culprit));
        }
        culprit
    }
}

impl Named<'_> {
    /// Whether a frame has the same culprit in every window: it is closed, neither cut nor summed, and the victim was
    /// not kept from running in it.
    fn is_the_same_for_all(&self, index: u32) -> bool {
        let frame = self.frame(index);
        frame.outcome == Outcome::Closed
            && frame.start > self.window.from
            && !self.is_folded(index)
            && !self.is_kept_away(index)
            && !(frame.is_turn() && frame.tid == 0)
            && (frame.is_turn() || !frame.class.is_root())
    }
}
