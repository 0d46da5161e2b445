//! The fuzz targets, a while each.

use crate::{shell, tools};
use anyhow::{Context, bail, ensure};
use std::process::{Command, Stdio};

/// Runs every target of `fuzz/`. What they need and can be had by cargo is installed.
pub fn run(seconds: u32) -> anyhow::Result<()> {
    let version = ["+nightly", "--version"];
    let nightly = shell::command("cargo", &version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(
        nightly.is_ok_and(|status| status.success()),
        "the fuzz targets need a nightly toolchain: rustup toolchain install nightly --profile minimal"
    );
    tools::FUZZ.get()?;
    let list = fuzz(&["list"]).stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    ensure!(list.status.success(), "cargo fuzz list failed ({})", list.status);
    let list = String::from_utf8_lossy(&list.stdout);
    let targets: Vec<&str> = list.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    ensure!(!targets.is_empty(), "no fuzz targets found");
    // All of them first: one that does not build is told before an hour of running the others.
    shown(&["build"])?;
    let limit = format!("-max_total_time={seconds}");
    for target in targets {
        shown(&["run", target, "--", &limit])?;
    }
    Ok(())
}

fn fuzz(args: &[&str]) -> Command {
    let mut command = shell::command("cargo", &["+nightly", "fuzz"]);
    command.args(args);
    // Without it cargo does not find a helper that we have just installed.
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
