//! The frames of one window, named when they are first asked for.

use crate::culprits::{self, Naming, Waits, Withheld, WithheldTurns};
use crate::occupancy::{Class, Frame, Outcome, Slice, Window};
use jitterscope_model::{Confidence, Culprit, CulpritKind, CulpritPool, Evidence, TickRate};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// Culprits of a window that are looked through one by one.
const FEW: usize = 16;

/// A window with names.
pub(crate) struct Named<'a> {
    pub(crate) window: &'a Window,
    pub(crate) naming: Naming<'a>,
    /// By frame: whether it stands for many. Behind the last one none does, so that most windows need no memory for
    /// it; a folded window may have very many frames.
    folded: Vec<bool>,
    /// By frame: what kept the victim from running in that turn.
    withheld: WithheldTurns,
    pub(crate) rate: TickRate,
    /// By frame: which of the culprits.
    known: RefCell<Vec<Option<CulpritNo>>>,
    /// Those that were met so far, each once.
    met: RefCell<Vec<Arc<Culprit>>>,
    /// Where they come from: while this window is looked at, equal ones are one value.
    pool: RefCell<CulpritPool>,
    /// Their numbers, by where they lie.
    numbers: RefCell<FxHashMap<usize, CulpritNo>>,
}

/// Memory of a window's names, for the next window.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    known: Vec<Option<CulpritNo>>,
    met: Vec<Arc<Culprit>>,
    pool: CulpritPool,
}

/// Stands for a culprit of a window: equal numbers, equal culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CulpritNo(usize);

impl<'a> Named<'a> {
    /// `waits`: when the victim began to wait for this CPU, beside what its switches tell.
    pub(crate) fn new(window: &'a Window, naming: Naming<'a>, waits: &[Waits], rate: TickRate) -> Named<'a> {
        Named::reusing(Scratch::default(), window, naming, waits, rate)
    }

    /// The same in memory of an earlier window.
    pub(crate) fn reusing(
        scratch: Scratch,
        window: &'a Window,
        naming: Naming<'a>,
        waits: &[Waits],
        rate: TickRate,
    ) -> Named<'a> {
        let Scratch { mut known, met, pool } = scratch;
        known.resize(window.frames.len(), None);
        let spins = naming.senders.is_spinner(naming.victim);
        let withheld = culprits::withheld(window, naming.victim, waits, spins, rate);
        let mut folded = Vec::new();
        for slice in window.slices.iter().filter(|slice| slice.folded) {
            let frame = slice.frame as usize;
            if folded.len() <= frame {
                folded.resize(frame + 1, false);
            }
            folded[frame] = true;
        }
        let (known, met, pool) = (RefCell::new(known), RefCell::new(met), RefCell::new(pool));
        Named { window, naming, folded, withheld, rate, known, met, pool, numbers: RefCell::default() }
    }

    /// Its memory, for another window.
    pub(crate) fn into_scratch(self) -> Scratch {
        let (mut known, mut met) = (self.known.into_inner(), self.met.into_inner());
        let mut pool = self.pool.into_inner();
        known.clear();
        met.clear();
        pool.bound();
        Scratch { known, met, pool }
    }

    pub(crate) fn frame(&self, index: u32) -> &Frame {
        self.window.frame(index)
    }

    /// The frame whose time a slice is; `None` when it is the victim's own.
    pub(crate) fn owner(&self, slice: &Slice) -> Option<u32> {
        self.owner_of(slice.frame)
    }

    /// The frame, or the nearest one outside of it, that counts for the victim.
    pub(crate) fn owner_of(&self, index: u32) -> Option<u32> {
        let counts = self.window.chain(index).find(|at| !self.is_private(*at))?;
        let frame = self.frame(counts);
        (frame.class != Class::Turn || frame.tid != self.naming.victim).then_some(counts)
    }

    /// Whether a frame is an affair of a thread other than the victim: its faults, and its idle states.
    fn is_private(&self, index: u32) -> bool {
        let frame = self.frame(index);
        let own = || self.frame(self.window.root(index)).tid == self.naming.victim;
        frame.class == Class::Idle || (frame.class.is_endless() && !own())
    }

    /// The frame that counts for the victim around this one; `None` when nothing but its own turn does.
    pub(crate) fn outside(&self, index: u32) -> Option<u32> {
        let parent = self.window.chain(index).nth(1)?;
        self.owner_of(parent)
    }

    /// Whether a frame counts for the victim.
    pub(crate) fn counts(&self, index: u32) -> bool {
        self.owner_of(index) == Some(index)
    }

    /// Whom to blame for a frame.
    pub(crate) fn culprit(&self, index: u32) -> Arc<Culprit> {
        self.culprit_of(self.culprit_no(index))
    }

    /// The culprit of a number.
    pub(crate) fn culprit_of(&self, number: CulpritNo) -> Arc<Culprit> {
        Arc::clone(&self.met.borrow()[number.0])
    }

    /// The kind of a culprit.
    pub(crate) fn kind(&self, number: CulpritNo) -> CulpritKind {
        self.met.borrow()[number.0].kind()
    }

    /// The number of a culprit.
    pub(crate) fn number(&self, culprit: Culprit) -> CulpritNo {
        let culprit = self.pool.borrow_mut().share(culprit);
        let mut met = self.met.borrow_mut();
        let next = CulpritNo(met.len());
        // Most windows have a handful.
        if met.len() < FEW {
            return match met.iter().position(|known| Arc::ptr_eq(known, &culprit)) {
                Some(at) => CulpritNo(at),
                None => {
                    met.push(culprit);
                    next
                }
            };
        }
        let place = |culprit: &Arc<Culprit>| Arc::as_ptr(culprit).addr();
        let mut numbers = self.numbers.borrow_mut();
        if numbers.is_empty() {
            numbers.extend(met.iter().enumerate().map(|(at, known)| (place(known), CulpritNo(at))));
        }
        *numbers.entry(place(&culprit)).or_insert_with(|| {
            met.push(culprit);
            next
        })
    }

    /// Whom to blame for a frame, as a number.
    pub(crate) fn culprit_no(&self, index: u32) -> CulpritNo {
        if let Some(known) = self.known.borrow()[index as usize] {
            return known;
        }
        let found = self.withheld_culprit(index).unwrap_or_else(|| {
            let namer = self.window.named_by(index).filter(|_| self.is_told(index)).unwrap_or(index);
            culprits::culprit_of(self.frame(namer), &self.naming_of(namer))
        });
        let found = self.number(found);
        self.known.borrow_mut()[index as usize] = Some(found);
        found
    }

    /// What kept the victim from running in the turn of a frame; a worker's items are its own doing.
    fn withheld(&self, index: u32) -> Withheld {
        let own = matches!(self.frame(index).class, Class::Turn | Class::Work);
        if own { self.withheld.at(self.window.root(index)) } else { Withheld::No }
    }

    /// Whom to blame for a turn that its thread owes to that.
    fn withheld_culprit(&self, index: u32) -> Option<Culprit> {
        let turn = self.frame(self.window.root(index));
        self.withheld(index).culprit(turn, self.window, &self.naming)
    }

    /// Whether something else than the frame itself is to blame for it, as this victim sees it.
    pub(crate) fn is_kept_away(&self, index: u32) -> bool {
        !matches!(self.withheld(index), Withheld::No | Withheld::Perhaps)
    }

    /// Whether any frame stands for many: what was inside of others may be missing.
    pub(crate) fn has_folded(&self) -> bool {
        !self.folded.is_empty()
    }

    /// Whether a frame stands for many.
    pub(crate) fn is_folded(&self, index: u32) -> bool {
        self.folded.get(index as usize).copied().unwrap_or(false)
    }

    /// Whether the victim waited for an idle CPU by no more than the way out of idle.
    pub(crate) fn is_withheld(&self, index: u32) -> bool {
        self.withheld(index) != Withheld::No
    }

    /// What the verdict on a frame rests on where that is not the frame's own records, and how sure it is.
    pub(crate) fn basis(&self, index: u32) -> Option<(Evidence, Confidence)> {
        self.withheld(index).basis(self.window, &self.naming)
    }

    /// A frame whose exit is missing has no name, whatever is inside.
    fn is_told(&self, index: u32) -> bool {
        let frame = self.frame(index);
        frame.outcome == Outcome::Closed || frame.class.is_endless() || frame.class.is_root()
    }

    /// Whom to blame for a frame that goes on beyond the window.
    pub(crate) fn culprit_while_open(&self, index: u32) -> Culprit {
        if let Some(withheld) = self.withheld_culprit(index) {
            return withheld;
        }
        let namer = self.window.named_by(index).unwrap_or(index);
        culprits::culprit_while_open(self.frame(namer), &self.naming_of(namer))
    }

    fn naming_of(&self, index: u32) -> Naming<'a> {
        Naming { folded: self.is_folded(index), ..self.naming }
    }
}
