//! Helpers for tests on the real machine.

pub use jitterscope_testing::turn;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A process that ends with its test.
#[allow(dead_code, reason = "each test uses its part")]
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_jitterscope"))
}

pub fn jitterscope(runs: &Path, args: &[&str]) -> Output {
    Command::new(program())
        .env("JITTERSCOPE_RUNS", runs)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", stderr(output)))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until a recorder's probe spins and its warm-up is over: on a busy machine it takes a while to start.
#[allow(dead_code, reason = "each test uses its part")]
pub fn until_it_measures(recorder: u32) {
    let tasks = format!("/proc/{recorder}/task");
    let spins = || {
        fs::read_dir(&tasks)
            .into_iter()
            .flatten()
            .flatten()
            .any(|task| {
                fs::read_to_string(task.path().join("comm"))
                    .is_ok_and(|name| name.starts_with("js-spin/"))
            })
    };
    let until = Instant::now() + Duration::from_secs(20);
    while !spins() {
        assert!(Instant::now() < until, "no probe was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1500));
}

/// Whether this is root, with kernel events.
#[allow(dead_code, reason = "each test uses its part")]
pub fn can_trace() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let uid = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .unwrap();
    if uid.split_whitespace().nth(1) != Some("0") {
        jitterscope_testing::skip("this test needs root");
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let doctor = jitterscope(dir.path(), &["doctor", "--require", "tracefs"]);
    if !doctor.status.success() {
        jitterscope_testing::skip(&stderr(&doctor));
    }
    doctor.status.success()
}
