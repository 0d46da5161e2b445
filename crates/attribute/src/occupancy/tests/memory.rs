//! What a ring keeps, for how long, and under which number.

use crate::occupancy::frame::{Class, Frame, NONE, Outcome};
use crate::occupancy::ring::Ring;
use crate::occupancy::slice::Slice;
use crate::occupancy::{Mark, Window};
use jitterscope_model::Ticks;

fn ring() -> Ring {
    Ring::new(Frame::nobody(Class::NotSeen, Ticks(0)))
}

fn slice(start: u64, frame: u32) -> Slice {
    let (start, end) = (Ticks(start), Ticks(start + 1));
    Slice {
        start,
        end,
        frame,
        began: None,
        ended: None,
        sums: 0,
    }
}

/// A frame that begins at `at`, with a unique key.
fn frame(at: u64) -> Frame {
    Frame {
        key: at,
        ..Frame::nobody(Class::Vector, Ticks(at))
    }
}

#[test]
fn bytes_are_those_of_slices_and_frames() {
    let mut ring = ring();
    assert_eq!(ring.bytes(), size_of::<Frame>());
    let mark = ring.open(Ticks(0));
    for n in 0..10 {
        ring.keep(slice(n, 0));
    }
    ring.push(frame(10));
    assert_eq!(
        ring.bytes(),
        10 * size_of::<Slice>() + 2 * size_of::<Frame>()
    );
    ring.pop(Ticks(11), Outcome::Closed);
    ring.release(mark);
    assert_eq!(ring.bytes(), size_of::<Frame>());
}

#[test]
fn a_number_is_given_to_one_slice_only() {
    let mut ring = ring();
    let first = ring.open(Ticks(0));
    assert_eq!(
        (0..5).map(|n| ring.keep(slice(n, 0))).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
    // Closing the last mark removes all slices; their numbers are not reused.
    ring.release(first);
    assert!(!ring.is_recording());
    let again = ring.open(Ticks(5));
    assert_eq!(
        (5..8).map(|n| ring.keep(slice(n, 0))).collect::<Vec<_>>(),
        [5, 6, 7]
    );
    let later = ring.open(Ticks(8));
    assert_eq!(ring.keep(slice(8, 0)), 8);
    let starts = |ring: &mut Ring| -> Vec<Option<u64>> {
        (3..10)
            .map(|number| ring.slice_mut(number).map(|slice| slice.start.0))
            .collect()
    };
    assert_eq!(
        starts(&mut ring),
        [None, None, Some(5), Some(6), Some(7), Some(8), None]
    );
    // Closing the older mark removes the slices that only it needs.
    ring.release(again);
    assert_eq!(
        starts(&mut ring),
        [None, None, None, None, None, Some(8), None]
    );
    assert_eq!(ring.keep(slice(9, 0)), 9);
    assert_eq!(ring.slices.len(), 2);
    ring.slices[0].sums = 1;
    assert!(ring.slice_mut(8).is_none(), "a sum is nobody's slice");
    ring.release(later);
    assert!(ring.slices.is_empty());
}

#[test]
fn a_mark_that_is_not_this_rings_finds_an_empty_window() {
    let (mut one, mut other) = (ring(), ring());
    let foreign = other.open(Ticks(0));
    let mut window = Window::default();
    one.peek(&foreign, Ticks(7), slice(3, 0), &mut window);
    assert_eq!(
        (window.from, window.until, window.slices.len()),
        (Ticks(7), Ticks(7), 0)
    );
    one.close(foreign, Ticks(9), slice(3, 0), &mut window);
    assert_eq!(
        (window.from, window.until, window.slices.len()),
        (Ticks(9), Ticks(9), 0)
    );
}

/// A ring with an old mark, `many` frames that were opened and closed since, a younger mark, and three more frames, the
/// last of which is open inside the one before.
fn busy(many: u64) -> (Ring, Mark, Mark) {
    let mut ring = ring();
    let old = ring.open(Ticks(0));
    ring.push(frame(1));
    for n in 0..many {
        ring.push(frame(10 + n));
        ring.keep(slice(10 + n, ring.top()));
        ring.pop(Ticks(11 + n), Outcome::Closed);
    }
    let young = ring.open(Ticks(10 + many));
    for n in 0..2 {
        let at = 20 + many + n;
        ring.push(frame(at));
        ring.keep(slice(at, ring.top()));
        if n == 0 {
            ring.pop(Ticks(at + 1), Outcome::Closed);
        }
    }
    ring.push(frame(30 + many));
    (ring, old, young)
}

#[test]
fn unneeded_frames_are_removed_and_others_stay() {
    for many in [10, 5000] {
        let (mut ring, old, young) = busy(many);
        let look = |ring: &Ring| {
            let mut window = Window::default();
            let under_way = Slice {
                end: Ticks(100 + many),
                ..slice(30 + many, ring.top())
            };
            ring.peek(&young, Ticks(100 + many), under_way, &mut window);
            window
        };
        let stack = |ring: &Ring| -> Vec<Frame> {
            // Indices change.
            ring.stack
                .iter()
                .map(|index| Frame {
                    parent: 0,
                    ..*ring.frame(*index)
                })
                .collect()
        };
        let (before, open, frames) = (look(&ring), stack(&ring), ring.frames.len());
        ring.release(old);
        let after = look(&ring);
        assert_eq!(
            (&before.slices, &before.frames),
            (&after.slices, &after.frames),
            "{many}"
        );
        assert_eq!(stack(&ring), open);
        assert_eq!(ring.root().class, Class::NotSeen);
        // The root, the open frames, and those since the younger mark.
        assert_eq!(ring.frames.len(), if many == 5000 { 5 } else { frames });
        let inner = ring.frame(ring.top());
        assert_eq!(inner.key, 30 + many);
        assert_eq!(ring.frame(inner.parent).key, 21 + many);
        ring.release(young);
        assert_eq!(ring.frames.len(), 4);
        let parents: Vec<u32> = ring.frames.iter().map(|frame| frame.parent).collect();
        assert_eq!(parents, [NONE, 0, 1, 2]);
        assert_eq!(ring.stack, [0, 1, 2, 3]);
    }
}
