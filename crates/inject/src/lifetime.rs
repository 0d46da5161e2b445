//! Makes sure that a disturbing child does not outlive its parent.

use super::DisturbError;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by a signal that asks the child to end.
static ASKED_TO_END: AtomicBool = AtomicBool::new(false);

extern "C" fn note_request(_signal: libc::c_int) {
    ASKED_TO_END.store(true, Ordering::Relaxed);
}

/// What the kernel does to the child when its parent's thread dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnOrphaned {
    /// Kills it at once, for kinds that leave no changes behind.
    Killed,
    /// Asks it to end, so that it restores its changes.
    Asked,
}

/// Ties this process to its parent: from now on the kernel signals it when the parent's thread dies. SIGTERM and SIGINT
/// end the injections, and changes are restored.
pub(super) fn tie_to_parent(parent: u32, orphaned: OnOrphaned) -> Result<(), DisturbError> {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: zero is a valid `sigaction`: an empty mask and no flags. Without SA_RESTART, blocking
        // calls return when the signal comes.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note_request as extern "C" fn(libc::c_int) as usize;
        // SAFETY: `action` outlives the call, the old action is not asked for, and the handler only
        // stores to an atomic, which is async-signal-safe.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(DisturbError::refused("installing a signal handler")(
                io::Error::last_os_error(),
            ));
        }
    }
    let signal = match orphaned {
        OnOrphaned::Killed => Signal::KILL,
        OnOrphaned::Asked => Signal::TERM,
    };
    set_parent_process_death_signal(Some(signal)).map_err(DisturbError::refused(
        "asking for a signal at the parent's death",
    ))?;
    // The parent may have died before this request.
    let actual = getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    if actual == parent {
        Ok(())
    } else {
        Err(DisturbError::Orphaned(parent))
    }
}

/// Waits for the line `go`; false if the parent closes our stdin or a signal arrives first.
pub(super) fn wait_for_go(input: &mut impl Read) -> Result<bool, DisturbError> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match input.read(&mut byte) {
            Ok(0) => return Ok(false),
            Ok(_) if byte[0] == b'\n' => {
                if line == b"go" {
                    return Ok(true);
                }
                line.clear();
            }
            Ok(_) if line.len() < 64 => line.push(byte[0]),
            Ok(_) => {
                return Err(DisturbError::Arguments(
                    "stdin holds something else than 'go'".into(),
                ));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(DisturbError::Parent(e)),
        }
        if ASKED_TO_END.load(Ordering::Relaxed) {
            return Ok(false);
        }
    }
}

/// Whether to end the injections: a signal arrived, or our stdin was closed or written to.
pub(super) fn must_end() -> bool {
    if ASKED_TO_END.load(Ordering::Relaxed) {
        return true;
    }
    let mut poll = libc::pollfd {
        fd: io::stdin().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid `pollfd`, which outlives the call; it does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_go_is_go() {
        assert!(wait_for_go(&mut &b"go\nmore"[..]).unwrap());
        assert!(wait_for_go(&mut &b"\nready\ngo\n"[..]).unwrap());
        assert!(!wait_for_go(&mut &b""[..]).unwrap());
        assert!(!wait_for_go(&mut &b"go"[..]).unwrap());
        assert!(wait_for_go(&mut &[b'x'; 100][..]).is_err());
    }
}
