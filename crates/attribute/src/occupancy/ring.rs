//! What is open on a CPU, and, as long as somebody asked, what was.
//!
//! While no mark is open the frames are those of the stack and nothing else: a record costs no memory. From
//! the first open mark on, slices and closed frames are kept until the last mark that needs them is closed.

use super::fold;
use super::frame::{Frame, NONE, Outcome};
use super::slice::Slice;
use super::window::Window;
use jitterscope_model::Ticks;
use std::collections::VecDeque;

/// Bytes of slices and frames before the oldest are folded into sums.
const CAP_BYTES: usize = 4 << 20;
/// Frames that are not needed any more are left where they are until there are so many.
const WORTH_MOVING: usize = 1024;

/// Somebody wants to know what happens from a moment on. It is closed or dropped once, by the ring that
/// gave it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Mark(u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Marked {
    id: u64,
    pub(super) at: Ticks,
    /// Number of the first slice that can touch it.
    pub(super) position: u64,
    /// The innermost frame when it was made.
    pub(super) top: u32,
    /// Position of the first frame that was opened after it.
    pub(super) first_frame: u32,
}

/// Slices, frames, and who needs them.
#[derive(Debug)]
pub(super) struct Ring {
    /// Positions of the open frames, outermost first; never empty.
    pub(super) stack: Vec<u32>,
    /// In order of opening.
    pub(super) frames: Vec<Frame>,
    pub(super) slices: VecDeque<Slice>,
    /// Number of the first slice that is kept.
    pub(super) base: u64,
    /// In order of `position`.
    pub(super) marks: Vec<Marked>,
    next_mark: u64,
    /// Bytes at which slices are folded next: somewhat more than remained the last time.
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

    /// Another limit than the usual one.
    #[cfg(test)]
    pub(super) fn set_cap(&mut self, bytes: usize) {
        (self.cap, self.fold_at) = (bytes, bytes);
    }

    pub(super) fn is_recording(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.slices.len() * size_of::<Slice>() + self.frames.len() * size_of::<Frame>()
    }

    /// Position of the innermost frame.
    pub(super) fn top(&self) -> u32 {
        self.stack.last().copied().unwrap_or(0)
    }

    pub(super) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// The frame that says whose turn it is.
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

    /// Closes the innermost frame, which is not the root.
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

    /// It is somebody else's turn. Nothing but the root is open.
    pub(super) fn replace_root(&mut self, end: Ticks, outcome: Outcome, root: Frame) {
        self.pop(end, outcome);
        self.push(root);
    }

    /// Keeps a slice, if anybody wants it; its number.
    pub(super) fn keep(&mut self, slice: Slice) -> u64 {
        let number = self.base + self.slices.len() as u64;
        self.slices.push_back(slice);
        if self.bytes() > self.fold_at {
            fold::fold(self);
        }
        number
    }

    /// A slice by its number, if it is still there and not folded.
    pub(super) fn slice_mut(&mut self, number: u64) -> Option<&mut Slice> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slices.get_mut(index).filter(|slice| !slice.folded)
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

    /// Where a mark stands: they are numbered in the order in which they were made.
    fn place(&self, mark: &Mark) -> Option<usize> {
        self.marks
            .binary_search_by_key(&mark.0, |marked| marked.id)
            .ok()
    }

    /// What was kept since a mark, with `under_way` behind it, up to `until`.
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

    /// The same, and the mark stays open.
    pub(super) fn peek(&self, mark: &Mark, until: Ticks, under_way: Slice, window: &mut Window) {
        match self.place(mark) {
            Some(index) => self.copy(&self.marks[index], until, under_way, window),
            None => window.clear(until, until),
        }
    }

    /// Nobody wants to know any more.
    pub(super) fn release(&mut self, mark: Mark) {
        if let Some(index) = self.place(&mark) {
            self.forget(index);
        }
    }

    fn copy(&self, marked: &Marked, until: Ticks, under_way: Slice, window: &mut Window) {
        window.clear(marked.at, until);
        // What was open when the mark was made, outermost first, and then all that was opened since.
        let mut standing = [0; Self::DEEPEST];
        let mut depth = 0;
        let mut at = marked.top;
        while at != NONE && depth < standing.len() {
            // After folding the frames of before stand among the others.
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
        // Of what was opened later nothing is asked: a wait may be looked at long after it was over.
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

    /// Frames nested deeper than any kernel nests them mean that exits were lost; two more may stand in for
    /// what is not seen.
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

    /// With no mark open only what is on the stack is needed.
    fn keep_stack_only(&mut self) {
        for (to, from) in self.stack.iter_mut().enumerate() {
            self.frames[to] = self.frames[*from as usize];
            self.frames[to].parent = to.checked_sub(1).map_or(NONE, |up| up as u32);
            *from = to as u32;
        }
        self.frames.truncate(self.stack.len());
    }

    /// Takes out frames before `dead` that nothing refers to.
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
