//! Formatting, lints, the other architecture, and what the libraries that are built in ask for.

use crate::consent::Consent;
use crate::{aarch64, deny, shell};

/// Fails at the first difference or warning.
pub fn run(consent: Consent) -> anyhow::Result<()> {
    shell::run("cargo", &["fmt", "--all", "--check"])?;
    let clippy = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    shell::run("cargo", &clippy)?;
    aarch64::run(consent)?;
    deny::run()
}
