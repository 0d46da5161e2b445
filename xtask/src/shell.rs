//! Running other programs.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A command in the root of the workspace.
pub fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs it, its output shown; fails when it does.
pub fn run(program: &str, args: &[&str]) -> anyhow::Result<()> {
    eprintln!("+ {program} {}", args.join(" "));
    let status = command(program, args)
        .status()
        .with_context(|| format!("{program} cannot be started"))?;
    if !status.success() {
        bail!("{program} {} failed ({status})", args.join(" "));
    }
    Ok(())
}

/// Runs it and returns its standard output; fails when it does.
pub fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    eprintln!("+ {program} {}", args.join(" "));
    let output = command(program, args)
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    if !output.status.success() {
        bail!("{program} {} failed ({})", args.join(" "), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} wrote no UTF-8"))
}
