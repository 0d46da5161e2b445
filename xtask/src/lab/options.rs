//! Options of a guest.

use super::debian::Release;
use super::services;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which of Debian's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Kernel {
    /// Linux 6.1
    #[value(name = "6.1")]
    V6_1,
    /// Linux 6.12
    #[value(name = "6.12")]
    V6_12,
    /// Linux 6.1 with PREEMPT_RT; it has the tracers osnoise, timerlat and hwlat
    #[value(name = "rt")]
    Rt,
    /// The newest that Debian's archive has, that of unstable
    #[value(name = "newest")]
    Newest,
}

impl Kernel {
    /// Its name on the command line, which is also that of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::V6_1 => "6.1",
            Kernel::V6_12 => "6.12",
            Kernel::Rt => "rt",
            Kernel::Newest => "newest",
        }
    }

    /// The source of its packages.
    pub fn release(self) -> Release {
        match self {
            Kernel::V6_1 | Kernel::V6_12 | Kernel::Rt => Release::Own,
            Kernel::Newest => Release::Unstable,
        }
    }

    /// The packages of a match of [`Kernel::packages`]: since 7, Debian has separate ones for image and modules.
    pub fn parts(self, package: &str) -> Vec<String> {
        match (self, package.strip_prefix("linux-binary-")) {
            (Kernel::Newest, Some(version)) => {
                vec![package.to_owned(), format!("linux-modules-{version}")]
            }
            _ => vec![package.to_owned()],
        }
    }

    /// The pattern of its Debian packages, as apt-cache searches for names.
    pub fn packages(self) -> &'static str {
        match self {
            Kernel::V6_1 => r"^linux-image-6\.1\.[0-9.]*-[0-9]+-amd64$",
            Kernel::V6_12 => r"^linux-image-6\.12\.[0-9][^-]*-amd64$",
            Kernel::Rt => r"^linux-image-6\.1\.[0-9.]*-[0-9]+-rt-amd64$",
            Kernel::Newest => r"^linux-binary-[0-9.]+[^-]*-amd64$",
        }
    }
}

/// A guest to boot.
#[derive(Clone, Debug)]
pub struct Guest {
    pub kernel: Kernel,
    /// More arguments for the kernel. `tsc=reliable` is added unless they contain something about the TSC or the clock
    /// source: otherwise an emulated TSC is marked unstable.
    pub append: String,
    /// CPUs in the form of qemu's `-smp`: a number, or `4,sockets=1,cores=2,threads=2`.
    pub smp: String,
    /// More arguments for qemu: a topology, a disk.
    pub qemu: Vec<String>,
    /// The file of its disk.
    pub disk: Option<PathBuf>,
    pub programs: Vec<Program>,
    /// Time limit from boot to end.
    pub limit: Duration,
}

/// A Debian program that a guest can have in addition to ours and busybox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The real-time analysis tools: `rtla osnoise`, `rtla timerlat`
    Rtla,
    /// The system call tracer, which can strike a process down at its n-th write
    Strace,
    /// Runs a program as another user, with chosen capabilities
    Setpriv,
}

impl Program {
    /// The packages of the program and its libraries, without libc.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            Program::Rtla => &["rtla", "libtraceevent1", "libtracefs1"],
            Program::Strace => &["strace", "libunwind8", "liblzma5"],
            Program::Setpriv => &["util-linux", "libcap-ng0"],
        }
    }

    /// Its path in the package.
    pub fn path(self) -> &'static str {
        match self {
            Program::Rtla => "usr/bin/rtla",
            Program::Strace => "usr/bin/strace",
            Program::Setpriv => "usr/bin/setpriv",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Program::Rtla => "rtla",
            Program::Strace => "strace",
            Program::Setpriv => "setpriv",
        }
    }
}

impl Guest {
    /// A guest with two CPUs and a limit of ten minutes: a machine under load takes five times as long.
    pub fn new(kernel: Kernel) -> Guest {
        Guest {
            kernel,
            append: String::new(),
            smp: "2".to_owned(),
            qemu: Vec::new(),
            disk: None,
            programs: Vec::new(),
            limit: Duration::from_secs(600),
        }
    }

    /// Adds arguments for its kernel.
    pub fn append(mut self, arguments: &str) -> Guest {
        self.append = arguments.to_owned();
        self
    }

    /// Sets CPUs in the form of qemu's `-smp`.
    pub fn smp(mut self, smp: &str) -> Guest {
        self.smp = smp.to_owned();
        self
    }

    /// Adds arguments for qemu.
    pub fn qemu(mut self, arguments: &[&str]) -> Guest {
        self.qemu
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Adds a Debian program.
    pub fn with(mut self, program: Program) -> Guest {
        self.programs.push(program);
        self
    }

    /// Adds a persistent disk, called `disk` among qemu's devices. When the guest ends, its page cache is lost, but not
    /// what it had written to its disk.
    pub fn disk(mut self, path: &Path) -> Guest {
        self.disk = Some(path.to_owned());
        let drive = format!(
            "file={},if=none,id=disk,format=raw,cache=writeback",
            path.display()
        );
        self.qemu(&["-drive", &drive])
    }

    /// Boots the systemd of a disk, whose unit runs the command.
    pub fn systemd(self, disk: &Path) -> Guest {
        let words =
            "lab.systemd systemd.unit=lab.target systemd.getty_auto=no systemd.firstboot=no";
        self.disk(disk)
            .qemu(&["-device", "virtio-blk-pci,drive=disk"])
            .append(&format!("{words} {}", services::known_tsc()))
    }

    /// The kernel's command line.
    pub fn command_line(&self) -> String {
        let named = self.append.split_whitespace().any(|word| {
            word.starts_with("tsc=")
                || word.starts_with("clocksource=")
                || word.starts_with("notsc")
        });
        let tsc = if named { "" } else { "tsc=reliable" };
        // A panic reboots at once, and -no-reboot then ends the guest. An emulator that waits for its CPU would fail
        // the kernel's check that timer interrupts are on time.
        let words = [
            "console=ttyS0 panic=-1 loglevel=4 no_timer_check",
            tsc,
            &self.append,
        ];
        words
            .into_iter()
            .filter(|words| !words.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tsc_is_called_reliable_unless_the_caller_speaks_of_it() {
        assert!(
            Guest::new(Kernel::V6_1)
                .append("isolcpus=1")
                .command_line()
                .contains("tsc=reliable isolcpus=1")
        );
        for other in ["tsc=unstable", "quiet clocksource=hpet", "notsc"] {
            assert!(
                !Guest::new(Kernel::V6_1)
                    .append(other)
                    .command_line()
                    .contains("reliable"),
                "{other}"
            );
        }
    }
}
