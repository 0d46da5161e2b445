//! A run that fails its own proof says so wherever culprits would be named.

use crate::common;

use crate::stored;

use common::busy;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use stored::store;

fn jitterscope(runs: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .arg("--runs")
        .arg(runs)
        .args(args)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Two runs, one of which passes its proof.
fn runs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (label, inside) in [("SOUND", 39_222), ("DOUBTED", 7_844)] {
        let mut run = busy(&[0, 1]);
        run.manifest.label = label.into();
        run.manifest.events_in_gaps.inside = inside;
        store(&run, dir.path());
    }
    dir
}

const WHY: &str = "only 19.9 % of 39,222 kernel events fell into stalls";

#[test]
fn no_setting_is_planned_or_applied_from_it() {
    let runs = runs();
    let root = tempfile::tempdir().unwrap();
    let online = root.path().join("sys/devices/system/cpu/online");
    std::fs::create_dir_all(online.parent().unwrap()).unwrap();
    std::fs::write(&online, "0-3\n").unwrap();
    let root = root.path().to_str().unwrap();
    let state = runs.path().join("state");
    let state = ["--state-dir", state.to_str().unwrap()];
    for (run, refused) in [("DOUBTED", true), ("SOUND", false)] {
        for (verb, more) in [("plan", [].as_slice()), ("apply", state.as_slice())] {
            let args = [
                &["tune", verb, "--run", run, "--cpus", "1", "--root", root],
                more,
            ]
            .concat();
            let output = jitterscope(runs.path(), &args);
            let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
            assert_eq!(
                said.contains("names no culprits to act upon"),
                refused,
                "{args:?}: {said}"
            );
            assert_eq!(said.contains(WHY), refused, "{args:?}: {said}");
            if refused {
                assert_eq!(output.status.code(), Some(4), "{args:?}: {said}");
                assert!(output.stdout.is_empty(), "{args:?}");
            }
        }
    }
}

#[test]
fn every_view_of_it_says_so_and_names_nobody() {
    let dir = runs();
    let runs = dir.path();
    for (run, doubted) in [("DOUBTED", true), ("SOUND", false)] {
        for args in [["report", run].as_slice(), &["report", run, "--full"]] {
            let printed = text(&jitterscope(runs, args)).replace('\n', " ");
            assert_eq!(
                printed.contains("The culprits are unknown"),
                doubted,
                "{printed}"
            );
        }
        let stall = text(&jitterscope(runs, &["report", run, "--worst", "1"])).replace('\n', " ");
        assert_eq!(
            stall.contains("The culprits are unknown"),
            doubted,
            "{stall}"
        );
        let report: Value =
            serde_json::from_str(&text(&jitterscope(runs, &["report", run, "--json"]))).unwrap();
        assert_eq!(report["attribution"]["proven"], !doubted);
        assert_eq!(
            report["trust"]["doubts"].as_array().unwrap().len(),
            usize::from(doubted)
        );

        let page = runs.join(format!("{run}.html"));
        text(&jitterscope(
            runs,
            &["report", run, "--html", page.to_str().unwrap()],
        ));
        let page = std::fs::read_to_string(&page).unwrap();
        // In the verdict, above the culprits, and above the worst stalls.
        assert_eq!(
            page.matches("The culprits are unknown").count(),
            if doubted { 3 } else { 0 }
        );
        let worst = &page[page.find("id=\"worst\"").unwrap()..page.find("id=\"periods\"").unwrap()];
        assert_eq!(worst.contains("late interrupt"), !doubted, "{worst}");

        for (chart, names) in [
            ("culprits", true),
            ("outliers", true),
            ("percentiles", false),
        ] {
            let file = runs.join(format!("{run}-{chart}.svg"));
            text(&jitterscope(
                runs,
                &[
                    "report",
                    run,
                    "--chart",
                    chart,
                    "--out",
                    file.to_str().unwrap(),
                ],
            ));
            let svg = std::fs::read_to_string(&file).unwrap();
            assert_eq!(
                svg.contains("UNPROVEN CULPRITS"),
                doubted && names,
                "{chart} of {run}"
            );
        }
    }
}

#[test]
fn a_comparison_with_it_compares_no_culprits() {
    let runs = runs();
    let diff = text(&jitterscope(runs.path(), &["diff", "SOUND", "DOUBTED"])).replace("\n", " ");
    let words: Vec<&str> = diff.split_whitespace().collect();
    let diff = words.join(" ");
    assert!(
        diff.contains("B: the culprits are unknown for run"),
        "{diff}"
    );
    assert!(
        diff.contains(WHY) && diff.contains("No culprits are named"),
        "{diff}"
    );
    let diff: Value = serde_json::from_str(&text(&jitterscope(
        runs.path(),
        &["diff", "SOUND", "DOUBTED", "--json"],
    )))
    .unwrap();
    let doubts = |side: usize| {
        diff["sides"][side]["runs"][0]["doubts"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((doubts(0), doubts(1)), (0, 1));
    assert_eq!(diff["against"][0]["culprits"], Value::Null);
}

#[test]
fn exports_or_the_command_report_a_doubt() {
    let dir = runs();
    let runs = dir.path();
    for (run, doubted) in [("DOUBTED", true), ("SOUND", false)] {
        let file = |name: &str| runs.join(format!("{run}.{name}")).display().to_string();
        let targets = [
            format!("json://{}", file("jsonl")),
            format!("csv://{}", file("csv")),
        ];
        let to: Vec<&str> = targets
            .iter()
            .flat_map(|target| ["--to", target.as_str()])
            .collect();
        let output = jitterscope(runs, &[&["export", run], to.as_slice()].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.contains("says of culprits does not hold") && said.contains(WHY),
            doubted,
            "{said}"
        );
        let lines = std::fs::read_to_string(file("jsonl")).unwrap();
        let end: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(
            end["doubts"].as_array().unwrap().len(),
            usize::from(doubted),
            "{end}"
        );
    }
}
