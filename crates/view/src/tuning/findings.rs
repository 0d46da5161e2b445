//! Words for the findings of an examination and for the wanted state.

use crate::lines::counted;
use jitterscope_tune::{FileValue, Finding, Program, Queues, Wanted, WantedValue};

/// The current state, without a full stop.
#[must_use]
pub fn finding(of: &Finding) -> String {
    match of {
        Finding::File(value) => in_force(value),
        Finding::FilesAsWanted { files } => format!("all {files} files as wanted"),
        Finding::FilesWrong {
            wrong: 1,
            files,
            first,
        } => {
            format!(
                "{} reads {} (1 of {files} files)",
                first.path,
                in_force(first)
            )
        }
        Finding::FilesWrong {
            wrong,
            files,
            first,
        } => {
            format!(
                "{wrong} of {files} files, such as {} reads {}",
                first.path,
                in_force(first)
            )
        }
        Finding::Isolated { cpus } => format!("isolated: {cpus}"),
        Finding::IsolatedAtBoot { cpus } => format!("isolated at boot: {cpus}"),
        Finding::NoneIsolated => "no CPU is isolated".into(),
        Finding::OwnPartition { group, state, cpus } => {
            format!("{group} is '{state}' with CPUs {cpus}")
        }
        Finding::NotBalanced { cpus } => format!("no cpuset balances {}", cpus.in_words()),
        Finding::Balanced { cpus, cpusets } => {
            format!(
                "the scheduler balances CPU {cpus} with others ({})",
                cpusets.join(", ")
            )
        }
        Finding::NoThreadsHere { threads, kernel } => {
            format!("none of {threads} {} that can move", of_family(*kernel))
        }
        Finding::ThreadsHere {
            movable,
            threads,
            kernel,
            some,
        } => {
            format!(
                "{movable} of {threads} {} may: {} ...",
                of_family(*kernel),
                some.join(", ")
            )
        }
        Finding::BootParameters { parameters } => parameters.join(" "),
        Finding::NotOnBootLine => "not on the command line".into(),
        Finding::ImpliedByNohzFull => "implied by nohz_full".into(),
        Finding::CpusetInstead => "not at boot; a cpuset does the same until the next boot".into(),
        Finding::Cpus { cpus } if cpus.is_empty() => "no CPU".into(),
        Finding::Cpus { cpus } => cpus.in_words(),
        Finding::Value { value } => value.clone(),
        Finding::FileThere { path } => format!("{path} exists"),
        Finding::FileGone { path } => format!("{path} does not exist"),
        Finding::NoQuota => "no group has a quota".into(),
        Finding::Quotas { groups, first } => {
            format!("{} limited, such as {first}", counted(*groups, "group"))
        }
        Finding::IrqbalanceStopped => "irqbalance is not running".into(),
        Finding::IrqbalanceKeptOff { banned } => {
            format!("running, CPUs {banned} banned in its configuration")
        }
        Finding::IrqbalanceRuns { programs } => {
            format!(
                "{} runs and may put interrupts on these CPUs",
                named(programs)
            )
        }
        Finding::QueuesFit => {
            "no device has more receive queues than there are housekeeping CPUs".into()
        }
        Finding::TooManyQueues { devices } => {
            let each = |Queues { device, queues }: &Queues| format!("{device} has {queues}");
            devices.iter().map(each).collect::<Vec<_>>().join(", ")
        }
        Finding::NoPerfEvents => "no program holds performance events".into(),
        Finding::PerfEvents { programs } => format!("open in {}", named(programs)),
        Finding::NoneRuns => "none of the known tools is running".into(),
        Finding::Running { programs } => named(programs),
        Finding::NoRealTime => "no kernel thread there has a real-time priority above 1".into(),
        Finding::RealTime { threads } => format!("above 1: {}", named(threads)),
        Finding::KvmClockSync { value } => format!("kvmclock_periodic_sync is {value}"),
    }
}

fn in_force(
    FileValue {
        reads, in_force, ..
    }: &FileValue,
) -> String {
    match in_force {
        Some(force) => format!("{reads} (effective: {force})"),
        None => reads.clone(),
    }
}

fn of_family(kernel: bool) -> &'static str {
    if kernel { "kernel threads" } else { "threads" }
}

fn named(programs: &[Program]) -> String {
    let each = |Program { comm, pid }: &Program| format!("{comm} (pid {pid})");
    programs.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// The wanted state, without a full stop.
#[must_use]
pub fn wanted(of: &Wanted) -> String {
    match of {
        Wanted::Values { values } => values.iter().map(value).collect::<Vec<_>>().join("; "),
        Wanted::BootParameters { parameters } => parameters.join(" "),
        Wanted::Partition { cpus } => format!("an isolated partition of {}", cpus.in_words()),
        Wanted::BalancedAmong { cpus } => {
            format!("load balancing among the other CPUs ({cpus}) only")
        }
        Wanted::NoThreads => "no thread that can move may run there".into(),
        Wanted::Once => "once, before the program starts".into(),
        Wanted::NoQuota => "no quota for the program's group".into(),
        Wanted::IrqbalanceOff { cpus } => format!("stopped, or IRQBALANCE_BANNED_CPULIST={cpus}"),
        Wanted::QueuesAtMost { most } => format!("at most {most} receive queues"),
        Wanted::NoPerfEvents => "no open performance events".into(),
        Wanted::NoneRuns => "none running, or on housekeeping CPUs only".into(),
        Wanted::NoRealTime => "no real-time priority above 1".into(),
        Wanted::Value { value } => (*value).to_owned(),
    }
}

fn value(of: &WantedValue) -> String {
    match of {
        WantedValue::OneOf { values: [only] } => (*only).to_owned(),
        WantedValue::OneOf { values } => {
            let first = values.first().copied().unwrap_or_default();
            format!("{} (writes {first})", values.join(" or "))
        }
        WantedValue::AtLeast { enough, write } => format!("at least {enough} (writes {write})"),
        WantedValue::AtMost { enough, write } if enough == write => format!("at most {enough}"),
        WantedValue::AtMost { enough, write } => format!("at most {enough} (writes {write})"),
        WantedValue::NoCpuOf { cpus } => format!("no CPU of {cpus}"),
        WantedValue::SameAs { file } => format!("same as {file}"),
        WantedValue::AsDeclared { words } => words.replace('`', ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(in_force: Option<&str>) -> FileValue {
        FileValue {
            path: "/a".into(),
            reads: "7".into(),
            in_force: in_force.map(str::to_owned),
        }
    }

    #[test]
    fn reported_files_state_the_value_in_force_and_their_path() {
        assert_eq!(finding(&Finding::File(file(Some("2")))), "7 (effective: 2)");
        let wrong = |wrong| {
            finding(&Finding::FilesWrong {
                wrong,
                files: 3,
                first: file(None),
            })
        };
        assert_eq!(wrong(1), "/a reads 7 (1 of 3 files)");
        assert_eq!(wrong(2), "2 of 3 files, such as /a reads 7");
    }

    #[test]
    fn groups_with_a_quota_are_counted() {
        let reported = |groups| {
            finding(&Finding::Quotas {
                groups,
                first: "/x".into(),
            })
        };
        assert_eq!(
            (reported(1), reported(2)),
            (
                "1 group limited, such as /x".into(),
                "2 groups limited, such as /x".into()
            )
        );
    }

    #[test]
    fn programs_and_devices_are_named() {
        let programs = ["pcm", "turbostat"]
            .map(|comm| Program {
                comm: comm.into(),
                pid: 9,
            })
            .to_vec();
        assert_eq!(
            finding(&Finding::Running {
                programs: programs.clone()
            }),
            "pcm (pid 9), turbostat (pid 9)"
        );
        assert!(
            finding(&Finding::IrqbalanceRuns { programs })
                .starts_with("pcm (pid 9), turbostat (pid 9) runs")
        );
        let devices = vec![Queues {
            device: "b".into(),
            queues: 3,
        }];
        assert_eq!(finding(&Finding::TooManyQueues { devices }), "b has 3");
    }

    #[test]
    fn cpusets_are_named_by_cpus() {
        let cpus = || "2-3".parse().unwrap();
        assert_eq!(
            wanted(&Wanted::Partition { cpus: cpus() }),
            "an isolated partition of CPUs 2-3"
        );
        assert_eq!(
            finding(&Finding::NotBalanced { cpus: cpus() }),
            "no cpuset balances CPUs 2-3"
        );
        let found = Finding::Balanced {
            cpus: cpus(),
            cpusets: vec!["/c".into(), "/c/a".into()],
        };
        assert_eq!(
            finding(&found),
            "the scheduler balances CPU 2-3 with others (/c, /c/a)"
        );
        assert_eq!(
            finding(&Finding::Cpus {
                cpus: "".parse().unwrap()
            }),
            "no CPU"
        );
    }

    #[test]
    fn wanted_values_are_reported_with_what_is_written() {
        let reported = |values: Vec<WantedValue>| wanted(&Wanted::Values { values });
        assert_eq!(
            reported(vec![WantedValue::AtLeast {
                enough: 10,
                write: 60
            }]),
            "at least 10 (writes 60)"
        );
        assert_eq!(
            reported(vec![WantedValue::AtMost {
                enough: 5,
                write: 5
            }]),
            "at most 5"
        );
        let two = vec![
            WantedValue::OneOf { values: &["a"] },
            WantedValue::OneOf {
                values: &["b", "c"],
            },
        ];
        assert_eq!(reported(two), "a; b or c (writes b)");
    }
}
