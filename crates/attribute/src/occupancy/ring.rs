//! The open frames of a CPU, and, while a mark is open, its recent activity.
//!
//! Without an open mark it only has the frames of the stack: a record needs no memory. From the first open mark on, it
//! keeps slices and closed frames until the last mark that needs them is closed.

use super::fold;
use super::frame::{Frame, NONE, Outcome};
use super::slice::Slice;
use super::window::Window;
use jitterscope_model::Ticks;
use std::collections::VecDeque;

/// Maximum bytes of slices and frames; beyond it the oldest are folded into sums.
const CAP_BYTES: usize = 4 << 20;
/// Unneeded frames are only removed when there are this many.
const WORTH_MOVING: usize = 1024;

/// A request for the activity from a moment on. Each mark must be closed or released once, by its own ring.
#[derive(Debug)]
#[must_use]
pub(crate) struct Mark(u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Marked {
    id: u64,
    pub(super) at: Ticks,
    /// Number of the first slice that may overlap it.
    pub(super) position: u64,
    /// The innermost frame when it was made.
    pub(super) top: u32,
    /// Index of the first frame that was opened after it.
    pub(super) first_frame: u32,
}

/// Slices, frames, and the marks that need them.
#[derive(Debug)]
pub(super) struct Ring {
    /// Indices of the open frames, outermost first; never empty.
    pub(super) stack: Vec<u32>,
    /// In order of opening.
    pub(super) frames: Vec<Frame>,
    pub(super) slices: VecDeque<Slice>,
    /// Number of the first slice.
    pub(super) base: u64,
    /// In order of `position`.
    pub(super) marks: Vec<Marked>,
    next_mark: u64,
    /// The next fold happens at this size in bytes: somewhat more than what the last one left.
    pub(super) fold_at: usize,
    pub(super) cap: usize,
}

impl Ring {
    pub(super) fn new(root: Frame) -> Ring {
        Ring {
            stack: vec![0],
            frames: vec![root],
            slices: VecDeque::new(),
            base: 0,
            marks: Vec::new(),
            next_mark: 0,
            fold_at: CAP_BYTES,
            cap: CAP_BYTES,
        }
    }

    pub(super) fn set_cap(&mut self, bytes: usize) {
        (self.cap, self.fold_at) = (bytes, bytes);
    }

    pub(super) fn is_recording(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.slices.len() * size_of::<Slice>() + self.frames.len() * size_of::<Frame>()
    }

    /// Index of the innermost frame.
    pub(super) fn top(&self) -> u32 {
        self.stack.last().copied().unwrap_or(0)
    }

    pub(super) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// The root frame, which says whose turn it is.
    pub(super) fn root(&self) -> &Frame {
        self.frame(self.stack[0])
    }

    pub(super) fn root_mut(&mut self) -> &mut Frame {
        &mut self.frames[self.stack[0] as usize]
    }

    /// Opens a frame inside the innermost one.
    pub(super) fn push(&mut self, frame: Frame) {
        let parent = self.stack.last().copied().unwrap_or(NONE);
        self.stack.push(self.frames.len() as u32);
        self.frames.push(Frame { parent, ..frame });
    }

    /// Closes the innermost frame, which must not be the root.
    pub(super) fn pop(&mut self, end: Ticks, outcome: Outcome) -> Frame {
        let index = self.stack.pop().unwrap_or(0) as usize;
        let frame = &mut self.frames[index];
        (frame.end, frame.outcome) = (end, outcome);
        let closed = *frame;
        if !self.is_recording() {
            self.frames.truncate(index);
        }
        closed
    }

    /// Begins another turn. Only the root is open.
    pub(super) fn replace_root(&mut self, end: Ticks, outcome: Outcome, root: Frame) {
        self.pop(end, outcome);
        self.push(root);
    }

    /// Appends a slice if a mark is open; returns its number.
    pub(super) fn keep(&mut self, slice: Slice) -> u64 {
        let number = self.base + self.slices.len() as u64;
        self.slices.push_back(slice);
        if self.bytes() > self.fold_at {
            fold::fold(self);
        }
        number
    }

    /// A slice by its number, unless it is gone or folded.
    pub(super) fn slice_mut(&mut self, number: u64) -> Option<&mut Slice> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slices
            .get_mut(index)
            .filter(|slice| !slice.is_folded())
    }

    pub(super) fn open(&mut self, at: Ticks) -> Mark {
        let id = self.next_mark;
        self.next_mark += 1;
        let position = self.base + self.slices.len() as u64;
        let (top, first_frame) = (self.top(), self.frames.len() as u32);
        self.marks.push(Marked {
            id,
            at,
            position,
            top,
            first_frame,
        });
        Mark(id)
    }

    /// The index of a mark: they are numbered in order of creation.
    fn place(&self, mark: &Mark) -> Option<usize> {
        self.marks
            .binary_search_by_key(&mark.0, |marked| marked.id)
            .ok()
    }

    /// The slices since a mark, followed by `under_way`, up to `until`.
    pub(super) fn close(
        &mut self,
        mark: Mark,
        until: Ticks,
        under_way: Slice,
        window: &mut Window,
    ) {
        let Some(index) = self.place(&mark) else {
            window.clear(until, until);
            return;
        };
        self.copy(&self.marks[index], until, under_way, window);
        self.forget(index);
    }

    /// The same, but the mark stays open.
    pub(super) fn peek(&self, mark: &Mark, until: Ticks, under_way: Slice, window: &mut Window) {
        match self.place(mark) {
            Some(index) => self.copy(&self.marks[index], until, under_way, window),
            None => window.clear(until, until),
        }
    }

    /// Closes a mark without a result.
    pub(super) fn release(&mut self, mark: Mark) {
        if let Some(index) = self.place(&mark) {
            self.forget(index);
        }
    }

    fn copy(&self, marked: &Marked, until: Ticks, under_way: Slice, window: &mut Window) {
        window.clear(marked.at, until);
        // First the frames that were open when the mark was made, outermost first, then all later ones.
        let mut standing = [0; Self::DEEPEST];
        let mut depth = 0;
        let mut at = marked.top;
        while at != NONE && depth < standing.len() {
            // After folding, earlier frames are mixed with the others.
            if at < marked.first_frame {
                standing[depth] = at;
                depth += 1;
            }
            at = self.frame(at).parent;
        }
        let standing = &mut standing[..depth];
        standing.reverse();
        let renumbered = |old: u32| match old.checked_sub(marked.first_frame) {
            _ if old == NONE => NONE,
            Some(since) => since + depth as u32,
            None => standing
                .iter()
                .position(|frame| *frame == old)
                .map_or(NONE, |at| at as u32),
        };
        let skip = usize::try_from(marked.position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let kept = self
            .slices
            .iter()
            .skip(skip)
            .take_while(|slice| slice.start < until);
        let kept = kept.chain(std::iter::once(&under_way).filter(|slice| slice.start < until));
        // Later frames are not copied, because a wait may be closed long after its end.
        let first = (marked.first_frame as usize).min(self.frames.len());
        let named = kept
            .clone()
            .map(|slice| slice.frame as usize + 1)
            .max()
            .unwrap_or(first)
            .max(first);
        let later = self.frames[named..]
            .iter()
            .take_while(|frame| frame.start < until)
            .count();
        let since = &self.frames[first..named + later];
        for frame in standing.iter().map(|index| self.frame(*index)).chain(since) {
            window.add_frame(frame, renumbered(frame.parent));
        }
        for slice in kept {
            window.add_slice(Slice {
                frame: renumbered(slice.frame),
                ..*slice
            });
        }
    }

    /// Deeper nesting than any kernel's means that exits were lost; two more frames are reserved for things that no
    /// record shows.
    pub(super) const DEEPEST: usize = 26;

    fn forget(&mut self, mark: usize) {
        self.marks.remove(mark);
        let Some(oldest) = self.marks.first() else {
            self.base += self.slices.len() as u64;
            self.slices.clear();
            self.keep_stack_only();
            self.fold_at = self.cap;
            return;
        };
        let gone = usize::try_from(oldest.position.saturating_sub(self.base)).unwrap_or(0);
        if gone > 0 {
            self.slices.drain(..gone.min(self.slices.len()));
            self.base = oldest.position;
        }
        let dead = self
            .marks
            .iter()
            .map(|marked| marked.first_frame)
            .min()
            .unwrap_or(0) as usize;
        if dead > WORTH_MOVING && dead > self.frames.len() / 2 {
            self.drop_dead_frames(dead);
        }
    }

    /// Without an open mark only the frames on the stack are needed.
    fn keep_stack_only(&mut self) {
        for (to, from) in self.stack.iter_mut().enumerate() {
            self.frames[to] = self.frames[*from as usize];
            self.frames[to].parent = to.checked_sub(1).map_or(NONE, |up| up as u32);
            *from = to as u32;
        }
        self.frames.truncate(self.stack.len());
    }

    /// Removes frames before `dead` without references.
    fn drop_dead_frames(&mut self, dead: usize) {
        let mut needed: Vec<u32> = Vec::new();
        for from in self
            .stack
            .iter()
            .copied()
            .chain(self.marks.iter().map(|marked| marked.top))
        {
            let mut at = from;
            while at != NONE {
                needed.push(at);
                at = self.frame(at).parent;
            }
        }
        needed.retain(|index| (*index as usize) < dead);
        needed.sort_unstable();
        needed.dedup();
        let moved = |old: u32| match old {
            NONE => NONE,
            late if late as usize >= dead => late - dead as u32 + needed.len() as u32,
            early => needed.binary_search(&early).map_or(NONE, |at| at as u32),
        };
        let mut frames: Vec<Frame> = Vec::with_capacity(needed.len() + self.frames.len() - dead);
        frames.extend(needed.iter().map(|index| self.frames[*index as usize]));
        frames.extend_from_slice(&self.frames[dead..]);
        frames
            .iter_mut()
            .for_each(|frame| frame.parent = moved(frame.parent));
        self.stack
            .iter_mut()
            .for_each(|index| *index = moved(*index));
        self.slices
            .iter_mut()
            .for_each(|slice| slice.frame = moved(slice.frame));
        for marked in &mut self.marks {
            marked.top = moved(marked.top);
            marked.first_frame = marked.first_frame - dead as u32 + needed.len() as u32;
        }
        self.frames = frames;
    }
}
