//! Formatting, lints, the other architecture, and the requirements on built-in libraries.

use crate::consent::Consent;
use crate::skipped::Skipped;
use crate::{aarch64, deny, shell};

/// Fails at the first difference or warning; notes what could not be checked.
pub fn run(consent: Consent, skipped: &mut Skipped) -> anyhow::Result<()> {
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
    aarch64::run(consent, skipped)?;
    deny::run(skipped)
}
