//! The tests of our own atomics under Miri, which watches every access and tries other orders of threads.

use crate::consent::Consent;
use crate::shell;
use std::process::Stdio;

/// Orders of threads to try.
const SEEDS: &str = "-Zmiri-many-seeds=0..12";

/// The tests: those of the modules that have atomics of ours.
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

/// What would be installed, in words.
pub fn wanted() -> Vec<String> {
    if is_there() {
        Vec::new()
    } else {
        vec!["Miri, a component of the nightly toolchain".to_owned()]
    }
}

/// Whether Miri is there, or may be and can be had.
fn can_be_had(consent: Consent) -> bool {
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

/// Runs them; where Miri cannot be had it says so.
pub fn run(consent: Consent) -> anyhow::Result<()> {
    if !can_be_had(consent) {
        eprintln!(
            "skipped: no Miri (rustup toolchain install nightly; rustup component add miri --toolchain nightly)"
        );
        return Ok(());
    }
    let args = [
        "+nightly",
        "miri",
        "test",
        "-p",
        "jitterscope-probe",
        "--lib",
        "--locked",
        "--",
        "--exact",
    ];
    let names: Vec<String> = list()?;
    let args: Vec<&str> = args
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    eprintln!("+ MIRIFLAGS={SEEDS} cargo {}", args.join(" "));
    let status = shell::command("cargo", &args)
        .env("MIRIFLAGS", SEEDS)
        .status()?;
    anyhow::ensure!(status.success(), "Miri found something ({status})");
    Ok(())
}

/// The names of these tests, as the test binary lists them: none may be left out by a change of name.
fn list() -> anyhow::Result<Vec<String>> {
    let all = shell::output(
        "cargo",
        &[
            "test",
            "-q",
            "-p",
            "jitterscope-probe",
            "--lib",
            "--locked",
            "--",
            "--list",
            "--format",
            "terse",
        ],
    )?;
    let mut names = Vec::new();
    for module in TESTS {
        let prefix = format!("{module}::");
        let found = all.lines().filter_map(|line| line.strip_suffix(": test"));
        let found: Vec<String> = found
            .filter(|name| name.starts_with(&prefix))
            .map(str::to_owned)
            .collect();
        anyhow::ensure!(!found.is_empty(), "no test is left in {module}");
        names.extend(found);
    }
    Ok(names)
}
