//! Two networks without a name, joined by a pair of virtual Ethernet devices. Only our sockets hold them, so the kernel
//! removes both networks and the devices when the last socket is closed, however the process ends.

use super::{MessagePath, MessagePathError, joined, refused, udp_at};
use jitterscope_model::PipelineVia;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

const VIA: PipelineVia = PipelineVia::Veth;
/// The devices, of the sending and of the receiving network, and their addresses (TEST-NET-1 of RFC 5737).
const SENDING: (&str, Ipv4Addr) = ("js-out", Ipv4Addr::new(192, 0, 2, 1));
const RECEIVING: (&str, Ipv4Addr) = ("js-in", Ipv4Addr::new(192, 0, 2, 2));

// From `linux/if_link.h` and `linux/veth.h`.
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// Makes both networks and opens the paths. A thread of its own does it, because it enters the networks.
pub(super) fn paths(receivers: usize) -> Result<Vec<MessagePath>, MessagePathError> {
    let starting = refused(VIA, "starting a thread");
    let thread = std::thread::Builder::new()
        .name("js-network".into())
        .spawn(move || opened(receivers))
        .map_err(&starting)?;
    let panicked = |_| starting(io::Error::other("it panicked; this is a bug"));
    thread.join().map_err(panicked)?
}

fn opened(receivers: usize) -> Result<Vec<MessagePath>, MessagePathError> {
    let out = network()?;
    let _in = network()?;
    pair(&out).map_err(refused(VIA, "making two virtual Ethernet devices"))?;
    let sockets = |(_, address)| -> Result<Vec<UdpSocket>, MessagePathError> {
        (0..receivers).map(|_| udp_at(VIA, address)).collect()
    };
    set_up(RECEIVING)?;
    let receiving = sockets(RECEIVING)?;
    move_into_link_name_space(out.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|errno| refused(VIA, "entering the sender's network")(errno.into()))?;
    set_up(SENDING)?;
    let sending = sockets(SENDING)?;
    let both = sending.into_iter().zip(receiving);
    both.map(|(sender, receiver)| joined(VIA, sender, receiver))
        .collect()
}

/// Moves this thread into a new network.
fn network() -> Result<File, MessagePathError> {
    let entering = refused(VIA, "making a network, which needs root (CAP_SYS_ADMIN)");
    // SAFETY: file descriptors are not unshared, so none can become unusable to another thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|errno| entering(errno.into()))?;
    File::open("/proc/thread-self/ns/net").map_err(refused(VIA, "opening the new network"))
}

/// Makes the two devices, the sending one in the network `out`.
fn pair(out: &File) -> io::Result<()> {
    let mut peer = link_head();
    attribute(&mut peer, IFLA_IFNAME, &named(SENDING.0));
    attribute(&mut peer, IFLA_NET_NS_FD, &out.as_raw_fd().to_ne_bytes());
    let mut data = Vec::new();
    attribute(&mut data, VETH_INFO_PEER, &peer);
    let mut info = Vec::new();
    attribute(&mut info, IFLA_INFO_KIND, b"veth\0");
    attribute(&mut info, IFLA_INFO_DATA, &data);
    let mut link = link_head();
    attribute(&mut link, IFLA_IFNAME, &named(RECEIVING.0));
    attribute(&mut link, IFLA_LINKINFO, &info);
    asked(&link)
}

/// An `ifinfomsg` about no particular device.
fn link_head() -> Vec<u8> {
    vec![0; 16]
}

fn named(name: &str) -> Vec<u8> {
    name.bytes().chain([0]).collect()
}

/// Appends an attribute, padded to four bytes.
fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Sends a request for a new link, and reads the kernel's answer.
fn asked(link: &[u8]) -> io::Result<()> {
    const HEAD: usize = 16;
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut request = Vec::new();
    request.extend(u32::try_from(HEAD + link.len()).unwrap_or(0).to_ne_bytes());
    request.extend(libc::RTM_NEWLINK.to_ne_bytes());
    request.extend((flags as u16).to_ne_bytes());
    request.extend(1u32.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(link);
    // SAFETY: no memory is passed.
    let socket = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        )
    };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the descriptor is open, and the kernel reads the bytes of `request`, which outlives the call.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = [0u8; 1024];
    // SAFETY: as above; the kernel writes at most the length of `answer`.
    let length = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            0,
        )
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    verdict(answer.get(..length).unwrap_or_default())
}

/// The error number of an answer; 0 is success.
fn verdict(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|of| of.try_into().ok());
    let number = answer.get(16..20).and_then(|of| of.try_into().ok());
    match (kind.map(u16::from_ne_bytes), number.map(i32::from_ne_bytes)) {
        (Some(kind), Some(0)) if i32::from(kind) == libc::NLMSG_ERROR => Ok(()),
        (Some(kind), Some(number)) if i32::from(kind) == libc::NLMSG_ERROR => {
            Err(io::Error::from_raw_os_error(number.saturating_neg()))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Gives a device of this thread's network its address, and starts it.
fn set_up((name, address): (&str, Ipv4Addr)) -> Result<(), MessagePathError> {
    let step = refused(VIA, "starting a virtual Ethernet device");
    // Any IP socket of this network can configure its devices; it needs no address.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(&step)?;
    // SAFETY: zero is a valid `ifreq`: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: zero is a valid `sockaddr_in`.
    let mut place: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    place.sin_family = libc::AF_INET as libc::sa_family_t;
    place.sin_addr.s_addr = u32::from(address).to_be();
    let plain: *const libc::sockaddr = (&raw const place).cast();
    // SAFETY: `sockaddr_in` and `sockaddr` are of one size, and any bytes are a valid `sockaddr`.
    request.ifr_ifru.ifru_addr = unsafe { plain.read_unaligned() };
    ordered(&socket, libc::SIOCSIFADDR, &mut request).map_err(&step)?;
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap_or(1);
    ordered(&socket, libc::SIOCSIFFLAGS, &mut request).map_err(&step)
}

fn ordered(socket: &UdpSocket, order: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: both orders read an `ifreq` whose name is NUL-terminated; it outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), order as _, &raw mut *request) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_padded_and_its_length_is_not() {
        let mut bytes = Vec::new();
        attribute(&mut bytes, 3, b"js-in\0");
        assert_eq!(bytes.len(), 12);
        assert_eq!(u16::from_ne_bytes([bytes[0], bytes[1]]), 10);
        assert_eq!(bytes[10..], [0, 0]);
    }

    #[test]
    fn an_answer_without_a_verdict_is_an_error() {
        let mut answer = [0u8; 36];
        answer[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        assert!(verdict(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        let refused = verdict(&answer).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        for short in 0..20 {
            assert!(verdict(&answer[..short]).is_err(), "{short}");
        }
    }
}
