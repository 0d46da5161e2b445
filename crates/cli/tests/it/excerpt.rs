//! Parts of JSON documents: `--fields`, `--top`, `--since`, `--cursor`.

use crate::readme;
use crate::schema_check::conforms;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn run(runs: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(["--runs", runs.to_str().unwrap()])
        .args(args)
        .output()
        .unwrap()
}

/// The part of a document, which has the form of one.
fn part(runs: &Path, args: &[&str]) -> Value {
    let output = run(runs, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("{\n  \"schema_version\": "), "{text:.60}");
    let value = serde_json::from_str(&text).unwrap();
    conforms("excerpt", &value);
    value
}

#[test]
fn a_part_of_a_report_is_what_the_whole_report_says() {
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    let report = ["report", readme::RUN, "--json"];
    let whole = run(dir.path(), &report);
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    let of = |more: &[&str]| part(dir.path(), &[&report, more].concat());
    let five = of(&["--top", "5"]);
    let all = whole["attribution"]["culprits"].as_array().unwrap();
    assert_eq!(
        five["attribution"]["culprits"].as_array().unwrap()[..],
        all[..5]
    );
    let left = five["left_out"].as_array().unwrap();
    let of_culprits = left
        .iter()
        .find(|of| of["at"] == "/attribution/culprits")
        .unwrap();
    assert_eq!(of_culprits["of"], all.len());
    let rest = of(&["--cursor", of_culprits["cursor"].as_str().unwrap()]);
    assert_eq!(rest["page"].as_array().unwrap()[..], all[5..]);
    let named = of(&["--fields", "run.id,worst.duration_ns"]);
    assert_eq!(named["run"], serde_json::json!({"id": readme::RUN}));
    let shown = |of: &Value| -> Vec<u64> {
        let all = of["worst"].as_array().unwrap();
        all.iter()
            .map(|of| of["duration_ns"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(shown(&named), shown(&whole));
    assert_eq!(named["worst"][0].as_object().unwrap().len(), 1);
    // The run began at 16:13:46 and a half, and lasted ten seconds.
    let since = of(&["--since", "2026-11-22T16:13:52Z"]);
    let moment = 1_795_364_032_000_000_000;
    let is_later = |of: &&Value| of["start_realtime_ns"].as_u64().unwrap() >= moment;
    let later = whole["worst"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_later)
        .count();
    assert_eq!(since["worst"].as_array().unwrap().len(), later);
    assert!((1..10).contains(&later), "{later}");
    assert_eq!(since["attribution"], whole["attribution"]);
    let stall = part(
        dir.path(),
        &[
            "report",
            readme::RUN,
            "--worst",
            "1",
            "--json",
            "--fields",
            "stall.rank",
        ],
    );
    assert_eq!(stall["stall"], serde_json::json!({"rank": 1}));
}

#[test]
fn a_list_in_part_begins_with_the_newest_run() {
    let dir = tempfile::tempdir().unwrap();
    let first = readme::copied(dir.path(), readme::RUN);
    let second = dir.path().join("20261122T161346Z-spin-c8z5j9");
    std::fs::create_dir(&second).unwrap();
    for file in std::fs::read_dir(&first).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), second.join(file.file_name())).unwrap();
    }
    let manifest = second.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("c8z5j8", "c8z5j9")).unwrap();
    let top = part(dir.path(), &["list", "--json", "--top", "1"]);
    let runs = top["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &top["left_out"][0]["of"]), (1, &2.into()));
    let next = part(dir.path(), &["list", "--json", "--cursor", "/runs@1"]);
    assert_ne!(next["page"][0]["id"], runs[0]["id"]);
    for (since, count) in [("2026-11-22T16:13:00Z", 2), ("2026-11-23", 0)] {
        let since = if since.len() == 10 {
            format!("{since}T00:00:00Z")
        } else {
            since.to_owned()
        };
        let output = run(dir.path(), &["list", "--json", "--since", &since]);
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        conforms("list", &list);
        assert_eq!(list["runs"].as_array().unwrap().len(), count);
    }
}

#[test]
fn wrong_parts_are_wrong_arguments() {
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    for (args, says) in [
        (
            &["report", readme::RUN, "--json", "--fields", "wrost"][..],
            "did you mean worst?",
        ),
        (
            &["report", readme::RUN, "--json", "--cursor", "/nothing@0"],
            "no such list",
        ),
        (&["report", readme::RUN, "--top", "3"], "--json"),
        (&["report", readme::RUN, "--since", "16:13:50"], "--json"),
        (
            &["report", readme::RUN, "--json", "--since", "03:00"],
            "no such time of day",
        ),
        (&["list", "--fields", "runs.id"], "--json"),
        (&["list", "--json", "--top", "0"], "0 is not in"),
        (
            &[
                "diff",
                readme::RUN,
                "latest",
                "--since",
                "2026-11-23T00:00:00Z",
            ],
            "no run of c8z5j8 began",
        ),
    ] {
        let output = run(dir.path(), args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}
