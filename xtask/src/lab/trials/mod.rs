//! Trials: what is booted, done there, and judged here from what came back. Totals are never judged: a guest's
//! time may be slow or stand still. What is judged is whether predicted culprits are there, whether a command
//! ends as it should, and whether the machine is as it was.

mod across;
mod clocks;
mod crash;
mod graph;
mod kernels;
mod osnoise;
mod reboot;
mod state;
mod steps;
mod timerlat;
mod topology;
mod walk;

use super::debian::Unavailable;
use super::folder;
use crate::shell;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One trial.
pub struct Trial {
    /// Its name, as `--only` takes it.
    name: &'static str,
    /// What it shows.
    what: &'static str,
    /// Whether the stage `lab` of the tests runs it: all of those together take twelve minutes at most, and need
    /// one kernel.
    stage: bool,
    run: fn(&mut Finding) -> anyhow::Result<()>,
}

/// All of them; a new one is a line here and a file beside this.
const TRIALS: [Trial; 18] = [
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
];

/// The stage begins no trial later than this.
const STAGE_STARTS: Duration = Duration::from_secs(600);

/// What a trial has found so far.
pub struct Finding {
    /// A folder of its own; what lies there is kept until its next run.
    out: PathBuf,
    objections: Vec<String>,
    checks: usize,
}

impl Finding {
    /// Notes whether something is as it should be; `what` says what that is, with the facts.
    pub fn check(&mut self, holds: bool, what: impl Into<String>) {
        self.checks += 1;
        let what = what.into();
        eprintln!("  {} {what}", if holds { "ok " } else { "NOT" });
        if !holds {
            self.objections.push(what);
        }
    }

    /// A folder for what one of its guests writes, empty.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.out.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }
}

/// Lists them.
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

/// Which of them to run.
pub enum Which<'a> {
    /// All.
    All,
    /// Those of the tests' stage.
    Stage,
    /// These.
    Named(&'a [String]),
}

/// Runs them and fails with what is not as it should be. A trial for which a package cannot be had is skipped
/// visibly, unless it was named.
pub fn run(which: &Which) -> anyhow::Result<()> {
    if let Which::Named(names) = which
        && let Some(unknown) = names
            .iter()
            .find(|name| TRIALS.iter().all(|trial| trial.name != **name))
    {
        bail!("there is no trial {unknown}; --list lists them");
    }
    let (mut objections, mut skipped) = (Vec::new(), Vec::new());
    let all_began = Instant::now();
    for trial in TRIALS.iter().filter(|trial| which.has(trial)) {
        let began = Instant::now();
        if matches!(which, Which::Stage) && all_began.elapsed() > STAGE_STARTS {
            eprintln!(
                "SKIPPED lab {}: this machine is too slow to begin it in time",
                trial.name
            );
            skipped.push(trial.name);
            continue;
        }
        eprintln!("== lab {}: {}", trial.name, trial.what);
        let (mut finding, mut ended) = tried(trial, which)?;
        // Time in an emulator is uneven: what an objection rests on may be that. A defect objects twice.
        if matches!(which, Which::Stage)
            && !finding.objections.is_empty()
            && matches!(ended, Ended::Judged)
        {
            eprintln!(
                "lab {}: {} objections; once more",
                trial.name,
                finding.objections.len()
            );
            (finding, ended) = tried(trial, which)?;
        }
        match ended {
            Ended::Judged => {}
            Ended::Failed(why) => finding.objections.push(why),
            Ended::Skipped(why) => {
                eprintln!("SKIPPED lab {}: {why}", trial.name);
                skipped.push(trial.name);
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
        let kept = shown(&finding.out);
        objections.extend(
            finding
                .objections
                .iter()
                .map(|what| format!("{}: {what} ({kept})", trial.name)),
        );
    }
    if !skipped.is_empty() {
        eprintln!("lab: skipped: {}", skipped.join(", "));
    }
    if objections.is_empty() {
        return Ok(());
    }
    bail!(
        "{} objections:\n  {}",
        objections.len(),
        objections.join("\n  ")
    )
}

/// Runs a trial.
fn tried(trial: &Trial, which: &Which) -> anyhow::Result<(Finding, Ended)> {
    let out = folder()?.join("trials").join(trial.name);
    let mut finding = Finding {
        out,
        objections: Vec::new(),
        checks: 0,
    };
    let result = (trial.run)(&mut finding);
    let ended = Ended::of(result, finding.checks, matches!(which, Which::Named(_)));
    Ok((finding, ended))
}

/// How a trial ended, what it objects to aside.
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

/// A path as it stands in messages.
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
    fn only_what_cannot_be_fetched_is_skipped_and_only_where_nobody_asked_for_it() {
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
