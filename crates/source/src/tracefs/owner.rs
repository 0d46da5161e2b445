//! Names of what is ours. Whether its owner lives is told by its lock, see
//! [`OwnerLock`](jitterscope_platform::OwnerLock), not by the process id in the name: that says nothing in
//! another PID namespace, and a zombie still has one.

use super::TraceError;
use jitterscope_platform::Machine;

const PREFIX: &str = "jitterscope-";

/// The name of this process's `role`: `jitterscope-PID-START-ROLE`.
pub(super) fn name(machine: &Machine, role: &str) -> Result<String, TraceError> {
    let stat = machine.read("/proc/self/stat")?;
    let start = start_time(&stat).ok_or_else(|| TraceError::NotSupported {
        what: "/proc/self/stat does not tell when this process started".into(),
    })?;
    Ok(format!("{PREFIX}{}-{start}-{role}", std::process::id()))
}

/// The process that a name speaks of, in its own PID namespace; `None` if the name is not one of ours.
pub(super) fn pid_of(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
    let pid = parts.next()?.parse().ok()?;
    let _start: u64 = parts.next()?.parse().ok()?;
    parts.next().is_some_and(|role| !role.is_empty()).then_some(pid)
}

/// Field 22 of `/proc/PID/stat`: when the process started, in clock ticks since boot.
fn start_time(stat: &str) -> Option<u64> {
    // The second field is the name, which may itself hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_found_behind_its_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10";
        assert_eq!(start_time(stat), Some(98_765));
        assert_eq!(start_time("42 (x) S 1"), None);
        assert_eq!(start_time(""), None);
    }

    #[test]
    fn only_our_own_names_are_ours() {
        assert_eq!(pid_of("jitterscope-12-345-local"), Some(12));
        assert_eq!(pid_of("jitterscope-12-345-local.2"), Some(12));
        for name in ["jitterscope-12-345", "jitterscope-12-345-", "jitterscope-x-1-y", "trace-12-3-local", ""]
        {
            assert_eq!(pid_of(name), None, "{name}");
        }
    }
}
