//! Building the program: with flags that keep the builder's folders out of it, and a second time elsewhere to see that
//! it is the same.

use super::{FLEET, Machine, archive};
use crate::{program, shell, tools};
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What makes the program smaller without a change of what it does, for Rust's own linker: one copy of functions with
/// the same code, and a compact list of the addresses that the start of the program fills in.
const SMALLER: [&str; 2] = [
    "-C link-arg=--pack-dyn-relocs=relr",
    "-C link-arg=--icf=all",
];
/// On x86-64, too: code that reaches the stack through the frame pointer is shorter, and the tables that undo frames
/// after a panic are a third smaller. On ARM, frames have it anyway.
const SMALLER_X86_64: &str = "-C force-frame-pointers=yes";

/// Builds the programs of the sources in `root`, with cargo's files in `target`. Returns the measuring one; the other
/// lies beside it.
pub fn program(machine: Machine, root: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    // One after the other: together, libraries would have the features that either needs.
    let program = build(
        machine,
        root,
        target,
        "jitterscope",
        &["--features", program::FEATURES],
    )?;
    build(machine, root, target, FLEET, &[])?;
    Ok(program)
}

fn build(
    machine: Machine,
    root: &Path,
    target: &Path,
    package: &str,
    features: &[&str],
) -> anyhow::Result<PathBuf> {
    let args = [
        "build",
        "--profile",
        program::SHIPPED,
        "--locked",
        "-p",
        package,
    ];
    let args = [&args[..], features, &["--target", machine.target()]].concat();
    eprintln!("+ cargo {}", args.join(" "));
    let status = Command::new("cargo")
        .args(args)
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", flags(machine, root)?)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .envs(machine.environment())
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "{package} was not built ({status})");
    let program = target
        .join(machine.target())
        .join(program::SHIPPED)
        .join(package);
    ensure!(program.is_file(), "{} is not there", program.display());
    Ok(program)
}

/// Builds the programs from a copy of the sources in another folder, and fails unless they are the same.
pub fn again(machine: Machine, first: &Path) -> anyhow::Result<()> {
    let elsewhere = tempfile::Builder::new()
        .prefix("jitterscope-again-")
        .tempdir_in(tools::target())?;
    let [sources, target] = ["sources", "built"].map(|name| elsewhere.path().join(name));
    copy_sources(&shell::root(), &sources)?;
    let second = program(machine, &sources, &target)?;
    let fleets = [first, &second].map(|program| program.with_file_name(FLEET));
    for [one, two] in [[first, &*second], [&*fleets[0], &*fleets[1]]] {
        let (name, one, two) = (one.display(), archive::digest(one)?, archive::digest(two)?);
        ensure!(
            one == two,
            "two builds of {name} in different folders differ: {one} and {two}"
        );
        println!("{name}: two builds in different folders are the same: {one}");
    }
    Ok(())
}

/// Copies what is under version control, as it is now.
fn copy_sources(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    let list = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(from)
        .output()
        .context("git cannot be started")?;
    ensure!(
        list.status.success(),
        "git lists no files ({})",
        list.status
    );
    let listed = to.with_extension("list");
    fs::write(&listed, list.stdout)?;
    let mut pack = Command::new("tar")
        .args([
            "--create",
            "--null",
            "--verbatim-files-from",
            "--files-from",
        ])
        .arg(&listed)
        .current_dir(from)
        .stdout(Stdio::piped())
        .spawn()
        .context("tar cannot be started")?;
    let packed = pack.stdout.take().context("tar has no output")?;
    let unpacked = Command::new("tar")
        .arg("--extract")
        .current_dir(to)
        .stdin(packed)
        .status()?;
    let packed = pack.wait()?;
    ensure!(
        packed.success() && unpacked.success(),
        "the sources were not copied ({packed}, {unpacked})"
    );
    Ok(())
}

/// The compiler's flags. A program's messages contain source paths, which must not be those of a developer's folders.
fn flags(machine: Machine, root: &Path) -> anyhow::Result<String> {
    let mut flags = Vec::new();
    for (folder, called) in remapped(root)? {
        ensure!(
            !folder.contains(' '),
            "{folder}: flags of the compiler cannot name a folder with a blank"
        );
        flags.push(format!("--remap-path-prefix={folder}={called}"));
    }
    flags.extend(SMALLER.map(str::to_owned));
    if machine == Machine::X86_64 {
        flags.push(SMALLER_X86_64.to_owned());
    }
    Ok(flags.join(" "))
}

/// Folders of this machine whose names could appear in the program.
pub fn folders() -> anyhow::Result<Vec<String>> {
    Ok(remapped(&shell::root())?
        .into_iter()
        .map(|(folder, _)| folder)
        .collect())
}

/// The folders with their replacements: the sources and the library folders, by their given names and by the targets of
/// links.
fn remapped(root: &Path) -> anyhow::Result<Vec<(String, &'static str)>> {
    let cargo = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(Path::new(&home).join(".cargo"))
        });
    let cargo = cargo.context("neither CARGO_HOME nor HOME is set")?;
    let mut found = Vec::new();
    for (folder, called) in [(cargo, "/cargo"), (root.to_owned(), "/jitterscope")] {
        for name in names_of(&folder)? {
            found.push((name, called));
        }
    }
    Ok(found)
}

/// The name of a folder, and the target of its links if different.
fn names_of(folder: &Path) -> anyhow::Result<Vec<String>> {
    let meant = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for path in [folder, &meant] {
        let name = path
            .to_str()
            .context("the path is no UTF-8")?
            .trim_end_matches('/')
            .to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_behind_a_link_has_both_names() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/usr", &link).unwrap();
        assert_eq!(names_of(&link).unwrap(), [link.to_str().unwrap(), "/usr"]);
        assert_eq!(names_of(Path::new("/usr")).unwrap(), ["/usr"]);
    }

    #[test]
    fn the_second_build_has_the_sources_as_they_are() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (file, text) in [("a b", "changed"), ("private", "no")] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        std::os::unix::fs::symlink("a b", dir.path().join("link")).unwrap();
        for args in [&["init", "--quiet"][..], &["add", "a b", "link"]] {
            let git = Command::new("git")
                .args(args)
                .current_dir(dir.path())
                .status();
            assert!(git.unwrap().success());
        }
        let copy = out.path().join("copy");
        copy_sources(dir.path(), &copy).unwrap();
        assert_eq!(fs::read_to_string(copy.join("a b")).unwrap(), "changed");
        assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("a b"));
        assert!(!copy.join("private").exists() && !copy.join(".git").exists());
    }
}
