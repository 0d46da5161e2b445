//! Cargo's helpers that the developer's commands need: found, or installed below `target/tools`.

use crate::shell;
use anyhow::Context;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A helper and the version that is installed where there is none.
pub struct Tool {
    /// Its package and program.
    pub name: &'static str,
    version: &'static str,
}

/// Checks licences, sources and advisories of what is built in.
pub const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};
/// Builds and runs fuzz targets.
pub const FUZZ: Tool = Tool {
    name: "cargo-fuzz",
    version: "0.13.2",
};
/// Changes the code in small ways and runs the tests on each change.
pub const MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
};

impl Tool {
    /// The program: from the path, else from the tools folder, else it is built there. The build is not
    /// optimised: that takes less than half the time, and the program is quick enough so.
    pub fn get(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = on_path(self.name) {
            return Ok(path);
        }
        let program = folder().join("bin").join(self.name);
        if !program.is_file() {
            eprintln!(
                "{} is not installed: it is built once, which takes a minute or three",
                self.name
            );
            let root = folder()
                .into_os_string()
                .into_string()
                .ok()
                .context("the path is no UTF-8")?;
            let args = [
                "install",
                "--locked",
                "--debug",
                "--quiet",
                "--root",
                &root,
                "--version",
                self.version,
                self.name,
            ];
            shell::run("cargo", &args)?;
        }
        Ok(program)
    }
}

/// The program search path with the tools folder, so that cargo finds its subcommands there.
pub fn path() -> anyhow::Result<OsString> {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&old).chain([folder().join("bin")]);
    std::env::join_paths(all).context("the program search path cannot be extended")
}

fn folder() -> PathBuf {
    target().join("tools")
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    shell::root().join(target)
}

/// A program of the search path.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| Path::new(&folder).join(program))
        .find(|path| path.is_file())
}
