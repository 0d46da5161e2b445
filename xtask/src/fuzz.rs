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
use std::path::{Path, PathBuf};
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
const IN_STAGE: usize = 60;
/// Bytes of the longest input that is committed.
const LONGEST: &str = "-max_len=8192";

const OPTIMIZED: &str = "profile.release.opt-level=3";
const QUICK: &str = "profile.release.opt-level=0";
/// Coverage that libFuzzer reads, with compared values; the address sanitizer; checks that release builds leave out.
const FLAGS: [&str; 11] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Zsanitizer=address",
    "-Cdebug-assertions",
    "-Ccodegen-units=1",
];

/// Recordings that a target starts with, in addition to its own corpus: a folder of the workspace with one input per
/// file.
const SEEDS: [(&str, &str); 1] = [("call_page", "crates/source/tests/fixtures/graph-6.12")];

const NO_NIGHTLY: &str =
    "the fuzz targets need a nightly toolchain: rustup toolchain install nightly --profile minimal";

/// Runs every target of `fuzz/`, or one.
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
    let programs = build(OPTIMIZED)?;
    for target in chosen() {
        for_seconds(&programs, target, args.seconds)?;
    }
    for target in chosen().filter(|_| args.merge) {
        let [new, committed, ..] = &folders(target)?[..] else {
            continue;
        };
        let how = ["-set_cover_merge=1", "-use_counters=0", LONGEST];
        fuzz(
            &programs,
            target,
            &[&[&**committed, new], &how[..]].concat(),
        )?;
    }
    Ok(())
}

/// The stage of the tests: the committed inputs and a minute of new ones. Programs that are not optimized try a third as
/// many inputs in that time, and save three minutes of compiling.
pub fn stage(_: Consent, found: &mut Found) -> anyhow::Result<()> {
    if !has_nightly() {
        found.skipped.note(NO_NIGHTLY);
        return Ok(());
    }
    let targets = targets()?;
    let programs = build(QUICK)?;
    let seconds = (IN_STAGE / targets.len()).max(1);
    for target in &targets {
        quietly_for_seconds(&programs, target, u32::try_from(seconds)?)?;
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

/// The names of all targets, sorted.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = shell::root().join("fuzz/fuzz_targets");
    let context = || folder.display().to_string();
    let mut targets = Vec::new();
    for entry in fs::read_dir(&folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem()
        {
            targets.push(name.to_string_lossy().into_owned());
        }
    }
    ensure!(!targets.is_empty(), "no fuzz targets found");
    targets.sort();
    Ok(targets)
}

/// Builds all targets with libFuzzer's coverage and the address sanitizer; returns the folder of the programs. The flags
/// are those that cargo-fuzz passes.
fn build(optimize: &str) -> anyhow::Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = tools::target().join("fuzz-build");
    let place = folder.to_str().context("the path is no UTF-8")?;
    let args = [
        "+nightly",
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--bins",
        "--manifest-path",
        "fuzz/Cargo.toml",
        // The flags must not apply to build scripts.
        "--target",
        &target,
        "--target-dir",
        place,
        "--config",
        optimize,
    ];
    shell::say(&format!("+ cargo {}", args.join(" ")));
    let status = shell::command("cargo", &args)
        .env("RUSTFLAGS", FLAGS.join(" "))
        .status()
        .context("cargo cannot be started")?;
    ensure!(
        status.success(),
        "the fuzz targets do not compile ({status})"
    );
    Ok(folder.join(target).join("release"))
}

fn for_seconds(programs: &Path, target: &str, seconds: u32) -> anyhow::Result<()> {
    let limit = format!("-max_total_time={seconds}");
    let folders = folders(target)?;
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    fuzz(programs, target, &[&folders[..], &[&limit]].concat())
}

/// Runs a target, and shows what it prints only if it fails: thousands of lines of progress hide what matters.
fn quietly_for_seconds(programs: &Path, target: &str, seconds: u32) -> anyhow::Result<()> {
    let mut command = command(programs, target)?;
    let limit = format!("-max_total_time={seconds}");
    command.args(folders(target)?).arg(&limit);
    shell::say(&format!("+ {target} {limit}"));
    let mut said = Vec::new();
    let status = shell::watch(command, |line| said.push(line.to_owned()))?;
    if !status.success() {
        shell::say(&said.join("\n"));
        bail!("the fuzz target {target} failed ({status})");
    }
    Ok(())
}

/// A target's program. Inputs that break it are kept in `fuzz/artifacts`.
fn command(programs: &Path, target: &str) -> anyhow::Result<Command> {
    let kept = shell::root().join("fuzz/artifacts").join(target);
    fs::create_dir_all(&kept).with_context(|| kept.display().to_string())?;
    let mut command = Command::new(programs.join(target));
    command
        .arg(format!("-artifact_prefix={}/", kept.display()))
        .current_dir(shell::root());
    Ok(command)
}

/// Runs a target.
fn fuzz(programs: &Path, target: &str, args: &[&str]) -> anyhow::Result<()> {
    shell::say(&format!("+ {target} {}", args.join(" ")));
    let status = command(programs, target)?
        .args(args)
        .status()
        .with_context(|| format!("the fuzz target {target} cannot be started"))?;
    ensure!(
        status.success(),
        "the fuzz target {target} failed ({status})"
    );
    Ok(())
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
