//! Running `experiment`, and whether that is possible here.
#![allow(dead_code, reason = "each test uses its part")]

use jitterscope_testing::is_root;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

pub const STAT_INTERVAL: &str = "/proc/sys/vm/stat_interval";

pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command
        .args(args)
        .env("JITTERSCOPE_RUNS", dir.join("runs"))
        .env("JITTERSCOPE_STATE", dir.join("state"));
    command.stdin(Stdio::null());
    command
}

pub fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn can_experiment() -> bool {
    if !is_root() {
        return false;
    }
    // One check for all tests of a binary.
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(is_possible)
}

fn is_possible() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let doctor = run(dir.path(), &["doctor", "--require", "tracefs"]);
    let two = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    if !doctor.status.success() || !two || !Path::new(STAT_INTERVAL).exists() {
        jitterscope_testing::skip(&format!(
            "tracefs, a second CPU and vm.stat_interval are needed: {}",
            stderr(&doctor)
        ));
        return false;
    }
    true
}

/// Reads the output until a line contains `wanted`.
pub fn said(child: &mut Child, wanted: &str) {
    let lines = BufReader::new(child.stderr.take().unwrap());
    let mut printed = Vec::new();
    for line in lines.lines().map_while(Result::ok) {
        if line.contains(wanted) {
            return;
        }
        printed.push(line);
    }
    panic!("it ended without {wanted:?}: {}", printed.join("\n"));
}

pub fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}
