//! Availability, on fake machines.

use super::*;
use jitterscope_model::{ClockKind, CpuId, TickRate};
use std::fs;
use std::path::PathBuf;

fn settings(helper: Option<u32>) -> DisturbSettings {
    DisturbSettings {
        cpu: CpuId(1),
        helper_cpu: helper.map(CpuId),
        period: Nanos(10_000_000),
        length: Nanos(0),
        count: 1,
        clock: ClockKind::MonotonicRaw,
        rate: TickRate::NANOSECONDS,
        threshold: Nanos(300),
        victim_tid: None,
        parent_pid: 0,
        work_dir: PathBuf::from("/"),
    }
}

fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::at(dir.path());
    for (path, text) in files {
        let path = machine.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (dir, machine)
}

#[test]
fn what_comes_from_elsewhere_needs_an_elsewhere() {
    let (_dir, machine) = fake(&[]);
    for helper in [None, Some(1)] {
        for kind in [
            DisturbKind::Membarrier,
            DisturbKind::Softirq,
            DisturbKind::Kworker,
        ] {
            let reason = availability(kind, &machine, &settings(helper)).unwrap_err();
            assert_eq!(reason, Unavailable::NoHelper, "{kind}");
        }
        assert_eq!(
            availability(DisturbKind::Timer, &machine, &settings(helper)),
            Ok(())
        );
    }
}

#[test]
fn reasons_name_what_is_missing() {
    let (_dir, machine) = fake(&[]);
    let reason = |kind| {
        availability(kind, &machine, &settings(Some(0)))
            .unwrap_err()
            .to_string()
    };
    assert!(reason(DisturbKind::Softirq).contains("CONFIG_NET_NS"));
    assert!(reason(DisturbKind::Kworker).contains("stat_refresh"));
    assert!(reason(DisturbKind::Writeback).contains("writeback/cpumask"));
}

#[test]
fn a_softirq_needs_capabilities() {
    let with = |mask: &str| {
        let (_dir, machine) = fake(&[
            ("/proc/self/ns/net", ""),
            ("/sys/class/net/lo/queues/rx-0/rps_cpus", "0"),
            ("/proc/self/status", &format!("Name:\tx\nCapEff:\t{mask}\n")),
        ]);
        availability(DisturbKind::Softirq, &machine, &settings(Some(0)))
    };
    assert_eq!(with("000001ffffffffff"), Ok(()));
    let without = |capability: &str| {
        Err(Unavailable::Capability {
            what: "a private network".into(),
            capability: capability.into(),
        })
    };
    assert_eq!(with("0000000000001000"), without("CAP_SYS_ADMIN"));
    assert_eq!(with("0000000000200000"), without("CAP_NET_ADMIN"));
    assert_eq!(with("not a mask"), without("CAP_SYS_ADMIN"));
}

#[test]
fn the_subcommand_refuses_foreign_arguments() {
    let mut out = Vec::new();
    for (kind, settings) in [("earthquake", "{}"), ("fifo", "{}"), ("fifo", "")] {
        let refused = run_command(kind, settings, &mut out);
        assert!(
            matches!(refused, Err(DisturbError::Arguments(_))),
            "{kind} {settings}"
        );
    }
    assert!(out.is_empty());
}
