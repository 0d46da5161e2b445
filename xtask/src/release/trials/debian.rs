//! The Debian package in a fresh Debian: installed, used, upgraded, purged.

use super::root::{Root, succeeded};
use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

pub fn run(older: &Path, package: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    eprintln!("a fresh Debian is made, which takes a minute or two");
    let made = Command::new("mmdebstrap")
        .args(["--quiet", "--variant=minbase", &release()?])
        .arg(root.path())
        .output()
        .context("mmdebstrap cannot be started")?;
    succeeded(&made, "mmdebstrap")?;
    let before = root.files()?;
    for (package, name) in [(older, "older.deb"), (package, "newer.deb")] {
        fs::copy(package, root.path().join("tmp").join(name))?;
    }

    root.run(&["dpkg", "--install", "/tmp/older.deb"])?;
    let first = root.run(&[
        "dpkg-query",
        "--show",
        "--showformat=${Version}",
        "jitterscope",
    ])?;
    root.run(&["apt-get", "install", "--yes", "/tmp/newer.deb"])?;
    let second = root.run(&[
        "dpkg-query",
        "--show",
        "--showformat=${Version}",
        "jitterscope",
    ])?;
    ensure!(
        first != second,
        "{second} is what was there before the upgrade"
    );
    root.run(&["dpkg", "--verify", "jitterscope"])?;
    for file in [
        "usr/share/man/man1/jitterscope-record.1.gz",
        "usr/share/bash-completion/completions/jitterscope",
        "usr/share/jitterscope/grafana/jitterscope.json",
    ] {
        ensure!(root.path().join(file).is_file(), "{file} was not installed");
    }
    let took = root.records()?;

    root.run(&["dpkg", "--purge", "jitterscope"])?;
    for name in ["older.deb", "newer.deb"] {
        fs::remove_file(root.path().join("tmp").join(name))?;
    }
    let after = root.files()?;
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    ensure!(left.is_empty(), "a purge leaves or takes {left:?}");
    println!(
        "deb: installed, upgraded from {first} to {second} and purged in a fresh Debian; record answered in {:.0} s",
        took.as_secs_f64()
    );
    Ok(())
}

/// The name of this machine's own Debian release.
fn release() -> anyhow::Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(str::to_owned)
        .context("this machine's release has no name")
}
