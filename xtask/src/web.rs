//! The interactive part of pages: built with npm, tested in a browser.

use crate::consent::Consent;
use crate::test::Found;
use crate::{packages, program, shell, tools};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// The bundle: committed, and embedded by every cargo build.
pub const BUNDLE: &str = "web/dist";
const FILES: [&str; 2] = ["page.css", "page.js"];
/// The licence of the bundled library: its npm path, and its path in releases.
const LICENCE: [&str; 2] = ["web/node_modules/uplot/LICENSE", "packaging/licences/uplot"];

pub fn build() -> anyhow::Result<()> {
    ensure!(
        tools::on_path("npm").is_some(),
        "the interactive part of pages is built with npm (Debian packages nodejs and npm)"
    );
    build_into(&shell::root().join(BUNDLE))
}

/// Builds a bundle into a folder. npm installs exactly the lock file's versions, and runs no package scripts.
fn build_into(folder: &Path) -> anyhow::Result<()> {
    let folder = folder.to_str().context("the path is no UTF-8")?;
    npm(&["ci", "--ignore-scripts"])?;
    npm(&["run", "build", "--", "--outDir", folder, "--emptyOutDir"])
}

/// Whether the committed bundle equals what the sources give, byte for byte.
///
/// # Errors
/// The first file that differs, and what to do.
fn same(committed: &Path, built: &Path) -> anyhow::Result<()> {
    for file in FILES {
        let read = |folder: &Path| {
            let path = folder.join(file);
            fs::read(&path).with_context(|| path.display().to_string())
        };
        if read(committed)? != read(built)? {
            bail!(
                "{} is not what web/ gives: run cargo xtask web, and commit the result",
                committed.join(file).display()
            );
        }
    }
    let found = fs::read_dir(built)?.count();
    ensure!(
        found == FILES.len(),
        "the bundle has {found} files, and the program embeds {}",
        FILES.join(" and ")
    );
    Ok(())
}

/// Rebuilds the bundle and compares it with the committed one, runs its own tests, builds the program, and checks pages
/// of stored runs and new recordings in a browser. Notes if npm or the browser cannot be installed.
pub fn test(consent: Consent, found: &mut Found) -> anyhow::Result<()> {
    lock_names_no_host()?;
    if let Err(missing) = packages::install(&packages::WEB, consent) {
        found.skipped.note(format!("the page's tests: {missing}"));
        return Ok(());
    }
    let built = tempfile::tempdir()?;
    build_into(built.path())?;
    same(&shell::root().join(BUNDLE), built.path())?;
    let [of_npm, handed_out] = LICENCE.map(|path| fs::read(shell::root().join(path)));
    ensure!(
        of_npm? == handed_out?,
        "{} is not {}: copy it",
        LICENCE[1],
        LICENCE[0]
    );
    npm(&["test"])?;
    found.passed += 1;
    program::as_tested()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let target = shell::root().join(target);
    let path = |name: &str| {
        target
            .join(name)
            .to_str()
            .map(str::to_owned)
            .context("the path is no UTF-8")
    };
    let [program, generator, out] = [
        path("debug/jitterscope")?,
        path("debug/examples/generated_run")?,
        path("web")?,
    ];
    let signals = "--default-signal=HUP,INT,QUIT,TERM";
    shell::run(
        "env",
        &[
            signals,
            "node",
            "web/browser/run.mjs",
            &program,
            &generator,
            &out,
        ],
    )?;
    found.passed += 1;
    Ok(())
}

fn npm(args: &[&str]) -> anyhow::Result<()> {
    shell::run("npm", &[&["--prefix", "web"][..], args].concat())
}

/// A lock file that names a developer's package host would make all users fetch from there.
fn lock_names_no_host() -> anyhow::Result<()> {
    let path = shell::root().join("web/package-lock.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    ensure!(
        !text.contains("\"resolved\""),
        "{} names a host (\"resolved\")",
        path.display()
    );
    ensure!(
        text.contains("\"integrity\""),
        "{} has no digests of what is to be installed",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_names_no_host() {
        super::lock_names_no_host().unwrap();
    }

    #[test]
    fn a_bundle_that_differs_by_a_byte_is_refused() {
        let [committed, built] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for folder in [&committed, &built] {
            for file in FILES {
                fs::write(folder.path().join(file), file).unwrap();
            }
        }
        same(committed.path(), built.path()).unwrap();
        for file in FILES {
            let changed = built.path().join(file);
            fs::write(&changed, format!("{file} ")).unwrap();
            let refused = same(committed.path(), built.path()).unwrap_err();
            assert!(refused.to_string().contains(file), "{refused}");
            fs::write(&changed, file).unwrap();
        }
        fs::write(built.path().join("more.js"), "").unwrap();
        assert!(same(committed.path(), built.path()).is_err());
    }
}
