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
    let defaults = fs::read_to_string(&settings)?;
    let first = rpm(&root, &["--query", "jitterscope"], None)?;
    rpm(&root, &["--upgrade"], Some(package))?;
    let second = rpm(&root, &["--query", "jitterscope"], None)?;
    ensure!(
        first != second,
        "{second} is what was there before the upgrade"
    );
    let unchanged = fs::read_to_string(&settings)?;
    ensure!(
        unchanged != defaults,
        "settings that nobody changed did not get the new defaults"
    );
    let changed = format!("# Mine.\n{unchanged}");
    fs::write(&settings, &changed)?;
    let beside = root.path().join(format!("{SETTINGS}.rpmnew"));
    for (package, defaults) in [(older, &defaults), (package, &unchanged)] {
        rpm(&root, &["--upgrade", "--oldpackage"], Some(package))?;
        ensure!(
            fs::read_to_string(&settings)? == changed,
            "{} replaced a user's settings",
            package.display()
        );
        ensure!(
            fs::read_to_string(&beside)? == *defaults,
            "the defaults of {} are not beside the user's settings",
            package.display()
        );
    }
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
    // RPM keeps settings that a user changed, and defaults beside them.
    fs::remove_file(&beside)?;
    fs::remove_file(root.path().join(format!("{SETTINGS}.rpmsave")))?;
    let after = root.files()?;
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    ensure!(left.is_empty(), "erasing leaves or takes {left:?}");
    println!(
        "rpm: installed and asked in {:.0} s without a network, upgraded from {} to {} with other defaults, and erased in an empty root",
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
