//! Runs the fuzz targets for a while each.

use crate::{shell, tools};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::process::{Command, Stdio};

/// Recordings that a target starts with, in addition to its own corpus: a folder of the workspace with one input per
/// file.
const SEEDS: [(&str, &str); 1] = [("call_page", "crates/source/tests/fixtures/graph-6.12")];

/// Runs every target of `fuzz/`, or one. Installs what they need if cargo can.
pub fn run(only: Option<&str>, seconds: u32) -> anyhow::Result<()> {
    let version = ["+nightly", "--version"];
    let nightly = shell::command("cargo", &version)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ensure!(
        nightly.is_ok_and(|status| status.success()),
        "the fuzz targets need a nightly toolchain: rustup toolchain install nightly --profile minimal"
    );
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
    let targets: Vec<&str> = list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    ensure!(!targets.is_empty(), "no fuzz targets found");
    if let Some(unknown) = only.filter(|only| !targets.contains(only)) {
        bail!(
            "there is no target {unknown}; there are {}",
            targets.join(", ")
        );
    }
    // All of them first: a target that does not build is reported before the others run for an hour.
    shown(&[&["build"], only.as_slice()].concat())?;
    let limit = format!("-max_total_time={seconds}");
    for target in targets
        .into_iter()
        .filter(|target| only.is_none_or(|only| only == *target))
    {
        let corpora = corpora(target)?;
        let corpora: Vec<&str> = corpora.iter().map(String::as_str).collect();
        shown(&[&["run", target], &corpora[..], &["--", &limit]].concat())?;
    }
    Ok(())
}

/// The folders of a target's inputs: first the folder for new ones, then recordings.
fn corpora(target: &str) -> anyhow::Result<Vec<String>> {
    let seeds: Vec<&str> = SEEDS
        .iter()
        .filter(|seed| seed.0 == target)
        .map(|seed| seed.1)
        .collect();
    if seeds.is_empty() {
        return Ok(Vec::new());
    }
    // The fuzzer creates it only if no other folder is given.
    let own = format!("fuzz/corpus/{target}");
    fs::create_dir_all(shell::root().join(&own)).with_context(|| own.clone())?;
    let all = [&[own.as_str()], seeds.as_slice()].concat();
    Ok(all
        .into_iter()
        .map(|folder| shell::root().join(folder).display().to_string())
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
