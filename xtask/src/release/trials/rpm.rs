//! The RPM package in a root that has nothing but RPM's database: no C library, no shell.

use super::super::layout::{SETTINGS, UNIT};
use super::root::{Root, succeeded};
use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

pub fn run(older: &Path, package: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    root.mount_points()?;
    rpm(&root, &["--initdb"], None)?;
    let before = root.files()?;
    let took = root.answers(|| rpm(&root, &["--install"], Some(older)).map(drop))?;
    let settings = root.path().join(SETTINGS);
    let changed = format!("# Mine.\n{}", fs::read_to_string(&settings)?);
    fs::write(&settings, &changed)?;
    let first = rpm(&root, &["--query", "jitterscope"], None)?;
    rpm(&root, &["--upgrade"], Some(package))?;
    let second = rpm(&root, &["--query", "jitterscope"], None)?;
    ensure!(
        first != second,
        "{second} is what was there before the upgrade"
    );
    ensure!(
        fs::read_to_string(&settings)? == changed,
        "the upgrade replaced a user's settings"
    );
    ensure!(root.path().join(UNIT).is_file(), "there is no unit");
    root.run(&[
        "/usr/bin/jitterscope",
        "agent",
        "check",
        "/etc/jitterscope/agent.toml",
    ])?;
    // A user's settings differ from the package's, which is no fault.
    rpm(&root, &["--verify", "--noconfig", "jitterscope"], None)?;
    rpm(&root, &["--erase", "jitterscope"], None)?;
    // RPM keeps settings that a user changed.
    fs::remove_file(root.path().join(format!("{SETTINGS}.rpmsave")))?;
    let after = root.files()?;
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    ensure!(left.is_empty(), "erasing leaves or takes {left:?}");
    println!(
        "rpm: installed and asked in {:.0} s without a network, upgraded from {} to {}, and erased in an empty root",
        took.as_secs_f64(),
        first.trim(),
        second.trim(),
    );
    Ok(())
}

fn rpm(root: &Root, args: &[&str], package: Option<&Path>) -> anyhow::Result<String> {
    let output = Command::new("rpm")
        .arg("--root")
        .arg(root.path())
        .arg("--nosignature")
        .args(args)
        .args(package)
        .output()
        .context("rpm cannot be started")?;
    succeeded(&output, &format!("rpm {}", args.join(" ")))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
