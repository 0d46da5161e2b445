//! Guests with other kernels, boot parameters and CPUs, under software emulation: for tests that are impossible or
//! unsafe on this machine.

mod boot;
mod debian;
mod emulator;
mod initramfs;
mod kernel;
mod options;
mod services;
mod trials;

use crate::consent::Consent;
use crate::packages::{self, LAB};
use crate::test::Found;
use crate::{program, shell};
use anyhow::{Context, anyhow, ensure};
use boot::Show;
use clap::Args;
pub use debian::unpack;
use options::{Guest, Kernel, Program};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use trials::Which;

/// Arguments of `cargo xtask lab`.
#[derive(Args)]
pub struct LabArgs {
    /// Debian's kernel
    #[arg(long, value_enum, default_value = "6.1")]
    kernel: Kernel,
    /// More arguments for the kernel: 'isolcpus=2,3 nohz_full=2,3'
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    append: String,
    /// CPUs, as qemu's -smp takes them: 4, or 4,sockets=1,cores=2,threads=2
    #[arg(long, default_value = "2")]
    smp: String,
    /// One more argument for qemu; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    qemu: Vec<String>,
    /// Another program that the guest needs; may be repeated
    #[arg(long, value_enum)]
    with: Vec<Program>,
    /// Seconds after which a guest that hangs is ended
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// A folder that the guest has as /out [default: target/lab/out]
    #[arg(long)]
    out: Option<PathBuf>,
    /// The jitterscope of the guest [default: a debug build of this workspace]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Install qemu where it is missing
    #[arg(long)]
    yes: bool,
    /// Run all trials rather than a command
    #[arg(long, conflicts_with = "command")]
    all: bool,
    /// Run this trial; may be repeated
    #[arg(long, value_name = "TRIAL", conflicts_with = "command")]
    only: Vec<String>,
    /// List the trials
    #[arg(long, conflicts_with = "command")]
    list: bool,
    /// What runs there; /bin has busybox and jitterscope
    #[arg(last = true, required_unless_present_any = ["all", "only", "list"])]
    command: Vec<String>,
}

/// Runs a command in a guest; returns its exit code.
pub fn run(args: &LabArgs) -> anyhow::Result<u8> {
    if args.list {
        trials::list();
        return Ok(0);
    }
    let consent = Consent::given(args.yes);
    packages::install(&LAB, consent).map_err(|missing| anyhow!(missing))?;
    if let Some(program) = &args.program {
        program::take(program)?;
    }
    if args.all || !args.only.is_empty() {
        if args.all || args.only.iter().any(|name| name == trials::SERVICE) {
            // Without it, that trial alone is skipped, and says so.
            if let Err(missing) = packages::install(&[packages::DEBIAN], consent) {
                eprintln!("{missing}");
            }
        }
        let which = if args.all {
            Which::All
        } else {
            Which::Named(&args.only)
        };
        return trials::run(&which, &mut Found::default()).map(|()| 0);
    }
    let guest = Guest {
        kernel: args.kernel,
        append: args.append.clone(),
        smp: args.smp.clone(),
        qemu: args.qemu.clone(),
        disk: None,
        programs: args.with.clone(),
        limit: Duration::from_secs(args.limit),
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => folder()?.join("out"),
    };
    ensure!(
        !out.display().to_string().contains(','),
        "qemu takes no comma in the name of a folder"
    );
    let words: Vec<String> = args.command.iter().map(|word| quoted(word)).collect();
    Ok(boot::run(
        &guest,
        &format!("exec {}\n", words.join(" ")),
        &out,
        Show::Live,
    )?
    .code)
}

/// The test stage: the trials that it has room for.
pub fn stage(consent: Consent, found: &mut Found) -> anyhow::Result<()> {
    if let Err(missing) = packages::install(&LAB, consent) {
        found.skipped.note(format!("other kernels: {missing}"));
        return Ok(());
    }
    trials::run(&Which::Stage, found)
}

/// Fetches the files of the stage's guests.
pub fn fetch() -> anyhow::Result<()> {
    emulator::Emulator::get()?;
    kernel::get(Kernel::V6_1).map(drop)
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The folder of everything that guests need.
fn folder() -> anyhow::Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = shell::root().join(target).join("lab");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_every_word_as_it_was() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
