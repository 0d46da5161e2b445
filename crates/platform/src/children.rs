//! The CPU time of child processes.

use jitterscope_model::Nanos;

/// CPU time of ended child processes, and of the children that they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildrenTime {
    pub user: Nanos,
    pub system: Nanos,
}

impl ChildrenTime {
    /// The time since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: ChildrenTime) -> ChildrenTime {
        ChildrenTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// Reads the CPU time of all children that ended and were waited for; zero if the kernel refuses.
#[must_use]
pub fn children_time() -> ChildrenTime {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writes of a `rusage`, which the kernel fills.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    if result != 0 {
        return ChildrenTime::default();
    }
    // SAFETY: zeroed is a valid `rusage`, and the call above has filled it.
    let usage = unsafe { usage.assume_init() };
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let nanos = |t: libc::timeval| Nanos(count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1000);
    ChildrenTime {
        user: nanos(usage.ru_utime),
        system: nanos(usage.ru_stime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_that_has_ended_counts() {
        let before = children_time();
        let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
        let ended = Command::new("sh").args(["-c", script]).status().unwrap();
        assert!(ended.success());
        let used = children_time().since(before);
        assert!(used.user > Nanos(1_000_000), "{used:?}");
    }
}
