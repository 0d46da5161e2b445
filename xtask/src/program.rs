//! The jitterscope program that developer commands start: a debug build of this workspace, or a given one.

use crate::dist::FLEET;
use crate::shell;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Additional features of programs for users.
pub const FEATURES: &str = "jitterscope/png";

/// The build profile of programs for users, and for measurements of them.
pub const SHIPPED: &str = "dist";

/// The program that all commands of this process start.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Uses an existing program from now on.
pub fn take(path: &Path) -> anyhow::Result<()> {
    let path = path
        .canonicalize()
        .with_context(|| path.display().to_string())?;
    PROGRAM.get_or_init(|| path);
    Ok(())
}

/// Returns its path; builds it first, once, if none was given.
pub fn get() -> anyhow::Result<PathBuf> {
    if let Some(program) = PROGRAM.get() {
        return Ok(program.clone());
    }
    shell::run(
        "cargo",
        &[
            "build",
            "--quiet",
            "--locked",
            "--package",
            "jitterscope",
            "--package",
            FLEET,
        ],
    )?;
    Ok(PROGRAM.get_or_init(built).clone())
}

/// Set once this command has compiled all tests: their programs and examples are there.
static TESTS_BUILT: OnceLock<()> = OnceLock::new();

/// Notes that this command has compiled all tests.
pub fn tests_are_built() {
    TESTS_BUILT.get_or_init(|| ());
}

/// Builds it as for the tests, and the example that makes runs for pages, unless this command has compiled all tests:
/// cargo would wait here until the lints beside are done. Builds the whole workspace along with an example, so that
/// libraries have the same features as in the tests.
pub fn as_tested() -> anyhow::Result<()> {
    if TESTS_BUILT.get().is_some() {
        return Ok(());
    }
    let of = ["build", "--locked", "--workspace", "--features", FEATURES];
    let what = ["--bin", "jitterscope", "--bin", FLEET];
    let example = ["--example", "generated_run"];
    shell::run("cargo", &[&of[..], &what, &example].concat())
}

/// The path of cargo's debug build.
pub fn built() -> PathBuf {
    of_profile("debug")
}

/// The path of cargo's build for users and measurements.
pub fn shipped() -> PathBuf {
    of_profile(SHIPPED)
}

fn of_profile(folder: &str) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    shell::root().join(target).join(folder).join("jitterscope")
}
