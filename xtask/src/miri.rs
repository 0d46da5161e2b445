//! The tests of our own atomics under Miri, which checks every access and tries other thread interleavings.

use crate::consent::Consent;
use crate::shell;
use crate::test::Found;
use anyhow::{bail, ensure};
use std::process::Stdio;

/// Thread interleavings to try.
const SEEDS: &str = "-Zmiri-many-seeds=0..12";

/// The tests: those of the modules with atomics of ours.
const TESTS: [&str; 3] = [
    "control::tests",
    "pipeline::control::tests",
    "pipeline::journal::tests",
];

fn quietly(program: &str, args: &[&str]) -> bool {
    let status = shell::command(program, args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn is_there() -> bool {
    quietly("cargo", &["+nightly", "miri", "--version"])
}

/// Describes what would be installed.
pub fn wanted() -> Vec<String> {
    if is_there() {
        Vec::new()
    } else {
        vec!["Miri, a component of the nightly toolchain".to_owned()]
    }
}

/// Whether Miri is installed, or may be and can be installed.
fn is_available(consent: Consent) -> bool {
    let add = [
        "component",
        "add",
        "miri",
        "rust-src",
        "--toolchain",
        "nightly",
    ];
    is_there() || consent.is_given() && quietly("rustup", &add) && is_there()
}

/// Runs them; notes if Miri is unavailable.
pub fn run(consent: Consent, found: &mut Found) -> anyhow::Result<()> {
    if !is_available(consent) {
        found.skipped.note(
            "no Miri (rustup toolchain install nightly; rustup component add miri --toolchain nightly)",
        );
        return Ok(());
    }
    let test = ["+nightly", "miri", "test"];
    let of = ["-p", "jitterscope-probe", "--lib", "--locked", "--"];
    let args = [&test[..], &of, &TESTS].concat();
    let count = count(&[&args[..], &["--list", "--format", "terse"]].concat())?;
    shell::say(&format!("+ MIRIFLAGS={SEEDS} cargo {}", args.join(" ")));
    let mut command = shell::command("cargo", &args);
    command.env("MIRIFLAGS", SEEDS);
    let mut said = Vec::new();
    // The interleavings run in parallel, and their outputs are mixed.
    let status = shell::watch(command, |line| said.push(line.to_owned()))?;
    if !status.success() {
        shell::say(&said.join("\n"));
        bail!("Miri found something ({status})");
    }
    found.passed += count;
    Ok(())
}

/// The number of tests. Each module must have one, so that a renamed test is not silently skipped.
fn count(args: &[&str]) -> anyhow::Result<usize> {
    let all = shell::output("cargo", args)?;
    let names: Vec<&str> = all
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    for module in TESTS {
        let is_there = names
            .iter()
            .any(|name| name.starts_with(&format!("{module}::")));
        ensure!(is_there, "no test is left in {module}");
    }
    Ok(names.len())
}
