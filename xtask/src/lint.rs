//! Formatting, lints, documentation, the book, and the requirements on built-in libraries.

use crate::consent::Consent;
use crate::skipped::Skipped;
use crate::{aarch64, api, book, deny, shell};
use anyhow::{Context, ensure};

/// The crates with code for one architecture only.
const WITH_ARCHITECTURE: [&str; 8] = [
    "-p",
    "jitterscope-clock",
    "-p",
    "jitterscope-platform",
    "-p",
    "jitterscope-probe",
    "-p",
    "jitterscope-inject",
];

/// Fails at the first difference or warning; notes what could not be checked.
///
/// One target is enough for code without an architecture: aarch64, because the build stage compiles everything for this
/// machine. Without that target, everything is checked for this machine.
pub fn run(consent: Consent, skipped: &mut Skipped) -> anyhow::Result<()> {
    api::note_oldest(skipped)?;
    shell::run("cargo", &["fmt", "--all", "--check"])?;
    let target = aarch64::available(consent, skipped).then_some(aarch64::TARGET);
    if target.is_some() {
        clippy(&WITH_ARCHITECTURE, None)?;
    }
    clippy(&["--workspace"], target)?;
    documentation(target)?;
    book::build()?;
    deny::run(skipped)
}

/// Lints packages with their tests and benches.
fn clippy(packages: &[&str], target: Option<&str>) -> anyhow::Result<()> {
    let args = [
        &["clippy", "--quiet", "--all-targets", "--locked"],
        packages,
    ]
    .concat();
    let args = [args, of(target), vec!["--", "-D", "warnings"]].concat();
    shell::run("cargo", &args)
}

/// Builds the documentation for developers, in which every link must lead somewhere.
fn documentation(target: Option<&str>) -> anyhow::Result<()> {
    let args = [
        "doc",
        "--quiet",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    let args = [args.to_vec(), of(target)].concat();
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

/// Cargo's arguments for a target; none for this machine.
fn of(target: Option<&str>) -> Vec<&str> {
    target.map_or_else(Vec::new, |target| vec!["--target", target])
}
