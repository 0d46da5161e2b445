//! The developer's commands: `cargo xtask test | lint | deps | bench | fuzz | miri`.
#![forbid(unsafe_code)]

mod bench;
mod deps;
mod fuzz;
mod lint;
mod miri;
mod packages;
mod shell;
mod test;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "The developer's commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass: lint, crate edges, and all tests, those that record included
    Test(test::TestArgs),
    /// cargo fmt --check and clippy, warnings denied
    Lint,
    /// Check that crates import only what the architecture allows
    Deps,
    /// Measured claims, as ratios within one run
    Bench {
        /// Which; all when left out
        #[arg(value_enum)]
        what: Option<bench::What>,
    },
    /// Run the fuzz targets for a while (needs cargo-fuzz and a nightly toolchain)
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Run the tests of our own atomics under Miri (needs a nightly toolchain)
    Miri,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Lint => lint::run(),
        Command::Deps => deps::run(),
        Command::Bench { what } => bench::run(what),
        Command::Fuzz { seconds } => fuzz::run(seconds),
        Command::Miri => miri::run(),
    }
}
