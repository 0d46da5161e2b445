//! The activity of a CPU between two times.

use super::frame::{Class, Frame, NONE, Outcome};
use super::names::CommId;
use super::plan::Beside;
use super::slice::Slice;
use jitterscope_model::{Quota, Ticks};

/// The activity of a CPU between two times. It does not depend on later records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    pub(crate) from: Ticks,
    pub(crate) until: Ticks,
    /// In order, adjacent, and filling the window.
    pub(crate) slices: Vec<Slice>,
    /// In order of opening, clipped to the window. Slices and frames refer to them by index.
    pub(crate) frames: Vec<Frame>,
    /// The quotas that frames of throttled time refer to.
    pub(crate) quotas: Vec<Quota>,
}

impl Window {
    /// Resets it for reuse, and keeps its memory.
    pub(super) fn clear(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until) = (from, until.max(from));
        self.slices.clear();
        self.frames.clear();
        self.quotas.clear();
    }

    /// Adds a frame, as it was known at the end of the window.
    pub(super) fn add_frame(&mut self, frame: &Frame, parent: u32) {
        let over =
            frame.outcome != Outcome::Open && frame.end <= self.from && frame.start < self.from;
        if over || frame.start > self.until {
            // A placeholder for a frame outside of this window.
            self.frames.push(Frame::nobody(Class::NotSeen, self.until));
            return;
        }
        let mut frame = Frame {
            parent,
            start: frame.start.max(self.from),
            ..*frame
        };
        if frame.outcome == Outcome::Open || frame.end > self.until {
            frame.outcome = Outcome::Open;
            frame.end = self.until;
            frame.end_comm = CommId::UNKNOWN;
            frame.end_prio = Frame::NO_PRIORITY;
        }
        self.frames.push(frame);
    }

    /// Adds a slice, clipped to the window.
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

    /// Begins the window earlier than the CPU's data.
    pub(crate) fn begin_at(&mut self, from: Ticks) {
        if from >= self.from {
            return;
        }
        let frame = self.frames.len() as u32;
        let not_seen = Frame {
            outcome: Outcome::Closed,
            end: self.from,
            ..Frame::nobody(Class::NotSeen, from)
        };
        self.frames.push(not_seen);
        let slice = Slice {
            start: from,
            end: self.from,
            frame,
            began: None,
            ended: None,
            sums: 0,
        };
        self.slices.insert(0, slice);
        self.from = from;
    }

    /// Assigns time of a turn to a quota that kept the victim from running in it. Interruptions of the turn stay
    /// unchanged.
    pub(crate) fn throttle(&mut self, turn: u32, (from, to): (Ticks, Ticks), quota: &Quota) {
        if from >= to {
            return;
        }
        let outer = *self.frame(turn);
        let known = self.quotas.iter().position(|known| known == quota);
        let number = known.unwrap_or_else(|| {
            self.quotas.push(quota.clone());
            self.quotas.len() - 1
        });
        let index = self.frames.len() as u32;
        self.frames.push(Frame {
            class: Class::Throttled,
            key: number as u64,
            start: from,
            end: to,
            parent: NONE,
            outcome: Outcome::Closed,
            ..outer
        });
        let own = |class: Class| matches!(class, Class::Turn | Class::Work | Class::Idle);
        let slices = std::mem::take(&mut self.slices);
        for slice in slices {
            let before_and_after = slice.end <= from || slice.start >= to;
            let is_own = || {
                let mut chain = self.chain(slice.frame);
                self.root(slice.frame) == turn
                    && chain
                        .all(|at| own(self.frame(at).class) || self.frame(at).class.is_endless())
            };
            if before_and_after || !is_own() {
                self.slices.push(slice);
                continue;
            }
            let (middle, end) = (slice.start.max(from), slice.end.min(to));
            let between = Some(Beside::Other);
            for (part, frame) in [
                ((slice.start, middle), slice.frame),
                ((middle, end), index),
                ((end, slice.end), slice.frame),
            ] {
                if part.0 < part.1 {
                    self.slices.push(Slice {
                        start: part.0,
                        end: part.1,
                        frame,
                        began: if part.0 == slice.start {
                            slice.began
                        } else {
                            between
                        },
                        ended: if part.1 == slice.end {
                            slice.ended
                        } else {
                            between
                        },
                        ..slice
                    });
                }
            }
        }
        for frame in &mut self.frames[..index as usize] {
            if frame.parent == turn && from <= frame.start && frame.end <= to {
                frame.parent = index;
            }
        }
        let outer = &mut self.frames[turn as usize];
        if outer.start == from {
            outer.start = to;
        } else if outer.end == to {
            outer.end = from;
        }
    }

    /// A frame of this window.
    pub(crate) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// The frame and those that it is nested in, outwards.
    pub(crate) fn chain(&self, index: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(index), |at| {
            Some(self.frame(*at).parent).filter(|up| *up != NONE)
        })
    }

    /// The root frame, which says whose turn it was.
    pub(crate) fn root(&self, index: u32) -> u32 {
        self.chain(index).last().unwrap_or(index)
    }

    /// Time with only sums, because there was too much activity.
    pub(crate) fn folded(&self) -> Ticks {
        Ticks(
            self.slices
                .iter()
                .filter(|slice| slice.is_folded())
                .map(|slice| slice.length().0)
                .sum(),
        )
    }

    /// The frame inside this one that names it, if any: the timer function names the timer's interrupt, the work item
    /// its worker's turn. The longest one wins, or the first of equals.
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
        matches!(
            self,
            Class::Turn | Class::LocalTimer | Class::Softirq | Class::Vector
        )
    }
}

/// Whether a frame inside names the one outside.
pub(super) fn names(outside: Class, inside: Class) -> bool {
    match outside {
        Class::Turn => inside == Class::Work,
        Class::LocalTimer | Class::Softirq => {
            matches!(inside, Class::HrtimerFunction | Class::WheelFunction)
        }
        Class::Vector => inside == Class::Call,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::occupancy::Beside;

    /// From 100 to 200.
    fn window() -> Window {
        let mut window = Window::default();
        window.clear(Ticks(100), Ticks(200));
        window
    }

    #[test]
    fn a_slice_is_cut_at_the_ends_of_its_window() {
        let cut = |start, end| {
            let mut window = window();
            let (began, ended) = (Some(Beside::Switch), Some(Beside::Other));
            window.add_slice(Slice {
                start: Ticks(start),
                end: Ticks(end),
                frame: 0,
                began,
                ended,
                sums: 0,
            });
            let found = window.slices.first();
            found.map(|s| (s.start.0, s.end.0, s.began.is_some(), s.ended.is_some()))
        };
        assert_eq!(cut(100, 200), Some((100, 200, true, true)));
        assert_eq!(cut(99, 201), Some((100, 200, false, false)));
        assert_eq!(cut(101, 199), Some((101, 199, true, true)));
        assert_eq!([cut(50, 100), cut(200, 300), cut(150, 150)], [None; 3]);
    }

    #[test]
    fn a_frame_is_cut_at_the_ends_of_its_window_and_is_open_where_it_goes_on() {
        let cut = |(start, end): (u64, u64), outcome| {
            let mut window = window();
            let (start, end, parent) = (Ticks(start), Ticks(end), 9);
            let (end_comm, end_prio) = (CommId(3), 4);
            let frame = Frame::nobody(Class::Irq, start);
            window.add_frame(
                &Frame {
                    start,
                    end,
                    outcome,
                    end_comm,
                    end_prio,
                    ..frame
                },
                parent,
            );
            let frame = window.frames[0];
            let named = (frame.end_comm == CommId(3), frame.end_prio == 4);
            assert_eq!(named.0, named.1);
            if frame.class == Class::NotSeen {
                return None;
            }
            assert_eq!(frame.parent, parent);
            Some((frame.start.0, frame.end.0, frame.outcome, named.0))
        };
        let (open, closed, unseen) = (Outcome::Open, Outcome::Closed, Outcome::Unseen);
        assert_eq!(cut((120, 180), closed), Some((120, 180, closed, true)));
        assert_eq!(cut((120, 200), unseen), Some((120, 200, unseen, true)));
        // Later facts are unknown in the window, including a later name of the thread.
        assert_eq!(cut((50, 201), closed), Some((100, 200, open, false)));
        assert_eq!(cut((50, 60), open), Some((100, 200, open, false)));
        // It ends when the window begins, or begins when the window ends.
        assert_eq!([cut((50, 100), closed), cut((201, 300), open)], [None; 2]);
        assert_eq!(cut((50, 101), closed), Some((100, 101, closed, true)));
        assert_eq!(cut((100, 100), closed), Some((100, 100, closed, true)));
        assert_eq!(cut((200, 300), closed), Some((200, 200, open, false)));
    }

    #[test]
    fn a_window_before_the_first_record_begins_with_an_unseen_slice() {
        let mut whole = window();
        whole.frames.push(Frame::inferred_turn(7, Ticks(100)));
        whole.add_slice(Slice {
            start: Ticks(100),
            end: Ticks(200),
            frame: 0,
            began: None,
            ended: None,
            sums: 0,
        });
        let before = whole.clone();
        whole.begin_at(Ticks(100));
        whole.begin_at(Ticks(150));
        assert_eq!(
            (whole.from, &whole.slices, &whole.frames),
            (before.from, &before.slices, &before.frames)
        );
        whole.begin_at(Ticks(60));
        let slices: Vec<_> = whole
            .slices
            .iter()
            .map(|s| (s.start.0, s.end.0, s.frame))
            .collect();
        assert_eq!(
            (whole.from, slices),
            (Ticks(60), vec![(60, 100, 1), (100, 200, 0)])
        );
        let unseen = whole.frames[1];
        assert_eq!(
            (unseen.class, unseen.outcome),
            (Class::NotSeen, Outcome::Closed)
        );
        assert_eq!(
            (unseen.start, unseen.end, whole.root(1)),
            (Ticks(60), Ticks(100), 1)
        );
    }

    #[test]
    fn the_longest_inner_frame_names_a_stall_and_the_first_of_equals() {
        let frame = |class, parent, (start, end): (u64, u64), outcome| {
            let (start, end) = (Ticks(start), Ticks(end));
            Frame {
                start,
                end,
                parent,
                outcome,
                ..Frame::nobody(class, start)
            }
        };
        let (closed, unseen) = (Outcome::Closed, Outcome::Unseen);
        let namer = |outer: Frame, inside: &[Frame]| {
            let mut window = window();
            // An earlier one, so that indices differ from those of the frames inside.
            window
                .frames
                .push(frame(Class::Irq, NONE, (100, 105), closed));
            window.frames.push(outer);
            window.frames.extend_from_slice(inside);
            window.named_by(1)
        };
        let timer = |outcome| frame(Class::LocalTimer, NONE, (110, 190), outcome);
        let function = |times, outcome| frame(Class::HrtimerFunction, 1, times, outcome);
        assert_eq!(
            namer(
                timer(closed),
                &[function((120, 130), closed), function((140, 160), closed)]
            ),
            Some(3)
        );
        assert_eq!(
            namer(
                timer(closed),
                &[function((120, 130), closed), function((140, 150), closed)]
            ),
            Some(2)
        );
        assert_eq!(
            namer(timer(closed), &[function((190, 190), closed)]),
            Some(2)
        );
        // A frame without a recorded end only names one that has none either.
        assert_eq!(namer(timer(closed), &[function((120, 130), unseen)]), None);
        assert_eq!(
            namer(timer(unseen), &[function((120, 130), unseen)]),
            Some(2)
        );
        // Neither a frame inside another one, nor a frame that names another class.
        let elsewhere = Frame {
            parent: 0,
            ..function((120, 130), closed)
        };
        assert_eq!(namer(timer(closed), &[elsewhere]), None);
        let all = [
            Class::Work,
            Class::Softirq,
            Class::HrtimerFunction,
            Class::WheelFunction,
            Class::Call,
            Class::Irq,
        ];
        for (outer, names_it) in [
            (Class::Turn, [true, false, false, false, false, false]),
            (Class::LocalTimer, [false, false, true, true, false, false]),
            (Class::Softirq, [false, false, true, true, false, false]),
            (Class::Vector, [false, false, false, false, true, false]),
            (Class::Irq, [false; 6]),
            (Class::Work, [false; 6]),
        ] {
            let outer = frame(outer, NONE, (110, 190), closed);
            let found =
                all.map(|class| namer(outer, &[frame(class, 1, (120, 130), closed)]).is_some());
            assert_eq!(found, names_it, "{:?}", outer.class);
        }
    }
}
