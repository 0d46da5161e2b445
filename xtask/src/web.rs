//! The interactive part of pages: built with npm, tested in a browser.

use crate::consent::Consent;
use crate::{packages, program, shell, tools};
use anyhow::{Context, ensure};
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;

/// Builds `web/dist`, which the next cargo build embeds. What is installed is exactly what the lock file says,
/// and nothing that it brings is run on the way.
pub fn build() -> anyhow::Result<()> {
    ensure!(
        tools::on_path("npm").is_some(),
        "the interactive part of pages is built with npm (Debian has it in nodejs and npm); without it pages are \
         complete, and stand still"
    );
    npm(&["ci", "--ignore-scripts"])?;
    npm(&["run", "build"])?;
    // Has cargo look for the bundle again.
    let script = shell::root().join("crates/view/build.rs");
    let touched = File::options()
        .append(true)
        .open(&script)
        .and_then(|file| file.set_modified(SystemTime::now()));
    touched.with_context(|| format!("{}", script.display()))
}

/// Builds it, tests it, builds the program with it, and looks at pages of stored runs and fresh recordings in a
/// browser. Where npm or the browser cannot be had, that is printed, and the stage skipped.
pub fn test(consent: Consent) -> anyhow::Result<()> {
    lock_names_no_host()?;
    if let Err(missing) = packages::install(&packages::WEB, consent) {
        eprintln!("SKIPPED: the page's tests: {missing}");
        return Ok(());
    }
    build()?;
    npm(&["test"])?;
    // Both at once, of the whole workspace and with what releases have: what the Rust tests built is built already.
    let both = ["--bin", "jitterscope", "--example", "generated_run"];
    let of = [
        "build",
        "--locked",
        "--workspace",
        "--features",
        program::FEATURES,
    ];
    shell::run("cargo", &[&of[..], &both].concat())?;
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
    )
}

fn npm(args: &[&str]) -> anyhow::Result<()> {
    shell::run("npm", &[&["--prefix", "web"][..], args].concat())
}

/// A lock file that names where somebody fetched from would have everybody fetch from there.
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
    #[test]
    fn the_lock_file_names_no_host() {
        super::lock_names_no_host().unwrap();
    }
}
