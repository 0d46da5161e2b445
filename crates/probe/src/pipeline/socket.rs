//! Messages through the kernel. The threads never sleep in it: they try again until there is room, or a message.
//!
//! A socket drops what its buffer has no room for, so the producer never has more messages on the way than fit
//! ([`MessagePaths::room`]): each consumer says in shared memory how far it is. That costs a cache line each way, as the
//! ring's cursors do.

use super::control::PipelineControl;
use super::message::Message;
use super::way::{Inlet, Outlet, Polled};
use jitterscope_platform::{MessagePaths, MessageSocket};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When a producer that finds no room takes the messages on the way for lost.
const PRODUCER_WAITS: Duration = Duration::from_secs(5);
/// When a consumer takes the messages before a pause or the end for lost.
const CONSUMER_WAITS: Duration = Duration::from_millis(500);
/// `ENOBUFS` on Linux: the device's queue is full.
const NO_BUFFERS: i32 = 105;
/// The producer has not paused.
const SENDING: u64 = u64::MAX;

/// How far the producer is: written at pauses only.
#[derive(Debug)]
struct Sent {
    /// The number of messages before a pause; [`SENDING`] meanwhile.
    count: AtomicU64,
    ended: AtomicBool,
}

/// How far a consumer is, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Received(AtomicU64);

struct Lane {
    socket: MessageSocket,
    received: Arc<Received>,
    /// Messages up to this one are lost if they have not been received.
    written_off: u64,
}

/// The producer's end: one datagram for each consumer.
pub(super) struct SocketOutlet {
    lanes: Vec<Lane>,
    room: u64,
    sent: u64,
    progress: Arc<Sent>,
    message: Message,
    datagram: Vec<u8>,
    /// Since when there has been no room.
    waiting: Option<Instant>,
}

/// A consumer's end.
pub(super) struct SocketInlet {
    socket: MessageSocket,
    received: Arc<Received>,
    progress: Arc<Sent>,
    message: Message,
    datagram: Vec<u8>,
    /// The number of the message after the last one.
    next: u64,
    /// Since when messages before a pause have been missing.
    missing: Option<Instant>,
}

/// The ends of paths for records of this length.
pub(super) fn ends(paths: MessagePaths, record: usize) -> (SocketOutlet, Vec<SocketInlet>) {
    let progress = Arc::new(Sent {
        count: AtomicU64::new(SENDING),
        ended: AtomicBool::new(false),
    });
    let (mut lanes, mut inlets) = (Vec::new(), Vec::new());
    for path in paths.paths {
        let received = Arc::new(Received::default());
        lanes.push(Lane {
            socket: path.sender,
            received: Arc::clone(&received),
            written_off: 0,
        });
        inlets.push(SocketInlet {
            socket: path.receiver,
            received,
            progress: Arc::clone(&progress),
            message: Message::empty(record),
            // A longer datagram is not one of ours, and must not look like one.
            datagram: vec![0; Message::HEAD + record + 1],
            next: 0,
            missing: None,
        });
    }
    let outlet = SocketOutlet {
        lanes,
        room: paths.room as u64,
        sent: 0,
        progress,
        message: Message::empty(record),
        datagram: vec![0; Message::HEAD + record],
        waiting: None,
    };
    (outlet, inlets)
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(NO_BUFFERS)
}

impl SocketOutlet {
    #[inline]
    fn has_room(&mut self) -> bool {
        let (sent, room) = (self.sent, self.room);
        let full = self.lanes.iter().any(|lane| {
            let received = lane.received.0.load(Ordering::Acquire);
            sent.saturating_sub(received.max(lane.written_off)) >= room
        });
        if full {
            return self.write_off();
        }
        self.waiting = None;
        true
    }

    /// Whether there is room because the messages on the way are lost.
    #[cold]
    fn write_off(&mut self) -> bool {
        let since = *self.waiting.get_or_insert_with(Instant::now);
        if since.elapsed() < PRODUCER_WAITS {
            return false;
        }
        self.waiting = None;
        for lane in &mut self.lanes {
            lane.written_off = self.sent;
        }
        true
    }
}

impl Outlet for SocketOutlet {
    #[inline]
    fn try_send(&mut self, control: &PipelineControl, fill: impl FnOnce(&mut Message)) -> bool {
        if !self.has_room() {
            return false;
        }
        fill(&mut self.message);
        self.message.encode(&mut self.datagram);
        for lane in &self.lanes {
            while let Err(error) = lane.socket.send(&self.datagram) {
                if !is_full(&error) || control.stopped() {
                    // Its consumer misses it, and the run says so.
                    break;
                }
                std::hint::spin_loop();
            }
        }
        self.sent += 1;
        true
    }

    fn settle(&mut self) {
        self.progress.count.store(self.sent, Ordering::Release);
    }

    fn resume(&mut self) {
        self.progress.count.store(SENDING, Ordering::Release);
    }
}

impl Drop for SocketOutlet {
    fn drop(&mut self) {
        self.settle();
        self.progress.ended.store(true, Ordering::Release);
    }
}

impl SocketInlet {
    /// No message is there: whether more will come.
    #[inline]
    fn look(&mut self) -> Polled {
        let ended = self.progress.ended.load(Ordering::Acquire);
        let count = self.progress.count.load(Ordering::Acquire);
        if count == SENDING {
            self.missing = None;
            return Polled::None;
        }
        if self.next < count {
            let since = *self.missing.get_or_insert_with(Instant::now);
            if since.elapsed() < CONSUMER_WAITS {
                return Polled::None;
            }
            self.next = count;
            self.received.0.store(count, Ordering::Release);
            if !ended {
                return Polled::Settled;
            }
        }
        self.missing = None;
        match ended {
            true => Polled::End,
            false => Polled::None,
        }
    }
}

impl Inlet for SocketInlet {
    #[inline]
    fn poll(&mut self, mut take: impl FnMut(&Message)) -> Polled {
        let Ok(length) = self.socket.receive(&mut self.datagram) else {
            return self.look();
        };
        if !self
            .message
            .decode(self.datagram.get(..length).unwrap_or_default())
        {
            return Polled::None;
        }
        take(&self.message);
        // A network may deliver two out of order.
        self.next = self.next.max(self.message.sequence + 1);
        self.received.0.store(self.next, Ordering::Release);
        Polled::Some
    }
}
