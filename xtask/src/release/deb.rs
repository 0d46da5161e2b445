//! The Debian package: the tree of the layout, with Debian's own documents and checksums.

use super::layout::{DOC, SETTINGS, Unpacked, compress, files, relink};
use crate::book::links;
use crate::dist::{Machine, archive};
use crate::shell;
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who answers for the package. The project has no mail address yet, and `.invalid` can never be another's.
const MAINTAINER: &str = "The jitterscope developers <packages@jitterscope.invalid>";

/// The scripts that dpkg runs: when the package is removed, the agent does not go on without its program.
const SCRIPTS: [&str; 2] = ["prerm", "postrm"];

/// Makes `jitterscope_VERSION-REVISION_ARCH.deb`.
pub fn make(unpacked: &Unpacked, revision: u32, time: u64, out: &Path) -> anyhow::Result<PathBuf> {
    pack(unpacked, revision, time, "xz", out)
}

/// Makes it with one of dpkg-deb's compressions; `none` is for a trial, in which packing would take longest.
pub fn pack(
    unpacked: &Unpacked,
    revision: u32,
    time: u64,
    compression: &str,
    out: &Path,
) -> anyhow::Result<PathBuf> {
    let version = format!("{}-{revision}", unpacked.release.version);
    let arch = arch(unpacked.release.machine);
    let stage = tempfile::Builder::new()
        .prefix("jitterscope-deb-")
        .tempdir()?;
    let root = stage.path();
    unpacked.lay_out(root)?;
    documents(unpacked, &version, time, root)?;
    links::check_packed(root, &root.join(DOC))?;
    let control = root.join("DEBIAN");
    archive::set_modes(root)?;
    let sums = sums(root)?;
    let size = size(root)?;
    fs::create_dir(&control)?;
    fs::write(control.join("md5sums"), sums)?;
    fs::write(control.join("control"), fields(&version, arch, size)?)?;
    fs::write(control.join("conffiles"), format!("/{SETTINGS}\n"))?;
    for script in SCRIPTS {
        let from = shell::root().join("packaging/deb").join(script);
        crate::dist::copy(&from, &control.join(script))?;
    }
    archive::set_modes(&control)?;
    archive::set_times(root, time)?;
    let path = out.join(format!("jitterscope_{version}_{arch}.deb"));
    let made = Command::new("dpkg-deb")
        .arg("--root-owner-group")
        .arg(format!("-Z{compression}"))
        .arg("--build")
        .arg(root)
        .arg(&path)
        .env("SOURCE_DATE_EPOCH", time.to_string())
        .status()
        .context("dpkg-deb cannot be started")?;
    ensure!(made.success(), "{} was not made ({made})", path.display());
    Ok(path)
}

/// Debian's name of an architecture.
pub fn arch(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "amd64",
        Machine::Aarch64 => "arm64",
    }
}

fn fields(version: &str, arch: &str, kib: u64) -> anyhow::Result<String> {
    let description = fs::read_to_string(shell::root().join("packaging/deb/description"))?;
    Ok(format!(
        "Package: jitterscope\nVersion: {version}\nSection: utils\nPriority: optional\nArchitecture: {arch}\n\
         Maintainer: {MAINTAINER}\nInstalled-Size: {kib}\nDescription: {description}"
    ))
}

/// Licences, changelogs and lintian's exceptions, under Debian's names.
fn documents(unpacked: &Unpacked, version: &str, time: u64, root: &Path) -> anyhow::Result<()> {
    let doc = root.join(DOC);
    fs::write(
        doc.join("copyright"),
        copyright(&unpacked.at("LICENSE-MIT"))?,
    )?;
    compress(&unpacked.at("CHANGELOG.md"), &doc.join("changelog.gz"))?;
    relink(root, "](CHANGELOG.md", "](changelog.gz")?;
    relink(root, "](../CHANGELOG.md", "](../changelog.gz")?;
    for file in ["THIRD-PARTY.txt", "RUST-LIBRARY.html"] {
        compress(&unpacked.at(file), &doc.join(format!("{file}.gz")))?;
    }
    let packaged = tempfile::NamedTempFile::new()?;
    fs::write(packaged.path(), changelog(version, time)?)?;
    compress(packaged.path(), &doc.join("changelog.Debian.gz"))?;
    let overrides = root.join("usr/share/lintian/overrides");
    fs::create_dir_all(&overrides)?;
    let from = shell::root().join("packaging/deb/lintian-overrides");
    fs::copy(from, overrides.join("jitterscope"))?;
    Ok(())
}

fn changelog(version: &str, time: u64) -> anyhow::Result<String> {
    let date = Command::new("date")
        .args(["-u", "-R", "-d", &format!("@{time}")])
        .env("LC_ALL", "C")
        .output()
        .context("date cannot be started")?;
    let date = String::from_utf8_lossy(&date.stdout).into_owned();
    Ok(format!(
        "jitterscope ({version}) unstable; urgency=medium\n\n  * New release; changelog.gz lists what is new.\n\n \
         -- {MAINTAINER}  {date}"
    ))
}

/// Debian's machine-readable form. Apache's text is on every Debian system; ours of MIT is in the file.
fn copyright(mit: &Path) -> anyhow::Result<String> {
    let mit = fs::read_to_string(mit).with_context(|| mit.display().to_string())?;
    let mut text = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: jitterscope\n\
         Comment: The program contains libraries of other authors. THIRD-PARTY.txt.gz and\n \
         RUST-LIBRARY.html.gz beside this file have their copyrights and licences.\n\n\
         Files: *\n\
         Copyright: 2026 the jitterscope developers\n\
         License: MIT or Apache-2.0\n\n\
         License: MIT\n",
    );
    // The paragraphs after the title and the line with the holder.
    let paragraphs = mit.split("\n\n").skip(2);
    let lines: Vec<String> = paragraphs
        .map(|paragraph| format!(" {}\n", paragraph.trim().replace('\n', "\n ")))
        .collect();
    text.push_str(&lines.join(" .\n"));
    text.push_str(
        "\nLicense: Apache-2.0\n On Debian systems, the full text of the Apache License, Version 2.0, is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
    );
    Ok(text)
}

/// The checksum of each file, as dpkg keeps them.
fn sums(root: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for file in files(root)? {
        let sum = Command::new("md5sum").arg(&file).current_dir(root).output();
        let sum = sum.context("md5sum cannot be started")?;
        ensure!(sum.status.success(), "{} has no checksum", file.display());
        text.push_str(&String::from_utf8(sum.stdout)?);
    }
    ensure!(!text.is_empty(), "the package has no files");
    Ok(text)
}

/// The installed size in KiB, each file rounded up.
fn size(root: &Path) -> anyhow::Result<u64> {
    let mut kib = 0;
    for file in files(root)? {
        kib += fs::metadata(root.join(file))?.len().div_ceil(1024);
    }
    Ok(kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_sees_both_licences_in_full() {
        let text = copyright(&shell::root().join("LICENSE-MIT")).unwrap();
        assert!(text.contains("License: MIT or Apache-2.0\n"), "{text}");
        assert!(text.contains(" Permission is hereby granted"), "{text}");
        assert!(text.contains("WITHOUT WARRANTY"), "{text}");
        assert!(text.contains("common-licenses/Apache-2.0"), "{text}");
        // A line that begins in the first column would begin a new field.
        for line in text.split("License: MIT\n").nth(1).unwrap().lines() {
            assert!(line.is_empty() || line.starts_with([' ', 'L']), "{line}");
        }
    }

    #[test]
    fn the_changelog_has_the_form_that_dpkg_reads() {
        let text = changelog("0.2.0-1", 1_700_000_000).unwrap();
        assert!(
            text.starts_with("jitterscope (0.2.0-1) unstable; "),
            "{text}"
        );
        assert!(
            text.contains("\n -- The jitterscope developers <"),
            "{text}"
        );
        assert!(
            text.ends_with("  Tue, 14 Nov 2023 22:13:20 +0000\n"),
            "{text}"
        );
    }
}
