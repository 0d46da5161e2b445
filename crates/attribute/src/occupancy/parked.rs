//! Frames that threads left open when they left a CPU.

use super::frame::Frame;
use jitterscope_model::Ticks;
use rustc_hash::FxHashMap;

/// Maximum of threads. Beyond it all are forgotten, which loses names, but no time.
const MOST: usize = 4096;
/// Maximum of frames per thread: a fault in a timer function in a softirq in a work item.
const DEEPEST: usize = 4;

/// The open frames of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) at: Ticks,
    frames: [Option<Frame>; DEEPEST],
}

impl Left {
    pub(crate) fn new(at: Ticks) -> Left {
        Left {
            at,
            frames: [None; DEEPEST],
        }
    }

    /// Adds a frame. Frames come innermost first.
    pub(crate) fn push(&mut self, frame: Frame) {
        if let Some(free) = self.frames.iter_mut().find(|frame| frame.is_none()) {
            *free = Some(frame);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames[0].is_none()
    }

    /// Outermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().rev().flatten()
    }
}

/// The open frames of all threads of a CPU, by thread id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parked {
    threads: FxHashMap<i32, Left>,
}

impl Parked {
    pub(crate) fn put(&mut self, tid: i32, left: Left) {
        if left.is_empty() {
            self.threads.remove(&tid);
            return;
        }
        if self.threads.len() >= MOST {
            self.threads.clear();
        }
        self.threads.insert(tid, left);
    }

    /// A thread is back, has run elsewhere, or has ended.
    pub(crate) fn take(&mut self, tid: i32) -> Option<Left> {
        if self.threads.is_empty() {
            None
        } else {
            self.threads.remove(&tid)
        }
    }

    /// Frames that a thread left open before `at` are no longer open.
    pub(crate) fn forget_before(&mut self, tid: i32, at: Ticks) {
        if self.threads.get(&tid).is_some_and(|left| left.at < at) {
            self.threads.remove(&tid);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.threads.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &Left)> {
        self.threads.iter().map(|(tid, left)| (*tid, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(at: u64, items: &[u64]) -> Left {
        let mut left = Left::new(Ticks(at));
        items
            .iter()
            .for_each(|item| left.push(Frame::item(7, *item, 1, Ticks(5))));
        left
    }

    fn of(left: &Left) -> Vec<u64> {
        left.frames().map(|frame| frame.key).collect()
    }

    #[test]
    fn an_interrupted_turn_stays_open_until_its_thread_returns() {
        let mut parked = Parked::default();
        assert!(parked.take(7).is_none());
        // Frames are added innermost first, and returned outermost first, up to the maximum.
        parked.put(7, left(100, &[1, 2, 3, 4, 5]));
        assert_eq!(
            parked
                .iter()
                .map(|(tid, left)| (tid, of(left)))
                .collect::<Vec<_>>(),
            [(7, vec![4, 3, 2, 1])]
        );
        // An arrival at or before the time of leaving belongs to the stay that ended then.
        for at in [99, 100] {
            parked.forget_before(7, Ticks(at));
        }
        parked.forget_before(8, Ticks(500));
        assert_eq!(
            parked.take(7).map(|left| (left.at, of(&left).len())),
            Some((Ticks(100), 4))
        );
        assert!(parked.take(7).is_none());
        parked.put(7, left(100, &[1]));
        parked.forget_before(7, Ticks(101));
        assert!(parked.take(7).is_none());
        // A thread that leaves again without frames has none.
        parked.put(7, left(100, &[1]));
        parked.put(7, left(200, &[]));
        assert!(parked.take(7).is_none());
    }

    #[test]
    fn beyond_the_most_threads_all_are_forgotten() {
        let mut parked = Parked::default();
        for tid in 0..MOST as i32 {
            parked.put(tid, left(100, &[1]));
        }
        assert_eq!(parked.iter().count(), MOST);
        parked.put(-1, left(100, &[1]));
        assert_eq!(parked.iter().map(|(tid, _)| tid).collect::<Vec<_>>(), [-1]);
    }
}
