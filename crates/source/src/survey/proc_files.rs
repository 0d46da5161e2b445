//! The counters in `/proc`.

use super::{absent, available};
use crate::counters::{SchedstatError, parse_schedstat, parse_stat, parse_table};
use jitterscope_model::{SourceReport, SourceStatus};
use jitterscope_platform::Machine;

/// A source: its name, its file, what its absence costs.
struct Source {
    name: &'static str,
    path: &'static str,
    loses: &'static str,
}

/// All four.
pub(super) fn all(machine: &Machine) -> Vec<SourceReport> {
    let table = |text: &str| match parse_table(text) {
        rows if rows.is_empty() => Err(("it has no row for a CPU".to_owned(), "")),
        _ => Ok(()),
    };
    vec![
        one(
            machine,
            &Source {
                name: "interrupts",
                path: "/proc/interrupts",
                loses: "how often each interrupt came to a CPU",
            },
            table,
        ),
        one(
            machine,
            &Source {
                name: "softirqs",
                path: "/proc/softirqs",
                loses: "how often each softirq ran on a CPU",
            },
            table,
        ),
        one(
            machine,
            &Source {
                name: "steal",
                path: "/proc/stat",
                loses: "how much time the hypervisor took, in grains of 10 ms",
            },
            |text| {
                let has_steal = parse_stat(text).iter().any(|row| &*row.name == "steal");
                if has_steal { Ok(()) } else { Err(("it has no column of stolen time".to_owned(), "")) }
            },
        ),
        one(
            machine,
            &Source {
                name: "schedstat",
                path: "/proc/schedstat",
                loses: "how long threads waited for a CPU in all",
            },
            |text| match parse_schedstat(text) {
                Ok(_) => Ok(()),
                Err(error @ SchedstatError::Version(_)) => Err((error.to_string(), "")),
            },
        ),
    ]
}

fn one(
    machine: &Machine,
    source: &Source,
    check: impl Fn(&str) -> Result<(), (String, &'static str)>,
) -> SourceReport {
    match machine.read(source.path) {
        Ok(text) => match check(&text) {
            Ok(()) => available(source.name),
            Err((reason, fix)) => {
                let reason = format!("{}: {reason}", source.path);
                absent(source.name, SourceStatus::Absent, reason, source.loses, fix)
            }
        },
        Err(error) if error.is_absent() => {
            let fix = if source.name == "schedstat" {
                "use a kernel built with CONFIG_SCHEDSTATS"
            } else {
                "mount procfs at /proc"
            };
            absent(
                source.name,
                SourceStatus::Absent,
                format!("{} is not there", source.path),
                source.loses,
                fix,
            )
        }
        Err(error) => absent(
            source.name,
            if error.is_denied() { SourceStatus::Denied } else { SourceStatus::Absent },
            error.to_string(),
            source.loses,
            format!("let this user read {}", source.path),
        ),
    }
}
