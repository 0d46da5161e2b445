//! The RPM package in a root that has nothing but RPM's database: no C library, no shell.

use super::root::{Root, succeeded};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

pub fn run(older: &Path, package: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    root.mount_points()?;
    rpm(&root, &["--initdb"], None)?;
    let before = root.files()?;
    rpm(&root, &["--install"], Some(older))?;
    let first = rpm(&root, &["--query", "jitterscope"], None)?;
    rpm(&root, &["--upgrade"], Some(package))?;
    let second = rpm(&root, &["--query", "jitterscope"], None)?;
    ensure!(
        first != second,
        "{second} is what was there before the upgrade"
    );
    rpm(&root, &["--verify", "jitterscope"], None)?;
    let took = root.records()?;
    rpm(&root, &["--erase", "jitterscope"], None)?;
    let after = root.files()?;
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    ensure!(left.is_empty(), "erasing leaves or takes {left:?}");
    println!(
        "rpm: installed, upgraded from {} to {} and erased in an empty root; record answered in {:.0} s",
        first.trim(),
        second.trim(),
        took.as_secs_f64()
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
