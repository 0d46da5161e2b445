//! The agent of the Debian package as a service: a guest boots Debian's systemd, installs the package, and systemd
//! starts, reloads, watches and stops the agent.

use super::super::options::{Guest, Kernel};
use super::super::services;
use super::Finding;
use super::steps::{self, Steps};
use crate::dist::FLEET;
use crate::{program, release};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// What the guest runs. `service.sh` explains itself.
const SCRIPT: &str = include_str!("service.sh");
/// The agent's metrics, by their first letters.
const METRICS: &str = "jitterscope_";

pub fn agent(finding: &mut Finding) -> anyhow::Result<()> {
    let folder = finding.folder("6.1")?;
    let scratch = tempfile::tempdir_in(super::folder()?)?;
    // As in the other guests: debug information would take half of the disk.
    let stripped = scratch.path().join("jitterscope");
    let program = program::get()?;
    let fleet = program.with_file_name(FLEET);
    for (from, to) in [
        (&program, &stripped),
        (&fleet, &stripped.with_file_name(FLEET)),
    ] {
        let strip = Command::new("strip").arg("-o").arg(to).arg(from).status()?;
        anyhow::ensure!(strip.success(), "strip {} failed ({strip})", from.display());
    }
    let deb = release::deb_of(&stripped, scratch.path())?;
    fs::copy(&deb, folder.join("jitterscope.deb"))?;
    let disk = scratch.path().join("disk");
    services::disk(&disk)?;
    let mut guest = Guest::new(Kernel::V6_1).systemd(&disk);
    guest.limit = Duration::from_secs(1500);
    let steps = steps::continued(folder, &guest, SCRIPT)?;
    installed(finding, &steps);
    runs(finding, &steps);
    reloads(finding, &steps);
    is_watched(finding, &steps);
    ends(finding, &steps);
    Ok(())
}

/// A property that `systemctl show` printed in a step.
fn property(steps: &Steps, step: &str, name: &str) -> String {
    let out = steps.out(step);
    let value = out
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().to_owned()
}

/// Checks properties of the unit in a step.
fn has(finding: &mut Finding, steps: &Steps, step: &str, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let seen = property(steps, step, name);
        finding.check(seen == *value, format!("{step}: {name}={value} ({seen})"));
    }
}

/// The package is installed and starts nothing, and systemd objects to nothing in its unit.
fn installed(finding: &mut Finding, steps: &Steps) {
    // `is-enabled` and `is-active` end with 1 and 3 for "no".
    steps.ended(
        finding,
        &[
            ("install", 0),
            ("enabled", 1),
            ("inactive", 3),
            ("verify", 0),
            ("security", 0),
        ],
    );
    let first = steps.out("process-1");
    finding.check(first.trim() == "systemd", format!("process 1 is {first:?}"));
    let said = steps.out("verify") + &steps.err("verify");
    finding.check(
        !said.contains("jitterscope"),
        format!("systemd-analyze verify objects to nothing: {said:.300}"),
    );
    let security = steps.out("security");
    let exposure = security
        .lines()
        .find_map(|line| line.split_once("exposure level for jitterscope-agent.service: "));
    finding.check(
        exposure.is_some(),
        format!(
            "systemd-analyze security: {}",
            exposure.map_or("nothing", |(_, level)| level)
        ),
    );
}

/// It is active only once it measures, and its metrics answer.
fn runs(finding: &mut Finding, steps: &Steps) {
    steps.ended(finding, &[("start", 0), ("metrics", 0)]);
    has(
        finding,
        steps,
        "started",
        &[
            ("Type", "notify"),
            ("ActiveState", "active"),
            ("SubState", "running"),
            ("StatusText", "watching"),
            ("NRestarts", "0"),
        ],
    );
    let instances = steps.out("instances");
    finding.check(
        instances.lines().count() == 2,
        format!("it traces into two instances of its own: {instances:?}"),
    );
    let metrics = steps.out("metrics");
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(METRICS))
        .count();
    finding.check(lines > 10, format!("{lines} metrics are served"));
}

/// SIGHUP has it read its settings again; wrong ones are refused.
fn reloads(finding: &mut Finding, steps: &Steps) {
    steps.ended(finding, &[("reload", 0), ("reload-wrong", 0)]);
    let status = property(steps, "reloaded", "StatusText");
    finding.check(
        status.contains("read again"),
        format!("after a reload: {status}"),
    );
    let status = property(steps, "refused", "StatusText");
    finding.check(
        status.contains("refused") && status.contains("kepp"),
        format!("after a reload with wrong settings: {status}"),
    );
    let same = property(steps, "started", "MainPID");
    has(
        finding,
        steps,
        "refused",
        &[("MainPID", &same), ("ActiveState", "active")],
    );
}

/// Systemd's watchdog is fed as long as the agent runs, and only then.
fn is_watched(finding: &mut Finding, steps: &Steps) {
    has(
        finding,
        steps,
        "fed",
        &[
            ("WatchdogUSec", "1min"),
            ("ActiveState", "active"),
            ("NRestarts", "0"),
        ],
    );
    let stopped = steps.out("starved");
    finding.check(
        stopped.contains("Watchdog timeout"),
        "a stopped agent is noticed by the watchdog".to_owned(),
    );
    has(
        finding,
        steps,
        "again",
        &[("ActiveState", "active"), ("NRestarts", "1")],
    );
}

/// A stop leaves no instance, no process and no setting changed; nor does the removal of a package whose agent runs.
fn ends(finding: &mut Finding, steps: &Steps) {
    steps.ended(
        finding,
        &[
            ("stop", 0),
            ("stopped", 3),
            ("enable", 0),
            ("purge", 0),
            ("gone", 2),
        ],
    );
    has(finding, steps, "result", &[("Result", "success")]);
    for step in [
        "instances-after",
        "processes-after",
        "processes-purged",
        "links-after",
        "settings-after",
    ] {
        let left = steps.out(step);
        finding.check(
            left.trim().is_empty(),
            format!("{step}: nothing ({left:.300})"),
        );
    }
    let (before, after) = (steps.file("settings-1"), steps.file("settings-2"));
    let changed: Vec<&str> = after
        .lines()
        .filter(|line| !before.lines().any(|other| other == *line))
        .collect();
    finding.check(
        !before.is_empty() && changed.is_empty(),
        format!("every setting is as before: {changed:?}"),
    );
}
