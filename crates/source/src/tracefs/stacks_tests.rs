use super::fake::Fake;
use super::*;
use jitterscope_model::{SourceProblem, SourceStatus, TracefsFlaw};

const OPTION: &str = "/sys/kernel/tracing/options/stacktrace";
const FORMAT: &str = "/sys/kernel/tracing/events/ftrace/kernel_stack/format";

fn settings(children: bool) -> StackSettings {
    StackSettings {
        cpus: "0-3".parse().unwrap(),
        clock: ClockKind::Tsc,
        buffer_kb_per_cpu: 1024,
        children,
    }
}

fn with_stacks() -> Fake {
    let fake = Fake::new();
    fake.put(OPTION, "0\n");
    fake.put(FORMAT, "name: kernel_stack\nID: 4\nformat:\n");
    fake
}

#[test]
fn nothing_is_recorded_before_a_thread_is_followed_and_only_sleeps_after_that() {
    let fake = with_stacks();
    let mut stacks = SleepStacks::start(&fake.open(), &settings(true)).unwrap();
    let step = |wanted: &str| fake.log().iter().position(|step| step == wanted);
    let enabled = step("stacks/events/sched/sched_switch/enable=1").unwrap();
    for before in [
        "stacks/trace_clock=x86-tsc",
        "stacks/options/stacktrace=1",
        "stacks/options/event-fork=1",
        "stacks/events/sched/sched_switch/filter=prev_state & 195",
    ] {
        assert!(
            step(before).unwrap() < enabled,
            "{before}: {:#?}",
            fake.log()
        );
    }
    assert_eq!(step("stacks/tracing_on=1"), None);
    // The kernel would take an empty list for all threads.
    stacks.follow(&[]).unwrap();
    assert_eq!(step("stacks/tracing_on=1"), None);
    stacks.follow(&[7, 8]).unwrap();
    let listed = step("stacks/set_event_pid=7 8 ").unwrap();
    assert!(listed < step("stacks/tracing_on=1").unwrap());
    assert_eq!(stacks.report().status, SourceStatus::Available);
    drop(stacks);
    assert!(fake.instances().is_empty());
}

#[test]
fn many_threads_are_handed_over_in_lists_that_the_kernel_takes() {
    let fake = with_stacks();
    let mut stacks = SleepStacks::start(&fake.open(), &settings(false)).unwrap();
    let threads: Vec<i32> = (1..=2000).collect();
    stacks.follow(&threads).unwrap();
    let log = fake.log();
    let lists: Vec<&str> = log
        .iter()
        .filter_map(|step| step.strip_prefix("stacks/set_event_pid="))
        .collect();
    assert!(lists.len() > 1 && lists.iter().all(|list| list.len() < 4096));
    let listed: Vec<i32> = lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .map(|tid| tid.parse().unwrap())
        .collect();
    assert_eq!(listed, threads);
    assert!(!log.iter().any(|step| step.contains("event-fork")));
}

#[test]
fn a_kernel_without_stacks_is_reported_and_nothing_is_left() {
    let fake = Fake::new();
    let error = SleepStacks::start(&fake.open(), &settings(false)).unwrap_err();
    let report = SleepStacks::refused(&error);
    assert_eq!(report.status, SourceStatus::Absent);
    let file = "events/ftrace/kernel_stack/format".into();
    let flaw = TracefsFlaw::Missing { file };
    assert_eq!(report.problems, [SourceProblem::TracefsUnusable { flaw }]);
    fake.put(FORMAT, "name: kernel_stack\n");
    fake.put("/sys/kernel/tracing/options/overwrite", "1\n");
    assert!(stack_support(&fake.open()).is_err());
    fake.put(OPTION, "0\n");
    assert!(stack_support(&fake.open()).is_ok());
    assert!(fake.log().is_empty() && fake.instances().is_empty());
}
