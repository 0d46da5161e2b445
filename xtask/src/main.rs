//! The developer's commands: `cargo xtask test | lint | deny | deps | bench | fuzz | lab | miri |
//! mutants | release | text-order | torture | web`.
#![forbid(unsafe_code)]

mod aarch64;
mod bench;
mod consent;
mod deny;
mod deps;
mod fuzz;
mod lab;
mod layout;
mod lint;
mod miri;
mod mutants;
mod packages;
mod program;
mod release;
mod shell;
mod test;
mod text_order;
mod tools;
mod torture;
mod web;

use clap::{Parser, Subcommand};
use consent::Consent;
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
    /// Check that crates import only what the architecture allows
    Deps,
    /// Check what the layout of the sources promises
    Layout,
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
    /// Run the fuzz targets for a while (needs a nightly toolchain; installs cargo-fuzz where it is missing)
    Fuzz {
        /// This target only
        target: Option<String>,
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Run the tests of our own atomics under Miri (needs a nightly toolchain)
    Miri,
    /// Change the code in small ways and see which changes no test notices (installs cargo-mutants; hours)
    Mutants(mutants::MutantsArgs),
    /// Build what is handed out, look at it, and pack it with its licences and a checksum
    Release(release::ReleaseArgs),
    /// See which functions recordings call, for the linker to put them side by side (needs root)
    TextOrder(text_order::TextOrderArgs),
    /// Kill every command at random moments and compare the machine before and after (needs root)
    Torture(torture::TortureArgs),
    /// Run a command in a guest with another kernel, boot parameters or CPUs (installs qemu where it is missing)
    Lab(lab::LabArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    let done = match Cli::parse().command {
        // A guest's exit code is ours.
        Command::Lab(args) => return Ok(lab::run(&args)?.into()),
        Command::Test(args) => test::run(&args),
        Command::Lint { yes } => lint::run(Consent::given(yes)),
        Command::Web => web::build(),
        Command::Deny => deny::run(),
        Command::Deps => deps::run(),
        Command::Layout => layout::run(),
        Command::Bench { what, all: _, yes } => bench::run(what, Consent::given(yes)),
        Command::Crowd { count, period } => bench::crowd(count, Duration::from_millis(period)),
        Command::Fuzz { target, seconds } => fuzz::run(target.as_deref(), seconds),
        Command::Miri => miri::run(Consent::given(true)),
        Command::Mutants(args) => mutants::run(&args),
        Command::Release(args) => release::run(&args),
        Command::TextOrder(args) => text_order::run(&args),
        Command::Torture(args) => torture::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
