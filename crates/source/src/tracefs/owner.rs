//! Names of our instances and mounts. Whether the owner is alive is decided by its lock, see
//! [`OwnerLock`](jitterscope_platform::OwnerLock), and not by the process id in the name: that is meaningless in
//! another PID namespace, and a zombie still has one.

use super::TraceError;
use jitterscope_model::TracefsFlaw;
use jitterscope_platform::{Machine, TaskStat};

const PREFIX: &str = "jitterscope-";

/// The name for a `role` of this process: `jitterscope-PID-START-ROLE`.
pub(super) fn name(machine: &Machine, role: &str) -> Result<String, TraceError> {
    let stat = TaskStat::of(machine, "self");
    let start = stat
        .and_then(|stat| stat.start_time())
        .ok_or(TraceError::NotSupported {
            flaw: TracefsFlaw::NoStartTime,
        })?;
    Ok(format!("{PREFIX}{}-{start}-{role}", std::process::id()))
}

/// The process id in a name, in its own PID namespace; `None` if the name is not ours.
pub(super) fn pid_of(name: &str) -> Option<u32> {
    parts(name).map(|(pid, _)| pid)
}

/// The role in an instance's name; a number may follow it.
pub(super) fn role_of(name: &str) -> Option<&str> {
    parts(name).map(|(_, role)| role)
}

fn parts(name: &str) -> Option<(u32, &str)> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
    let pid = parts.next()?.parse().ok()?;
    let _start: u64 = parts.next()?.parse().ok()?;
    let role = parts.next().filter(|role| !role.is_empty())?;
    Some((pid, role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        assert_eq!(pid_of("jitterscope-12-345-local"), Some(12));
        assert_eq!(pid_of("jitterscope-12-345-local.2"), Some(12));
        for name in [
            "jitterscope-12-345",
            "jitterscope-12-345-",
            "jitterscope-x-1-y",
            "trace-12-3-local",
            "",
        ] {
            assert_eq!(pid_of(name), None, "{name}");
        }
    }
}
