//! `record --profile`: a limit, a probe and settings from a file, and the verdict in one sentence.

use crate::live::{jitterscope, json, stderr, turn};
use std::fs;
use std::path::Path;
use std::process::Output;

fn record(dir: &Path, limit: &str, more: &[&str]) -> Output {
    let file = dir.join("own.toml");
    let text = format!(
        "version = 1\ntitle = \"the test's work\"\nlimit = \"{limit}\"\nprobe = \"spin\"\n\n[record]\n\
         duration = \"300ms\"\nno-trace = true\n"
    );
    fs::write(&file, text).unwrap();
    let args = ["record", "--profile", file.to_str().unwrap(), "-q"];
    jitterscope(&dir.join("runs"), &[&args[..], more].concat())
}

#[test]
fn a_profile_decides_settings_exit_code_and_the_first_sentence() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let held = record(dir.path(), "1h", &[]);
    assert_eq!(held.status.code(), Some(0), "{}", stderr(&held));
    let text = String::from_utf8(held.stdout).unwrap();
    let first = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        first.contains(" held the test's work for ")
            && first.contains(": never away for more than 3600 s, at most "),
        "{text}"
    );
    assert!(first.contains("with 95 % confidence less than "), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );

    let broken = record(dir.path(), "1ns", &[]);
    assert_eq!(broken.status.code(), Some(3), "{}", stderr(&broken));
    let text = String::from_utf8(broken.stdout).unwrap();
    let first = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        first.contains(" does not hold the test's work: ")
            && first.contains("who is unknown: no kernel events were recorded."),
        "{text}"
    );
    // The user's own length, and JSON alone on stdout.
    let own = record(dir.path(), "1h", &["-d", "200ms", "--json"]);
    let report = json(&own);
    let measured = report["run"]["duration_ns"].as_u64().unwrap();
    assert!((190_000_000..290_000_000).contains(&measured), "{measured}");
    assert!(
        stderr(&own).contains("held the test's work"),
        "{}",
        stderr(&own)
    );
}

#[test]
fn an_unknown_or_wrong_profile_ends_with_two() {
    let dir = tempfile::tempdir().unwrap();
    let unknown = jitterscope(dir.path(), &["record", "--profile", "servo"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        stderr(&unknown).contains("there are audio-48k-256"),
        "{}",
        stderr(&unknown)
    );
    let wrong = record(dir.path(), "50", &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("line 3: limit: '50' has no unit"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn openshifts_variables_set_limit_length_and_cpus() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let cpu = jitterscope_testing::highest_cpu();
    let recorded = |variables: &[(&str, &str)]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_jitterscope"))
            .arg("--runs")
            .arg(dir.path())
            .args(["record", "--profile", "openshift-latency", "--json", "-q"])
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    };
    let held = recorded(&[
        ("MAXIMUM_LATENCY", "3600000000"),
        ("LATENCY_TEST_RUNTIME", "1"),
        ("LATENCY_TEST_CPUS", "1"),
    ]);
    assert_eq!(held.status.code(), Some(0), "{}", stderr(&held));
    assert!(
        stderr(&held).contains(&format!("CPU {cpu} held OpenShift's latency test for ")),
        "{}",
        stderr(&held)
    );
    let report = json(&held);
    let measured = report["run"]["duration_ns"].as_u64().unwrap();
    assert!(
        (100_000_000..10_000_000_000).contains(&measured),
        "{measured}"
    );
    let wrong = recorded(&[("MAXIMUM_LATENCY", "20us")]);
    assert_eq!(wrong.status.code(), Some(2));
    let says = "limit: cannot be set: MAXIMUM_LATENCY=20us is no whole number";
    assert!(stderr(&wrong).contains(says), "{}", stderr(&wrong));
}
