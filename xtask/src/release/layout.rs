//! Where the files of a package lie on a machine: the same tree for deb, rpm and image.

use crate::dist::{FLEET, Release};
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Below it lie the program's documents.
pub const DOC: &str = "usr/share/doc/jitterscope";
/// Below it lie the manual pages.
pub const MAN: &str = "usr/share/man/man1";
/// What the agent of a package watches. Package managers keep a user's changes of it.
pub const SETTINGS: &str = "etc/jitterscope/agent.toml";
/// The same settings in an archive.
pub const DEFAULTS: &str = "packaging/systemd/agent.toml";
/// The agent's unit.
pub const UNIT: &str = "usr/lib/systemd/system/jitterscope-agent.service";
/// Files of an archive, and where they go: completions, the agent's unit and settings, Grafana's dashboard, documents.
const PLACES: [(&str, &str); 15] = [
    ("jitterscope", "usr/bin/jitterscope"),
    (FLEET, "usr/bin/jitterscope-fleet"),
    (
        "completions/jitterscope.bash",
        "usr/share/bash-completion/completions/jitterscope",
    ),
    (
        "completions/_jitterscope",
        "usr/share/zsh/vendor-completions/_jitterscope",
    ),
    (
        "completions/jitterscope.fish",
        "usr/share/fish/vendor_completions.d/jitterscope.fish",
    ),
    ("packaging/systemd/jitterscope-agent.service", UNIT),
    (DEFAULTS, SETTINGS),
    ("packaging/grafana", "usr/share/jitterscope/grafana"),
    ("packaging/kubernetes", "usr/share/jitterscope/kubernetes"),
    ("README.md", "usr/share/doc/jitterscope/README.md"),
    (
        "ARCHITECTURE.md",
        "usr/share/doc/jitterscope/ARCHITECTURE.md",
    ),
    (
        "CONTRIBUTING.md",
        "usr/share/doc/jitterscope/CONTRIBUTING.md",
    ),
    ("SECURITY.md", "usr/share/doc/jitterscope/SECURITY.md"),
    ("docs", "usr/share/doc/jitterscope/docs"),
    ("SBOM.cdx.json", "usr/share/doc/jitterscope/SBOM.cdx.json"),
];

/// An unpacked archive of `cargo xtask dist`.
pub struct Unpacked {
    folder: tempfile::TempDir,
    pub release: Release,
}

impl Unpacked {
    /// Unpacks an archive whose name states its version and target.
    pub fn of(archive: &Path) -> anyhow::Result<Unpacked> {
        let name = archive.file_name().and_then(|name| name.to_str());
        let release = name
            .and_then(Release::of_archive)
            .with_context(|| format!("{} is no archive of cargo xtask dist", archive.display()))?;
        let folder = tempfile::Builder::new()
            .prefix("jitterscope-release-")
            .tempdir()?;
        let tar = Command::new("tar")
            .arg("-xzf")
            .arg(archive)
            .arg("-C")
            .arg(folder.path())
            .arg("--strip-components=1")
            .status()
            .context("tar cannot be started")?;
        ensure!(
            tar.success(),
            "{} was not unpacked ({tar})",
            archive.display()
        );
        Ok(Unpacked { folder, release })
    }

    /// A file of the archive.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lays the files out below `root`, with compressed manual pages. Licences and the changelog are for the format of
    /// the package, which has places of its own for them.
    pub fn lay_out(&self, root: &Path) -> anyhow::Result<()> {
        for (from, to) in PLACES {
            let to = root.join(to);
            let folder = to.parent().context("a file lies in a folder")?;
            fs::create_dir_all(folder)?;
            crate::dist::copy(&self.at(from), &to)?;
        }
        let moved = PLACES.iter().filter(|(from, _)| from.contains('/'));
        for (from, to) in moved {
            relink(root, &format!("](../{from}"), &format!("](/{to}"))?;
        }
        let man = root.join(MAN);
        fs::create_dir_all(&man)?;
        for page in fs::read_dir(self.at("man"))? {
            let page = page?;
            let name = page.file_name().to_string_lossy().into_owned();
            compress(&page.path(), &man.join(format!("{name}.gz")))?;
        }
        Ok(())
    }
}

/// Replaces the beginning of links in the documents of a package.
pub fn relink(root: &Path, from: &str, to: &str) -> anyhow::Result<()> {
    let doc = root.join(DOC);
    for file in files(&doc)? {
        let page = doc.join(file);
        if page.extension().is_some_and(|end| end == "md") {
            let text = fs::read_to_string(&page)?;
            if text.contains(from) {
                fs::write(&page, text.replace(from, to))?;
            }
        }
    }
    Ok(())
}

/// Compresses a file without its name and time, so that the same text gives the same bytes.
pub fn compress(from: &Path, to: &Path) -> anyhow::Result<()> {
    let file = fs::File::create(to).with_context(|| to.display().to_string())?;
    let gzip = Command::new("gzip")
        .args(["-9", "-n", "-c"])
        .arg(from)
        .stdout(file)
        .status()
        .context("gzip cannot be started")?;
    ensure!(
        gzip.success(),
        "{} was not compressed ({gzip})",
        from.display()
    );
    Ok(())
}

/// All files below a folder, as paths from it, sorted.
pub fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = entry.path();
            // A link may lead out of the folder.
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}
