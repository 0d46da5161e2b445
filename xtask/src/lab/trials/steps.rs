//! A guest's script in steps, and the results of each.

use super::super::boot::{self, Show};
use super::super::options::Guest;
use super::Finding;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The beginning of every script.
pub const PREAMBLE: &str = include_str!("steps.sh");

/// The results of the steps of a guest's script.
pub struct Steps {
    folder: PathBuf,
    codes: BTreeMap<String, i32>,
}

/// Boots the guest and runs the script, which calls `step`; `name` distinguishes the guests of a trial.
pub fn run(finding: &Finding, name: &str, guest: &Guest, script: &str) -> anyhow::Result<Steps> {
    let folder = finding.folder(name)?;
    continued(folder, guest, script)
}

/// The same with a folder that an earlier guest has written to.
pub fn continued(folder: PathBuf, guest: &Guest, script: &str) -> anyhow::Result<Steps> {
    let script = format!("{PREAMBLE}\n{script}\ntrue\n");
    let outcome = boot::run(guest, &script, &folder, Show::Kept)?;
    anyhow::ensure!(
        outcome.code == 0,
        "the guest's script failed ({}): {}{}",
        outcome.code,
        outcome.stdout,
        outcome.stderr
    );
    let codes = fs::read_to_string(folder.join("codes")).context("the guest ran no step")?;
    let codes = codes.lines().filter_map(|line| {
        let (name, code) = line.split_once(' ')?;
        Some((name.to_owned(), code.parse().ok()?))
    });
    Ok(Steps {
        codes: codes.collect(),
        folder,
    })
}

impl Steps {
    /// The exit code of a step; `None` if it was never reached.
    pub fn code(&self, step: &str) -> Option<i32> {
        self.codes.get(step).copied()
    }

    /// Its standard output; empty if it never ran.
    pub fn out(&self, step: &str) -> String {
        self.file(&format!("{step}.out"))
    }

    pub fn err(&self, step: &str) -> String {
        self.file(&format!("{step}.err"))
    }

    /// A file from the script in /out.
    pub fn file(&self, name: &str) -> String {
        fs::read(self.folder.join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The names of the script's files in a folder of /out.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn files(&self, folder: &str) -> anyhow::Result<Vec<String>> {
        let path = self.folder.join(folder);
        let entries = fs::read_dir(&path).with_context(|| path.display().to_string())?;
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }

    /// Its standard output as JSON.
    pub fn json(&self, step: &str) -> anyhow::Result<Value> {
        let text = self.out(step);
        serde_json::from_str(&text).with_context(|| {
            format!(
                "step {step} (exit code {:?}) wrote no JSON: {text:.200} {:.600}",
                self.code(step),
                self.err(step)
            )
        })
    }

    /// Checks that no step panicked, and that each of these ended as expected.
    pub fn ended(&self, finding: &mut Finding, expected: &[(&str, i32)]) {
        for (step, code) in expected {
            let got = self.code(step);
            let why = if got == Some(*code) {
                String::new()
            } else {
                format!(": {:.500}", self.err(step).trim())
            };
            finding.check(
                got == Some(*code),
                format!("{step} ends with {code} ({got:?}){why}"),
            );
        }
        for step in self.codes.keys() {
            if self.err(step).contains("panicked at") {
                finding.check(
                    false,
                    format!("{step} does not panic: {:.500}", self.err(step)),
                );
            }
        }
    }
}

/// The culprits of a report: kind and name, including unexplained ones.
pub fn culprits(report: &Value) -> Vec<(String, String)> {
    rows(report)
        .map(|row| (word(row, "kind"), word(row, "name")))
        .collect()
}

/// The number of stalls with a part of a culprit; `name` may be a prefix of its name.
pub fn stalls_of(report: &Value, kind: &str, name: &str) -> u64 {
    let of = |row: &&Value| word(row, "kind") == kind && word(row, "name").starts_with(name);
    rows(report)
        .filter(of)
        .filter_map(|row| row["count"].as_u64())
        .sum()
}

/// The time of a culprit, nanoseconds; `name` may be a prefix of its name.
pub fn time_of(report: &Value, kind: &str, name: &str) -> u64 {
    let of = |row: &&Value| word(row, "kind") == kind && word(row, "name").starts_with(name);
    rows(report)
        .filter(of)
        .filter_map(|row| row["total_ns"].as_u64())
        .sum()
}

fn rows(report: &Value) -> impl Iterator<Item = &Value> {
    let attribution = &report["attribution"];
    [
        &attribution["culprits"],
        &attribution["unexplained"]["classes"],
    ]
    .into_iter()
    .filter_map(Value::as_array)
    .flatten()
}

/// A source in a report, with its state.
pub fn source<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    report["sources"]
        .as_array()?
        .iter()
        .find(|source| source["name"] == name)
}

/// A field as text; empty if missing.
pub fn word(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn culprits_that_explain_nothing_count_too() {
        let report = serde_json::json!({"attribution": {
            "culprits": [{"kind": "kworker", "name": "vmstat_update", "count": 3}],
            "unexplained": {"classes": [{"kind": "hypervisor", "name": "late interrupt", "count": 2}]}
        }});
        assert_eq!(culprits(&report).len(), 2);
        assert_eq!(stalls_of(&report, "kworker", "vmstat"), 3);
        assert_eq!(stalls_of(&report, "kworker", "wb_"), 0);
    }
}
