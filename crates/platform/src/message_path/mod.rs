//! Kernel sockets that carry a pipeline's messages, one pair for each receiver.

mod buffers;
mod veth;

use jitterscope_model::PipelineVia;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The longest datagram of UDP over IPv4.
const LONGEST_UDP: usize = 65_507;
/// The longest datagram of a Unix socket that we send: it must fit the buffer, which an ordinary user cannot enlarge.
const LONGEST_UNIX: usize = 100_000;
/// How long the first message may take, and how often it is sent again: a virtual network first asks who has the
/// address.
const FIRST: Duration = Duration::from_millis(100);
const TRIES: u32 = 30;

/// A path for messages that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MessagePathError {
    /// The kernel refused a step.
    #[error("messages cannot travel via {via}: {step}: {source}")]
    Refused {
        via: PipelineVia,
        /// What was attempted.
        step: &'static str,
        source: io::Error,
    },
    /// The message does not fit a datagram.
    #[error(
        "a message of {bytes} bytes does not fit a datagram via {via}: {most} at most, its {head} bytes of times included"
    )]
    TooLong {
        via: PipelineVia,
        bytes: usize,
        most: usize,
        head: usize,
    },
    /// The first message did not arrive.
    #[error("messages do not arrive via {via}: a firewall may drop them, or the device is down")]
    Silent { via: PipelineVia },
}

impl MessagePathError {
    /// Whether the machine or the user's rights are the reason.
    #[must_use]
    pub fn is_unavailable_here(&self) -> bool {
        !matches!(self, MessagePathError::TooLong { .. })
    }
}

/// Names the step that failed.
fn refused(via: PipelineVia, step: &'static str) -> impl Fn(io::Error) -> MessagePathError {
    move |source| MessagePathError::Refused { via, step, source }
}

/// One end of a path. It never waits.
#[derive(Debug)]
pub struct MessageSocket(Kind);

#[derive(Debug)]
enum Kind {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl MessageSocket {
    /// Sends one datagram.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room; others if the path is broken.
    #[inline]
    pub fn send(&self, message: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Udp(socket) => socket.send(message),
            Kind::Unix(socket) => socket.send(message),
        }
    }

    /// Receives one datagram, cut to the length of `room`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; others if the path is broken.
    #[inline]
    pub fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Udp(socket) => socket.recv(room),
            Kind::Unix(socket) => socket.recv(room),
        }
    }

    fn wait_at_most(&self, time: Option<Duration>) -> io::Result<()> {
        match &self.0 {
            Kind::Udp(socket) => socket.set_read_timeout(time),
            Kind::Unix(socket) => socket.set_read_timeout(time),
        }
    }

    fn never_wait(&self) -> io::Result<()> {
        match &self.0 {
            Kind::Udp(socket) => socket.set_nonblocking(true),
            Kind::Unix(socket) => socket.set_nonblocking(true),
        }
    }
}

/// A connected pair of sockets.
#[derive(Debug)]
pub struct MessagePath {
    pub sender: MessageSocket,
    pub receiver: MessageSocket,
}

/// Paths for messages of one length.
#[derive(Debug)]
pub struct MessagePaths {
    /// One for each receiver.
    pub paths: Vec<MessagePath>,
    /// The number of messages for which each path has room.
    pub room: usize,
}

impl MessagePaths {
    /// Opens a path for each of `receivers`, with room for `wanted` messages of `length` bytes if the kernel grants it.
    /// `head` of the bytes are not the user's. The first message has arrived on each.
    ///
    /// The network of [`PipelineVia::Veth`] has no name and no process: it vanishes with the sockets, also if this
    /// process is killed.
    ///
    /// # Errors
    /// The message is too long, a right is missing, or messages do not arrive.
    pub fn open(
        via: PipelineVia,
        receivers: usize,
        (length, head): (usize, usize),
        wanted: usize,
    ) -> Result<MessagePaths, MessagePathError> {
        let most = match via {
            PipelineVia::Unix => LONGEST_UNIX,
            _ => LONGEST_UDP,
        };
        if length > most {
            return Err(MessagePathError::TooLong {
                via,
                bytes: length,
                most,
                head,
            });
        }
        let paths = match via {
            PipelineVia::Ring => Vec::new(),
            PipelineVia::Unix => unix(receivers)?,
            PipelineVia::Loopback => udp_paths(via, Ipv4Addr::LOCALHOST, receivers)?,
            PipelineVia::Veth => veth::paths(receivers)?,
        };
        let mut room = match via {
            PipelineVia::Ring | PipelineVia::Unix => wanted,
            PipelineVia::Loopback | PipelineVia::Veth => wanted.min(buffers::backlog() / receivers),
        };
        for path in &paths {
            first(via, path)?;
            room = room.min(buffers::enlarge(path, length, room));
        }
        Ok(MessagePaths {
            paths,
            room: room.max(1),
        })
    }
}

fn unix(receivers: usize) -> Result<Vec<MessagePath>, MessagePathError> {
    let pair = |_| {
        let (sender, receiver) =
            UnixDatagram::pair().map_err(refused(PipelineVia::Unix, "making a pair of sockets"))?;
        Ok(MessagePath {
            sender: MessageSocket(Kind::Unix(sender)),
            receiver: MessageSocket(Kind::Unix(receiver)),
        })
    };
    (0..receivers).map(pair).collect()
}

/// Paths over one address of this network.
fn udp_paths(
    via: PipelineVia,
    address: Ipv4Addr,
    receivers: usize,
) -> Result<Vec<MessagePath>, MessagePathError> {
    let path = |_| {
        let [sender, receiver] = [(); 2].map(|()| udp_at(via, address));
        joined(via, sender?, receiver?)
    };
    (0..receivers).map(path).collect()
}

/// A socket at any port of an address.
fn udp_at(via: PipelineVia, address: Ipv4Addr) -> Result<UdpSocket, MessagePathError> {
    UdpSocket::bind((address, 0)).map_err(refused(via, "binding a socket"))
}

/// Connects two sockets: neither takes a datagram from anyone else.
fn joined(
    via: PipelineVia,
    sender: UdpSocket,
    receiver: UdpSocket,
) -> Result<MessagePath, MessagePathError> {
    let connect = |from: &UdpSocket, to: &UdpSocket| from.connect(to.local_addr()?);
    connect(&sender, &receiver)
        .and_then(|()| connect(&receiver, &sender))
        .map_err(refused(via, "connecting two sockets"))?;
    Ok(MessagePath {
        sender: MessageSocket(Kind::Udp(sender)),
        receiver: MessageSocket(Kind::Udp(receiver)),
    })
}

/// Sends messages until one arrives, and takes all of them.
fn first(via: PipelineVia, path: &MessagePath) -> Result<(), MessagePathError> {
    let setting = refused(via, "setting up a socket");
    path.receiver.wait_at_most(Some(FIRST)).map_err(&setting)?;
    let mut room = [0; 8];
    let mut arrived = 0;
    let mut sent = 0;
    while arrived == 0 && sent < TRIES {
        path.sender
            .send(b"first")
            .map_err(refused(via, "sending the first message"))?;
        sent += 1;
        arrived += u32::from(path.receiver.receive(&mut room).is_ok());
    }
    if arrived == 0 {
        return Err(MessagePathError::Silent { via });
    }
    while arrived < sent && path.receiver.receive(&mut room).is_ok() {
        arrived += 1;
    }
    path.receiver
        .never_wait()
        .and_then(|()| path.sender.never_wait())
        .map_err(&setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carries(via: PipelineVia) {
        let opened = MessagePaths::open(via, 2, (100, 40), 64);
        let paths = match opened {
            Ok(paths) => paths,
            Err(error) => {
                return jitterscope_testing::skip(&format!("{via}: {error}"));
            }
        };
        assert!((1..=64).contains(&paths.room), "{}", paths.room);
        assert_eq!(paths.paths.len(), 2);
        let mut room = [0; 100];
        for (number, path) in (1..).zip(&paths.paths) {
            let none = path.receiver.receive(&mut room).unwrap_err();
            assert_eq!(none.kind(), io::ErrorKind::WouldBlock, "{via}");
            // As many as there is room for arrive, in order.
            for at in 0..paths.room {
                assert_eq!(path.sender.send(&[number, at as u8]).unwrap(), 2);
            }
            let mut arrived = 0;
            let begun = std::time::Instant::now();
            while arrived < paths.room && begun.elapsed() < Duration::from_secs(10) {
                if path.receiver.receive(&mut room).is_ok() {
                    assert_eq!(room[..2], [number, arrived as u8], "{via}");
                    arrived += 1;
                }
            }
            assert_eq!(arrived, paths.room, "{via}");
        }
    }

    #[test]
    fn what_is_sent_arrives_in_order_and_nobody_waits() {
        for via in [PipelineVia::Unix, PipelineVia::Loopback, PipelineVia::Veth] {
            carries(via);
        }
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused() {
        for via in [PipelineVia::Unix, PipelineVia::Loopback, PipelineVia::Veth] {
            let error = MessagePaths::open(via, 1, (1 << 20, 40), 64).unwrap_err();
            assert!(matches!(error, MessagePathError::TooLong { .. }), "{error}");
            assert!(!error.is_unavailable_here());
        }
    }

    #[test]
    fn a_network_of_ones_own_is_not_the_machines() {
        let names = || {
            let found = std::fs::read_dir("/sys/class/net").unwrap();
            let mut names: Vec<_> = found.map(|of| of.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let Ok(paths) = MessagePaths::open(PipelineVia::Veth, 1, (100, 40), 64) else {
            return jitterscope_testing::skip("a network of one's own needs root");
        };
        assert_eq!(names(), before);
        drop(paths);
        assert_eq!(names(), before);
    }
}
