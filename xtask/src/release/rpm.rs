//! The RPM package: the tree of the layout, packed by rpmbuild.

use super::layout::{DOC, Unpacked};
use crate::book::links;
use crate::dist::{Machine, archive, copy};
use crate::shell;
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where RPM systems keep licences.
const LICENCES: &str = "usr/share/licenses/jitterscope";

/// Makes `jitterscope-VERSION-REVISION.ARCH.rpm`.
pub fn make(unpacked: &Unpacked, revision: u32, time: u64, out: &Path) -> anyhow::Result<PathBuf> {
    let arch = arch(unpacked.release.machine);
    let stage = tempfile::Builder::new()
        .prefix("jitterscope-rpm-")
        .tempdir()?;
    let root = stage.path().join("root");
    unpacked.lay_out(&root)?;
    // Debian's zsh looks elsewhere than zsh itself.
    let zsh = root.join("usr/share/zsh");
    fs::rename(zsh.join("vendor-completions"), zsh.join("site-functions"))?;
    let licences = root.join(LICENCES);
    fs::create_dir_all(&licences)?;
    for file in [
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "THIRD-PARTY.txt",
        "RUST-LIBRARY.html",
    ] {
        copy(&unpacked.at(file), &licences.join(file))?;
    }
    copy(
        &unpacked.at("CHANGELOG.md"),
        &root.join(DOC).join("CHANGELOG.md"),
    )?;
    links::check_packed(&root, &root.join(DOC))?;
    archive::set_modes(&root)?;
    archive::set_times(&root, time)?;
    let spec = stage.path().join("jitterscope.spec");
    fs::write(&spec, filled(&unpacked.release.version, revision, time)?)?;
    let top = stage.path().join("top");
    let define = |name: &str, value: &str| ["--define".to_owned(), format!("{name} {value}")];
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .context("the path is no UTF-8")
    };
    let made = Command::new("rpmbuild")
        .args(["-bb", "--quiet", "--target", arch, "--buildroot"])
        .arg(&root)
        .args(define("_topdir", &text(&top)?))
        .args(define("_rpmdir", &text(out)?))
        .args(define(
            "_rpmfilename",
            "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        ))
        // The same files give the same bytes, whoever packs them.
        .args(define("_buildhost", "localhost"))
        .args(define("use_source_date_epoch_as_buildtime", "1"))
        .args(define("clamp_mtime_to_source_date_epoch", "1"))
        .args(define("_binary_payload", "w19.zstdio"))
        .args(define("__os_install_post", "%{nil}"))
        .args(define("_build_id_links", "none"))
        .env("SOURCE_DATE_EPOCH", time.to_string())
        .arg(&spec)
        .status()
        .context("rpmbuild cannot be started")?;
    ensure!(made.success(), "the rpm was not made ({made})");
    let version = &unpacked.release.version;
    let path = out.join(format!("jitterscope-{version}-{revision}.{arch}.rpm"));
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
}

/// RPM's name of an architecture.
fn arch(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "x86_64",
        Machine::Aarch64 => "aarch64",
    }
}

/// The spec with its version and date.
fn filled(version: &str, revision: u32, time: u64) -> anyhow::Result<String> {
    let spec = fs::read_to_string(shell::root().join("packaging/rpm/jitterscope.spec"))?;
    let date = Command::new("date")
        .args(["-u", "-d", &format!("@{time}"), "+%a %b %d %Y"])
        .env("LC_ALL", "C")
        .output()
        .context("date cannot be started")?;
    let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
    Ok(spec
        .replace("@VERSION@", version)
        .replace("@REVISION@", &revision.to_string())
        .replace("@DATE@", &date))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_has_no_gap_left() {
        let spec = filled("1.2.3", 1, 1_700_000_000).unwrap();
        assert!(
            !["@V", "@R", "@D"].iter().any(|gap| spec.contains(gap)),
            "{spec}"
        );
        assert!(
            spec.contains("* Tue Nov 14 2023 The jitterscope developers"),
            "{spec}"
        );
        assert!(spec.contains("Version:        1.2.3\n"), "{spec}");
    }
}
