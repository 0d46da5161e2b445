//! The commands to kill, the files that they use, and how these are restored.

use anyhow::{Context, bail, ensure};
use jitterscope_testing::turn;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Kind {
    pub name: &'static str,
    arguments: &'static [&'static str],
    /// The time range in which it is killed: about its run time, which is measured for a short command.
    span: Option<Duration>,
    /// The commands that it undoes, which must run before.
    undoes: Option<&'static [&'static str]>,
    /// Whether repeating it repairs what it left in a folder that only its caller knows.
    again: bool,
    /// How often it is killed, relative to others.
    pub share: usize,
}

/// The share of commands that change the machine and must restore it: of 500 kills, 66 of each.
pub const OFTEN: usize = 4;

const fn kind(name: &'static str, millis: u64, arguments: &'static [&'static str]) -> Kind {
    let span = if millis == 0 {
        None
    } else {
        Some(Duration::from_millis(millis))
    };
    Kind {
        name,
        arguments,
        span,
        undoes: None,
        again: false,
        share: 1,
    }
}

const fn often(kind: Kind) -> Kind {
    Kind {
        share: OFTEN,
        ..kind
    }
}

const fn again(kind: Kind) -> Kind {
    Kind {
        again: true,
        ..kind
    }
}

/// All commands that change or write something, and two that only read. `@` in an argument is the output folder.
pub const KINDS: &[Kind] = &[
    kind(
        "record",
        3000,
        &["record", "--duration", "1500ms", "--warmup", "100ms"],
    ),
    kind(
        "record wakeup",
        3000,
        &[
            "record",
            "wakeup",
            "--hold-latency",
            "--duration",
            "1500ms",
            "--warmup",
            "100ms",
        ],
    ),
    kind(
        "record pipeline",
        4000,
        &[
            "record",
            "pipeline",
            "--force",
            "--duration",
            "1500ms",
            "--warmup",
            "100ms",
            "--pause",
            "100ms",
        ],
    ),
    kind(
        "record none",
        3000,
        &[
            "record",
            "none",
            "--for",
            "no-such-thread",
            "--duration",
            "1500ms",
            "--warmup",
            "100ms",
        ],
    ),
    often(kind(
        "experiment",
        9000,
        &[
            "experiment",
            "--knob",
            "vmstat",
            "--duration",
            "500ms",
            "--quiet",
        ],
    )),
    kind(
        "experiment --apply",
        6000,
        &[
            "experiment",
            "--apply",
            "touch @/applied",
            "--revert",
            "rm @/applied",
            "--duration",
            "300ms",
            "--quiet",
        ],
    ),
    // It starts to change the machine after four runs, about seven seconds, and makes its pairs after twice that.
    kind(
        "experiment --auto",
        24000,
        &[
            "experiment",
            "--auto",
            "--longest-wait",
            "3s",
            "--duration",
            "300ms",
            "--quiet",
        ],
    ),
    kind("serve", 1500, &["serve"]),
    kind(
        "attach",
        3000,
        &["attach", "--duration", "2s", "--", "sleep", "60"],
    ),
    kind(
        "attach --wait",
        1500,
        &[
            "attach",
            "--duration",
            "1s",
            "--wait",
            "--comm",
            "no-such-thread",
        ],
    ),
    kind("selftest", 9000, &["selftest"]),
    kind(
        "selftest writeback",
        5000,
        &["selftest", "--only", "writeback"],
    ),
    kind("sljtest", 2500, &["sljtest", "--runtime", "2"]),
    kind(
        "sampler",
        3000,
        &[
            "sampler",
            "--duration",
            "2",
            "--attribute",
            "--output",
            "csv://@/sampler.csv",
        ],
    ),
    often(kind("tune apply", 0, APPLY)),
    Kind {
        undoes: Some(APPLY),
        ..often(kind("tune rollback", 0, &["tune", "rollback", "--yes"]))
    },
    again(kind(
        "export",
        0,
        &["export", "--to", "csv://@/x.csv", "--to", "json://@/x.json"],
    )),
    again(kind(
        "export parquet",
        0,
        &[
            "export",
            "--to",
            "parquet://@/tables",
            "--to",
            "hlog://@/x.hlog",
        ],
    )),
    kind("doctor --clean", 0, &["doctor", "--clean"]),
    kind("journal", 0, &["journal", "--format", "csv", "journalled"]),
    kind("report", 0, &["report"]),
];

/// What an experiment with commands changes.
const APPLIED: &str = "applied";

/// Knobs that disturb no thread within a second, with several files each.
const KNOBS: &str = "irq-aff,irq-default,timer-migr,softlockup,rcu-normal,compaction,writeback";

const APPLY: &[&str] = &["tune", "apply", "--yes", "--only", KNOBS];

/// The folders of the commands.
pub struct Ground {
    program: PathBuf,
    folder: TempDir,
    /// Run times of short commands.
    spans: BTreeMap<&'static str, Duration>,
}

impl Ground {
    /// Creates the folders, and the runs that some commands read.
    pub fn prepare(program: PathBuf) -> anyhow::Result<Ground> {
        ensure!(program.is_file(), "{} is no file", program.display());
        let folder = tempfile::Builder::new()
            .prefix("jitterscope-torture-")
            .tempdir()?;
        let mut ground = Ground {
            program,
            folder,
            spans: BTreeMap::new(),
        };
        fs::create_dir(ground.at("out"))?;
        let _turn = turn();
        let prepared = ground.make();
        // Its journal is in the folder, so what was applied is always undone first.
        let undone = ground.recover(None);
        prepared?;
        let left = undone?;
        ensure!(
            left.is_empty(),
            "what was prepared could not be undone: {}",
            left.join("; ")
        );
        Ok(ground)
    }

    fn make(&mut self) -> anyhow::Result<()> {
        let journalled = [
            "record",
            "pipeline",
            "--force",
            "--duration",
            "300ms",
            "--pause",
            "10ms",
        ];
        let journalled = [
            &journalled[..],
            &["--warmup", "50ms", "--label", "journalled"],
        ]
        .concat();
        for line in [
            &journalled[..],
            &[
                "record",
                "--duration",
                "300ms",
                "--warmup",
                "50ms",
                "--label",
                "first",
            ],
        ] {
            self.json(line)?;
        }
        for kind in KINDS.iter().filter(|kind| kind.span.is_none()) {
            let mut span = Duration::MAX;
            // The first run reads the program and its files from the disk.
            for _ in 0..3 {
                self.before(kind)?;
                let began = Instant::now();
                let status = self.command(&self.arguments(kind)).status()?;
                ensure!(
                    status.success(),
                    "{}, left in peace, failed ({status})",
                    kind.name
                );
                span = span.min(began.elapsed());
                self.recover(None)?;
            }
            self.spans.insert(kind.name, span);
        }
        Ok(())
    }

    /// The time range in which to kill it.
    pub fn span(&self, kind: &Kind) -> Duration {
        kind.span
            .or_else(|| self.spans.get(kind.name).copied())
            .unwrap_or_default()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with its own folders.
    pub fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = silent(&self.program);
        command
            .args(arguments)
            .env("HOME", self.folder.path())
            .env("JITTERSCOPE_RUNS", self.at("runs"))
            .env("JITTERSCOPE_STATE", self.at("state"))
            .current_dir(self.folder.path());
        command
    }

    /// What must be done before it is killed.
    pub fn before(&self, kind: &Kind) -> anyhow::Result<()> {
        kind.undoes.map_or(Ok(()), |line| self.json(line).map(drop))
    }

    pub fn arguments(&self, kind: &Kind) -> Vec<OsString> {
        let out = self.at("out").to_string_lossy().into_owned();
        kind.arguments
            .iter()
            .map(|argument| argument.replace('@', &out).into())
            .collect()
    }

    /// Runs it to its end with `--json`.
    pub fn json(&self, line: &[&str]) -> anyhow::Result<Value> {
        let arguments: Vec<OsString> = line.iter().chain(&["--json"]).map(OsString::from).collect();
        let output = self
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!(
                "jitterscope {} failed ({}): {said}",
                line.join(" "),
                output.status
            );
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} wrote no JSON", line.join(" ")))
    }

    /// A recording, which finds and removes what others left.
    pub fn next_start(&self) -> anyhow::Result<()> {
        self.json(&["record", "--duration", "100ms", "--warmup", "10ms"])
            .map(drop)
    }

    /// Does what a user would do: cleans up, and rolls back what is applied. Returns what that does not restore.
    pub fn recover(&self, kind: Option<&Kind>) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        if let Some(kind) = kind.filter(|kind| kind.again) {
            let status = self.command(&self.arguments(kind)).status()?;
            if !status.success() {
                found.push(format!("again: {status}"));
            }
        }
        for line in [&["doctor", "--clean"][..], &["tune", "rollback", "--yes"]] {
            if let Err(error) = self.json(line) {
                found.push(format!("{error:#}"));
            }
        }
        match self.json(&["doctor"]) {
            Ok(doctor) => {
                let left = doctor["leftovers"].as_array().map_or(1, Vec::len);
                if left != 0 {
                    found.push(format!("doctor still finds {}", doctor["leftovers"]));
                }
            }
            Err(error) => found.push(format!("{error:#}")),
        }
        Ok(found)
    }

    /// Unexpected files in the folders, and unreadable runs. Removes new runs.
    pub fn leftovers(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        let list = self.json(&["list"])?;
        if list["problems"]
            .as_array()
            .is_some_and(|problems| !problems.is_empty())
        {
            found.push(format!("runs that cannot be read: {}", list["problems"]));
        }
        for (folder, removes) in [
            ("runs", true),
            ("out", true),
            ("state", false),
            (".", false),
        ] {
            for entry in entries(&self.at(folder))? {
                let name = entry
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                let hidden = name.starts_with('.') && folder != ".";
                let kept = name.ends_with("-journalled")
                    || name.contains("-journalled-")
                    || name.contains("-first-");
                if name == APPLIED {
                    found.push(format!(
                        "what an experiment changed is left: {folder}/{name}"
                    ));
                }
                if hidden {
                    found.push(format!("{folder}/{name} is left"));
                }
                if removes && !kept {
                    if entry.is_dir() {
                        fs::remove_dir_all(&entry)?
                    } else {
                        fs::remove_file(&entry)?
                    }
                }
            }
        }
        Ok(found)
    }
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries
            .collect::<Result<Vec<_>, _>>()?
            .iter()
            .map(fs::DirEntry::path)
            .collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| folder.display().to_string()),
    }
}

/// A command without input and output, so that it cannot fill an unread pipe.
pub fn silent(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
