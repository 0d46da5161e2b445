//! Formatting, lints, the other architecture, and the requirements on built-in libraries.

use crate::consent::Consent;
use crate::skipped::Skipped;
use crate::{aarch64, api, deny, shell};
use anyhow::{Context, ensure};

/// Fails at the first difference or warning; notes what could not be checked.
pub fn run(consent: Consent, skipped: &mut Skipped) -> anyhow::Result<()> {
    api::note_oldest(skipped)?;
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
    documentation()?;
    aarch64::run(consent, skipped)?;
    deny::run(skipped)
}

/// Builds the documentation for developers, in which every link must lead somewhere.
fn documentation() -> anyhow::Result<()> {
    let args = [
        "doc",
        "--quiet",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    shell::say(&format!(
        "+ RUSTDOCFLAGS=\"-D warnings\" cargo {}",
        args.join(" ")
    ));
    let status = shell::command("cargo", &args)
        .env("RUSTDOCFLAGS", "-D warnings")
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "cargo doc failed ({status})");
    Ok(())
}
