//! The architectures of released programs, and what building and running them needs.

use crate::consent::Consent;
use crate::packages::{self, Wanted};
use crate::rust_std;
use clap::ValueEnum;
use std::fmt;

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Machine {
    /// 64-bit Intel and AMD.
    #[value(name = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Machine {
    /// All of them.
    pub const ALL: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

    fn arch(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    /// The Rust target: with musl, whose libraries are linked statically.
    pub fn target(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64-unknown-linux-musl",
            Machine::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The C compiler, for libraries with C code. Their code uses nothing in which the C libraries differ, so glibc's
    /// headers are sufficient where Debian has no compiler for musl.
    fn compiler(self) -> Wanted {
        match self {
            Machine::X86_64 => packages::MUSL_COMPILER,
            Machine::Aarch64 => packages::CROSS_COMPILER[0],
        }
    }

    /// The emulator that runs its programs here, if this is another architecture.
    pub fn runner(self) -> Option<&'static str> {
        self.emulator().map(|emulator| emulator.program)
    }

    fn emulator(self) -> Option<Wanted> {
        (self.arch() != std::env::consts::ARCH).then_some(match self {
            Machine::X86_64 => packages::USER_EMULATORS[0],
            Machine::Aarch64 => packages::USER_EMULATORS[1],
        })
    }

    /// Environment variables for cargo: the compiler, and Rust's own linker.
    pub fn environment(self) -> [(String, &'static str); 2] {
        let target = self.target().replace('-', "_");
        [
            (format!("CC_{target}"), self.compiler().program),
            (
                format!("CARGO_TARGET_{}_LINKER", target.to_uppercase()),
                "rust-lld",
            ),
        ]
    }

    /// Installs what is missing.
    ///
    /// # Errors
    /// What is still missing.
    pub fn prepare(self, consent: Consent) -> Result<(), String> {
        let wanted: Vec<Wanted> = [self.compiler()]
            .into_iter()
            .chain(self.emulator())
            .collect();
        packages::install(&wanted, consent)?;
        rust_std::install(self.target(), consent)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.arch())
    }
}
