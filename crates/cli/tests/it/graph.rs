//! `record --graph` on this machine: it reports what it lacks, and leaves nothing behind. A guest tests its results
//! (`cargo xtask lab --only graph`).

use crate::live;

use jitterscope_testing::tracefs;
use live::{can_trace, jitterscope, json, stderr, turn};
use std::fs;

fn chosen() -> Option<String> {
    fs::read_to_string(tracefs()?.join("set_graph_function")).ok()
}

fn instances() -> usize {
    let folder = tracefs().and_then(|root| fs::read_dir(root.join("instances")).ok());
    folder.map_or(0, |all| all.flatten().count())
}

#[test]
fn what_the_kernel_cannot_look_into_is_refused_as_doctor_says() {
    if !can_trace() {
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let doctor = json(&jitterscope(dir.path(), &["doctor", "--json"]));
    let sources = doctor["sources"].as_array().unwrap();
    let graph = sources
        .iter()
        .find(|source| source["name"] == "function_graph")
        .unwrap();
    let before = (chosen(), instances());
    let args = [
        "record",
        "-q",
        "-d",
        "1s",
        "--graph",
        "no_function_of_any_kernel",
        "--json",
    ];
    let output = jitterscope(dir.path(), &args);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let why = if graph["status"] == "available" {
        "no_function_of_any_kernel"
    } else {
        "function_graph"
    };
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
    assert!(output.stdout.is_empty(), "there is no run to show");
    let runs = fs::read_dir(dir.path()).map_or(0, |runs| runs.flatten().count());
    assert_eq!(runs, 0, "nor to keep");
    assert_eq!((chosen(), instances()), before);
}

#[test]
fn a_graph_needs_a_probe_and_kernel_events() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["record", "none", "--graph", "vmstat_update", "-d", "1s"][..],
        &[
            "record",
            "--graph",
            "vmstat_update",
            "--no-trace",
            "-d",
            "1s",
        ],
    ] {
        let output = jitterscope(dir.path(), args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
