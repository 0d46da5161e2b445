use super::*;
use jitterscope_model::{SourceLoss, SourceProblem, SourceStatus};
use std::fs;

fn put(dir: &tempfile::TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn of<'a>(reports: &'a [SourceReport], name: &str) -> &'a SourceReport {
    reports.iter().find(|report| report.name == name).unwrap()
}

#[test]
fn a_bare_machine_lacks_everything_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir, "proc/self/mountinfo", "");
    let reports = survey(&Machine::at(dir.path()), ClockKind::Tsc);
    let names: Vec<&str> = reports.iter().map(|report| report.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "tracefs",
            "senders",
            "trace-clock",
            "symbols",
            "stacks",
            "interrupts",
            "softirqs",
            "steal",
            "schedstat",
            "smi",
            "function_graph",
            "osnoise"
        ]
    );
    for report in &reports {
        assert_ne!(report.status, SourceStatus::Available, "{report:?}");
        assert!(
            !report.problems.is_empty() && !report.losses.is_empty(),
            "{report:?}"
        );
    }
}

#[test]
fn a_good_machine_has_everything() {
    let dir = tempfile::tempdir().unwrap();
    put(
        &dir,
        "proc/self/mountinfo",
        "32 23 0:12 / /sys/kernel/tracing rw - tracefs none rw\n",
    );
    put(&dir, "proc/kallsyms", "ffffffff81000000 T f\n");
    put(
        &dir,
        "proc/interrupts",
        "CPU0\nLOC: 1 Local timer interrupts\n",
    );
    put(&dir, "proc/softirqs", "CPU0\nTIMER: 1\n");
    put(&dir, "proc/stat", "cpu0 1 2 3 4 5 6 7 8 9 10\n");
    put(
        &dir,
        "proc/schedstat",
        "version 17\ncpu0 0 0 1 2 3 4 5 6 7\n",
    );
    put(&dir, "proc/cpuinfo", "flags : fpu tsc\n");
    fs::create_dir_all(dir.path().join("dev/cpu/0")).unwrap();
    fs::write(dir.path().join("dev/cpu/0/msr"), [0u8; 64]).unwrap();
    let root = "sys/kernel/tracing";
    put(&dir, &format!("{root}/trace_clock"), "[local] x86-tsc\n");
    put(&dir, &format!("{root}/options/stacktrace"), "0\n");
    let stack = "events/ftrace/kernel_stack/format";
    put(&dir, &format!("{root}/{stack}"), "name: kernel_stack\n");
    put(
        &dir,
        &format!("{root}/available_tracers"),
        "osnoise function_graph nop\n",
    );
    put(
        &dir,
        &format!("{root}/set_graph_function"),
        "#### all functions enabled ####\n",
    );
    put(&dir, "proc/sys/kernel/osrelease", "6.12.117+deb12-amd64\n");
    fs::create_dir_all(dir.path().join(format!("{root}/instances"))).unwrap();
    let context = include_str!("../../tests/fixtures/vm-1s/context.json");
    let context: crate::TraceContext = serde_json::from_str(context).unwrap();
    for format in &context.formats {
        put(
            &dir,
            &format!("{root}/events/{}/{}/format", format.system, format.event),
            &format.text,
        );
    }
    // The fixture is older than these events.
    for event in ["signal/signal_generate", "task/task_rename"] {
        put(
            &dir,
            &format!("{root}/events/{event}/format"),
            "name: x\nID: 9\nformat:\n",
        );
    }
    let machine = Machine::at(dir.path());
    for report in survey(&machine, ClockKind::Tsc) {
        assert_eq!(report, SourceReport::available(&report.name));
    }

    let without = dir
        .path()
        .join(format!("{root}/events/ipi/ipi_send_cpumask"));
    fs::remove_dir_all(without).unwrap();
    put(&dir, "proc/kallsyms", "0000000000000000 T f\n");
    put(&dir, "proc/sys/kernel/kptr_restrict", "2\n");
    put(&dir, "proc/cpuinfo", "flags : fpu tsc hypervisor\n");
    let reports = survey(&machine, ClockKind::MonotonicRaw);
    let missing = SourceProblem::EventsMissing {
        events: vec!["ipi:ipi_send_cpumask".into()],
    };
    assert_eq!(of(&reports, "senders").problems, [missing]);
    assert_eq!(of(&reports, "senders").status, SourceStatus::Degraded);
    let hidden = [SourceProblem::AddressesHidden {
        kptr_restrict: "2".into(),
    }];
    assert_eq!(of(&reports, "symbols").problems, hidden);
    // Stacks without the names of their functions show nothing.
    assert_eq!(of(&reports, "stacks").problems, hidden);
    assert_eq!(of(&reports, "stacks").losses, [SourceLoss::BlockReasons]);
    assert_eq!(of(&reports, "smi").status, SourceStatus::Degraded);
    let clock = SourceProblem::TraceClock {
        wanted: "mono_raw".into(),
        offered: "local, x86-tsc".into(),
    };
    assert_eq!(of(&reports, "trace-clock").problems, [clock]);
    let graph = || of(&survey(&machine, ClockKind::Tsc), "function_graph").clone();
    put(&dir, &format!("{root}/set_graph_function"), "vfs_read\n");
    assert_eq!(
        graph().problems,
        [SourceProblem::GraphTaken {
            functions: "vfs_read".into()
        }]
    );
    put(&dir, "proc/sys/kernel/osrelease", "6.1.0-56-amd64\n");
    assert_eq!(graph().status, SourceStatus::Absent);
    assert_eq!(graph().problems, [SourceProblem::GraphForOne]);
    put(&dir, &format!("{root}/available_tracers"), "function nop\n");
    assert_eq!(
        graph().problems,
        [SourceProblem::NoTracer {
            tracer: "function_graph".into()
        }]
    );
}
