//! A disk whose process 1 is Debian's systemd: for trials of units.

use super::debian::Unavailable;
use super::folder;
use crate::fresh_debian;
use anyhow::Context;
use jitterscope_platform::{Machine, choose_clock};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Files of the lab in that Debian: the target to boot, and the unit that runs the command.
const FILES: [(&str, &str); 2] = [
    (
        "etc/systemd/system/lab.target",
        "[Unit]\nDescription=The lab\nRequires=multi-user.target\nAfter=multi-user.target\nWants=lab.service\n\
         AllowIsolate=yes\n",
    ),
    (
        "etc/systemd/system/lab.service",
        "[Unit]\nDescription=The command of the lab\nAfter=multi-user.target\n\n[Service]\nType=oneshot\n\
         TimeoutStartSec=infinity\nWorkingDirectory=/root\nExecStart=/bin/sh -c 'sh /lab/command >/lab/stdout \
         2>/lab/stderr </dev/null; echo $$? >/lab/exit; sync; systemctl poweroff --force --force'\n",
    ),
];
/// The size of the disk, which is a file with holes.
const SIZE: &str = "1G";

/// How long this machine's TSC is measured: a guest needs its rate to a percent.
const CALIBRATION: Duration = Duration::from_millis(200);

/// Makes the disk. The Debian on it is made once.
///
/// # Errors
/// [`Unavailable`] if no Debian can be made here.
pub fn disk(path: &Path) -> anyhow::Result<()> {
    let root = debian()?;
    for (file, text) in FILES {
        fs::write(root.join(file), text)?;
    }
    for folder in ["lab", "out"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let made = Command::new("mke2fs")
        .args(["-q", "-t", "ext4", "-d"])
        .arg(&root)
        .arg(path)
        .arg(SIZE)
        .output();
    let made = made.map_err(|error| Unavailable(format!("mke2fs cannot be started: {error}")))?;
    anyhow::ensure!(
        made.status.success(),
        "mke2fs failed ({}): {}",
        made.status,
        String::from_utf8_lossy(&made.stderr)
    );
    Ok(())
}

/// The kernel's argument with the rate of the guest's TSC, which is this machine's. A guest that measures it while this
/// machine is busy can be wrong by a factor of ten, and systemd's time limits with it. Empty if this machine does not
/// know its own.
pub fn known_tsc() -> String {
    match choose_clock(&Machine::host(), None, CALIBRATION) {
        Ok(clock) if clock.fallback_reason.is_none() => {
            format!("tsc_early_khz={}", clock.rate.hz / 1000)
        }
        _ => String::new(),
    }
}

fn debian() -> anyhow::Result<PathBuf> {
    let made = folder()?.join("debian");
    if made.is_dir() {
        return Ok(made);
    }
    let scratch = tempfile::tempdir_in(folder()?)?;
    let fresh = scratch.path().join("root");
    fresh_debian::make(&fresh, &["systemd-sysv"])
        .map_err(|error| Unavailable(format!("{error:#}")))?;
    fs::rename(&fresh, &made).with_context(|| made.display().to_string())?;
    Ok(made)
}
