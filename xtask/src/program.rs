//! The jitterscope that developers' commands start: a debug build of this workspace, or one that was named.

use crate::shell;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What releases have beside what every build has.
pub const FEATURES: &str = "jitterscope/png";

/// What all commands of this process start.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Takes one that is there already, for all that follows.
pub fn take(path: &Path) -> anyhow::Result<()> {
    let path = path
        .canonicalize()
        .with_context(|| path.display().to_string())?;
    PROGRAM.get_or_init(|| path);
    Ok(())
}

/// Says where it is; builds it first, once, if none was taken.
pub fn get() -> anyhow::Result<PathBuf> {
    if let Some(program) = PROGRAM.get() {
        return Ok(program.clone());
    }
    shell::run(
        "cargo",
        &["build", "--quiet", "--locked", "--package", "jitterscope"],
    )?;
    Ok(PROGRAM.get_or_init(built).clone())
}

/// Where cargo puts a debug build of it.
pub fn built() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    shell::root().join(target).join("debug").join("jitterscope")
}
