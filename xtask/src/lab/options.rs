//! What can be asked of a guest.

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
}

impl Kernel {
    /// Its name on the command line and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::V6_1 => "6.1",
            Kernel::V6_12 => "6.12",
            Kernel::Rt => "rt",
        }
    }

    /// Which Debian packages are such a kernel, as apt-cache searches for names.
    pub fn packages(self) -> &'static str {
        match self {
            Kernel::V6_1 => r"^linux-image-6\.1\.[0-9.]*-[0-9]+-amd64$",
            Kernel::V6_12 => r"^linux-image-6\.12\.[0-9][^-]*-amd64$",
            Kernel::Rt => r"^linux-image-6\.1\.[0-9.]*-[0-9]+-rt-amd64$",
        }
    }
}

/// A guest to be booted.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its kernel.
    pub kernel: Kernel,
    /// More arguments for the kernel. `tsc=reliable` is given unless they say something about the TSC or the
    /// clock source: an emulated TSC is marked unstable otherwise.
    pub append: String,
    /// CPUs as qemu's `-smp` takes them: a number, or `4,sockets=1,cores=2,threads=2`.
    pub smp: String,
    /// More arguments for qemu: a topology, a disk.
    pub qemu: Vec<String>,
    /// The file that is its disk.
    pub disk: Option<PathBuf>,
    /// Other programs that it needs.
    pub programs: Vec<Program>,
    /// How long it may take from boot to end.
    pub limit: Duration,
}

/// A program of Debian's that a guest can have beside ours and busybox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The real-time analysis tools: `rtla osnoise`, `rtla timerlat`
    Rtla,
    /// The system call tracer, which can strike a process down at its n-th write
    Strace,
}

impl Program {
    /// The packages that it and its libraries are in, libc aside.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            Program::Rtla => &["rtla", "libtraceevent1", "libtracefs1"],
            Program::Strace => &["strace", "libunwind8", "liblzma5"],
        }
    }

    /// Where the package has it.
    pub fn path(self) -> &'static str {
        match self {
            Program::Rtla => "usr/bin/rtla",
            Program::Strace => "usr/bin/strace",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Program::Rtla => "rtla",
            Program::Strace => "strace",
        }
    }
}

impl Guest {
    /// A guest with two CPUs and ten minutes: a machine that others load takes five times as long.
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

    /// With more arguments for its kernel.
    pub fn append(mut self, arguments: &str) -> Guest {
        self.append = arguments.to_owned();
        self
    }

    /// With CPUs as qemu's `-smp` takes them.
    pub fn smp(mut self, smp: &str) -> Guest {
        self.smp = smp.to_owned();
        self
    }

    /// With more arguments for qemu.
    pub fn qemu(mut self, arguments: &[&str]) -> Guest {
        self.qemu
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// With a program of Debian's.
    pub fn with(mut self, program: Program) -> Guest {
        self.programs.push(program);
        self
    }

    /// With a disk that outlives it, `disk` to qemu's devices. The page cache of the guest is lost with it; what it
    /// had written to its disk is not.
    pub fn disk(mut self, path: &Path) -> Guest {
        self.disk = Some(path.to_owned());
        let drive = format!(
            "file={},if=none,id=disk,format=raw,cache=writeback",
            path.display()
        );
        self.qemu(&["-drive", &drive])
    }

    /// What its kernel is given.
    pub fn command_line(&self) -> String {
        let named = self.append.split_whitespace().any(|word| {
            word.starts_with("tsc=")
                || word.starts_with("clocksource=")
                || word.starts_with("notsc")
        });
        let tsc = if named { "" } else { "tsc=reliable" };
        // A panic reboots at once, and -no-reboot ends the guest then. An emulator that has to wait for its CPU
        // would fail the kernel's check that timer interrupts come in time.
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
