//! Whose an instance or a mount is: its name says which process made it.

use super::TraceError;
use jitterscope_platform::Machine;

const PREFIX: &str = "jitterscope-";

/// A process, told apart from a later one of the same id by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: u32,
    /// Clock ticks since boot.
    start: u64,
}

/// The name of this process's `role`: `jitterscope-PID-START-ROLE`.
pub(super) fn name(machine: &Machine, role: &str) -> Result<String, TraceError> {
    let stat = machine.read("/proc/self/stat")?;
    let start = start_time(&stat).ok_or_else(|| TraceError::NotSupported {
        what: "/proc/self/stat does not tell when this process started".into(),
    })?;
    Ok(format!("{PREFIX}{}-{start}-{role}", std::process::id()))
}

impl Owner {
    /// The process that a name speaks of, if the name is one of ours.
    pub(super) fn of(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
        let owner = Owner { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
        parts.next().is_some_and(|role| !role.is_empty()).then_some(owner)
    }

    /// Whether it has ended. What cannot be read is taken to live.
    pub(super) fn is_dead(self, machine: &Machine) -> bool {
        match machine.read(format!("/proc/{}/stat", self.pid)) {
            Ok(stat) => start_time(&stat).is_some_and(|now| now != self.start),
            Err(error) => error.is_absent(),
        }
    }
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
    fn a_process_is_known_by_id_and_start() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10";
        assert_eq!(start_time(stat), Some(98_765));
        assert_eq!(start_time("42 (x) S 1"), None);
        assert_eq!(start_time(""), None);
    }

    #[test]
    fn only_our_own_names_have_owners() {
        let owner = Some(Owner { pid: 12, start: 345 });
        assert_eq!(Owner::of("jitterscope-12-345-local"), owner);
        assert_eq!(Owner::of("jitterscope-12-345-local.2"), owner);
        for name in ["jitterscope-12-345", "jitterscope-12-345-", "jitterscope-x-1-y", "trace-12-3-local", ""]
        {
            assert_eq!(Owner::of(name), None, "{name}");
        }
    }
}
