//! Trials: what is booted and run in a guest, and the checks of its results. Totals are never checked, because a
//! guest's time may be slow or stand still. The checks are: are predicted culprits present, does a command end as it
//! should, is the machine restored.

mod across;
mod clocks;
mod crash;
mod document;
mod graph;
mod kernels;
mod knobs;
mod matrix;
mod osnoise;
mod parameters;
mod power;
mod quota;
mod reboot;
mod rights;
mod service;
mod state;
mod steps;
mod timerlat;
mod topology;
mod users;
mod walk;

use super::boot;
use super::debian::Unavailable;
use super::folder;
use crate::shell;
use crate::test::{Failure, Found};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub struct Trial {
    /// Its name for `--only`.
    name: &'static str,
    what: &'static str,
    /// Whether the test stage `lab` runs it: together those take a few minutes and need only one kernel.
    stage: bool,
    run: fn(&mut Finding) -> anyhow::Result<()>,
}

/// The trial whose guest needs a fresh Debian.
pub const SERVICE: &str = "service";

/// All trials; a new one is a line here and a file in this folder.
const TRIALS: [Trial; 25] = [
    Trial {
        name: "6.1",
        stage: true,
        run: kernels::v6_1,
        what: "all recordings and selftest on 6.1",
    },
    Trial {
        name: "6.12",
        stage: false,
        run: kernels::v6_12,
        what: "the same on 6.12",
    },
    Trial {
        name: "rt",
        stage: false,
        run: kernels::rt,
        what: "the same with PREEMPT_RT",
    },
    Trial {
        name: "lockdown",
        stage: true,
        run: clocks::lockdown,
        what: "tracefs refused by lockdown",
    },
    Trial {
        name: "clocks",
        stage: false,
        run: clocks::wrong,
        what: "the HPET as clock source, an unstable TSC",
    },
    Trial {
        name: "kill-record",
        stage: false,
        run: crash::record,
        what: "SIGKILL at random moments",
    },
    Trial {
        name: "kill-apply",
        stage: false,
        run: crash::apply,
        what: "SIGKILL of tune apply, then rollback",
    },
    Trial {
        name: "resources",
        stage: true,
        run: crash::resources,
        what: "a full disk; a CPU goes offline",
    },
    Trial {
        name: "kill-all",
        stage: false,
        run: crash::apply_all,
        what: "the same at each of its writes",
    },
    Trial {
        name: "walk",
        stage: false,
        run: walk::walk,
        what: "the documents' own way, step by step",
    },
    Trial {
        name: "shapes",
        stage: false,
        run: topology::shapes,
        what: "siblings, nodes, queues, the pipeline",
    },
    Trial {
        name: "groups",
        stage: false,
        run: topology::groups,
        what: "partition and quota of cgroup v2",
    },
    Trial {
        name: "quota",
        stage: false,
        run: quota::beside_a_neighbour,
        what: "a quota beside a neighbour, on 6.1 and 6.12",
    },
    Trial {
        name: "knobs",
        stage: false,
        run: knobs::at_boot,
        what: "settings at boot, with and without",
    },
    Trial {
        name: "boot",
        stage: false,
        run: parameters::at_boot,
        what: "more boot parameters, and what keeps a tick",
    },
    Trial {
        name: "power",
        stage: false,
        run: power::power,
        what: "frequencies and idle states, on a table of ours",
    },
    Trial {
        name: "eight",
        stage: false,
        run: topology::eight,
        what: "eight of nine CPUs measured at once",
    },
    Trial {
        name: "reboot",
        stage: false,
        run: reboot::persist,
        what: "power cut in mid-apply, rollback after it",
    },
    Trial {
        name: "graph",
        stage: false,
        run: graph::functions,
        what: "inside kernel functions",
    },
    Trial {
        name: "across",
        stage: false,
        run: across::reboot,
        what: "an experiment across a reboot",
    },
    Trial {
        name: "osnoise",
        stage: false,
        run: osnoise::judge,
        what: "the kernel's own noise tracer beside ours",
    },
    Trial {
        name: "timerlat",
        stage: false,
        run: timerlat::judge,
        what: "the kernel's own tracer of wake-ups beside ours",
    },
    Trial {
        name: "matrix",
        stage: false,
        run: matrix::kernels,
        what: "the static program on 6.1, 6.12, RT and the newest",
    },
    Trial {
        name: "rights",
        stage: false,
        run: rights::least,
        what: "which capabilities each source takes",
    },
    Trial {
        name: SERVICE,
        stage: false,
        run: service::agent,
        what: "the deb's agent under Debian's systemd",
    },
];

/// The results of a trial so far.
pub struct Finding {
    /// A folder of its own, whose contents are kept until its next run.
    out: PathBuf,
    objections: Vec<String>,
    skipped: Vec<String>,
    checks: usize,
}

impl Finding {
    /// Records a check; `what` describes it with the facts.
    pub fn check(&mut self, holds: bool, what: impl Into<String>) {
        self.checks += 1;
        let what = what.into();
        eprintln!("  {} {what}", if holds { "ok " } else { "NOT" });
        if !holds {
            self.objections.push(what);
        }
    }

    /// Records what was skipped, and why.
    pub fn skip(&mut self, what: impl Into<String>) {
        let what = what.into();
        eprintln!("  --  {what}");
        self.skipped.push(what);
    }

    /// An empty folder for the output of one of its guests.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.out.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }
}

pub fn list() {
    for trial in &TRIALS {
        println!(
            "{:<12} {}{}",
            trial.name,
            trial.what,
            if trial.stage { "" } else { " (--all)" }
        );
    }
}

/// The trials to run.
pub enum Which<'a> {
    All,
    /// The trials of the test stage.
    Stage,
    Named(&'a [String]),
}

/// Runs the trials, and fails if a check fails. A trial whose package is unavailable is skipped, unless it was named.
/// No trial is repeated: a single failed check is a failure.
pub fn run(which: &Which, found: &mut Found) -> anyhow::Result<()> {
    if let Which::Named(names) = which
        && let Some(unknown) = names
            .iter()
            .find(|name| TRIALS.iter().all(|trial| trial.name != **name))
    {
        bail!("there is no trial {unknown}; --list lists them");
    }
    for trial in TRIALS.iter().filter(|trial| which.has(trial)) {
        let began = Instant::now();
        eprintln!("== lab {}: {}", trial.name, trial.what);
        let (mut finding, ended) = tried(trial, which)?;
        match ended {
            Ended::Judged => {}
            Ended::Failed(why) => finding.objections.push(why),
            Ended::Skipped(why) => {
                found.skipped.note(format!("trial {}: {why}", trial.name));
                continue;
            }
        }
        let seconds = began.elapsed().as_secs();
        let message = if finding.objections.is_empty() {
            "passed"
        } else {
            "FAILED"
        };
        eprintln!(
            "lab {:<12} {message}, {} checks in {seconds} s",
            trial.name, finding.checks
        );
        found.passed += finding.checks.saturating_sub(finding.objections.len());
        for why in boot::started_again() {
            found
                .skipped
                .add(format!("trial {}, a first start: {why}", trial.name));
        }
        for what in finding.skipped {
            found.skipped.add(format!("trial {}: {what}", trial.name));
        }
        for what in finding.objections {
            found.failures.push(Failure {
                name: format!("trial {}", trial.name),
                message: vec![what, format!("kept: {}", shown(&finding.out))],
            });
        }
    }
    let objections: Vec<String> = found
        .failures
        .iter()
        .map(|failure| format!("{}: {}", failure.name, failure.message.join(" ")))
        .collect();
    ensure!(
        objections.is_empty(),
        "{} objections:\n  {}",
        objections.len(),
        objections.join("\n  ")
    );
    Ok(())
}

fn tried(trial: &Trial, which: &Which) -> anyhow::Result<(Finding, Ended)> {
    let out = folder()?.join("trials").join(trial.name);
    let mut finding = Finding {
        out,
        objections: Vec::new(),
        skipped: Vec::new(),
        checks: 0,
    };
    let result = (trial.run)(&mut finding);
    let ended = Ended::of(result, finding.checks, matches!(which, Which::Named(_)));
    Ok((finding, ended))
}

/// How a trial ended, apart from failed checks.
#[derive(Debug, PartialEq)]
enum Ended {
    Judged,
    Failed(String),
    Skipped(String),
}

impl Ended {
    fn of(result: anyhow::Result<()>, checks: usize, named: bool) -> Ended {
        match result {
            Ok(()) if checks == 0 => Ended::Failed("nothing was checked".to_owned()),
            Ok(()) => Ended::Judged,
            Err(error) => match error.downcast_ref::<Unavailable>() {
                Some(why) if checks == 0 && !named => Ended::Skipped(why.to_string()),
                _ => Ended::Failed(format!("{error:#}")),
            },
        }
    }
}

impl Which<'_> {
    fn has(&self, trial: &Trial) -> bool {
        match self {
            Which::All => true,
            Which::Stage => trial.stage,
            Which::Named(names) => names.iter().any(|name| name == trial.name),
        }
    }
}

/// A path for messages.
fn shown(path: &Path) -> String {
    path.strip_prefix(shell::root())
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unavailable_optional_downloads_are_skipped() {
        let unavailable = || {
            Err(
                anyhow::Error::from(Unavailable("no such package".to_owned()))
                    .context("the kernel"),
            )
        };
        assert!(
            matches!(Ended::of(unavailable(), 0, false), Ended::Skipped(why) if why == "no such package")
        );
        assert!(matches!(
            Ended::of(unavailable(), 0, true),
            Ended::Failed(_)
        ));
        assert!(matches!(
            Ended::of(unavailable(), 3, false),
            Ended::Failed(_)
        ));
        assert!(matches!(
            Ended::of(Err(anyhow::anyhow!("hung")), 0, false),
            Ended::Failed(_)
        ));
        assert_eq!(
            Ended::of(Ok(()), 0, false),
            Ended::Failed("nothing was checked".to_owned())
        );
        assert_eq!(Ended::of(Ok(()), 1, true), Ended::Judged);
    }
}
