//! A fresh Debian of this machine's own release in a folder.

use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Makes one with the essential packages and these, which takes a minute or two. The caller is root, because the files
/// belong to several users.
pub fn make(root: &Path, packages: &[&str]) -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the files of a fresh Debian belong to several users, so making one needs root"
    );
    eprintln!("a fresh Debian is made, which takes a minute or two");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--variant=minbase"]);
    if !packages.is_empty() {
        mmdebstrap.arg(format!("--include={}", packages.join(",")));
    }
    let made = mmdebstrap
        .arg(release()?)
        .arg(root)
        .output()
        .context("mmdebstrap cannot be started")?;
    ensure!(
        made.status.success(),
        "mmdebstrap failed ({}): {}",
        made.status,
        String::from_utf8_lossy(&made.stderr)
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
