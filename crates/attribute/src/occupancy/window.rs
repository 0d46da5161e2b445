//! The answer to "whose was this CPU between two times".

use super::frame::{Class, Frame, NONE, Outcome};
use super::names::CommId;
use super::slice::Slice;
use jitterscope_model::Ticks;

/// What a CPU did between two times. It depends on nothing that was recorded later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// From.
    pub(crate) from: Ticks,
    /// To.
    pub(crate) until: Ticks,
    /// In order; they touch and fill the window.
    pub(crate) slices: Vec<Slice>,
    /// In order of opening, clipped to the window. Slices and frames refer to them by position.
    pub(crate) frames: Vec<Frame>,
}

impl Window {
    /// Ready to be filled again, without giving memory back.
    pub(super) fn clear(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until) = (from, until.max(from));
        self.slices.clear();
        self.frames.clear();
    }

    /// A frame as it was known at the end of the window.
    pub(super) fn add_frame(&mut self, frame: &Frame, parent: u32) {
        let over = frame.outcome != Outcome::Open && frame.end <= self.from && frame.start < self.from;
        if over || frame.start > self.until {
            // It only keeps the place of what is not of this window.
            self.frames.push(Frame::nobody(Class::NotSeen, self.until));
            return;
        }
        let mut frame = Frame { parent, start: frame.start.max(self.from), ..*frame };
        if frame.outcome == Outcome::Open || frame.end > self.until {
            frame.outcome = Outcome::Open;
            frame.end = self.until;
            frame.end_comm = CommId::UNKNOWN;
            frame.end_prio = Frame::NO_PRIORITY;
        }
        self.frames.push(frame);
    }

    /// A slice, clipped to the window.
    pub(super) fn add_slice(&mut self, slice: Slice) {
        let mut slice = slice;
        if slice.start < self.from {
            slice.start = self.from;
            slice.began = None;
        }
        if slice.end > self.until {
            slice.end = self.until;
            slice.ended = None;
        }
        if slice.start < slice.end {
            self.slices.push(slice);
        }
    }

    /// Begins the window earlier than the CPU can tell of.
    pub(crate) fn begin_at(&mut self, from: Ticks) {
        if from >= self.from {
            return;
        }
        let frame = self.frames.len() as u32;
        let not_seen =
            Frame { outcome: Outcome::Closed, end: self.from, ..Frame::nobody(Class::NotSeen, from) };
        self.frames.push(not_seen);
        let slice = Slice { start: from, end: self.from, frame, began: None, ended: None, folded: false };
        self.slices.insert(0, slice);
        self.from = from;
    }

    /// A frame of this window.
    pub(crate) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// The frame and those that it is nested in, outwards.
    pub(crate) fn chain(&self, index: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(index), |at| Some(self.frame(*at).parent).filter(|up| *up != NONE))
    }

    /// The frame that says whose turn it was.
    pub(crate) fn root(&self, index: u32) -> u32 {
        self.chain(index).last().unwrap_or(index)
    }

    /// Time of which only the sums are known, because there was too much of it.
    pub(crate) fn folded(&self) -> Ticks {
        Ticks(self.slices.iter().filter(|slice| slice.folded).map(|slice| slice.length().0).sum())
    }

    /// The frame inside this one that names it, if there is one: the timer function names the timer's
    /// interrupt, the work item its worker's turn. The longest counts, of equals the first.
    pub(crate) fn named_by(&self, index: u32) -> Option<u32> {
        let frame = self.frame(index);
        let names_it = |child: &Frame| {
            let ended = child.outcome == Outcome::Closed || frame.outcome != Outcome::Closed;
            child.parent == index && ended && names(frame.class, child.class)
        };
        if !frame.class.can_be_named() {
            return None;
        }
        let inside = self.frames.iter().enumerate().skip(index as usize + 1);
        let inside = inside.take_while(|(_, child)| child.start <= frame.end);
        inside
            .filter(|(_, child)| names_it(child))
            .max_by_key(|(at, child)| (child.gross(), std::cmp::Reverse(*at)))
            .map(|(at, _)| at as u32)
    }
}

impl Class {
    /// Whether a frame inside may name it.
    fn can_be_named(self) -> bool {
        matches!(self, Class::Turn | Class::LocalTimer | Class::Softirq | Class::Vector)
    }
}

/// Whether a frame inside names the one outside.
pub(super) fn names(outside: Class, inside: Class) -> bool {
    match outside {
        Class::Turn => inside == Class::Work,
        Class::LocalTimer | Class::Softirq => matches!(inside, Class::HrtimerFunction | Class::WheelFunction),
        Class::Vector => inside == Class::Call,
        _ => false,
    }
}
