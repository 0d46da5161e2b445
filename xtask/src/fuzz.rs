//! Runs the fuzz targets for a while each.
//!
//! `fuzz/corpus` has the committed inputs, one folder per target. New inputs go to `target/fuzz`; `--merge` adds those of
//! them that reach new code to the committed ones.

use crate::consent::Consent;
use crate::test::Found;
use crate::{shell, tools};
use anyhow::{Context, bail, ensure};
use clap::Args;
use std::fs;
use std::process::{Command, Stdio};

/// Arguments of `cargo xtask fuzz`.
#[derive(Args)]
pub struct FuzzArgs {
    /// This target only
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Then add the inputs that reach new code to `fuzz/corpus`
    #[arg(long)]
    merge: bool,
}

/// Seconds of the stage, over all targets.
const IN_STAGE: usize = 30;
/// Bytes of the longest input that is committed.
const LONGEST: &str = "-max_len=8192";

/// Recordings that a target starts with, in addition to its own corpus: a folder of the workspace with one input per
/// file.
const SEEDS: [(&str, &str); 1] = [("call_page", "crates/source/tests/fixtures/graph-6.12")];

const NO_NIGHTLY: &str =
    "the fuzz targets need a nightly toolchain: rustup toolchain install nightly --profile minimal";

/// Runs every target of `fuzz/`, or one. Installs what they need if cargo can.
pub fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    ensure!(has_nightly(), NO_NIGHTLY);
    let targets = targets()?;
    let only = args.target.as_ref();
    if let Some(unknown) = only.filter(|only| !targets.contains(only)) {
        bail!(
            "there is no target {unknown}; there are {}",
            targets.join(", ")
        );
    }
    let chosen = || {
        targets
            .iter()
            .filter(|target| only.is_none_or(|only| only == *target))
    };
    // All of them first: a target that does not build is reported before the others run for an hour.
    for target in chosen() {
        shown(&["build", target])?;
    }
    for target in chosen() {
        for_seconds(target, args.seconds)?;
    }
    for target in chosen().filter(|_| args.merge) {
        let [new, committed, ..] = &folders(target)?[..] else {
            continue;
        };
        shown(&[
            "run",
            target,
            committed,
            new,
            "--",
            "-set_cover_merge=1",
            "-use_counters=0",
            LONGEST,
        ])?;
    }
    Ok(())
}

/// The stage of the tests: the committed inputs and half a minute of new ones.
pub fn stage(_: Consent, found: &mut Found) -> anyhow::Result<()> {
    if !has_nightly() {
        found.skipped.note(NO_NIGHTLY);
        return Ok(());
    }
    let targets = targets()?;
    let seconds = (IN_STAGE / targets.len()).max(1);
    for target in &targets {
        for_seconds(target, u32::try_from(seconds)?)?;
        found.passed += 1;
    }
    Ok(())
}

fn has_nightly() -> bool {
    let version = ["+nightly", "--version"];
    let nightly = shell::command("cargo", &version)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    nightly.is_ok_and(|status| status.success())
}

fn targets() -> anyhow::Result<Vec<String>> {
    tools::FUZZ.get()?;
    let list = fuzz(&["list"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be started")?;
    ensure!(
        list.status.success(),
        "cargo fuzz list failed ({})",
        list.status
    );
    let list = String::from_utf8_lossy(&list.stdout);
    let targets: Vec<String> = list
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    ensure!(!targets.is_empty(), "no fuzz targets found");
    Ok(targets)
}

fn for_seconds(target: &str, seconds: u32) -> anyhow::Result<()> {
    let limit = format!("-max_total_time={seconds}");
    let folders = folders(target)?;
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    shown(&[&["run", target], &folders[..], &["--", &limit]].concat())
}

/// The folders of a target's inputs: the one for new inputs, the committed ones, and recordings.
fn folders(target: &str) -> anyhow::Result<Vec<String>> {
    let new = tools::target().join("fuzz").join(target);
    let committed = shell::root().join("fuzz/corpus").join(target);
    for folder in [&new, &committed] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let seeds = SEEDS.iter().filter(|seed| seed.0 == target);
    let seeds = seeds.map(|seed| shell::root().join(seed.1));
    Ok([new, committed]
        .into_iter()
        .chain(seeds)
        .map(|folder| folder.display().to_string())
        .collect())
}

fn fuzz(args: &[&str]) -> Command {
    let mut command = shell::command("cargo", &["+nightly", "fuzz"]);
    command.args(args);
    // Without it, cargo does not find a helper that was just installed.
    if let Ok(path) = tools::path() {
        command.env("PATH", path);
    }
    command
}

fn shown(args: &[&str]) -> anyhow::Result<()> {
    eprintln!("+ cargo +nightly fuzz {}", args.join(" "));
    let status = fuzz(args).status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("cargo fuzz {} failed ({status})", args.join(" "));
    }
    Ok(())
}
