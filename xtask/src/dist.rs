//! The programs for users: one static file per architecture, inspected before it is packed.
//!
//! Each includes PNG charts, uses the locked libraries, contains no path of the build machine, and needs only a Linux
//! kernel. The same commit and compiler give the same archive.

pub mod archive;
mod build;
mod inspect;
mod licences;
mod machine;
mod sbom;

use crate::book::links;
use crate::consent::Consent;
use crate::{shell, tools};
use anyhow::{Context, anyhow, ensure};
use clap::Args;
use inspect::Built;
pub use inspect::is_static;
pub use machine::Machine;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files and folders packed with the program, at their places in the sources.
const BESIDE: [&str; 11] = [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "CHANGELOG.md",
    // README and the documents lead to these.
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "packaging/grafana",
    "packaging/systemd",
    "packaging/kubernetes",
];
/// Shells with completions, and their files.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "jitterscope.bash"),
    ("fish", "jitterscope.fish"),
    ("zsh", "_jitterscope"),
];

/// The program for fleets; it lies beside the measuring one.
pub const FLEET: &str = "jitterscope-fleet";
/// The software bill of materials in an archive.
const SBOM: &str = "SBOM.cdx.json";

/// Arguments of `cargo xtask dist`.
#[derive(Args)]
pub struct DistArgs {
    /// For this architecture only; may be repeated
    #[arg(long, value_enum, value_name = "ARCH", default_values_t = Machine::ALL)]
    arch: Vec<Machine>,
    /// Where the archives and their checksums go
    #[arg(long, value_name = "DIR", default_value = "target/archives")]
    pub out: PathBuf,
    /// Build from a tree with changes that are not committed
    #[arg(long)]
    dirty: bool,
    /// Do not build each program a second time, in another folder, to see whether it is the same
    #[arg(long)]
    once: bool,
    /// Install what is missing: C compilers, an emulator for the other architecture, Rust's libraries for both
    #[arg(long)]
    pub yes: bool,
}

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub version: String,
    pub machine: Machine,
}

impl Release {
    /// Of an archive's file name; `None` for another file.
    pub fn of_archive(name: &str) -> Option<Release> {
        let name = name.strip_suffix(".tar.gz")?;
        let mut machines = Machine::ALL.into_iter();
        machines.find_map(|machine| {
            let before = name.strip_suffix(machine.target())?.strip_suffix('-')?;
            let version = before.strip_prefix("jitterscope-")?.to_owned();
            Some(Release { version, machine })
        })
    }
}

pub fn run(args: &DistArgs) -> anyhow::Result<()> {
    make(args).map(drop)
}

/// Builds, inspects and packs each program, and returns the archives.
pub fn make(args: &DistArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut archives = Vec::new();
    if !args.dirty {
        clean(&shell::root())?;
    }
    for machine in &args.arch {
        machine
            .prepare(Consent::given(args.yes))
            .map_err(|missing| anyhow!("{}: {missing}", machine.target()))?;
    }
    let out = shell::root().join(&args.out);
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    for machine in &args.arch {
        let built = Built {
            program: build::program(*machine, &shell::root(), &tools::target())?,
            runner: machine.runner(),
        };
        let inspected = tempfile::Builder::new()
            .prefix("jitterscope-inspected-")
            .tempdir()?;
        inspect::program(&built, inspected.path())?;
        if args.once {
            eprintln!("SKIPPED: whether a second build gives the same program (--once)");
        } else {
            build::again(*machine, &built.program)?;
        }
        let archive = packed(&built, *machine, &out)?;
        let sum = archive::checksum(&archive)?;
        println!("{}\n{}", archive.display(), sum.display());
        archives.push(archive);
    }
    Ok(archives)
}

/// Packs a program with what lies beside it, and returns the archive.
fn packed(built: &Built, machine: Machine, out: &Path) -> anyhow::Result<PathBuf> {
    let stage = tempfile::Builder::new()
        .prefix("jitterscope-dist-")
        .tempdir()?;
    let name = name(&version()?, machine.target());
    fill(&stage.path().join(&name), built, machine.target())?;
    let archive = out.join(format!("{name}.tar.gz"));
    archive::pack(stage.path(), &name, &archive, committed_at()?)?;
    Ok(archive)
}

/// Packs any program of this machine's architecture as if it were the released one: for trials of the packages.
pub fn pretended(program: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let own = Machine::ALL
        .into_iter()
        .find(|machine| machine.runner().is_none());
    let built = Built {
        program: program.to_owned(),
        runner: None,
    };
    packed(
        &built,
        own.context("there are no programs for this architecture")?,
        out,
    )
}

/// An archive's name has the version and time of a commit, so it must contain exactly that commit.
fn clean(root: &Path) -> anyhow::Result<()> {
    let changed = git(root, &["status", "--porcelain"])?;
    ensure!(
        changed.is_empty(),
        "an archive is made from a commit, and these differ from it (commit them, or give --dirty):\n{changed}"
    );
    Ok(())
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output();
    let output = output.context("git cannot be started: an archive is made from a commit")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git {} failed ({}): {said}",
        args.join(" "),
        output.status
    );
    String::from_utf8(output.stdout).context("git names a file that is no UTF-8")
}

/// The name of an archive and of the folder in it.
fn name(version: &str, target: &str) -> String {
    format!("jitterscope-{version}-{target}")
}

fn version() -> anyhow::Result<String> {
    let metadata = shell::output(
        "cargo",
        &["metadata", "--no-deps", "--format-version", "1", "--locked"],
    )?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let ours = packages
        .into_iter()
        .find(|package| package["name"] == "jitterscope");
    ours.and_then(|package| package["version"].as_str())
        .map(str::to_owned)
        .context("cargo metadata has no package jitterscope")
}

/// The time of the files in an archive, seconds since the epoch.
pub fn committed_at() -> anyhow::Result<u64> {
    if let Some(given) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let given = given.to_string_lossy();
        return given
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH={given}: seconds are wanted"));
    }
    let printed = shell::output("git", &["log", "-1", "--format=%ct"])?;
    printed
        .trim()
        .parse()
        .context("git says no time of the last commit")
}

fn fill(root: &Path, built: &Built, target: &str) -> anyhow::Result<()> {
    fs::create_dir(root)?;
    fs::copy(&built.program, root.join("jitterscope")).context("the program cannot be copied")?;
    let fleet = built.program.with_file_name(FLEET);
    fs::copy(&fleet, root.join(FLEET)).with_context(|| fleet.display().to_string())?;
    for path in BESIDE {
        copy_tracked(&shell::root(), path, &root.join(path))?;
    }
    links::check_packed(root, root)?;
    let completions = root.join("completions");
    fs::create_dir(&completions)?;
    for (shell, file) in COMPLETIONS {
        let script = built.ask(&["completions", shell])?;
        ensure!(!script.is_empty(), "there are no completions for {shell}");
        fs::write(completions.join(file), script)?;
    }
    let man = root.join("man");
    built.ask(&["manual", man.to_str().context("the path is no UTF-8")?])?;
    ensure!(
        man.join("jitterscope-record.1").is_file(),
        "there are no manual pages"
    );
    fs::write(root.join("THIRD-PARTY.txt"), licences::all(target)?)?;
    fs::write(root.join(SBOM), sbom::of(&version()?, target)?)?;
    fs::copy(
        licences::standard_library()?,
        root.join("RUST-LIBRARY.html"),
    )?;
    Ok(())
}

/// Copies a file, or the tracked files of a folder.
fn copy_tracked(root: &Path, from: &str, to: &Path) -> anyhow::Result<()> {
    let listed = git(root, &["ls-files", "-z", "--", from])?;
    let mut any = false;
    for file in listed.split('\0').filter(|file| !file.is_empty()) {
        let target = match Path::new(file).strip_prefix(from) {
            Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
            _ => to.to_owned(),
        };
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        copy(&root.join(file), &target)?;
        any = true;
    }
    ensure!(any, "{from} is not under version control");
    Ok(())
}

/// Copies a file, or a folder with its contents.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        return Ok(());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_named_by_what_is_in_it() {
        assert_eq!(
            name("1.2.3", Machine::X86_64.target()),
            "jitterscope-1.2.3-x86_64-unknown-linux-musl"
        );
        assert!(version().unwrap().split('.').count() == 3);
        for machine in Machine::ALL {
            let archive = format!("{}.tar.gz", name("1.2.3", machine.target()));
            let version = "1.2.3".to_owned();
            assert_eq!(
                Release::of_archive(&archive),
                Some(Release { version, machine })
            );
        }
        assert_eq!(Release::of_archive("jitterscope-1.2.3-sparc.tar.gz"), None);
    }

    /// A repository with a tracked and an untracked file in a folder.
    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("docs/more")).unwrap();
        for (file, text) in [
            ("README.md", "read"),
            ("docs/more/a.md", "a"),
            ("docs/notes.md", "private"),
        ] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        git(dir.path(), &["init", "--quiet"]).unwrap();
        dir
    }

    #[test]
    fn a_tree_that_differs_from_its_commit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "--quiet"]).unwrap();
        clean(dir.path()).unwrap();
        let changed = clean(repository().path()).unwrap_err().to_string();
        assert!(
            changed.contains("README.md") && changed.contains("--dirty"),
            "{changed}"
        );
    }

    #[test]
    fn of_a_folder_goes_what_is_under_version_control() {
        let (dir, out) = (repository(), tempfile::tempdir().unwrap());
        git(dir.path(), &["add", "README.md", "docs/more/a.md"]).unwrap();
        copy_tracked(dir.path(), "docs", &out.path().join("handbook")).unwrap();
        copy_tracked(dir.path(), "README.md", &out.path().join("README.md")).unwrap();
        assert_eq!(
            fs::read_to_string(out.path().join("handbook/more/a.md")).unwrap(),
            "a"
        );
        assert!(
            out.path().join("README.md").is_file()
                && !out.path().join("handbook/notes.md").exists()
        );
        assert!(copy_tracked(dir.path(), "docs/notes.md", &out.path().join("x")).is_err());
    }

    #[test]
    fn all_that_lies_beside_the_program_is_there() {
        for from in BESIDE {
            assert!(shell::root().join(from).exists(), "{from}");
        }
    }
}
