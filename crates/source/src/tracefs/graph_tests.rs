use super::fake::{Fake, START};
use super::*;
use jitterscope_model::{SourceProblem, SourceStatus};
use rustix::io::Errno;
use std::sync::Arc;

const CHOSEN: &str = "/sys/kernel/tracing/set_graph_function";

fn settings(functions: &[&str]) -> GraphSettings {
    GraphSettings {
        measured: "1".parse().unwrap(),
        clock: ClockKind::Tsc,
        buffer_kb_per_cpu: 1024,
        functions: functions.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn what_was_asked_for_is_looked_into_and_all_is_put_back() {
    let fake = Fake::new();
    let wanted = settings(&["vmstat_update", "process_one_work"]);
    let mut graph = CallGraph::start(&fake.open(), &wanted, "__set_task_comm").unwrap();
    graph.begin().unwrap();
    let log = fake.log();
    let at = |step: &str| {
        log.iter()
            .position(|s| s == step)
            .unwrap_or_else(|| panic!("{step} in {log:#?}"))
    };
    // First the function for measuring the overhead, everywhere; then the requested function, on its CPUs.
    assert!(at("graph/trace_clock=x86-tsc") < at("graph/current_tracer=function_graph"));
    assert!(at(&format!("{CHOSEN}=__set_task_comm\n")) < at("graph/current_tracer=function_graph"));
    assert!(at("graph/tracing_cpumask=f") < at("graph/tracing_on=1"));
    let emptied = at(&format!("empty {CHOSEN}"));
    assert!(
        at("graph/tracing_on=1") < emptied && emptied < at(&format!("{CHOSEN}=vmstat_update\n"))
    );
    at(&format!("{CHOSEN}=process_one_work\n"));
    let narrowed = log
        .iter()
        .rposition(|step| step == "graph/tracing_cpumask=2")
        .unwrap();
    assert!(emptied < narrowed && narrowed < at("empty graph/trace"));
    assert_eq!(graph.functions(), ["vmstat_update", "process_one_work"]);
    assert_eq!(graph.report().status, SourceStatus::Available);
    drop(graph);
    assert!(fake.instances().is_empty());
    let log = fake.log();
    let last: Vec<&str> = log.iter().rev().take(4).rev().map(String::as_str).collect();
    let emptied = format!("empty {CHOSEN}");
    assert_eq!(
        last,
        [
            "graph/current_tracer=nop",
            &emptied,
            "graph/tracing_on=0",
            "rmdir graph"
        ]
    );
}

#[test]
fn what_a_killed_recording_chose_is_forgotten_with_its_instance() {
    let fake = Fake::new();
    fake.put(CHOSEN, "vmstat_update\n");
    fake.left("jitterscope-99999-1-graph");
    fake.left("jitterscope-99999-1-local");
    let (removed, kept) = fake.open().clean_leftovers();
    assert_eq!((removed.len(), kept.len()), (2, 0));
    assert_eq!(fake.machine().read(CHOSEN).unwrap(), "");
    // Without such an instance the list belongs to another process.
    fake.put(CHOSEN, "vfs_read\n");
    fake.left("jitterscope-99999-1-local");
    assert_eq!(fake.open().clean_leftovers().0.len(), 1);
    assert_eq!(fake.machine().read(CHOSEN).unwrap(), "vfs_read\n");
    assert_eq!(START, 4242);
}

#[test]
fn an_unavailable_source_is_reported_and_nothing_is_left() {
    let fake = Fake::new();
    fake.put(CHOSEN, "vfs_read\n");
    let error =
        CallGraph::start(&fake.open(), &settings(&["vmstat_update"]), "vmstat_update").unwrap_err();
    assert!(
        matches!(&error, TraceError::GraphTaken { functions } if functions == "vfs_read"),
        "{error}"
    );
    assert_eq!(
        fake.machine().read(CHOSEN).unwrap(),
        "vfs_read\n",
        "it is not ours"
    );
    assert!(
        fake.log().is_empty(),
        "nothing was touched: {:?}",
        fake.log()
    );

    let mut fake = Fake::new();
    Arc::get_mut(&mut fake.writer).unwrap().graph_in_instances = false;
    fake.put("/proc/sys/kernel/osrelease", "6.1.0-56-amd64\n");
    let error =
        CallGraph::start(&fake.open(), &settings(&["vmstat_update"]), "vmstat_update").unwrap_err();
    assert!(matches!(error, TraceError::GraphForOne), "{error}");
    assert_eq!(error.problem(), SourceProblem::GraphForOne);
    assert!(fake.instances().is_empty());

    let fake = Fake::new();
    fake.refuse(&format!("{CHOSEN}=vmstat"), Errno::INVAL);
    let mut graph = CallGraph::start(
        &fake.open(),
        &settings(&["vmstat_update"]),
        "__set_task_comm",
    )
    .unwrap();
    assert!(graph.begin().is_err());
    drop(graph);
    assert!(fake.instances().is_empty());
    assert_eq!(fake.machine().read(CHOSEN).unwrap(), "");
}

#[test]
fn a_culprit_stands_for_where_the_kernel_begins_to_work() {
    let fake = Fake::new();
    let of = |names: &[&str]| {
        graph_functions(
            &fake.open(),
            &names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    // Only those that this kernel has.
    assert_eq!(
        of(&["culprit"]).unwrap(),
        ["process_one_work", "handle_softirqs"]
    );
    assert_eq!(
        of(&["modular", "vmstat_update"]).unwrap(),
        ["modular", "vmstat_update"]
    );
    let error = of(&["vmstat_update", "inlined"]).unwrap_err();
    assert_eq!(
        error.problem(),
        SourceProblem::NoFunction {
            function: "inlined".into()
        }
    );
}
