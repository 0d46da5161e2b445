//! An untrusted run does not exhaust the memory, whatever command reads it.

use crate::bombs::BOMBS;
use crate::common;
use crate::reattribute::{copy, fixtures};
use crate::stored;

use common::busy;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use stored::store;

/// The largest memory of the program while it reads such a run, MiB.
const MOST: u64 = 64;
/// The memory of the release build for an ordinary run and its page, MiB. A debug build has larger code, so the test
/// compares with an ordinary run.
const ORDINARY: u64 = 17;
const ORDINARY_PAGE: u64 = 30;

/// Runs the program; returns its exit code, its stderr, and its peak memory in KiB.
fn measured(runs: &Path, args: &[&str]) -> (Option<i32>, String, u64) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .env("JITTERSCOPE_RUNS", runs)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.reopen().unwrap())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.split_whitespace().next()?.parse().ok());
        most = most.max(peak.unwrap_or(0));
        if let Some(ended) = child.try_wait().unwrap() {
            return (ended.code(), fs::read_to_string(said.path()).unwrap(), most);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// The commands on the run in a folder.
fn commands(run: &str) -> [Vec<&str>; 7] {
    [
        vec!["list"],
        vec!["report", run],
        vec!["report", run, "--by", "thread"],
        vec!["report", run, "--stall", "0"],
        vec!["report", run, "--html", "/dev/null"],
        vec!["export", run, "--to", "csv:///dev/null"],
        vec!["export", run, "--to", "hlog:///dev/null"],
    ]
}

/// A run in its own folder, without stored sums: they are computed again.
fn unsummed() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let run = store(&busy(&[0]), dir.path());
    let _ = fs::remove_file(run.join("summary.json"));
    (dir, run)
}

#[test]
fn a_run_from_anywhere_does_not_fill_the_memory() {
    let (dir, run) = unsummed();
    // The memory limit of each command for a hostile run, KiB.
    let allowed = commands(run.to_str().unwrap()).map(|args| {
        let (code, said, ordinary) = measured(dir.path(), &args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        let released = match args.contains(&"--html") {
            true => ORDINARY_PAGE,
            false => ORDINARY,
        };
        ordinary + ((MOST - released) << 10)
    });
    let mut wrong = Vec::new();
    for bomb in BOMBS {
        let (dir, run) = unsummed();
        (bomb.plant)(&run);
        let mut found = false;
        for (args, allowed) in commands(run.to_str().unwrap()).iter().zip(allowed) {
            let (code, said, most) = measured(dir.path(), args);
            found |= code != Some(0) && !bomb.said.is_empty() && said.contains(bomb.said);
            if !matches!(code, Some(0 | 1)) || said.contains("panicked") || most > allowed {
                wrong.push(format!(
                    "{}: {args:?}: {code:?}, {most} KiB of {allowed}: {said}",
                    bomb.name
                ));
            }
        }
        if !found && !bomb.said.is_empty() {
            wrong.push(format!("{}: no command says why it is not read", bomb.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_trace_with_very_many_names_does_not_fill_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    copy(&fixtures("recording/tests/fixtures/spin"), &run);
    let name = run.to_str().unwrap();
    let commands = [
        vec!["report", name, "--reattribute"],
        vec!["report", name, "--stall", "0"],
        vec!["report", name, "--html", "/dev/null"],
        vec!["export", name, "--to", "csv:///dev/null"],
    ];
    let ordinary = commands.clone().map(|args| {
        let (code, said, most) = measured(dir.path(), &args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        most
    });
    let path = run.join("trace/context.json");
    let text = fs::read_to_string(&path).unwrap();
    let many: String = (0..1_000_000).map(|n| format!("\"{n}\":\"a\",")).collect();
    let filled = text.replacen("\"tasks\": {", &format!("\"tasks\": {{{many}"), 1);
    assert_ne!(filled, text);
    fs::write(&path, filled).unwrap();
    for (args, ordinary) in commands.iter().zip(ordinary) {
        let (code, said, most) = measured(dir.path(), args);
        assert!(matches!(code, Some(0 | 1)), "{args:?}: {code:?}: {said}");
        let allowed = ordinary + ((MOST - ORDINARY_PAGE) << 10);
        assert!(most <= allowed, "{args:?}: {most} KiB of {allowed}: {said}");
        if args.contains(&"--reattribute") {
            assert!(said.contains("MiB of memory"), "{said}");
        }
    }
}
