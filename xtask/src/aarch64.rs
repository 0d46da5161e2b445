//! The lints for aarch64, to check that everything still compiles, including tests and benches. Nothing is run.

use crate::consent::Consent;
use crate::packages::{self, CROSS_COMPILER};
use crate::skipped::Skipped;
use crate::{rust_std, shell};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Fails at the first error or warning. Notes if the target or its C compiler is unavailable.
pub fn run(consent: Consent, skipped: &mut Skipped) -> anyhow::Result<()> {
    if let Err(missing) = rust_std::install(TARGET, consent)
        .and_then(|()| packages::install(&CROSS_COMPILER, consent))
    {
        skipped.note(format!("whether it compiles for {TARGET}: {missing}"));
        return Ok(());
    }
    let clippy = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--locked",
        "--target",
        TARGET,
    ];
    shell::run("cargo", &[&clippy[..], &["--", "-D", "warnings"]].concat())
}

/// Describes what would be installed.
pub fn wanted() -> Vec<String> {
    rust_std::wanted(TARGET)
}
