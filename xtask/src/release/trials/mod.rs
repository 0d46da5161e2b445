//! Tries what users do with each package: installs it where nothing else is, records, upgrades and removes it.

mod container;
mod debian;
mod kubernetes;
mod root;
mod rpm;

use super::{Packages, REVISION, deb, rpm as packing};
use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The longest that a recording may take until its answer, from the start of the command.
const MINUTE: Duration = Duration::from_secs(60);

/// Tries the packages of one architecture; another than this machine's is only held against the linters.
pub fn run(packages: &Packages, time: u64) -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "packages are tried in roots of their own, which needs root"
    );
    lint(
        "lintian",
        &["--fail-on", "error,warning", "--tag-display-limit", "0"],
        &packages.deb,
    )?;
    let config = crate::shell::root().join("packaging/rpm/rpmlint.toml");
    let config = config.to_str().context("the path is no UTF-8")?;
    lint("rpmlint", &["--strict", "--config", config], &packages.rpm)?;
    if packages.unpacked.release.machine.runner().is_some() {
        eprintln!("SKIPPED: trials of a package of another architecture");
        return Ok(());
    }
    manual(packages)?;
    let older = tempfile::tempdir()?;
    let (unpacked, before) = (&packages.unpacked, REVISION - 1);
    debian::run(
        &deb::make(unpacked, before, time, older.path())?,
        &packages.deb,
    )?;
    rpm::run(
        &packing::make(unpacked, before, time, older.path())?,
        &packages.rpm,
    )?;
    container::run(&packages.image, &unpacked.release.version)?;
    kubernetes::run(&unpacked.release.version)?;
    Ok(())
}

fn lint(program: &str, args: &[&str], package: &Path) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(args)
        .arg(package)
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{program} objects:\n{said}");
    println!("{program}: {} is clean", package.display());
    Ok(())
}

/// Manual pages must be read without a complaint by a second formatter.
fn manual(packages: &Packages) -> anyhow::Result<()> {
    let mut pages = 0;
    for page in std::fs::read_dir(packages.unpacked.at("man"))? {
        let page = page?.path();
        let output = Command::new("mandoc")
            .args(["-T", "lint", "-W", "error"])
            .arg(&page)
            .output()
            .context("mandoc cannot be started")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stdout));
        }
        pages += 1;
    }
    println!("mandoc: {pages} manual pages are read without an error");
    Ok(())
}
