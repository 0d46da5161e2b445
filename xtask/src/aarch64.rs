//! The lints for aarch64, where nothing is run: that it still compiles, tests and benches included.

use crate::consent::Consent;
use crate::packages::{self, CROSS_COMPILER};
use crate::shell;
use std::process::Stdio;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Fails at the first error or warning; says so where the target or a C compiler for it cannot be had.
pub fn run(consent: Consent) -> anyhow::Result<()> {
    if let Err(missing) =
        standard_library(consent).and_then(|()| packages::install(&CROSS_COMPILER, consent))
    {
        eprintln!("SKIPPED: whether it compiles for {TARGET}: {missing}");
        return Ok(());
    }
    let clippy = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--locked",
        "--target",
        TARGET,
    ];
    shell::run("cargo", &[&clippy[..], &["--", "-D", "warnings"]].concat())
}

/// Whether the compiler has the standard library for the target. Without rustup the distribution's compiler may
/// have it; the folder is where the compiler looks.
fn has_standard_library() -> bool {
    let at = shell::output("rustc", &["--print", "target-libdir", "--target", TARGET]);
    at.is_ok_and(|at| std::path::Path::new(at.trim()).is_dir())
}

/// What would be installed, in words.
pub fn wanted() -> Vec<String> {
    if has_standard_library() {
        Vec::new()
    } else {
        vec![format!("rustup target {TARGET}")]
    }
}

/// Rust's standard library for the target: there, or added with rustup.
fn standard_library(consent: Consent) -> Result<(), String> {
    if has_standard_library() {
        return Ok(());
    }
    if !consent.is_given() {
        return Err(format!(
            "its standard library is not installed (--yes, or rustup target add {TARGET})"
        ));
    }
    let added = shell::command("rustup", &["target", "add", TARGET])
        .stdout(Stdio::null())
        .status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!(
            "no standard library for it (rustup target add {TARGET})"
        )),
    }
}
