//! Debian's packages, fetched with apt and unpacked below `target/lab`: nothing is installed, and apt's own state stays
//! unchanged. Fetched packages are kept; `rm -r target/lab` fetches newer ones.

use super::folder;
use crate::shell;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A package that this machine's sources do not provide, or not now: no failure of the product.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// The newest package whose name matches, as apt-cache searches for names.
///
/// # Errors
/// [`Unavailable`] if the sources cannot be queried, or have none.
pub fn newest(release: Release, pattern: &str) -> anyhow::Result<String> {
    if search(release, pattern)?.is_empty() {
        eprintln!("lab: fetching the lists of packages");
        fetched(release.apt("apt-get")?.args(["update", "--quiet"]))?;
    }
    let found = search(release, pattern)?;
    found
        .into_iter()
        .max_by_key(|name| numbers(name))
        .ok_or_else(|| {
            Unavailable(format!(
                "no package of {} is called {pattern}: add the release that has it",
                release.words()
            ))
            .into()
        })
}

/// Fetches a package and unpacks the files that match GNU tar's wildcards; all files without any. Patterns without a
/// match are skipped, because a release may lack some files. Does nothing if it was unpacked before.
///
/// # Errors
/// [`Unavailable`] if it cannot be fetched; an error if it cannot be read.
pub fn unpack(package: &str, wanted: &[&str], into: &Path) -> anyhow::Result<()> {
    unpack_of(Release::Own, package, wanted, into)
}

/// The source of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    Own,
    /// The backports of its release, on the same server.
    Backports,
    /// Unstable, on the same server.
    Unstable,
}

impl Release {
    /// Apt with this release's packages.
    fn apt(self, program: &str) -> anyhow::Result<Command> {
        match self {
            Release::Own => apt_in("apt", program),
            Release::Backports => {
                apt_of("apt-backports", program, |own| format!("{own}-backports"))
            }
            Release::Unstable => apt_of("apt-unstable", program, |_| "sid".to_owned()),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Release::Own => "this machine's apt sources",
            Release::Backports => "the backports of this machine's release",
            Release::Unstable => "Debian unstable",
        }
    }
}

/// As [`unpack`], from any release.
///
/// # Errors
/// See [`unpack`].
pub fn unpack_of(
    release: Release,
    package: &str,
    wanted: &[&str],
    into: &Path,
) -> anyhow::Result<()> {
    let done = into.join(format!(".{package}"));
    if done.exists() {
        return Ok(());
    }
    let scratch = tempfile::tempdir_in(folder()?)?;
    eprintln!("lab: fetching {package}");
    if search(release, &format!("^{}$", package.replace('+', r"\+")))?.is_empty() {
        fetched(release.apt("apt-get")?.args(["update", "--quiet"]))?;
    }
    fetched(
        release
            .apt("apt-get")?
            .args(["download", "--quiet", package])
            .current_dir(&scratch),
    )?;
    let file = fs::read_dir(&scratch)?
        .flatten()
        .map(|entry| entry.path())
        .next();
    let file = file.ok_or_else(|| Unavailable(format!("apt-get fetched no file for {package}")))?;
    fs::create_dir_all(into)?;
    let mut tar = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .context("dpkg-deb cannot be started")?;
    let stream = tar.stdout.take().context("dpkg-deb has no output")?;
    let mut unpack = Command::new("tar");
    unpack
        .args(["--extract", "--no-same-owner", "--directory"])
        .arg(into)
        .stdin(stream)
        .env("LC_ALL", "C");
    if !wanted.is_empty() {
        unpack.arg("--wildcards").args(wanted);
    }
    let unpacked = unpack.output().context("tar cannot be started")?;
    // Whatever tar reports, dpkg-deb ends: its pipe is closed.
    let read = tar.wait()?;
    let said = String::from_utf8_lossy(&unpacked.stderr);
    if !unpacked.status.success() && !only_lacks(&said) {
        bail!(
            "{package} cannot be unpacked ({}): {}",
            unpacked.status,
            said.trim()
        );
    }
    if !read.success() {
        bail!("{} cannot be read: dpkg-deb {read}", file.display());
    }
    Ok(fs::write(done, [])?)
}

/// Whether tar's only errors are patterns that match no file.
fn only_lacks(said: &str) -> bool {
    let lacks = |line: &str| line.ends_with(": Not found in archive");
    let ends = |line: &str| line.ends_with("Exiting with failure status due to previous errors");
    said.lines().any(lacks) && said.lines().all(|line| lacks(line) || ends(line))
}

/// Busybox, statically linked: the guest's userland, and some of our tools here.
pub fn busybox() -> anyhow::Result<PathBuf> {
    let into = folder()?.join("busybox");
    unpack("busybox-static", &["./bin/busybox"], &into)?;
    Ok(into.join("bin/busybox"))
}

fn search(release: Release, pattern: &str) -> anyhow::Result<Vec<String>> {
    let output = release
        .apt("apt-cache")?
        .args(["search", "--names-only", pattern])
        .stderr(Stdio::inherit())
        .output()
        .context("apt-cache cannot be started")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

/// Apt with another release on this machine's server; `named` derives its name from that of this machine's release.
fn apt_of(state: &str, program: &str, named: impl Fn(&str) -> String) -> anyhow::Result<Command> {
    let mut command = apt_in(state, program)?;
    let list = folder()?.join(state).join("sources.list");
    if !list.exists() {
        let output = Command::new("apt-get")
            .args([
                "indextargets",
                "--format",
                "$(ORIGIN) $(CODENAME) $(REPO_URI)",
                "Created-By: Packages",
            ])
            .output()
            .context("apt-get cannot be started")?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let (server, own) = debians(&lines).ok_or_else(|| {
            Unavailable("this machine's sources of packages name no release of Debian".into())
        })?;
        // Its key is among those that the machine trusts for its own release.
        let key = [
            "/usr/share/keyrings/debian-archive-keyring.gpg",
            "/usr/share/keyrings/debian-archive-keyring.pgp",
        ];
        let key = key.into_iter().find(|key| Path::new(key).exists());
        let key = key.map_or_else(String::new, |key| format!("[signed-by={key}] "));
        fs::write(&list, format!("deb {key}{server} {} main\n", named(own)))?;
    }
    command
        .arg("-o")
        .arg(format!("Dir::Etc::sourcelist={}", list.display()));
    // Installed packages do not matter.
    command.args([
        "-o",
        "Dir::Etc::sourceparts=/dev/null",
        "-o",
        "Dir::State::status=/dev/null",
    ]);
    Ok(command)
}

/// Server and name of Debian's release in lines of origin, name and server; ignores updates.
fn debians(lines: &str) -> Option<(&str, &str)> {
    lines.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (origin, release, server) = (words.next()?, words.next()?, words.next()?);
        (origin == "Debian" && !release.contains('-')).then_some((server, release))
    })
}

/// Apt with its own lists and cache, which needs no root, and this machine's sources.
fn apt_in(state: &str, program: &str) -> anyhow::Result<Command> {
    let state = folder()?.join(state);
    let (lists, cache) = (state.join("lists"), state.join("cache"));
    fs::create_dir_all(lists.join("partial"))?;
    fs::create_dir_all(cache.join("archives/partial"))?;
    let mut command = shell::command(program, &[]);
    command
        .arg("-o")
        .arg(format!("Dir::State::lists={}", lists.display()));
    command
        .arg("-o")
        .arg(format!("Dir::Cache={}", cache.display()));
    // As root, apt would otherwise switch to a user that cannot write here.
    command.args(["-o", "APT::Sandbox::User=root"]);
    Ok(command)
}

/// Runs apt; a failure counts as one of the sources or the network.
fn fetched(command: &mut Command) -> anyhow::Result<()> {
    succeed(command).map_err(|error| Unavailable(format!("{error:#}")).into())
}

/// Runs it with its standard output on standard error; fails if it fails.
fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{name} cannot be started"))?;
    if !output.status.success() {
        bail!(
            "{name} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stdout).trim()
        );
    }
    Ok(())
}

/// The numbers in a package's name, in order, which Debian increments.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_a_release_lacks_is_no_failure_and_a_full_disk_is() {
        let lacks = "tar: */kernel/fs/netfs: Not found in archive\n";
        let ends = "tar: Exiting with failure status due to previous errors\n";
        assert!(only_lacks(&[lacks, ends].concat()));
        assert!(!only_lacks(ends) && !only_lacks(""));
        let full = "tar: ./boot/vmlinuz: Cannot write: No space left on device\n";
        assert!(!only_lacks(&[full, lacks, ends].concat()));
    }

    #[test]
    fn backports_come_from_where_the_release_does() {
        let lines = "Other stable there/other\nDebian some-security there/security\nDebian some there/debian\n";
        assert_eq!(debians(lines), Some(("there/debian", "some")));
        assert_eq!(debians("Ubuntu other there\n"), None);
    }

    #[test]
    fn the_newest_is_the_one_with_the_highest_numbers() {
        let newest =
            |names: &[&'static str]| names.iter().copied().max_by_key(|name| numbers(name));
        let names = [
            "linux-image-6.12.95+deb12-amd64",
            "linux-image-6.12.117+deb12-amd64",
        ];
        assert_eq!(newest(&names), Some("linux-image-6.12.117+deb12-amd64"));
        assert_eq!(
            newest(&["linux-image-6.1.0-9-amd64", "linux-image-6.1.0-50-amd64"]),
            Some("linux-image-6.1.0-50-amd64")
        );
    }
}
