//! Tries what users do with each package: installs it where nothing else is, records, upgrades and removes it.

mod container;
mod debian;
mod kubernetes;
mod rights;
mod root;
mod rpm;

use super::layout::{DEFAULTS, Unpacked};
use super::{Packages, REVISION, deb, image, rpm as packing};
use crate::dist::archive::digest;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
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
    again(packages, time)?;
    let older = tempfile::tempdir()?;
    let unpacked = &packages.unpacked;
    let (older_deb, older_rpm) = earlier(unpacked, time, older.path())?;
    debian::run(&older_deb, &packages.deb)?;
    rpm::run(&older_rpm, &packages.rpm)?;
    container::run(&packages.image, &unpacked.release.version)?;
    kubernetes::run(&unpacked.release.version)?;
    Ok(())
}

/// Makes each package a second time. The same files must give the same bytes.
fn again(packages: &Packages, time: u64) -> anyhow::Result<()> {
    let (unpacked, out) = (&packages.unpacked, tempfile::tempdir()?);
    let second = [
        deb::make(unpacked, REVISION, time, out.path())?,
        packing::make(unpacked, REVISION, time, out.path())?,
        image::make(unpacked, time, out.path())?,
    ];
    for (first, second) in [&packages.deb, &packages.rpm, &packages.image]
        .into_iter()
        .zip(&second)
    {
        ensure!(
            digest(first)? == digest(second)?,
            "{} made twice has different bytes",
            first.display()
        );
    }
    println!("deb, rpm and image: made twice, each has the same bytes");
    Ok(())
}

/// A deb and an rpm of an earlier revision, whose default settings differ.
fn earlier(unpacked: &Unpacked, time: u64, out: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let defaults = unpacked.at(DEFAULTS);
    let now = fs::read_to_string(&defaults)?;
    fs::write(&defaults, format!("# Earlier defaults.\n{now}"))?;
    let deb = deb::make(unpacked, REVISION - 1, time, out);
    let rpm = packing::make(unpacked, REVISION - 1, time, out);
    fs::write(&defaults, now)?;
    Ok((deb?, rpm?))
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
    for page in fs::read_dir(packages.unpacked.at("man"))? {
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
