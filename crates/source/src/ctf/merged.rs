//! The files of one CPU as one sequence of records, with the running thread of each.

use super::error::CtfError;
use super::plan::Meaning;
use super::stream::{Named, Ready, Stream};
use crate::own_record::{FLAGS, Flags};
use crate::page_store::PageStore;
use jitterscope_model::CpuId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

/// Records before the first switch of the CPU that wait for its thread, bytes.
const MOST_WAITING: usize = 8 << 20;
/// What a waiting record takes beside its bytes.
const OVERHEAD: usize = 128;
/// After so many records, a look whether the user has ended it.
const BETWEEN_LOOKS: u32 = 1 << 12;

/// The files of a CPU.
pub(super) struct Merged<'f> {
    cpu: CpuId,
    streams: Vec<Stream<'f>>,
    stop: &'f AtomicBool,
    /// The running thread, since the first switch.
    thread: Option<i32>,
    flags: Flags,
    waiting: VecDeque<Ready>,
    waiting_bytes: usize,
    /// Records that the tracer lost.
    pub(super) lost: u64,
}

impl<'f> Merged<'f> {
    pub(super) fn new(cpu: CpuId, streams: Vec<Stream<'f>>, stop: &'f AtomicBool) -> Merged<'f> {
        Merged {
            cpu,
            streams,
            stop,
            thread: None,
            flags: Flags::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            lost: 0,
        }
    }

    /// Whether a file ends too early or is damaged.
    pub(super) fn cut(&self) -> bool {
        self.streams.iter().any(|stream| stream.cut)
    }

    pub(super) fn unread(&self) -> u64 {
        self.streams.iter().map(|stream| stream.unread).sum()
    }

    /// Writes all records in order of time.
    pub(super) fn all(
        &mut self,
        store: &mut PageStore,
        take_name: &mut dyn FnMut(Named),
    ) -> Result<(), CtfError> {
        let mut order = BinaryHeap::new();
        for number in 0..self.streams.len() {
            if self.streams[number].next(take_name)? {
                order.push(Reverse((self.streams[number].ready.time, number)));
            }
        }
        let mut looks = 0;
        while let Some(Reverse((_, number))) = order.pop() {
            looks += 1;
            if looks % BETWEEN_LOOKS == 0 && self.stop.load(Ordering::Relaxed) {
                return Err(CtfError::Stopped);
            }
            let ready = std::mem::take(&mut self.streams[number].ready);
            let used = self.take(ready, store)?;
            let stream = &mut self.streams[number];
            // Its memory is used again.
            stream.ready = used;
            if stream.next(take_name)? {
                order.push(Reverse((stream.ready.time, number)));
            }
        }
        // Nobody knows who ran on a CPU without switches: its records say who sent or woke, and that is not known.
        self.lost = self.lost.saturating_add(self.waiting.len() as u64);
        Ok(())
    }

    /// Takes a record in its turn. Returns memory that is no longer needed.
    fn take(&mut self, mut ready: Ready, store: &mut PageStore) -> Result<Ready, CtfError> {
        if let (None, Some(Meaning::Switch { prev, .. })) = (self.thread, ready.meaning) {
            let prev = ready.number(prev);
            self.thread = Some(prev);
            for mut before in std::mem::take(&mut self.waiting) {
                before.set_thread(prev);
                self.put(&before, store)?;
            }
        }
        self.set_flags(&mut ready);
        match self.thread {
            _ if ready.has_thread => {}
            Some(thread) => ready.set_thread(thread),
            None => {
                self.waiting_bytes += ready.bytes.len() + OVERHEAD;
                self.waiting.push_back(ready);
                while self.waiting_bytes > MOST_WAITING
                    && let Some(oldest) = self.waiting.pop_front()
                {
                    self.waiting_bytes -= oldest.bytes.len() + OVERHEAD;
                    store.lost(self.cpu, 1)?;
                    self.lost = self.lost.saturating_add(1);
                }
                return Ok(Ready::default());
            }
        }
        if let Some(Meaning::Switch { next, .. }) = ready.meaning {
            self.thread = Some(ready.number(next));
        }
        self.put(&ready, store)?;
        Ok(ready)
    }

    fn set_flags(&mut self, ready: &mut Ready) {
        let edge = match ready.meaning {
            Some(Meaning::Edge(edge)) => Some(edge),
            _ => None,
        };
        let flags = self.flags.of_next(edge, ready.lost > 0);
        if !ready.has_flags {
            ready.bytes[FLAGS] = flags;
        }
    }

    fn put(&mut self, ready: &Ready, store: &mut PageStore) -> Result<(), CtfError> {
        if ready.lost > 0 {
            store.lost(self.cpu, ready.lost)?;
            self.lost = self.lost.saturating_add(ready.lost);
        }
        store.put(ready.time, self.cpu, &ready.bytes)?;
        Ok(())
    }
}
