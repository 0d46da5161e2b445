//! A recording whose trace controls are changed at a random moment: it must report that and leave nothing behind.

use super::commands::Ground;
use super::machine::tracing;
use anyhow::Context;
use jitterscope_testing::{SplitMix64, Tamper, instances_of, recording_instances_of};
use serde_json::Value;
use std::ffi::OsString;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Each kind of recording, for [`LASTS`].
const KINDS: [(&str, &[&str]); 5] = [
    ("record", &["record", "--duration", "2s"]),
    ("record wakeup", &["record", "wakeup", "--duration", "2s"]),
    (
        "record pipeline",
        &[
            "record",
            "pipeline",
            "--force",
            "--duration",
            "2s",
            "--pause",
            "50ms",
        ],
    ),
    (
        "record none",
        &[
            "record",
            "none",
            "--for",
            "no-such-thread",
            "--duration",
            "2s",
        ],
    ),
    (
        "attach",
        &["attach", "--duration", "2s", "--", "sleep", "60"],
    ),
];
/// The tampering happens within this time after both instances record, which is mostly measured time.
const LASTS: Duration = Duration::from_millis(2200);
/// Tampering this close to an end of the measurement may lie outside it.
const EDGE: Duration = Duration::from_millis(150);

/// One recording: whether it reports the disturbance, what was done, and what is wrong with its report or was left
/// behind.
pub fn one(
    ground: &Ground,
    number: u32,
    random: &mut SplitMix64,
) -> anyhow::Result<(bool, String, Vec<String>)> {
    let number = number as usize;
    // Each kind with each tampering before any repetition.
    let (name, line) = KINDS[number % KINDS.len()];
    let how = Tamper::ALL[number / KINDS.len() % Tamper::ALL.len()];
    let before = tracing()?;
    // Words after `--` belong to another program.
    let own = line.iter().position(|word| *word == "--");
    let (own, of_other) = line.split_at(own.unwrap_or(line.len()));
    let arguments: Vec<OsString> = [own, &["--json", "--quiet"], of_other]
        .concat()
        .iter()
        .map(OsString::from)
        .collect();
    let recorder = ground
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("the program cannot be started")?;
    let pid = recorder.id();
    let instances = recording_instances_of(pid, 2);
    let after = Duration::from_micros(random.below(LASTS.as_micros() as u64));
    sleep(after);
    let begun = SystemTime::now();
    let mut found = Vec::new();
    for instance in instances.iter().flatten() {
        // It may have ended already.
        let _ = how.on(instance);
    }
    let done = SystemTime::now();
    if let Err(error) = &instances {
        found.push(format!("it has no instances: {error}"));
    }
    let output = recorder.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    // The followed command was ended, which is no failure.
    if !output.status.success() {
        found.push(format!("{}: {said}", output.status));
    }
    let warnings = report["warnings"].as_array().cloned().unwrap_or_default();
    let disturbed = warnings.iter().find(|row| row["id"] == "trace-disturbed");
    let inside = is_inside(&report, begun, done);
    match disturbed {
        None if inside => found.push(format!("it says nothing of it: {}", report["warnings"])),
        Some(row) if row["repaired"] != true => found.push(format!("not put right: {row}")),
        _ => {}
    }
    if let Some(row) = warnings.iter().find(|row| row["id"] == "events-missing") {
        found.push(format!("records are missing elsewhere: {row}"));
    }
    if !instances_of(pid).is_empty() {
        found.push("an instance is left".into());
    }
    let compared = before.differences(&tracing()?);
    found.extend(compared.into_iter().map(|what| format!("left: {what}")));
    let noticed = match disturbed {
        Some(row) => format!("{} ns are not trusted", row["time_ns"]),
        None if inside => "NOT NOTICED".into(),
        None => "outside of the measurement".into(),
    };
    let message = format!(
        "{name:<16} {how:?} after {:>4} ms -> {noticed}",
        after.as_millis()
    );
    Ok((disturbed.is_some(), message, found))
}

/// Whether it certainly happened within the measured time.
fn is_inside(report: &Value, begun: SystemTime, done: SystemTime) -> bool {
    let nanos = |name: &str| report["run"][name].as_u64().map(Duration::from_nanos);
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (Some(start), Some(length)) = (nanos("started_realtime_ns"), nanos("duration_ns")) else {
        return true;
    };
    start + EDGE < since(begun) && since(done) + EDGE < start + length
}
