//! The frames of one window, named on demand.

use super::numbered::{CulpritNo, NumberedCulprits};
use crate::culprits::{self, Naming, Origin, Unschedulable, UnschedulableTurns, Waits};
use crate::occupancy::{Class, Frame, Slice, Window};
use jitterscope_model::{
    Confidence, Culprit, CulpritKind, Evidence, Part, Subject, TickRate, Ticks, Verdict,
};
use std::cell::RefCell;
use std::sync::Arc;

/// A window with names.
pub(crate) struct Named<'a> {
    pub(crate) window: &'a Window,
    pub(crate) naming: Naming<'a>,
    /// By frame: whether it sums many. Frames beyond the end do not, so most windows need no memory for this; a
    /// folded window may have very many frames.
    folded: Vec<bool>,
    /// By frame: what kept the victim from running in that turn.
    withheld: UnschedulableTurns,
    pub(crate) rate: TickRate,
    /// Times in which a tick was due in another thread's turn and did not come, as [`late_ticks`] has them.
    ///
    /// [`late_ticks`]: crate::lateness::late_ticks
    late: Vec<(Ticks, Ticks)>,
    /// Time that the scheduler charged no thread for, in order.
    uncharged: Vec<(Ticks, Ticks)>,
    /// By frame: the frame that counts for the victim, itself or one outside of it.
    owners: Vec<Option<u32>>,
    /// By frame: its culprit, once it is known.
    known: RefCell<Vec<Option<CulpritNo>>>,
    culprits: RefCell<NumberedCulprits>,
    /// Whether frames with the same origin are named once.
    once: bool,
}

/// Memory of a window's names, for reuse by the next window.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    owners: Vec<Option<u32>>,
    known: Vec<Option<CulpritNo>>,
    culprits: NumberedCulprits,
}

impl Scratch {
    /// From now on names may differ from earlier ones.
    pub(crate) fn forget_names(&mut self) {
        self.culprits.forget_names();
    }

    /// The same part, with the shared value of its culprit.
    pub(crate) fn shared(&mut self, part: Part) -> Part {
        self.culprits.bound();
        let culprit = self.culprits.share(Arc::unwrap_or_clone(part.culprit));
        Part { culprit, ..part }
    }
}

impl<'a> Named<'a> {
    /// `waits`: when the victim began to wait for this CPU, in addition to its switches.
    pub(crate) fn new(
        window: &'a Window,
        naming: Naming<'a>,
        waits: &[Waits],
        rate: TickRate,
    ) -> Named<'a> {
        Named::reusing(Scratch::default(), window, naming, waits, rate)
    }

    /// The same, with the memory of an earlier window.
    pub(crate) fn reusing(
        scratch: Scratch,
        window: &'a Window,
        naming: Naming<'a>,
        waits: &[Waits],
        rate: TickRate,
    ) -> Named<'a> {
        let Scratch {
            mut owners,
            mut known,
            culprits,
        } = scratch;
        known.resize(window.frames.len(), None);
        owners.extend(
            (0..window.frames.len() as u32).map(|index| owner_of(index, window, naming.victim)),
        );
        let spins = naming.senders.is_spinner(naming.victim);
        let withheld = culprits::withheld(window, naming.victim, waits, spins, rate);
        let mut folded = Vec::new();
        for slice in window.slices.iter().filter(|slice| slice.is_folded()) {
            let frame = slice.frame as usize;
            if folded.len() <= frame {
                folded.resize(frame + 1, false);
            }
            folded[frame] = true;
        }
        let (known, culprits) = (RefCell::new(known), RefCell::new(culprits));
        Named {
            window,
            naming,
            folded,
            withheld,
            rate,
            late: Vec::new(),
            uncharged: Vec::new(),
            owners,
            known,
            culprits,
            once: false,
        }
    }

    /// Names frames with the same origin only once, also across windows, until [`Scratch::forget_names`] is called.
    pub(crate) fn named_once(self) -> Named<'a> {
        Named { once: true, ..self }
    }

    /// Ticks were late in turns of others.
    pub(crate) fn with_late_ticks(self, late: Vec<(Ticks, Ticks)>) -> Named<'a> {
        Named { late, ..self }
    }

    /// The scheduler charged no thread for these times.
    pub(crate) fn with_uncharged(self, uncharged: Vec<(Ticks, Ticks)>) -> Named<'a> {
        Named { uncharged, ..self }
    }

    /// Whether a slice may be the host's in part: it is another thread's own time.
    fn may_be_hosts(&self, slice: &Slice, owner: u32) -> bool {
        matches!(self.frame(owner).class, Class::Turn | Class::Work)
            && !self.is_kept_away(owner)
            && !slice.is_folded()
    }

    /// The time of a slice that may be the host's, and why, in order. What the scheduler charged no thread for says it
    /// better than a late tick.
    pub(crate) fn perhaps_hosts(&self, slice: &Slice, owner: u32) -> Vec<(Ticks, Ticks, Evidence)> {
        if !self.may_be_hosts(slice, owner) {
            return Vec::new();
        }
        let first = self
            .uncharged
            .partition_point(|(_, end)| *end <= slice.start);
        let touching = self.uncharged[first..].iter();
        let uncharged = touching
            .take_while(|(start, _)| *start < slice.end)
            .map(|(start, end)| {
                let (start, end) = (slice.start.max(*start), slice.end.min(*end));
                (start, end, Evidence::UnchargedInVm)
            });
        let mut found: Vec<_> = uncharged.collect();
        let last = found.last().map_or(slice.start, |(_, end, _)| *end);
        if let Some(due) = self.host_from(slice, owner)
            && due.max(last) < slice.end
            && found.last().is_none_or(|(start, ..)| *start < due)
        {
            found.push((due.max(last), slice.end, Evidence::LateInterruptInVm));
        }
        found
    }

    /// From when on the time of a slice may be the host's, because a tick that was due came only at its end.
    pub(crate) fn host_from(&self, slice: &Slice, owner: u32) -> Option<Ticks> {
        if !self.may_be_hosts(slice, owner) {
            return None;
        }
        let place = self.late.partition_point(|(_, came)| *came < slice.end);
        let (due, came) = *self.late.get(place)?;
        (came == slice.end).then(|| due.max(slice.start))
    }

    /// Its memory, for another window.
    pub(crate) fn into_scratch(self) -> Scratch {
        let Named {
            mut owners,
            known,
            culprits,
            ..
        } = self;
        let (mut known, mut culprits) = (known.into_inner(), culprits.into_inner());
        owners.clear();
        known.clear();
        culprits.bound();
        Scratch {
            owners,
            known,
            culprits,
        }
    }

    pub(crate) fn frame(&self, index: u32) -> &Frame {
        self.window.frame(index)
    }

    /// The frame that has a slice's time; `None` if it is the victim's own.
    pub(crate) fn owner(&self, slice: &Slice) -> Option<u32> {
        self.owner_of(slice.frame)
    }

    /// The frame, or the nearest one outside of it, that counts for the victim; `None` if that is its own turn.
    pub(crate) fn owner_of(&self, index: u32) -> Option<u32> {
        self.owners[index as usize]
    }

    /// The frame around this one that counts for the victim; `None` if there is only its own turn.
    pub(crate) fn outside(&self, index: u32) -> Option<u32> {
        let parent = self.window.chain(index).nth(1)?;
        self.owner_of(parent)
    }

    /// Whether a frame counts for the victim.
    pub(crate) fn counts(&self, index: u32) -> bool {
        self.owner_of(index) == Some(index)
    }

    /// The culprit of a frame.
    pub(crate) fn culprit(&self, index: u32) -> Arc<Culprit> {
        self.culprit_of(self.culprit_no(index))
    }

    /// The shared value of a culprit.
    pub(crate) fn share(&self, culprit: Culprit) -> Arc<Culprit> {
        self.culprits.borrow_mut().share(culprit)
    }

    pub(crate) fn culprit_of(&self, number: CulpritNo) -> Arc<Culprit> {
        Arc::clone(self.culprits.borrow().culprit(number))
    }

    pub(crate) fn kind(&self, number: CulpritNo) -> CulpritKind {
        self.culprits.borrow().culprit(number).kind()
    }

    /// The number of a verdict.
    pub(crate) fn verdict(&self, verdict: Verdict) -> CulpritNo {
        let culprit = || Subject::verdict(verdict).into();
        self.culprits
            .borrow_mut()
            .of(Origin::Verdict(verdict), culprit)
    }

    /// The number of a frame's culprit.
    pub(crate) fn culprit_no(&self, index: u32) -> CulpritNo {
        if let Some(known) = self.known.borrow()[index as usize] {
            return known;
        }
        let found = self.find(index);
        self.known.borrow_mut()[index as usize] = Some(found);
        found
    }

    fn find(&self, index: u32) -> CulpritNo {
        let mut numbered = self.culprits.borrow_mut();
        if let Some(withheld) = self.withheld_culprit(index) {
            return numbered.number(withheld);
        }
        // A frame without a recorded exit has no name, whatever is inside.
        let is_seen = culprits::is_seen(self.frame(index));
        let namer = self
            .window
            .named_by(index)
            .filter(|_| is_seen)
            .unwrap_or(index);
        let (frame, naming) = (self.frame(namer), self.naming_of(namer));
        let origin = if self.once {
            Origin::of(frame, &naming)
        } else {
            None
        };
        match origin {
            Some(origin) => numbered.of(origin, || culprits::culprit_of(frame, &naming)),
            None => numbered.number(culprits::culprit_of(frame, &naming)),
        }
    }

    /// What kept the victim from running in the turn of a frame; a worker's items belong to its turn.
    fn withheld(&self, index: u32) -> Unschedulable {
        let own = matches!(self.frame(index).class, Class::Turn | Class::Work);
        if own {
            let root = self.window.root(index);
            self.withheld.at(root).unless_idle(self.frame(root))
        } else {
            Unschedulable::No
        }
    }

    /// The culprit of a turn, if the victim was kept from running in it.
    fn withheld_culprit(&self, index: u32) -> Option<Culprit> {
        let turn = self.frame(self.window.root(index));
        self.withheld(index).culprit(turn, &self.naming)
    }

    /// Whether the victim was kept from running in the frame, so that its culprit is not the frame itself.
    pub(crate) fn is_kept_away(&self, index: u32) -> bool {
        self.withheld(index).is_kept_away()
    }

    /// Whether any frame sums many: frames inside others may be missing.
    pub(crate) fn has_folded(&self) -> bool {
        !self.folded.is_empty()
    }

    /// Whether a frame sums many.
    pub(crate) fn is_folded(&self, index: u32) -> bool {
        self.folded.get(index as usize).copied().unwrap_or(false)
    }

    /// Evidence and confidence of the verdict on a frame; `None` if the frame's own records apply.
    pub(crate) fn basis(&self, index: u32) -> Option<(Evidence, Confidence)> {
        if self.frame(index).class != Class::Throttled {
            return self.withheld(index).basis();
        }
        let kind = self.kind(self.culprit_no(index));
        culprits::quota_evidence(kind).map(|evidence| (evidence, kind.confidence()))
    }

    /// The culprit of a frame that continues after the window.
    pub(crate) fn culprit_while_open(&self, index: u32) -> Culprit {
        if let Some(withheld) = self.withheld_culprit(index) {
            return withheld;
        }
        let namer = self.window.named_by(index).unwrap_or(index);
        culprits::culprit_while_open(self.frame(namer), &self.naming_of(namer))
    }

    fn naming_of(&self, index: u32) -> Naming<'a> {
        Naming {
            folded: self.is_folded(index),
            ..self.naming
        }
    }
}

/// The frame, or the nearest one outside of it, that counts for a victim; `None` if that is its own turn.
fn owner_of(index: u32, window: &Window, victim: i32) -> Option<u32> {
    // Faults and idle states only concern their own thread.
    let is_private = |index: u32| {
        let class = window.frame(index).class;
        class == Class::Idle
            || (class.is_endless() && window.frame(window.root(index)).tid != victim)
    };
    let counts = window.chain(index).find(|at| !is_private(*at))?;
    let frame = window.frame(counts);
    (frame.class != Class::Turn || frame.tid != victim).then_some(counts)
}
