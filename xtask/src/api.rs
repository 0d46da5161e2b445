//! The crates that other programs may use: whether the oldest compiler builds them, whether a program outside the
//! workspace can use them, and whether a change breaks such a program.

use crate::skipped::Skipped;
use crate::{shell, tools};
use anyhow::{Context, ensure};
use clap::ValueEnum;
use std::io::Write;
use std::process::{Command, Stdio};

/// The crates whose interface is kept.
const KEPT: [&str; 4] = [
    "jitterscope-model",
    "jitterscope-source",
    "jitterscope-attribute",
    "jitterscope-analyze",
];

#[derive(clap::Args)]
pub struct ApiArgs {
    /// Which checks; all when left out
    #[arg(value_enum)]
    what: Vec<What>,
    /// The revision that others use now: a tag or a commit
    #[arg(long, default_value = "v0.2.0", value_name = "REV")]
    baseline: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The oldest compiler (rust-version) builds the workspace
    Oldest,
    /// The programs of `outside/` build and run
    Outside,
    /// cargo-semver-checks against the baseline (compiles the tool if it is missing, which takes some minutes)
    Semver,
}

pub fn run(args: &ApiArgs, skipped: &mut Skipped) -> anyhow::Result<()> {
    let wanted = |what| args.what.is_empty() || args.what.contains(&what);
    if wanted(What::Oldest) {
        oldest(skipped)?;
    }
    if wanted(What::Outside) {
        outside(skipped)?;
    }
    if wanted(What::Semver) {
        semver(&args.baseline, skipped)?;
    }
    Ok(())
}

/// The oldest compiler that must build the workspace, and the one in use: `1.95`, `1.95.0`.
fn versions() -> anyhow::Result<(String, String)> {
    let manifest = std::fs::read_to_string(shell::root().join("Cargo.toml"))?;
    let stated = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .context("Cargo.toml states no rust-version")?;
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.context("rustc cannot be started")?;
    let compiler = String::from_utf8_lossy(&compiler.stdout).into_owned();
    let used = compiler.split(' ').nth(1);
    let used = used.with_context(|| format!("rustc says '{compiler}'"))?;
    Ok((stated.trim_matches('"').to_owned(), used.to_owned()))
}

/// Whether a compiler is of a stated version, which has no patch level.
fn is_of(used: &str, stated: &str) -> bool {
    used.strip_prefix(stated)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Says whether this compiler is the oldest one, so that building is the check.
pub fn note_oldest(skipped: &mut Skipped) -> anyhow::Result<()> {
    let (stated, used) = versions()?;
    match is_of(&used, &stated) {
        true => shell::say(&format!("the compiler is the oldest that must build this, {stated}")),
        false => skipped.note(format!(
            "rust-version {stated}: this compiler is {used}; `cargo xtask api oldest` checks with {stated}"
        )),
    }
    Ok(())
}

fn oldest(skipped: &mut Skipped) -> anyhow::Result<()> {
    let (stated, used) = versions()?;
    let mut cargo = shell::command("cargo", &[]);
    if !is_of(&used, &stated) {
        let installed = Command::new("rustup").args(["toolchain", "list"]).output();
        let installed =
            installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        if !installed.is_ok_and(|list| list.lines().any(|line| line.starts_with(&stated))) {
            skipped.note(format!(
                "rust-version: no toolchain {stated}; `rustup toolchain install {stated} --profile minimal`"
            ));
            return Ok(());
        }
        cargo = shell::command("rustup", &["run", &stated, "cargo"]);
        cargo.env("CARGO_TARGET_DIR", tools::target().join("oldest"));
    }
    cargo.args([
        "check",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
    ]);
    let status = cargo.status().context("cargo cannot be started")?;
    ensure!(
        status.success(),
        "Rust {stated} does not build the workspace ({status})"
    );
    eprintln!("Rust {stated} builds the workspace");
    Ok(())
}

fn outside(skipped: &mut Skipped) -> anyhow::Result<()> {
    let target = tools::target().join("outside");
    let build = ["build", "--locked", "--manifest-path", "outside/Cargo.toml"];
    let status = shell::command("cargo", &build)
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .context("cargo cannot be started")?;
    ensure!(
        status.success(),
        "a program outside the workspace does not build ({status})"
    );
    let program = |name: &str| Command::new(target.join("debug").join(name));
    let masks = answer(program("cpu_masks").arg("0-3,5"), "")?;
    ensure!(
        masks == "0-3,5: 5 CPUs, mask 2f\n",
        "cpu_masks printed: {masks}"
    );
    // A thousand times, one each 4 ms, with a little noise.
    let times: String = (0..1000u64)
        .map(|i| format!("{}\n", i * 4_000_000 + i * 7919 % 5000))
        .collect();
    let periods = answer(&mut program("periods"), &times)?;
    ensure!(
        periods.starts_with("every 4.00 ms: "),
        "periods printed: {periods}"
    );
    let refused = program("decode_pages")
        .arg("Cargo.toml")
        .current_dir(shell::root())
        .output()?;
    ensure!(
        !refused.status.success(),
        "decode_pages took Cargo.toml for a trace"
    );
    if !rustix::process::geteuid().is_root() {
        skipped.note("outside/own_probe: it records as root");
        return Ok(());
    }
    let gaps = answer(&mut program("own_probe"), "")?;
    ensure!(gaps.starts_with("CPU "), "own_probe printed: {gaps}");
    eprintln!("four programs outside the workspace build and run");
    Ok(())
}

/// What a program prints for an input; fails if it fails.
fn answer(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let name = command.get_program().display().to_string();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| name.clone())?;
    let stdin = child.stdin.take().context("it has no input")?;
    { stdin }.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{name} failed ({})", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{name} wrote no UTF-8"))
}

fn semver(baseline: &str, skipped: &mut Skipped) -> anyhow::Result<()> {
    let is_known = shell::command("git", &["rev-parse", "--verify", "--quiet"])
        .arg(format!("{baseline}^{{commit}}"))
        .stdout(Stdio::null())
        .status()
        .context("git cannot be started")?
        .success();
    if !is_known {
        skipped.note(format!(
            "semver: there is no revision {baseline}; name another with --baseline REV"
        ));
        return Ok(());
    }
    let tool = tools::SEMVER_CHECKS.get()?;
    let tool = tool.to_string_lossy().into_owned();
    let mut args = vec!["semver-checks", "check-release", "--baseline-rev", baseline];
    for name in KEPT {
        args.extend(["--package", name]);
    }
    shell::run(&tool, &args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_crates_have_examples_that_outside_builds() {
        let outside = std::fs::read_to_string(shell::root().join("outside/Cargo.toml")).unwrap();
        for name in KEPT {
            let folder = name.strip_prefix("jitterscope-").unwrap();
            let examples = shell::root().join(format!("crates/{folder}/examples"));
            let mut examples = std::fs::read_dir(examples)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let built = |path: std::path::PathBuf| {
                let file = path.file_name().unwrap().to_string_lossy().into_owned();
                outside.contains(&format!("path = \"../crates/{folder}/examples/{file}\""))
            };
            assert!(examples.any(built), "{name}");
        }
    }

    #[test]
    fn a_version_is_compared_without_its_patch_level() {
        assert!(is_of("1.95.0", "1.95") && is_of("1.95.3", "1.95"));
        assert!(!is_of("1.96.0", "1.95") && !is_of("1.950.0", "1.95"));
    }
}
