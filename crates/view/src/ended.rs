//! Words for why a CPU's measurement ended early.

use crate::any_version::{UNKNOWN, in_words};
use crate::style::tame;
use jitterscope_model::{AnyVersion, EndedEarly, MovedBecause};

/// The reason as part of a sentence.
#[must_use]
pub(crate) fn ended_early(of: &AnyVersion<EndedEarly>) -> String {
    in_words(of, ended, UNKNOWN)
}

fn ended(of: &EndedEarly) -> String {
    match of {
        EndedEarly::Moved {
            cpu,
            to_cpu,
            because,
        } => {
            let because = because.as_ref().map_or_else(String::new, moved);
            format!("CPU {cpu} was taken away: the probe was moved to CPU {to_cpu}{because}")
        }
        EndedEarly::Offline => "the CPU went offline".into(),
    }
}

fn moved(because: &MovedBecause) -> String {
    let by = because
        .by
        .as_ref()
        .map(|by| format!(" by {} (pid {})", tame(&by.comm), by.tid));
    match (because.offline, by) {
        (false, Some(by)) => format!("{by}, which changed where it may run"),
        (false, None) => " by a change of where it may run (taskset, a cpuset)".into(),
        (true, by) => format!("{}, for the CPU went offline", by.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, Mover};

    #[test]
    fn a_moved_probe_names_the_mover_and_no_cpu_goes_offline() {
        let text = |offline, by: Option<&str>| {
            let by = by.map(|comm| Mover {
                comm: comm.into(),
                tid: 812,
            });
            let because = Some(MovedBecause { offline, by });
            ended(&EndedEarly::Moved {
                cpu: CpuId(1),
                to_cpu: CpuId(0),
                because,
            })
        };
        let moved = "CPU 1 was taken away: the probe was moved to CPU 0";
        assert_eq!(
            text(false, Some("taskset")),
            format!("{moved} by taskset (pid 812), which changed where it may run")
        );
        assert_eq!(
            text(false, None),
            format!("{moved} by a change of where it may run (taskset, a cpuset)")
        );
        assert_eq!(
            text(true, None),
            format!("{moved}, for the CPU went offline")
        );
        assert_eq!(
            text(true, Some("sh")),
            format!("{moved} by sh (pid 812), for the CPU went offline")
        );
    }
}
