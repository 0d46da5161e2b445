//! Everything that must pass, in stages that can be run alone.
//!
//! Every stage runs, whatever the results of the earlier ones, unless it needs something that one of them failed to
//! build. The command ends with what was skipped, what failed, and a line per stage.

mod cargo;
mod output;
mod report;

use crate::consent::Consent;
use crate::packages::{self, CROSS_COMPILER, LAB, RUST_TESTS, WEB, Wanted};
use crate::{aarch64, deps, fuzz, lab, lint, miri, program, shell, tools, web};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use report::{Ended, closing};
pub use report::{Failure, Found};
use rustix::process::setpriority_process;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Arguments of `cargo xtask test`.
#[derive(Args)]
pub struct TestArgs {
    /// Only these stages [default: all]
    #[arg(value_enum)]
    stages: Vec<Stage>,
    /// Install what a stage needs without asking: Debian packages, components of the toolchain
    #[arg(long)]
    yes: bool,
}

/// A part that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// Formatting, lints, documentation, the book, the other architecture, licences, and the edges between crates
    Lint,
    /// Compiling all Rust tests
    Build,
    /// All Rust tests, those that record included
    Rust,
    /// Our own atomics under Miri
    Miri,
    /// Parsers, with committed inputs and new ones
    Fuzz,
    /// Statistics against simulations with a known answer
    Calibration,
    /// Pages of runs: their bundle, its own tests, and all kinds of run in a browser
    Web,
    /// What this machine cannot try, in guests: another kernel, refused tracing, other clocks, a CPU that goes
    /// offline
    Lab,
}

struct Work {
    stage: Stage,
    run: fn(Consent, &mut Found) -> anyhow::Result<()>,
    /// Debian packages that it installs if they are missing.
    packages: &'static [Wanted],
    /// Describes what else it would install.
    components: fn() -> Vec<String>,
    /// Whether it needs the results of `Build`.
    needs_build: bool,
    /// Whether it only computes: then it runs in parallel with the Rust tests, which mostly wait for recordings, and
    /// with the stages after them. The last of these stages usually begins after the last recording, and may use all CPUs.
    beside_rust: bool,
}

/// All stages; a new one is a line here and a variant above.
const STAGES: [Work; 8] = [
    Work {
        stage: Stage::Build,
        run: build,
        packages: &[],
        components: Vec::new,
        needs_build: false,
        beside_rust: false,
    },
    Work {
        stage: Stage::Rust,
        run: rust,
        packages: &RUST_TESTS,
        components: Vec::new,
        needs_build: true,
        beside_rust: false,
    },
    Work {
        stage: Stage::Miri,
        run: miri::run,
        packages: &[],
        components: miri::wanted,
        needs_build: false,
        beside_rust: true,
    },
    Work {
        stage: Stage::Lint,
        run: lint_and_edges,
        packages: &CROSS_COMPILER,
        components: aarch64::wanted,
        needs_build: false,
        beside_rust: true,
    },
    Work {
        stage: Stage::Fuzz,
        run: fuzz::stage,
        packages: &[],
        components: Vec::new,
        needs_build: false,
        beside_rust: true,
    },
    Work {
        stage: Stage::Calibration,
        run: calibration,
        packages: &[],
        components: Vec::new,
        needs_build: true,
        beside_rust: true,
    },
    Work {
        stage: Stage::Web,
        run: web::test,
        packages: &WEB,
        components: Vec::new,
        needs_build: false,
        beside_rust: false,
    },
    Work {
        stage: Stage::Lab,
        run: guests,
        packages: &LAB,
        components: Vec::new,
        needs_build: true,
        // Emulated CPUs of the lowest priority stand still for too long.
        beside_rust: false,
    },
];

/// Runs them all, prints the closing lines, and fails if one failed. Recording tests need root and tracefs; if either
/// is missing, the closing lines say that they are skipped.
pub fn run(args: &TestArgs) -> anyhow::Result<()> {
    let chosen = || {
        let named = &args.stages;
        STAGES
            .iter()
            .filter(|work| named.is_empty() || named.contains(&work.stage))
    };
    let packages: Vec<Wanted> = chosen().flat_map(|work| work.packages).copied().collect();
    let names = packages::missing(&packages).into_iter();
    let wanted: Vec<String> = names
        .map(|package| format!("Debian package {package}"))
        .chain(chosen().flat_map(|work| (work.components)()))
        .collect();
    let consent = Consent::ask(args.yes, &wanted);
    let has = |stage| chosen().any(|work| work.stage == stage);
    let (has_rust, has_lab) = (has(Stage::Rust), has(Stage::Lab));
    let mut fetching = Some(thread::spawn(move || fetch(&packages, has_lab, consent)));
    let (beside, ahead): (Vec<&Work>, Vec<&Work>) =
        chosen().partition(|work| work.beside_rust && has_rust);
    let mut stages: Vec<Ended> = Vec::new();
    let mut background = None;
    let recorded = Arc::new(AtomicBool::new(false));
    let records = |work: &&&Work| matches!(work.stage, Stage::Rust | Stage::Web);
    let last_recording = ahead.iter().rfind(records).map(|work| work.stage);
    for work in ahead {
        let built = is_built(&stages);
        // It installs packages, and changes the lab's files, which guests read.
        if matches!(work.stage, Stage::Rust | Stage::Lab)
            && let Some(fetching) = fetching.take()
            && fetching.join().is_err()
        {
            bail!("fetching panicked");
        }
        if work.stage == Stage::Rust && background.is_none() {
            let (beside, recorded) = (beside.clone(), Arc::clone(&recorded));
            background = Some(in_background(beside, built, consent, recorded)?);
        }
        stages.push(work.run_if(built, consent));
        if Some(work.stage) == last_recording {
            recorded.store(true, Ordering::Relaxed);
        }
    }
    if let Some(background) = background {
        match background.join() {
            Ok(ended) => stages.extend(ended),
            Err(_) => bail!("the stages beside the Rust tests panicked"),
        }
    }
    stages.sort_by_key(|ended| ended.at);
    eprintln!();
    for line in closing(&stages) {
        eprintln!("{line}");
    }
    let failed: Vec<&str> = stages
        .iter()
        .filter(|ended| !ended.found.failures.is_empty())
        .map(|ended| ended.stage.as_str())
        .collect();
    if !failed.is_empty() {
        bail!(
            "{} of {} stages failed: {}",
            failed.len(),
            stages.len(),
            failed.join(", ")
        );
    }
    Ok(())
}

/// Whether everything that `Build` should build exists.
fn is_built(stages: &[Ended]) -> bool {
    let build = Stage::Build.name();
    stages
        .iter()
        .all(|ended| ended.stage != build || ended.found.failures.is_empty())
}

/// Runs stages on a thread of the lowest priority. Until the tests that record have ended, it leaves the highest CPU,
/// which recordings measure by default. Its children inherit both.
fn in_background(
    stages: Vec<&'static Work>,
    built: bool,
    consent: Consent,
    recorded: Arc<AtomicBool>,
) -> anyhow::Result<JoinHandle<Vec<Ended>>> {
    let thread = thread::Builder::new().name("beside".to_owned());
    let started = thread.spawn(move || {
        let all = sched_getaffinity(None).unwrap_or_default();
        let mut others = all;
        if all.count() > 1 {
            others.unset(jitterscope_testing::highest_cpu() as usize);
        }
        let run = |work: &&Work| {
            let recorded = recorded.load(Ordering::Relaxed);
            let cpus = if recorded { &all } else { &others };
            if let Err(error) = sched_setaffinity(None, cpus).and(setpriority_process(None, 19)) {
                eprintln!("the stages beside the Rust tests may disturb them: {error}");
            }
            work.run_if(built, consent)
        };
        stages.iter().map(run).collect()
    });
    started.context("no thread can be started")
}

impl Stage {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl Work {
    /// Runs it, unless it needs what was not built.
    fn run_if(&self, built: bool, consent: Consent) -> Ended {
        if built || !self.needs_build {
            self.run(consent)
        } else {
            Ended::not_run(self.stage.name(), self.stage as usize)
        }
    }

    fn run(&self, consent: Consent) -> Ended {
        let (began, stage) = (Instant::now(), self.stage.name());
        shell::say(&format!("== {stage}"));
        let mut found = Found::default();
        if let Err(error) = (self.run)(consent, &mut found) {
            let said = format!("{error:#}");
            shell::say(&said);
            // Failed tests are listed separately.
            if found.failures.is_empty() {
                let mut lines = said.lines();
                found.failures.push(Failure {
                    name: lines.next().unwrap_or_default().to_owned(),
                    message: lines.map(str::to_owned).collect(),
                });
            }
        }
        Ended {
            stage,
            at: self.stage as usize,
            took: Some(began.elapsed()),
            found,
        }
    }
}

/// Fetches what stages need from elsewhere while the first stages compile. A stage whose files are unavailable reports
/// it.
fn fetch(packages: &[Wanted], has_lab: bool, consent: Consent) {
    if !consent.is_given() {
        return;
    }
    // Tests of what cargo-deny objects to use it, too.
    for tool in [tools::DENY, tools::MDBOOK] {
        if let Err(error) = tool.get() {
            eprintln!("{error:#}");
        }
    }
    let installed = packages::install(packages, consent);
    if has_lab && installed.is_ok() {
        let _ = lab::fetch();
    }
}

fn lint_and_edges(consent: Consent, found: &mut Found) -> anyhow::Result<()> {
    let linted = lint::run(consent, &mut found.skipped);
    found.passed += usize::from(linted.is_ok());
    let edges = deps::run();
    found.passed += usize::from(edges.is_ok());
    linted.and(edges)
}

fn build(_: Consent, found: &mut Found) -> anyhow::Result<()> {
    cargo::test(&["--no-run"], "build", found)?;
    program::tests_are_built();
    Ok(())
}

fn rust(consent: Consent, found: &mut Found) -> anyhow::Result<()> {
    if let Err(missing) = packages::install(&RUST_TESTS, consent) {
        eprintln!("{missing}");
    }
    cargo::live_and_others(found)
}

/// Guests get the program that the tests were built with.
fn guests(consent: Consent, found: &mut Found) -> anyhow::Result<()> {
    program::as_tested()?;
    program::take(&program::built())?;
    lab::stage(consent, found)
}

/// These tests are ignored by default, so that the other stages and an ordinary `cargo test` are fast.
fn calibration(_: Consent, found: &mut Found) -> anyhow::Result<()> {
    // The test `calibration` itself, and those whose names end with it.
    let tests = [
        "--no-fail-fast",
        "--test",
        "*calibration",
        "--",
        "--include-ignored",
    ];
    cargo::test(&tests, "calibration", found)
}
