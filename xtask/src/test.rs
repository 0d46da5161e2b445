//! Everything that must pass.

use crate::{deps, lint, miri, packages, shell};
use clap::Args;

/// Arguments of `cargo xtask test`.
#[derive(Args)]
pub struct TestArgs {
    /// Leave out formatting, lints and the crate edges
    #[arg(long)]
    only_tests: bool,
}

/// Runs it. Tests that record need root and tracefs; where either is missing they say that they are
/// skipped.
pub fn run(args: &TestArgs) -> anyhow::Result<()> {
    if !args.only_tests {
        lint::run()?;
        deps::run()?;
    }
    packages::install();
    miri::run()?;
    // One test binary after the other, as cargo does: those that record share the measured CPU and
    // take turns by a lock of their own.
    // A shell's background job has SIGINT ignored, and one under nohup SIGHUP: recordings honour that, and the
    // tests that send such signals would wait for ever.
    let signals = "--default-signal=HUP,INT,QUIT,TERM";
    shell::run("env", &[signals, "cargo", "test", "--workspace", "--locked", "--no-fail-fast"])
}
