//! The developer's commands: `cargo xtask test | lint | deny | deps | api | book | crates | dist | release | bench |
//! faults | fleet | fuzz | lab | miri | torture | web`.
#![forbid(unsafe_code)]

mod aarch64;
mod api;
mod bench;
mod book;
mod consent;
mod crates;
mod deny;
mod deps;
mod dist;
mod faults;
mod fleet;
mod fresh_debian;
mod fuzz;
mod lab;
mod lint;
mod miri;
mod packages;
mod program;
mod release;
mod rust_std;
mod shell;
mod skipped;
mod test;
mod tools;
mod torture;
mod web;

use clap::{Parser, Subcommand};
use consent::Consent;
use skipped::Skipped;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
#[command(name = "xtask", about = "The developer's commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass, in stages: lint, miri, all Rust tests, pages in a browser, calibration
    Test(test::TestArgs),
    /// cargo fmt --check, clippy with warnings denied, and deny
    Lint {
        /// Install what is missing: the C compiler and the standard library for aarch64
        #[arg(long)]
        yes: bool,
    },
    /// Build the interactive part of pages (needs npm); the next cargo build embeds it
    Web,
    /// Check licences, sources and advisories of the libraries (installs cargo-deny where it is missing)
    Deny,
    /// Check the links of the documents and build the book into target/book (installs mdbook where it is missing)
    Book,
    /// Check that crates import only what the architecture allows
    Deps,
    /// Check the crates that others may use: oldest compiler, programs outside the workspace, broken interfaces
    Api(api::ApiArgs),
    /// Measured claims, as ratios within one run
    Bench {
        /// Which; all when left out
        #[arg(value_enum, conflicts_with = "all")]
        what: Option<bench::What>,
        /// All, which is also what is done where none is named
        #[arg(long)]
        all: bool,
        /// Install what a row needs of Debian, where it is missing
        #[arg(long)]
        yes: bool,
    },
    /// Be threads that sleep and wake: `bench threads` starts this
    #[command(hide = true)]
    Crowd {
        /// How many
        count: u32,
        /// Milliseconds that each sleeps
        period: u64,
    },
    /// Inject faults whose culprit is known into recordings and judge each label (needs root and a C compiler)
    Faults(faults::FaultsArgs),
    /// Generate fleets of many machines and question them with other engines
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// Run the fuzz targets for a while (needs a nightly toolchain; installs cargo-fuzz where it is missing)
    Fuzz(fuzz::FuzzArgs),
    /// Run the tests of our own atomics under Miri (needs a nightly toolchain)
    Miri,
    /// Package each crate, build it from its package, and install the program from the packages
    Crates(crates::CratesArgs),
    /// Build the static programs that users get, inspect them, and pack each with its licences and a checksum
    Dist(dist::DistArgs),
    /// Make everything that a release has: archives, packages, images, checksums; try each in a fresh root
    Release(release::ReleaseArgs),
    /// Kill every command at random moments and compare the machine before and after (needs root)
    Torture(torture::TortureArgs),
    /// Run a command in a guest with another kernel, boot parameters or CPUs (installs qemu where it is missing)
    Lab(lab::LabArgs),
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        // Not returned from here: the error matters, and not where in xtask it occurred.
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a check, and repeats at the end what it skipped.
fn alone(check: impl FnOnce(&mut Skipped) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut skipped = Skipped::default();
    let done = check(&mut skipped);
    skipped.repeat();
    done
}

fn run() -> anyhow::Result<ExitCode> {
    let done = match Cli::parse().command {
        // Uses the guest's exit code.
        Command::Lab(args) => return Ok(lab::run(&args)?.into()),
        Command::Test(args) => test::run(&args),
        Command::Lint { yes } => alone(|skipped| lint::run(Consent::given(yes), skipped)),
        Command::Web => web::build(),
        Command::Deny => alone(deny::run),
        Command::Book => book::build(),
        Command::Deps => deps::run(),
        Command::Api(args) => alone(|skipped| api::run(&args, skipped)),
        Command::Bench { what, all: _, yes } => bench::run(what, Consent::given(yes)),
        Command::Crowd { count, period } => bench::crowd(count, Duration::from_millis(period)),
        Command::Faults(args) => faults::run(&args),
        Command::Fleet(command) => fleet::run(&command),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Miri => miri::run(Consent::given(true), &mut test::Found::default()),
        Command::Crates(args) => crates::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Release(args) => release::run(&args),
        Command::Torture(args) => torture::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
