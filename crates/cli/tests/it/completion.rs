//! Shell completion.

use crate::live;

use live::{jitterscope, json, program, stderr, turn};
use std::path::Path;
use std::process::Command;

/// The candidates for the last word.
fn offered(runs: &Path, line: &[&str]) -> Vec<String> {
    let output = Command::new(program())
        .arg("--")
        .args(line)
        .env("JITTERSCOPE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", (line.len() - 1).to_string())
        .env("_CLAP_IFS", "\n")
        .env("JITTERSCOPE_RUNS", runs)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn runs_labels_cpus_and_probes_are_offered() {
    let _turn = turn();
    let runs = tempfile::tempdir().unwrap();
    let record = [
        "record",
        "-d",
        "100ms",
        "--warmup",
        "10ms",
        "--no-trace",
        "-q",
        "-l",
        "BASELINE",
    ];
    let output = jitterscope(runs.path(), &record);
    assert!(output.status.success(), "{}", stderr(&output));
    let list = json(&jitterscope(runs.path(), &["list", "--json"]));
    let id = list["runs"][0]["id"].as_str().unwrap().to_owned();
    for line in [
        &["jitterscope", "report", ""][..],
        &["jitterscope", "diff", ""],
        &["jitterscope", "audit", "--run", ""],
    ] {
        let found = offered(runs.path(), line);
        for wanted in [id.as_str(), "BASELINE", "latest"] {
            assert!(
                found.iter().any(|one| one == wanted),
                "{line:?}: {wanted} is not in {found:?}"
            );
        }
    }
    assert_eq!(
        offered(runs.path(), &["jitterscope", "report", "BAS"]),
        ["BASELINE"]
    );
    let cpus = offered(runs.path(), &["jitterscope", "record", "--cpus", ""]);
    assert!(
        cpus.contains(&"0".to_owned()) && cpus.contains(&"all".to_owned()),
        "{cpus:?}"
    );
    let further = offered(runs.path(), &["jitterscope", "record", "--cpus", "0,"]);
    assert!(
        further
            .iter()
            .all(|one| one.starts_with("0,") && one != "0,0"),
        "{further:?}"
    );
    let highest = cpus
        .iter()
        .filter_map(|cpu| cpu.parse::<u32>().ok())
        .max()
        .unwrap();
    assert!(
        highest == 0 || further.contains(&format!("0,{highest}")),
        "{further:?}"
    );
    for line in [
        &["jitterscope", "record", "-l", ""][..],
        &["jitterscope", "runs", "prune", "--label", ""],
    ] {
        assert!(
            offered(runs.path(), line).contains(&"BASELINE".to_owned()),
            "{line:?}"
        );
    }
    let probes = offered(runs.path(), &["jitterscope", "record", "w"]);
    assert_eq!(probes, ["wakeup"]);

    // A run from elsewhere has a name that a shell would execute.
    let run = std::fs::read_dir(runs.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let head = run.join("manifest.json");
    let text = std::fs::read_to_string(&head).unwrap();
    std::fs::write(&head, text.replace("BASELINE", "$(id)")).unwrap();
    let list = json(&jitterscope(runs.path(), &["list", "--json"]));
    assert_eq!(list["runs"][0]["label"], "$(id)", "else nothing was tried");
    let mut found = offered(runs.path(), &["jitterscope", "report", ""]);
    found.retain(|one| !one.starts_with("--"));
    assert_eq!(found, ["latest"]);
}

#[test]
fn each_shell_has_a_script_that_asks_this_program() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = jitterscope(dir.path(), &["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && script.contains("JITTERSCOPE_COMPLETE"),
            "{shell}: {script}"
        );
    }
}
