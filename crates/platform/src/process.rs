//! Other processes.

use rustix::process::{Pid, Signal, kill_process};

/// Asks a process to end (SIGTERM). One that has ended already, or is not ours to end, stays as it is.
pub fn ask_to_end(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 0) {
        // Nothing to do when it is gone.
        let _ = kill_process(pid, Signal::TERM);
    }
}
