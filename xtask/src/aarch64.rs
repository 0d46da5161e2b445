//! The lints for aarch64, where nothing is run: that it still compiles, tests and benches included.

use crate::{packages, shell};
use std::process::Stdio;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Fails at the first error or warning; says so where the target or a C compiler for it cannot be had.
pub fn run() -> anyhow::Result<()> {
    if let Err(missing) = standard_library().and_then(|()| packages::cross_compiler()) {
        eprintln!("SKIPPED: whether it compiles for {TARGET}: {missing}");
        return Ok(());
    }
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--target", TARGET];
    shell::run("cargo", &[&clippy[..], &["--", "-D", "warnings"]].concat())
}

/// Rust's standard library for the target: there, or added with rustup.
fn standard_library() -> Result<(), String> {
    // Without rustup the distribution's compiler may have it; the file is where the compiler looks.
    let at = shell::output("rustc", &["--print", "target-libdir", "--target", TARGET])
        .map_err(|error| format!("{error:#}"))?;
    if std::path::Path::new(at.trim()).is_dir() {
        return Ok(());
    }
    let added = shell::command("rustup", &["target", "add", TARGET]).stdout(Stdio::null()).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("no standard library for it (rustup target add {TARGET})")),
    }
}
