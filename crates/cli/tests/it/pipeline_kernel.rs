//! `record pipeline` with the kernel in the way of its messages or of its journal.

use crate::live;
use crate::schema_check::conforms;

use jitterscope_testing::Tmpfs;
use live::{can_trace, jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// A short recording; the machine may be smaller than the pipeline needs.
fn record(dir: &Path, args: &[&str]) -> Output {
    let short = [
        "record", "pipeline", "--force", "--warmup", "100ms", "--pause", "10ms", "--period",
        "100us", "--json", "-q",
    ];
    jitterscope(dir, &[&short, args].concat())
}

/// The run of a recording that must succeed.
fn recorded(dir: &Path, args: &[&str]) -> Value {
    let output = record(dir, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let value = json(&output);
    conforms("report", &value);
    value
}

#[test]
fn messages_travel_through_the_kernel_and_who_holds_them_up_is_named() {
    let _turn = turn();
    for via in ["loopback", "unix", "veth"] {
        let dir = tempfile::tempdir().unwrap();
        let run = recorded(
            dir.path(),
            &["--two-thread", "--messages", "5000", "--via", via],
        );
        let pipeline = &run["pipeline"];
        assert_eq!(pipeline["setup"]["via"], via);
        let room = pipeline["setup"]["ring"].as_u64().unwrap();
        assert!((1..=16384).contains(&room), "{via}: {room}");
        let consumer = &pipeline["consumers"][0];
        for count in [&consumer["received"], &consumer["transit"]["count"]] {
            assert_eq!(count, 5000, "{via}: {}", run["warnings"]);
        }
        assert_eq!(consumer["disordered"], 0, "{via}");
        // A system call takes longer than a cache line.
        assert!(
            consumer["transit"]["min_ns"].as_u64().unwrap() > 300,
            "{via}"
        );
        assert_eq!(run["trust"]["inconsistent_rows"], 0, "{via}");
        if can_trace() {
            let blamed = pipeline["blame"].as_array().unwrap();
            let phases = blamed.iter().flat_map(|of| of["rows"].as_array().unwrap());
            let phases: Vec<&str> = phases.filter_map(|row| row["phase"].as_str()).collect();
            assert!(phases.contains(&"delivery"), "{via}: {phases:?}");
            // A replay splits them alike.
            let id = run["run"]["id"].as_str().unwrap();
            let again = jitterscope(dir.path(), &["report", id, "--reattribute", "--json"]);
            assert_eq!(
                json(&again)["pipeline"]["blame"],
                pipeline["blame"],
                "{via}"
            );
        }
    }
}

#[test]
fn two_consumers_have_a_path_each() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let run = recorded(dir.path(), &["--messages", "2000", "--via", "loopback"]);
    let consumers = run["pipeline"]["consumers"].as_array().unwrap();
    assert_eq!(consumers.len(), 2);
    for consumer in consumers {
        assert_eq!(consumer["received"], 2000, "{}", run["warnings"]);
    }
    assert_eq!(run["pipeline"]["journal"]["written"], 2000);
    let text = jitterscope(dir.path(), &["report", "--full"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("over the loopback device"), "{text}");
}

#[test]
fn a_record_that_no_datagram_holds_is_refused() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--two-thread",
        "--message-size",
        "100000",
        "--via",
        "loopback",
    ];
    let refused = record(dir.path(), &args);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("does not fit a datagram"));
}

#[test]
fn a_journal_in_the_page_cache_has_every_record() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let named = dir.path().join("own.jnl");
    let own = format!("page-cache:{}", named.display());
    for journal in ["page-cache", &own] {
        let run = recorded(dir.path(), &["--messages", "3000", "--journal", journal]);
        let pipeline = &run["pipeline"];
        assert_eq!(pipeline["setup"]["journal"], "page_cache");
        assert_eq!(
            pipeline["journal"]["written"], 3000,
            "{}",
            pipeline["journal"]
        );
        let file = named.to_str().unwrap();
        let id = run["run"]["id"].as_str().unwrap();
        let of = if named.exists() { file } else { id };
        let read = jitterscope(dir.path(), &["journal", of, "--json", "--limit", "0"]);
        let summary = &json(&read)["summary"];
        assert_eq!(
            (&summary["records"], &summary["damage"]),
            (&3000.into(), &Value::Null)
        );
    }
    assert_eq!(std::fs::metadata(&named).unwrap().len(), 3000 * 32);
}

#[test]
fn a_full_disk_ends_a_journal_in_the_page_cache() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(64 << 10) else {
        return;
    };
    let journal = format!("page-cache:{}", disk.path().join("j").display());
    let output = record(dir.path(), &["--duration", "1h", "--journal", &journal]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("journal ended"),
        "{}",
        stderr(&output)
    );
    let journal = &json(&output)["pipeline"]["journal"];
    assert_eq!(journal["ended"]["disk_full"], true, "{journal}");
    assert_eq!(journal["written"], (64 << 10) / 32, "{journal}");
}
