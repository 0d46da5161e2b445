//! Other processes, and the signal settings that this one inherited.

use rustix::process::{
    Pid, Signal, getppid, kill_process, kill_process_group, set_parent_process_death_signal,
};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Asks a process to end (SIGTERM). Does nothing if it has ended already, or belongs to another user.
pub fn ask_to_end(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 0) {
        // If it is gone, there is nothing to do.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Sends SIGUSR1 to a process.
///
/// # Errors
/// There is no such process, or it belongs to another user.
pub fn notify(pid: i32) -> io::Result<()> {
    let pid = Pid::from_raw(pid).filter(|_| pid > 0);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, Signal::USR1)?)
}

/// Ends all processes of a group of ours.
pub fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group).filter(|_| group > 1) {
        // If it is gone, there is nothing to do.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The effective user of this process.
#[must_use]
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the kernel ask the process of `command` to end (SIGTERM) when the thread that starts it ends for any reason: a
/// recorder that is killed leaves no child process behind.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The parent may have died before this request.
        let actual = getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        if actual == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and nothing else; it neither
    // allocates nor takes a lock.
    unsafe { command.pre_exec(tie) };
}

/// Whether this process ignores a signal. Before any handler is set, this shows the wish of the program that started
/// us: `nohup` ignores SIGHUP, a shell without job control ignores SIGINT for background processes.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: zero is a valid `sigaction`: an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and `action` is ours to write to and outlives the call.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_is_what_was_ignored() {
        // Rust's runtime ignores SIGPIPE at start.
        assert!(is_ignored(libc::SIGPIPE));
        assert!(!is_ignored(libc::SIGTERM));
        assert!(!is_ignored(0), "no such signal");
    }
}
