//! The tool itself, as its users have it: recordings of the release binary, and what they say of themselves.

use crate::shell;
use anyhow::Context;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The CPU that a recording measures by default where none is isolated.
pub(super) fn highest_cpu() -> anyhow::Result<u32> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let last = online.trim().rsplit([',', '-']).next().context("no CPU is online")?;
    last.parse().with_context(|| format!("online CPUs: {online:?}"))
}

/// A folder for runs, removed in the end.
pub(super) struct Runs(PathBuf);

impl Runs {
    /// Builds the tool first.
    pub(super) fn new(name: &str) -> anyhow::Result<Runs> {
        shell::run("cargo", &["build", "--quiet", "--release", "--locked", "-p", "jitterscope"])?;
        Ok(Runs(shell::root().join("target").join(name)))
    }

    /// The JSON report of a recording with these arguments.
    pub(super) fn record(&self, args: &[&str]) -> anyhow::Result<Value> {
        let runs = self.0.to_string_lossy();
        let program = self.program();
        let args = [&["record", "--quiet", "--json", "--runs", &runs][..], args].concat();
        let report = shell::output(&program.to_string_lossy(), &args)?;
        serde_json::from_str(&report).context("the report is no JSON")
    }

    /// The tool.
    pub(super) fn program(&self) -> PathBuf {
        shell::root().join("target/release/jitterscope")
    }

    /// Where its runs are kept.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// The run that a report is of.
    pub(super) fn path(report: &Value) -> anyhow::Result<&Path> {
        report["run"]["path"].as_str().map(Path::new).context("the report names no run")
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        // Under target/, where the next build or bench may remove it as well.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
