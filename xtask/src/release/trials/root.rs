//! A root folder in which commands run as on a machine of its own.

use super::MINUTE;
use anyhow::{Context, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Mounts what every running machine has, and starts a command there. The mounts end with the command. It has no network,
/// so it can fetch nothing.
const ENTER: &str = "mount -t proc proc \"$0/proc\" && mount -t sysfs sysfs \"$0/sys\" && \
                     mount --rbind /dev \"$0/dev\" && exec chroot \"$0\" \"$@\"";

pub struct Root {
    folder: tempfile::TempDir,
}

impl Root {
    pub fn new() -> anyhow::Result<Root> {
        let folder = tempfile::Builder::new()
            .prefix("jitterscope-root-")
            .tempdir()?;
        Ok(Root { folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the folders that [`Root::run`] mounts on.
    pub fn mount_points(&self) -> anyhow::Result<()> {
        for folder in ["proc", "sys", "dev", "root", "tmp"] {
            std::fs::create_dir_all(self.path().join(folder))?;
        }
        Ok(())
    }

    /// Runs a command there and returns its output.
    ///
    /// # Errors
    /// It fails.
    pub fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        let output = self.output(command)?;
        succeeded(&output, &command.join(" "))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn output(&self, command: &[&str]) -> anyhow::Result<Output> {
        Command::new("unshare")
            .args([
                "--mount",
                "--net",
                "--propagation",
                "private",
                "--",
                "sh",
                "-c",
                ENTER,
            ])
            .arg(self.path())
            .args(command)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
            .context("unshare cannot be started")
    }

    /// Installs the package, then records there, as the first thing that a user does, and checks the answer. Returns
    /// how long both took.
    pub fn answers(
        &self,
        install: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let _turn = jitterscope_testing::turn();
        let begun = Instant::now();
        install()?;
        let answer = self.run(&["/usr/bin/jitterscope", "record"])?;
        is_answer(&answer, begun.elapsed())
    }

    /// All files, but for the package managers' own records, the runs, and the claims of measured CPUs.
    pub fn files(&self) -> anyhow::Result<BTreeSet<PathBuf>> {
        const KEPT: [&str; 8] = [
            "var/lib/dpkg",
            "var/lib/rpm",
            "var/log",
            "var/cache",
            "var/lib/apt",
            "root/.local",
            "root/.rpmdb",
            // In memory on a machine that was booted.
            "run/jitterscope",
        ];
        let files = super::super::layout::files(self.path())?;
        Ok(files
            .into_iter()
            .filter(|file| !KEPT.iter().any(|kept| file.starts_with(kept)))
            .collect())
    }
}

/// Whether a recording says what was lost, in time.
pub fn is_answer(answer: &str, took: Duration) -> anyhow::Result<Duration> {
    ensure!(
        answer.contains(" of its time: ") && answer.contains("culprit "),
        "record names no lost time and no culprit:\n{answer}"
    );
    ensure!(took < MINUTE, "the answer took {took:?}");
    Ok(took)
}

pub fn succeeded(output: &Output, what: &str) -> anyhow::Result<()> {
    ensure!(
        output.status.success(),
        "{what} failed ({}): {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
