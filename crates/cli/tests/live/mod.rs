//! What tests on the real machine share.

pub use jitterscope_testing::turn;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_jitterscope"))
}

pub fn jitterscope(runs: &Path, args: &[&str]) -> Output {
    Command::new(program()).env("JITTERSCOPE_RUNS", runs).args(args).stdin(Stdio::null()).output().unwrap()
}

pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", stderr(output)))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Root, and kernel events to be had.
#[allow(dead_code, reason = "each test uses its part")]
pub fn can_trace() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    if uid.split_whitespace().nth(1) != Some("0") {
        eprintln!("skipped: this test needs root");
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let doctor = jitterscope(dir.path(), &["doctor", "--require", "tracefs"]);
    if !doctor.status.success() {
        eprintln!("skipped: {}", stderr(&doctor));
    }
    doctor.status.success()
}
