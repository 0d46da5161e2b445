//! `record --profile`: a limit, a probe and settings from a file, and the verdict in one sentence.

use crate::live::{can_trace, jitterscope, json, stderr, turn};
use jitterscope_model::CpuId;
use jitterscope_platform::{pin_current_thread, set_fifo};
use jitterscope_testing::highest_cpu;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

fn record_with(dir: &Path, limit: &str, options: &str, more: &[&str]) -> Output {
    let file = dir.join("own.toml");
    let text =
        format!("version = 1\ntitle = \"the test's work\"\nlimit = \"{limit}\"\n{options}\n");
    fs::write(&file, text).unwrap();
    let args = ["record", "--profile", file.to_str().unwrap(), "-q"];
    jitterscope(&dir.join("runs"), &[&args[..], more].concat())
}

const UNTRACED: &str = "probe = \"spin\"\n[record]\nduration = \"300ms\"\nno-trace = true";

fn record(dir: &Path, limit: &str, more: &[&str]) -> Output {
    record_with(dir, limit, UNTRACED, more)
}

/// The words of what was printed.
fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_profile_decides_settings_exit_code_and_the_first_sentence() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let held = record(dir.path(), "1h", &[]);
    assert_eq!(held.status.code(), Some(0), "{}", stderr(&held));
    let text = words(&held);
    let first = text.split(" at 95 %.").next().unwrap();
    assert!(
        first.contains(" held the test's work: away for ")
            && first.contains(" at most; none above 3600 s in ")
            && first.contains(": below "),
        "{text}"
    );

    let broken = record(dir.path(), "1ns", &[]);
    assert_eq!(broken.status.code(), Some(3), "{}", stderr(&broken));
    let text = words(&broken);
    assert!(
        text.contains(" does not hold the test's work: ")
            && text.contains("who is unknown: no kernel events were recorded."),
        "{text}"
    );
    // A stored run has the verdict of its recording.
    let again = jitterscope(&dir.path().join("runs"), &["report", "latest", "--full"]);
    assert_eq!(again.status.code(), Some(0));
    assert!(words(&again).contains(" does not hold the test's work: "));
}

/// The report and its part about the profile.
fn verdict(output: &Output) -> (Value, Value) {
    let report = json(output);
    let profile = report["profile"].clone();
    (report, profile)
}

#[test]
fn json_states_the_verdict_and_the_users_own_limit() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let own = record(
        dir.path(),
        "1ns",
        &["-d", "200ms", "--json", "--fail-above", "1h"],
    );
    assert_eq!(own.status.code(), Some(0), "{}", stderr(&own));
    let (report, profile) = verdict(&own);
    assert_eq!(report["run"]["planned_ns"], 200_000_000);
    assert_eq!(profile["verdict"], "kept", "{profile:#}");
    assert_eq!(
        (&profile["limit_ns"], &profile["replaces_ns"]),
        (&3_600_000_000_000u64.into(), &1.into())
    );
    let text = profile["text"].as_str().unwrap();
    assert!(
        text.contains("held the test's work with the limit 3600 s instead of 1 ns"),
        "{text}"
    );
    let worst = &report["worst_case"];
    assert_eq!(worst["longest_ns"], report["probe"]["total"]["max_ns"]);
    assert_eq!(
        worst["exposure_ns"],
        report["probe"]["total"]["measured_ns"]
    );
}

#[test]
fn what_has_no_row_exceeds_the_limit_all_the_same() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let sleeps = "probe = \"wakeup\"\n[record]\nduration = \"300ms\"\nno-trace = true\n\
                  threshold = \"1s\"";
    let junit = dir.path().join("junit.xml");
    let more = ["--json", "--junit", junit.to_str().unwrap()];
    let broken = record_with(dir.path(), "1ns", sleeps, &more);
    assert_eq!(broken.status.code(), Some(3), "{}", stderr(&broken));
    let (_, profile) = verdict(&broken);
    assert_eq!(profile["verdict"], "exceeded", "{profile:#}");
    assert_eq!(profile["above_is_least"], true, "{profile:#}");
    let text = profile["text"].as_str().unwrap();
    assert!(
        text.contains("at least once in ") && text.contains("late by more than 1 ns"),
        "{text}"
    );
    let junit = fs::read_to_string(junit).unwrap();
    assert!(
        junit.contains("failures=\"1\"") && junit.contains("--fail-above 1 ns"),
        "{junit}"
    );

    let held = record_with(dir.path(), "1h", sleeps, &["--json"]);
    let (report, profile) = verdict(&held);
    assert_eq!(held.status.code(), Some(0), "{}", stderr(&held));
    let longest = report["worst_case"]["longest_ns"].as_u64().unwrap();
    let text = profile["text"].as_str().unwrap();
    assert!(longest > 0 && !text.contains(" 0 ns"), "{longest} {text}");
}

#[test]
fn a_score_and_the_hosts_share_are_in_the_verdict_of_a_cloud_vm() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let scored =
        "taken = \"100%\"\nprobe = \"spin\"\n[record]\nduration = \"300ms\"\nno-trace = true";
    let held = record_with(dir.path(), "1h", scored, &["--json"]);
    assert_eq!(held.status.code(), Some(0), "{}", stderr(&held));
    let (_, profile) = verdict(&held);
    assert_eq!(profile["score"], 100.0, "{profile:#}");
    let text = profile["text"].as_str().unwrap();
    assert!(
        text.contains("; stalls took ") && text.contains("(limit 100.0 %); score 100 of 100"),
        "{text}"
    );
    assert_eq!(
        text.contains("the host's share is ") || text.contains("no host had a share"),
        !profile["host_ns"].is_null(),
        "{profile:#}"
    );
}

/// A real-time thread that takes the measured CPU for 60 ms, again and again. Dropping it ends it.
struct Thief(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Thief {
    fn start() -> Thief {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            pin_current_thread(CpuId(highest_cpu())).unwrap();
            set_fifo(3).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(60);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                std::thread::sleep(Duration::from_millis(240));
            }
        });
        Thief(stop, Some(thread))
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().map(JoinHandle::join);
    }
}

#[test]
fn who_breaks_a_limit_is_named() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let thief = Thief::start();
    // As a real-time thread itself, the probe loses its CPU to the thief alone.
    let traced = "probe = \"spin\"\n[record]\nduration = \"3s\"\npriority = 1";
    let broken = record_with(dir.path(), "50ms", traced, &["--cpus", &cpu, "--json"]);
    drop(thief);
    assert_eq!(broken.status.code(), Some(3), "{}", stderr(&broken));
    let (report, profile) = verdict(&broken);
    assert_eq!(profile["verdict"], "exceeded", "{profile:#}");
    let culprits = profile["culprits"].as_array().unwrap();
    let thief = culprits.iter().find(|of| of["tgid"] == std::process::id());
    let thief = thief.unwrap_or_else(|| panic!("{profile:#}"));
    assert_eq!(thief["class"], "real_time", "{profile:#}");
    assert!(thief["count"].as_u64().unwrap() >= 3, "{profile:#}");
    let text = profile["text"].as_str().unwrap();
    assert!(
        text.starts_with(&format!("CPU {cpu} does not hold the test's work: "))
            && text.contains("it was away for more than 50.0 ms, up to ")
            && text.contains(thief["name"].as_str().unwrap()),
        "{text}"
    );
    assert!(report["worst_case"]["longest_ns"].as_u64().unwrap() > 50_000_000);
    // The stored run names it, too, on a page and in Markdown.
    let markdown = dir.path().join("report.md");
    let page = dir.path().join("report.html");
    let runs = dir.path().join("runs");
    for args in [
        ["report", "latest", "--markdown", markdown.to_str().unwrap()],
        ["report", "latest", "--html", page.to_str().unwrap()],
    ] {
        let output = jitterscope(&runs, &args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for file in [markdown, page] {
        let text = fs::read_to_string(&file).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(&format!("CPU {cpu} does not hold the test")),
            "{}",
            file.display()
        );
    }
}

#[test]
fn an_unknown_or_wrong_profile_ends_with_two() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("jitterscope/profiles");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("my-work.toml"), "version = 1\n").unwrap();
    let with_own = |name: &str| {
        std::process::Command::new(env!("CARGO_BIN_EXE_jitterscope"))
            .env("XDG_CONFIG_HOME", dir.path())
            .args(["record", "--profile", name])
            .output()
            .unwrap()
    };
    let unknown = with_own("tradign");
    assert_eq!(unknown.status.code(), Some(2));
    let says = stderr(&unknown)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        says.contains("do you mean trading?")
            && says.contains("there are audio-RATE-FRAMES")
            && says.contains("vran-slot, my-work;"),
        "{says}"
    );
    let rate = with_own("audio-47k-64");
    assert_eq!(rate.status.code(), Some(2));
    assert!(
        stderr(&rate).contains("the rate '47k' is none of"),
        "{}",
        stderr(&rate)
    );
    let list = with_own("list");
    assert_eq!(list.status.code(), Some(0), "{}", stderr(&list));
    let listed = String::from_utf8(list.stdout).unwrap();
    for name in ["audio-RATE-FRAMES ", "servo-RATE ", "trading ", "my-work "] {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "{listed}"
        );
    }
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
    let cpu = highest_cpu();
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
    let (report, profile) = verdict(&held);
    let text = profile["text"].as_str().unwrap();
    assert!(
        text.starts_with(&format!("CPU {cpu} held OpenShift's latency test: ")),
        "{text}"
    );
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
