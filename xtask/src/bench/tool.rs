//! Recordings of the program that users get, and their reports.

use crate::{program, shell};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often a program's memory is sampled.
const LOOK: Duration = Duration::from_millis(3);

/// Peak memory of a process so far, KiB.
fn peak_kib(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// CPUs that this process may use, ascending.
pub(super) fn allowed_cpus() -> anyhow::Result<Vec<usize>> {
    let allowed =
        rustix::thread::sched_getaffinity(None).context("the affinity mask cannot be read")?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect())
}

/// The highest of them, on which both the load and the recording run.
pub(super) fn highest_cpu() -> anyhow::Result<usize> {
    allowed_cpus()?.last().copied().context("no CPU is allowed")
}

/// A folder for runs, removed when dropped.
pub(super) struct Runs(PathBuf);

impl Runs {
    pub(super) fn new(name: &str) -> anyhow::Result<Runs> {
        shell::run(
            "cargo",
            &[
                "build",
                "--quiet",
                "--profile",
                program::SHIPPED,
                "--locked",
                "-p",
                "jitterscope",
            ],
        )?;
        Ok(Runs(shell::root().join("target").join(name)))
    }

    pub(super) fn record(&self, args: &[&str]) -> anyhow::Result<Value> {
        let runs = self.0.to_string_lossy();
        let program = self.program();
        let args = [&["record", "--quiet", "--json", "--runs", &runs][..], args].concat();
        let report = shell::output(&program.to_string_lossy(), &args)?;
        serde_json::from_str(&report).context("the report is no JSON")
    }

    /// The JSON report with the program's peak memory in MiB: the kernel's figure.
    pub(super) fn record_measured(&self, args: &[&str]) -> anyhow::Result<(Value, f64)> {
        let runs = self.0.to_string_lossy();
        let program = self.program();
        let line = [&["record", "--quiet", "--json", "--runs", &runs][..], args].concat();
        let mut child = Command::new(&program)
            .args(&line)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut out = child.stdout.take().context("the tool has no output")?;
        let reader = std::thread::spawn(move || {
            let mut report = String::new();
            out.read_to_string(&mut report).map(|_| report)
        });
        let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0);
        let ended = loop {
            // The kernel reports nothing for an ended process: the last sample counts.
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            peak = peak.max(peak_kib(&text).unwrap_or(0));
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            std::thread::sleep(LOOK);
        };
        ensure!(ended.success(), "{} failed ({ended})", line.join(" "));
        let report = reader
            .join()
            .map_err(|_| anyhow::anyhow!("the reader panicked"))??;
        let report = serde_json::from_str(&report).context("the report is no JSON")?;
        Ok((report, f64::from(peak) / 1024.0))
    }

    pub(super) fn program(&self) -> PathBuf {
        program::shipped()
    }

    /// The folder of its runs.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// The run of a report.
    pub(super) fn path(report: &Value) -> anyhow::Result<&Path> {
        report["run"]["path"]
            .as_str()
            .map(Path::new)
            .context("the report names no run")
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        // It is in target/, where the next build or bench may also remove it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
