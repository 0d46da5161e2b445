//! Whether the crates can be published: cargo packages each and builds it from its package alone, and then the program
//! is installed from the packages, as users install it.
//!
//! No registry has the crates yet, so the installation takes them and all libraries from one folder, without a network
//! and without this workspace.

use crate::dist::{archive, copy};
use crate::{shell, tools};
use anyhow::{Context, ensure};
use clap::Args;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate with the program.
const PROGRAM: &str = "jitterscope";
/// A stored run from the tests.
const RUN: &str = "crates/recording/tests/fixtures/spin";

/// Arguments of `cargo xtask crates`.
#[derive(Args)]
pub struct CratesArgs {
    /// Package a tree with changes that are not committed
    #[arg(long)]
    dirty: bool,
}

/// A crate of the workspace that is published.
struct Published {
    name: String,
    version: String,
}

pub fn run(args: &CratesArgs) -> anyhow::Result<()> {
    let published = published()?;
    let packages = package(&published, args.dirty)?;
    let scratch = tempfile::Builder::new()
        .prefix("jitterscope-crates-")
        .tempdir()?;
    let sources = scratch.path().join("sources");
    vendor(&sources)?;
    for of in &published {
        add(of, &packages, &sources)?;
    }
    let program = install(scratch.path(), &sources)?;
    answers(&program, &scratch.path().join("runs"))?;
    println!(
        "crates: {} packaged and each built from its package; cargo install --locked {PROGRAM} works with them",
        published.len()
    );
    Ok(())
}

/// The crates of the workspace that are published.
fn published() -> anyhow::Result<Vec<Published>> {
    let metadata = shell::output(
        "cargo",
        &["metadata", "--no-deps", "--format-version", "1", "--locked"],
    )?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published: Vec<Published> = packages
        // A crate that is not published has an empty list of registries.
        .filter(|package| package["publish"].is_null())
        .filter_map(|package| {
            Some(Published {
                name: package["name"].as_str()?.to_owned(),
                version: package["version"].as_str()?.to_owned(),
            })
        })
        .collect();
    ensure!(
        published.iter().any(|of| of.name == PROGRAM),
        "the workspace publishes no {PROGRAM}"
    );
    Ok(published)
}

/// Packages each crate, builds it from its package, and returns the folder of the packages.
fn package(published: &[Published], dirty: bool) -> anyhow::Result<PathBuf> {
    let mut args = vec!["package", "--quiet", "--locked"];
    args.extend(published.iter().flat_map(|of| ["-p", &of.name]));
    if dirty {
        args.push("--allow-dirty");
    }
    shell::run("cargo", &args)?;
    Ok(tools::target().join("package"))
}

/// Puts every library of the lock file into a folder from which cargo can take it.
fn vendor(sources: &Path) -> anyhow::Result<()> {
    let vendor = shell::command(
        "cargo",
        &["vendor", "--quiet", "--locked", "--versioned-dirs"],
    )
    .arg(sources)
    .output()
    .context("cargo cannot be started")?;
    ensure!(
        vendor.status.success(),
        "cargo vendor failed ({}): {}",
        vendor.status,
        String::from_utf8_lossy(&vendor.stderr)
    );
    Ok(())
}

/// Adds a packaged crate to that folder, with the checksum that cargo compares with the lock file of the program.
fn add(of: &Published, packages: &Path, sources: &Path) -> anyhow::Result<()> {
    let name = format!("{}-{}", of.name, of.version);
    let package = packages.join(format!("{name}.crate"));
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(&package)
        .arg("-C")
        .arg(sources)
        .status()
        .context("tar cannot be started")?;
    ensure!(
        tar.success(),
        "{} was not unpacked ({tar})",
        package.display()
    );
    let sum = json!({ "files": {}, "package": archive::digest(&package)? });
    fs::write(
        sources.join(name).join(".cargo-checksum.json"),
        sum.to_string(),
    )?;
    Ok(())
}

/// Installs the program with a cargo that has never seen a registry or this workspace.
fn install(scratch: &Path, sources: &Path) -> anyhow::Result<PathBuf> {
    let [home, installed] = ["home", "installed"].map(|name| scratch.join(name));
    fs::create_dir(&home)?;
    let text = |path: &Path| {
        path.to_str()
            .map(|path| json!(path).to_string())
            .context("the path is no UTF-8")
    };
    fs::write(
        home.join("config.toml"),
        format!(
            "[source.crates-io]\nreplace-with = \"packaged\"\n[source.packaged]\ndirectory = {}\n",
            text(sources)?
        ),
    )?;
    eprintln!("+ cargo install --locked {PROGRAM}");
    let status = Command::new("cargo")
        .args([
            "install",
            "--quiet",
            "--locked",
            "--offline",
            PROGRAM,
            "--root",
        ])
        .arg(&installed)
        .arg("--target-dir")
        .arg(scratch.join("target"))
        .current_dir(scratch)
        .env("CARGO_HOME", &home)
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "cargo install failed ({status})");
    Ok(installed.join("bin").join(PROGRAM))
}

/// Whether the installed program records, reads a stored run, and makes its page, whose script is a part of a packaged
/// crate.
fn answers(program: &Path, runs: &Path) -> anyhow::Result<()> {
    fs::create_dir(runs)?;
    let recorded = {
        let _turn = jitterscope_testing::turn();
        asked(program, runs, &["record", "--duration", "1s"])?
    };
    ensure!(
        recorded.contains(" of its time: "),
        "the installed program names no lost time:\n{recorded}"
    );
    copy(&shell::root().join(RUN), &runs.join("inspected"))?;
    let page = runs.join("page.html");
    let file = page.to_str().context("the path is no UTF-8")?;
    asked(program, runs, &["report", "inspected", "--html", file])?;
    let script = fs::read_to_string(shell::root().join(crate::web::BUNDLE).join("page.js"))?;
    ensure!(
        !script.is_empty() && fs::read_to_string(&page)?.contains(&script),
        "pages of the installed program have not the script that was built"
    );
    Ok(())
}

/// What the program prints.
fn asked(program: &Path, runs: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg("--runs")
        .arg(runs)
        .args(args)
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    ensure!(
        output.status.success(),
        "the installed program cannot {} ({}): {}",
        args[0],
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_of_tests_and_developers_are_not_published() {
        let names: Vec<String> = published().unwrap().into_iter().map(|of| of.name).collect();
        assert!(names.contains(&"jitterscope-model".to_owned()), "{names:?}");
        for own in ["xtask", "jitterscope-testing"] {
            assert!(!names.contains(&own.to_owned()), "{own}");
        }
    }
}
