//! The emulator: the installed one, or a newer one from Debian that is only unpacked.
//!
//! Linux changes its own code, for every tracepoint that is switched, through a temporary breakpoint. With qemu 7.2, a
//! CPU that translates that place at the same moment can keep the breakpoint forever, and dies of it or retries it
//! endlessly. This was not seen with 10.0 and later, so an older version is replaced if Debian's backports have a newer
//! one.

use super::debian::{self, Release};
use super::folder;
use anyhow::Context;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub const NAME: &str = "qemu-system-x86_64";
/// The oldest major version without the defect.
const OLDEST: u64 = 10;
/// Its packages except libraries; it uses the libraries of the installed one.
const PACKAGES: [&str; 4] = [
    "qemu-system-x86",
    "qemu-system-common",
    "qemu-system-data",
    "seabios",
];

/// The emulator that guests run in.
pub struct Emulator {
    program: PathBuf,
    /// The folder of an unpacked newer one.
    unpacked: Option<PathBuf>,
    /// Its version text, for a trial's record.
    pub what: String,
}

impl Emulator {
    /// The installed one if it is new enough, or else a newer one if there is one, or else the installed one anyway.
    pub fn get() -> anyhow::Result<Emulator> {
        let installed = Emulator {
            program: NAME.into(),
            unpacked: None,
            what: String::new(),
        };
        let installed = installed.named()?;
        if major(&installed.what).is_some_and(|version| version >= OLDEST) {
            return Ok(installed);
        }
        match newer() {
            Ok(newer) => Ok(newer),
            Err(why) => {
                // Reported only once.
                let noted = folder()?.join("emulator/.told");
                if !noted.exists() {
                    eprintln!(
                        "lab: {} it is, in which guests can die: {why:#}",
                        installed.what
                    );
                    fs::create_dir_all(folder()?.join("emulator"))?;
                    fs::write(noted, [])?;
                }
                Ok(installed)
            }
        }
    }

    /// Whether the defect described in the module can crash its guests.
    pub fn strikes_down(&self) -> bool {
        major(&self.what).is_none_or(|version| version < OLDEST)
    }

    /// Adds the arguments by which it finds its own files.
    pub fn arguments(&self, command: &mut Command) {
        if let Some(root) = &self.unpacked {
            let libraries = format!("usr/lib/{}-linux-gnu/qemu", std::env::consts::ARCH);
            command.env("QEMU_MODULE_DIR", root.join(libraries));
        }
        command.arg(&self.program);
        if let Some(root) = &self.unpacked {
            for folder in ["usr/share/qemu", "usr/share/seabios"] {
                command.arg("-L").arg(root.join(folder));
            }
        }
    }

    fn named(mut self) -> anyhow::Result<Emulator> {
        let output = Command::new(&self.program).arg("--version").output();
        let output =
            output.with_context(|| format!("{} cannot be started", self.program.display()))?;
        anyhow::ensure!(
            output.status.success(),
            "{} does not start",
            self.program.display()
        );
        let text = String::from_utf8_lossy(&output.stdout);
        self.what = text.lines().next().unwrap_or_default().to_owned();
        Ok(self)
    }
}

fn newer() -> anyhow::Result<Emulator> {
    let root = folder()?.join("emulator");
    for package in PACKAGES {
        debian::unpack_of(Release::Backports, package, &[], &root)?;
    }
    let emulator = Emulator {
        program: root.join("usr/bin").join(NAME),
        unpacked: Some(root),
        what: String::new(),
    };
    let emulator = emulator.named()?;
    anyhow::ensure!(
        major(&emulator.what).is_some_and(|version| version >= OLDEST),
        "the newest that Debian's backports have is {}",
        emulator.what
    );
    Ok(emulator)
}

/// 10 from `QEMU emulator version 10.0.2 (...)`.
fn major(what: &str) -> Option<u64> {
    let rest = what.split("version ").nth(1)?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_what_the_emulator_says() {
        assert_eq!(
            major("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)"),
            Some(10)
        );
        assert_eq!(
            major("QEMU emulator version 7.2.22 (Debian 1:7.2)"),
            Some(7)
        );
        assert_eq!(major("something else"), None);
    }
}
