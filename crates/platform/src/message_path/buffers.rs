//! The room of sockets.

use super::{Kind, MessagePath, MessageSocket};
use std::fs;
use std::os::fd::{AsRawFd, RawFd};

/// What the kernel charges to a socket's buffer for a datagram beside its bytes, generously.
const BESIDE: usize = 2048;
/// The kernel's default for `net.core.netdev_max_backlog`, where it cannot be read.
const BACKLOG: usize = 1000;

impl AsRawFd for MessageSocket {
    fn as_raw_fd(&self) -> RawFd {
        match &self.0 {
            Kind::Udp(socket) => socket.as_raw_fd(),
            Kind::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

/// The number of packets that may wait for one CPU's network softirq without any being dropped, with as many again for
/// others.
pub(super) fn backlog() -> usize {
    let most = fs::read_to_string("/proc/sys/net/core/netdev_max_backlog").ok();
    let most = most.and_then(|text| text.trim().parse().ok());
    most.unwrap_or(BACKLOG) / 2
}

/// Enlarges the buffers for `wanted` messages of `length` bytes; returns the number for which there is room.
pub(super) fn enlarge(path: &MessagePath, length: usize, wanted: usize) -> usize {
    // A datagram's memory is rounded up to a power of two, and long ones are cut into packets.
    let each = length.next_power_of_two().saturating_mul(2) + BESIDE;
    let bytes = i32::try_from(each.saturating_mul(wanted)).unwrap_or(i32::MAX);
    let sending = set(&path.sender, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], bytes);
    let room = match path.sender.0 {
        // The sender pays until the message is taken.
        Kind::Unix(_) => sending,
        Kind::Udp(_) => set(
            &path.receiver,
            [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF],
            bytes,
        ),
    };
    usize::try_from(room).unwrap_or(0) / each
}

/// Sets a buffer's size, beyond the limit for users if possible; returns what it now is.
fn set(socket: &MessageSocket, [force, plain]: [i32; 2], bytes: i32) -> i32 {
    let size = size_of::<i32>() as libc::socklen_t;
    for option in [force, plain] {
        // SAFETY: the descriptor is open, and the kernel reads one `i32`, which outlives the call.
        let refused = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const bytes).cast(),
                size,
            )
        };
        if refused == 0 {
            break;
        }
    }
    let (mut found, mut length) = (0i32, size);
    // SAFETY: as above; the kernel writes at most `length` bytes, and both places outlive the call.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            plain,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if refused == 0 { found } else { 0 }
}
