//! Memory limit: the oldest slices become sums.
//!
//! Only a picture needs the order of slices between two marks. So the slices of each culprit there are joined: the sums
//! stay exact, but positions are lost, and each such slice says how many it sums.

use super::frame::{Class, Frame, NONE, Outcome};
use super::names::CommId;
use super::ring::Ring;
use super::slice::Slice;
use super::window::names;
use jitterscope_model::Ticks;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Maximum of distinct culprits between two marks, those with the most time; the others are summed by class.
const MOST_CULPRITS: usize = 1024;
/// The newest slices stay unchanged, because a later charge may still change them.
const NEWEST: u64 = 8;

/// How urgent a turn's thread was, in the classes that decide whether it had the CPU by right.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Urgency {
    Unknown,
    Deadline,
    RealTime,
    Fair,
}

impl Urgency {
    fn of(turn: &Frame) -> Urgency {
        match turn.priority() {
            Frame::NO_PRIORITY => Urgency::Unknown,
            prio if prio < 0 => Urgency::Deadline,
            prio if prio < Frame::FIRST_FAIR => Urgency::RealTime,
            _ => Urgency::Fair,
        }
    }
}

/// The key of a sum: the turn, and the frame inside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Culprit {
    root: (Class, i32, CommId, Urgency),
    leaf: (Class, u64, u64, bool),
}

struct Sum {
    key: Culprit,
    root: Frame,
    leaf: Frame,
    length: Ticks,
    /// The number of slices summed.
    turns: u32,
}

impl Sum {
    fn add(&mut self, length: Ticks, turns: u32) {
        self.length = self.length + length;
        self.turns = self.turns.saturating_add(turns);
    }
}

/// Folds all slices but the newest, span by span between marks. The first slice of a span stays, because its mark may
/// be in the middle of it.
pub(super) fn fold(ring: &mut Ring) {
    let end = ring.base + ring.slices.len() as u64;
    let last = end.saturating_sub(NEWEST).max(ring.base);
    let mut bounds: Vec<u64> = ring
        .marks
        .iter()
        .map(|marked| marked.position.min(last))
        .collect();
    bounds.push(last);
    bounds.dedup();
    let mut rebuilt = Rebuilt {
        slices: Vec::new(),
        frames: Vec::new(),
        kept: Vec::new(),
    };
    let mut spans = Vec::with_capacity(bounds.len());
    let namers = namers(ring);
    for pair in bounds.windows(2) {
        spans.push(Span {
            slice: rebuilt.slices.len(),
            frame: rebuilt.frames.len() as u32,
        });
        let (from, to) = (
            (pair[0] - ring.base) as usize,
            (pair[1] - ring.base) as usize,
        );
        rebuilt.keep(ring.slices[from]);
        rebuilt.sum_up(ring, from + 1, to, &namers);
    }
    spans.push(Span {
        slice: rebuilt.slices.len(),
        frame: rebuilt.frames.len() as u32,
    });
    for slice in ring.slices.range((last - ring.base) as usize..) {
        rebuilt.keep(*slice);
    }
    rebuilt.take_over(ring, &bounds, &spans);
    ring.fold_at = ring.cap.max(ring.bytes() * 2);
}

/// The beginning of a span in the rebuilt data.
struct Span {
    slice: usize,
    frame: u32,
}

/// For each frame the frame that names it: itself, or the longest suitable one inside.
fn namers(ring: &Ring) -> Vec<u32> {
    let mut namers: Vec<u32> = (0..ring.frames.len() as u32).collect();
    for (index, frame) in ring.frames.iter().enumerate() {
        if frame.parent == NONE {
            continue;
        }
        let parent = frame.parent as usize;
        let known = namers[parent];
        let outer = &ring.frames[parent];
        let ended = frame.outcome == Outcome::Closed || outer.outcome != Outcome::Closed;
        let longer =
            known as usize == parent || ring.frames[known as usize].gross() < frame.gross();
        if ended && longer && names(outer.class, frame.class) {
            namers[parent] = index as u32;
        }
    }
    namers
}

struct Rebuilt {
    slices: Vec<Slice>,
    frames: Vec<Frame>,
    /// Positions of the slices that still refer to the old frames.
    kept: Vec<usize>,
}

impl Rebuilt {
    /// Keeps a slice unchanged.
    fn keep(&mut self, slice: Slice) {
        self.kept.push(self.slices.len());
        self.slices.push(slice);
    }

    /// Sums up slices, and puts the sums end to end.
    fn sum_up(&mut self, ring: &Ring, from: usize, to: usize, namers: &[u32]) {
        let Some(start) = ring
            .slices
            .get(from)
            .filter(|_| from < to)
            .map(|slice| slice.start)
        else {
            return;
        };
        let mut sums: Vec<Sum> = Vec::new();
        let mut known: HashMap<Culprit, usize> = HashMap::new();
        // A slice without length is none to a window either.
        let some = |slice: &&Slice| slice.length() > Ticks(0);
        for slice in ring.slices.range(from..to).filter(some) {
            let mut root = slice.frame;
            while ring.frame(root).parent != NONE {
                root = ring.frame(root).parent;
            }
            let (root, leaf) = (ring.frame(root), ring.frame(namers[slice.frame as usize]));
            let key = Culprit::of(root, leaf);
            let index = *known.entry(key).or_insert_with(|| {
                sums.push(Sum {
                    key,
                    root: key.root(root),
                    leaf: key.leaf(leaf),
                    length: Ticks(0),
                    turns: 0,
                });
                sums.len() - 1
            });
            sums[index].add(slice.length(), slice.turns());
        }
        let mut start = start;
        for sum in most_are_named(sums) {
            let end = start + sum.length;
            let mut frame = self.frames.len() as u32;
            self.frames.push(Frame {
                start,
                end,
                outcome: Outcome::Closed,
                parent: NONE,
                ..sum.root
            });
            if !sum.leaf.class.is_root() {
                self.frames.push(Frame {
                    start,
                    end,
                    parent: frame,
                    ..sum.leaf
                });
                frame += 1;
            }
            self.slices.push(Slice {
                start,
                end,
                frame,
                began: None,
                ended: None,
                sums: sum.turns,
            });
            start = end;
        }
    }

    /// Replaces the slices by their sums. The newest slices keep their numbers.
    fn take_over(mut self, ring: &mut Ring, bounds: &[u64], spans: &[Span]) {
        // Only the old frames with references are needed.
        let mut needed: Vec<u32> = Vec::new();
        let kept = self.kept.iter().map(|at| self.slices[*at].frame);
        let marks = ring.marks.iter().map(|marked| marked.top);
        for from in ring.stack.iter().copied().chain(kept).chain(marks) {
            let mut at = from;
            while at != NONE {
                needed.push(at);
                at = ring.frame(at).parent;
            }
        }
        needed.sort_unstable();
        needed.dedup();
        let base = self.frames.len() as u32;
        let moved = |old: u32| {
            needed
                .binary_search(&old)
                .map_or(NONE, |at| base + at as u32)
        };
        self.frames.extend(needed.iter().map(|index| {
            let frame = ring.frames[*index as usize];
            Frame {
                parent: moved(frame.parent),
                ..frame
            }
        }));
        for at in self.kept {
            self.slices[at].frame = moved(self.slices[at].frame);
        }
        ring.stack
            .iter_mut()
            .for_each(|index| *index = moved(*index));
        let end = ring.base + ring.slices.len() as u64;
        ring.base = end - self.slices.len() as u64;
        for marked in &mut ring.marks {
            marked.top = moved(marked.top);
            let span = bounds.partition_point(|bound| *bound < marked.position);
            marked.first_frame =
                base + needed.partition_point(|old| *old < marked.first_frame) as u32;
            if span + 1 < bounds.len() {
                marked.position = ring.base + spans[span].slice as u64;
                marked.first_frame = spans[span].frame;
            }
        }
        ring.slices.clear();
        ring.slices.extend(self.slices);
        ring.frames = self.frames;
    }
}

/// The culprits with the most time keep their names, however late they came.
fn most_are_named(sums: Vec<Sum>) -> Vec<Sum> {
    if sums.len() <= MOST_CULPRITS {
        return sums;
    }
    let mut longest: Vec<usize> = (0..sums.len()).collect();
    longest.select_nth_unstable_by_key(MOST_CULPRITS, |at| {
        Reverse((sums[*at].length, Reverse(*at)))
    });
    let named: HashSet<usize> = longest[..MOST_CULPRITS].iter().copied().collect();
    let mut kept: Vec<Sum> = Vec::with_capacity(MOST_CULPRITS);
    let mut nameless: HashMap<Culprit, usize> = HashMap::new();
    for (at, sum) in sums.into_iter().enumerate() {
        if named.contains(&at) {
            kept.push(sum);
            continue;
        }
        let key = sum.key.without_name();
        let index = *nameless.entry(key).or_insert_with(|| {
            let (root, leaf) = (key.root(&sum.root), key.leaf(&sum.leaf));
            kept.push(Sum {
                key,
                root,
                leaf,
                length: Ticks(0),
                turns: 0,
            });
            kept.len() - 1
        });
        kept[index].add(sum.length, sum.turns);
    }
    kept
}

impl Culprit {
    fn of(root: &Frame, leaf: &Frame) -> Culprit {
        let (key, subject) = match leaf.class {
            // Their key only identifies the object that pairs the entry with its exit.
            Class::Work | Class::HrtimerFunction | Class::WheelFunction | Class::Call => {
                (0, leaf.subject)
            }
            Class::Turn | Class::Unrecorded | Class::NotSeen | Class::Lost | Class::Throttled => {
                (0, 0)
            }
            Class::Nmi | Class::Fault | Class::MachineCheck | Class::Idle | Class::Softirq => {
                (leaf.key, 0)
            }
            Class::LocalTimer | Class::Vector | Class::Irq => (leaf.key, leaf.subject),
        };
        // Only a frame with a recorded end can be named.
        let seen = leaf.outcome != Outcome::Unseen;
        Culprit {
            root: (root.class, root.tid, root.named(), Urgency::of(root)),
            leaf: (leaf.class, key, subject, seen),
        }
    }

    /// The key for all of a class together. The idle task stays separate.
    fn without_name(self) -> Culprit {
        let (class, tid, comm, urgency) = self.root;
        let root = if tid == 0 {
            (tid, comm)
        } else {
            (-1, CommId::UNKNOWN)
        };
        Culprit {
            root: (class, root.0, root.1, urgency),
            leaf: (self.leaf.0, u64::MAX, u64::MAX, self.leaf.3),
        }
    }

    fn root(&self, root: &Frame) -> Frame {
        Frame {
            tid: self.root.1,
            comm: self.root.2,
            end_comm: CommId::UNKNOWN,
            ..*root
        }
    }

    fn leaf(&self, leaf: &Frame) -> Frame {
        let nameless = self.leaf.1 == u64::MAX && self.leaf.2 == u64::MAX;
        let (key, subject) = if nameless {
            (u64::MAX, u64::MAX)
        } else {
            (leaf.key, leaf.subject)
        };
        let outcome = if self.leaf.3 {
            Outcome::Closed
        } else {
            Outcome::Unseen
        };
        Frame {
            key,
            subject,
            outcome,
            ..*leaf
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(class: Class, parent: u32, (start, end): (u64, u64), outcome: Outcome) -> Frame {
        let (opened, start, end) = (Ticks(start), Ticks(start), Ticks(end));
        Frame {
            opened,
            start,
            end,
            parent,
            outcome,
            ..Frame::nobody(class, start)
        }
    }

    /// An open turn, with frames `inside` it.
    fn named(outside: Frame, inside: &[Frame]) -> Vec<u32> {
        let mut ring = Ring::new(outside);
        ring.frames.extend(inside);
        namers(&ring)
    }

    #[test]
    fn the_longest_that_fits_inside_names_a_frame_that_was_folded() {
        let turn = frame(Class::Turn, NONE, (0, 1000), Outcome::Open);
        let closed = Outcome::Closed;
        let work = |start, end| frame(Class::Work, 0, (start, end), closed);
        assert_eq!(named(turn, &[]), [0]);
        // It provides the name, although it is short and the first one.
        assert_eq!(named(turn, &[work(10, 20)]), [1, 1]);
        assert_eq!(
            named(turn, &[work(10, 20), work(30, 60), work(70, 80)]),
            [2, 1, 2, 3]
        );
        // Of two equally long ones the first.
        assert_eq!(named(turn, &[work(10, 20), work(30, 40)]), [1, 1, 2]);
        let inside = [
            frame(Class::Vector, 0, (100, 200), closed),
            frame(Class::Call, 1, (110, 120), closed),
        ];
        assert_eq!(
            named(turn, &inside),
            [0, 2, 2],
            "an interrupt names no turn, what was called names it"
        );
    }

    #[test]
    fn what_was_not_seen_to_end_names_only_what_was_not_either() {
        let timer = |outcome| frame(Class::LocalTimer, NONE, (0, 100), outcome);
        let function = |outcome| frame(Class::HrtimerFunction, 0, (10, 50), outcome);
        assert_eq!(
            named(timer(Outcome::Closed), &[function(Outcome::Unseen)]),
            [0, 1]
        );
        assert_eq!(
            named(timer(Outcome::Closed), &[function(Outcome::Closed)]),
            [1, 1]
        );
        assert_eq!(
            named(timer(Outcome::Open), &[function(Outcome::Unseen)]),
            [1, 1]
        );
    }
}
