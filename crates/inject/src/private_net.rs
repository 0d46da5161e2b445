//! A private network: its settings do not affect the machine's network, and it vanishes with the process.

use super::DisturbError;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// Moves this process into new network and mount namespaces, mounts a `/sys` that shows the new network, and starts its
/// loopback device.
pub(super) fn enter() -> Result<(), DisturbError> {
    let before = sys_device()?;
    // SAFETY: file descriptors are not unshared, so none can become unusable to another thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWNET) }.map_err(
        DisturbError::refused("entering a private network and mount namespace"),
    )?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(DisturbError::refused("making the mounts private"))?;
    mount(
        "none",
        "/sys",
        "sysfs",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
    .map_err(DisturbError::refused("mounting a private /sys"))?;
    // Each network has its own sysfs. If this were still the machine's, we would change the machine's knobs.
    if sys_device()? == before {
        return Err(DisturbError::Unavailable(
            "/sys still shows the machine's own network".into(),
        ));
    }
    bring_up_loopback()
}

fn sys_device() -> Result<u64, DisturbError> {
    Ok(fs::metadata("/sys")
        .map_err(DisturbError::refused("looking at /sys"))?
        .dev())
}

fn bring_up_loopback() -> Result<(), DisturbError> {
    // Any IP socket of this network can configure its devices; it needs no address.
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(DisturbError::refused("opening a socket"))?;
    // SAFETY: zero is a valid `ifreq`: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: SIOCSIFFLAGS reads an `ifreq` whose name is NUL-terminated; it outlives the call.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    };
    if result != 0 {
        return Err(DisturbError::refused(
            "bringing up the private loopback device",
        )(io::Error::last_os_error()));
    }
    Ok(())
}
