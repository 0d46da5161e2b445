//! The jitterscope that developers' commands start: a debug build of this workspace.

use crate::shell;
use std::path::PathBuf;

/// Builds it and says where it is.
pub fn build() -> anyhow::Result<PathBuf> {
    shell::run("cargo", &["build", "--quiet", "--locked", "--package", "jitterscope"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(shell::root().join(target).join("debug").join("jitterscope"))
}
