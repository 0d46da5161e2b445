//! `experiment --manual`: a change that a person makes, here a knob that the test sets.

use crate::experiments::{STAT_INTERVAL, can_experiment, run, stderr};
use crate::schema_check::conforms;

use jitterscope_testing::turn;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

const ASKED: [&str; 10] = [
    "experiment",
    "--manual",
    "statistics less often",
    "--cpus",
    "1",
    "-d",
    "100ms",
    "--json",
    "-q",
    "--removes=vmstat_update",
];

/// Restores a setting of the machine.
struct Restored(String);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = fs::write(STAT_INTERVAL, &self.0);
    }
}

fn tried(dir: &Path, more: &[&str]) -> Output {
    run(dir, &[&ASKED[..], more].concat())
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", stderr(output)))
}

#[test]
fn the_user_makes_the_change_and_everything_else_must_be_equal() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let early = tried(dir.path(), &["--changed"]);
    assert_eq!(early.status.code(), Some(2), "{}", stderr(&early));
    assert!(stderr(&early).contains("no runs without the change"));
    let without = tried(dir.path(), &[]);
    assert!(without.status.success(), "{}", stderr(&without));
    let without = json(&without);
    conforms("experiment-across-reboot", &without);
    assert_eq!(without["ended"], "awaits_reboot", "{without}");
    assert!(
        without["next"][0]
            .as_str()
            .unwrap()
            .contains("statistics less often")
    );

    let before = fs::read_to_string(STAT_INTERVAL).unwrap();
    let _restored = Restored(before.clone());
    fs::write(STAT_INTERVAL, "7\n").unwrap();
    let refused = tried(dir.path(), &["--changed"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let message = stderr(&refused);
    let named = message
        .lines()
        .find(|line| line.contains("vmstat"))
        .unwrap_or(&message);
    assert!(named.contains("and is") && named.contains('7'), "{message}");

    let with = tried(dir.path(), &["--changed", "--changes", "*vmstat*"]);
    let found = json(&with);
    conforms("experiment-across-reboot", &found);
    assert_eq!(found["ended"], "last_look", "{}", stderr(&with));
    assert_eq!(found["across_reboot"], true);
    assert_eq!(
        fs::read_to_string(STAT_INTERVAL).unwrap().trim(),
        "7",
        "the user's change stays"
    );
}
