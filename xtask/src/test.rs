//! Everything that must pass, in stages that can be named alone.

use crate::consent::Consent;
use crate::packages::{self, CROSS_COMPILER, LAB, RUST_TESTS, WEB};
use crate::{aarch64, deps, lab, layout, lint, miri, program, shell, web};
use clap::{Args, ValueEnum};
use std::time::{Duration, Instant};

/// Arguments of `cargo xtask test`.
#[derive(Args)]
pub struct TestArgs {
    /// Only these stages [default: all, in this order]
    #[arg(value_enum)]
    stages: Vec<Stage>,
    /// Install what a stage needs without asking: Debian packages, components of the toolchain
    #[arg(long)]
    yes: bool,
}

/// A part that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// Formatting, lints, the other architecture, licences, and the edges between crates
    Lint,
    /// Our own atomics under Miri
    Miri,
    /// Compiling all Rust tests
    Build,
    /// All Rust tests, those that record included
    Rust,
    /// Pages of runs: their bundle, its own tests, and all kinds of run in a browser
    Web,
    /// Statistics against simulations with a known answer
    Calibration,
    /// What this machine cannot try, in guests: another kernel, refused tracing, other clocks, a CPU that goes
    /// offline
    Lab,
}

/// A stage's work.
struct Work {
    stage: Stage,
    run: fn(Consent) -> anyhow::Result<()>,
    /// What it would install, in words.
    wants: fn() -> Vec<String>,
    /// Minutes on two cores, from a clean clone.
    budget: u64,
}

/// All stages; a new one is a line here and a variant above.
const STAGES: [Work; 7] = [
    Work {
        stage: Stage::Lint,
        run: lint_and_edges,
        wants: wanted_by_lint,
        budget: 8,
    },
    Work {
        stage: Stage::Miri,
        run: miri::run,
        wants: miri::wanted,
        budget: 4,
    },
    Work {
        stage: Stage::Build,
        run: |_| build(),
        wants: Vec::new,
        budget: 8,
    },
    Work {
        stage: Stage::Rust,
        run: rust,
        wants: || debian(&RUST_TESTS),
        budget: 12,
    },
    Work {
        stage: Stage::Web,
        run: web::test,
        wants: || debian(&WEB),
        budget: 6,
    },
    Work {
        stage: Stage::Calibration,
        run: |_| calibration(),
        wants: Vec::new,
        budget: 15,
    },
    Work {
        stage: Stage::Lab,
        run: guests,
        wants: || debian(&LAB),
        budget: 12,
    },
];

/// Runs them; fails at the first that does. Tests that record need root and tracefs; where either is missing
/// they say that they are skipped.
pub fn run(args: &TestArgs) -> anyhow::Result<()> {
    let chosen = || {
        let named = &args.stages;
        STAGES
            .iter()
            .filter(|work| named.is_empty() || named.contains(&work.stage))
    };
    let wanted: Vec<String> = chosen().flat_map(|work| (work.wants)()).collect();
    let consent = Consent::ask(args.yes, &wanted);
    let mut took = Vec::new();
    for work in chosen() {
        let began = Instant::now();
        eprintln!("== {:?}", work.stage);
        let result = (work.run)(consent);
        took.push((work, began.elapsed(), result.is_ok()));
        if let Err(error) = result {
            report(&took);
            return Err(error);
        }
    }
    report(&took);
    Ok(())
}

/// How long each took, beside its budget: a stage that outgrows it is to be looked at, which a loaded machine
/// must not turn into a failure.
fn report(took: &[(&Work, Duration, bool)]) {
    for (work, time, passed) in took {
        let seconds = time.as_secs();
        let over = if seconds > work.budget * 60 {
            ", over its budget"
        } else {
            ""
        };
        eprintln!(
            "{:<12} {} in {}:{:02} of {} min{over}",
            format!("{:?}", work.stage).to_lowercase(),
            if *passed { "passed" } else { "FAILED" },
            seconds / 60,
            seconds % 60,
            work.budget,
        );
    }
}

fn debian(wanted: &[packages::Wanted]) -> Vec<String> {
    packages::missing(wanted)
        .iter()
        .map(|package| format!("Debian package {package}"))
        .collect()
}

fn wanted_by_lint() -> Vec<String> {
    [debian(&CROSS_COMPILER), aarch64::wanted()].concat()
}

fn lint_and_edges(consent: Consent) -> anyhow::Result<()> {
    lint::run(consent)?;
    deps::run()?;
    layout::run()
}

/// All tests of the workspace, with what releases have beside what every build has.
const EVERYTHING: [&str; 4] = ["--workspace", "--features", program::FEATURES, "--locked"];

/// A stage of its own, so that the budget of the tests is that of the tests.
fn build() -> anyhow::Result<()> {
    cargo_test(&[&EVERYTHING[..], &["--no-run"]].concat())
}

fn rust(consent: Consent) -> anyhow::Result<()> {
    if let Err(missing) = packages::install(&RUST_TESTS, consent) {
        eprintln!("{missing}: tests of it are skipped");
    }
    cargo_test(&[&EVERYTHING[..], &["--no-fail-fast"]].concat())
}

/// The guests get the program that the other stages have built: any test of the command line has it built, and
/// `cargo build` would build it anew, with fewer features of its libraries.
fn guests(consent: Consent) -> anyhow::Result<()> {
    cargo_test(&[&EVERYTHING[..], &["--no-run", "--test", "completion"]].concat())?;
    program::take(&program::built())?;
    lab::stage(consent)
}

/// These tests are marked as ignored, so that the other stages and an ordinary `cargo test` are quick.
fn calibration() -> anyhow::Result<()> {
    // `calibration` itself, and those that have it at the end of their names. Of the whole workspace: cargo
    // unites features over what it is asked for, and two packages alone would be compiled anew.
    let tests = [
        "--no-fail-fast",
        "--test",
        "*calibration",
        "--",
        "--include-ignored",
    ];
    cargo_test(&[&EVERYTHING[..], &tests[..]].concat())
}

/// One test binary after the other, as cargo does: those that record share the measured CPU and take turns by
/// a lock of their own.
fn cargo_test(args: &[&str]) -> anyhow::Result<()> {
    // A shell's background job has SIGINT ignored, and one under nohup SIGHUP: recordings honour that, and the
    // tests that send such signals would wait for ever.
    let signals = "--default-signal=HUP,INT,QUIT,TERM";
    shell::run("env", &[&[signals, "cargo", "test"][..], args].concat())
}
