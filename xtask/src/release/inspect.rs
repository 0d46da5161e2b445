//! What was built, inspected before it is handed out: whether it is what a release promises to be.

use super::{build_folders, copy, version};
use crate::shell;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A stored run of these tests.
const RUN: &str = "crates/recording/tests/fixtures/spin";
/// An image of a chart is larger than paper alone.
const CHART: usize = 5_000;

/// Has the program draw a stored run in every way that releases have and other builds may lack.
pub fn program(program: &Path, folder: &Path) -> anyhow::Result<()> {
    let ask = |args: &[&str]| ask(program, args);
    let (printed, version) = (ask(&["--version"])?, version()?);
    let printed = String::from_utf8_lossy(&printed).into_owned();
    ensure!(
        printed.split_whitespace().any(|word| word == version),
        "it says {printed:?}, and is {version}"
    );
    let runs = folder.join("runs");
    fs::create_dir(&runs)?;
    copy(&shell::root().join(RUN), &runs.join("inspected"))?;
    let at = |name: &str| {
        folder
            .join(name)
            .to_str()
            .map(str::to_owned)
            .context("the path is no UTF-8")
    };
    let (runs, page, chart) = (at("runs")?, at("page.html")?, at("chart.png")?);
    ask(&["--runs", &runs, "report", "inspected", "--html", &page])?;
    let bundle =
        fs::read_to_string(shell::root().join("web/dist/page.js")).context("web/dist/page.js")?;
    interactive(&fs::read_to_string(&page)?, &bundle)?;
    for kind in ["percentiles", "series", "outliers", "culprits", "offsets"] {
        ask(&[
            "--runs",
            &runs,
            "report",
            "inspected",
            "--chart",
            kind,
            "--out",
            &chart,
        ])?;
        png(&fs::read(&chart)?).with_context(|| format!("--chart {kind}"))?;
    }
    names_none_of(&build_folders()?, &fs::read(program)?)
}

fn ask(program: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(program)
        .args(args)
        .output()
        .context("the program cannot be started")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "jitterscope {} failed ({}): {said}",
            args.join(" "),
            output.status
        );
    }
    Ok(output.stdout)
}

/// Whether a page has the script that was built, and its data.
fn interactive(page: &str, bundle: &str) -> anyhow::Result<()> {
    ensure!(!bundle.trim().is_empty(), "the bundle is empty");
    ensure!(
        page.contains(bundle),
        "its pages have not the script that was built: they stand still"
    );
    let data = page
        .split("id=\"data\">")
        .nth(1)
        .and_then(|rest| rest.split('<').next());
    ensure!(
        data.is_some_and(|data| data.len() > 100),
        "its pages have no data"
    );
    Ok(())
}

fn png(bytes: &[u8]) -> anyhow::Result<()> {
    ensure!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "that is no PNG");
    ensure!(
        bytes.len() > CHART,
        "an image of {} bytes shows nothing",
        bytes.len()
    );
    Ok(())
}

/// Whether it names a folder of the machine that it was built on.
fn names_none_of(folders: &[String], program: &[u8]) -> anyhow::Result<()> {
    for folder in folders {
        let bytes = folder.as_bytes();
        let found = program.windows(bytes.len()).any(|window| window == bytes);
        ensure!(
            !found,
            "the program names {folder}, a folder of the machine that it was built on"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_stands_still_is_noticed() {
        let data = "QUJD".repeat(40);
        let page = |script: &str, data: &str| {
            format!(
                "<html><script type=\"x\" id=\"data\">{data}</script><script>{script}</script></html>"
            )
        };
        assert!(interactive(&page("draw()", &data), "draw()").is_ok());
        assert!(interactive(&page("other()", &data), "draw()").is_err());
        assert!(interactive(&page("draw()", ""), "draw()").is_err());
        assert!(interactive("<html></html>", "draw()").is_err());
        assert!(interactive(&page("", &data), "").is_err());
    }

    #[test]
    fn an_image_that_is_none_or_empty_is_noticed() {
        let image = |length: usize| [&b"\x89PNG\r\n\x1a\n"[..], &vec![1; length]].concat();
        assert!(png(&image(9_000)).is_ok());
        assert!(png(&image(100)).is_err());
        assert!(png(b"<svg").is_err());
    }

    #[test]
    fn a_program_that_names_where_it_was_built_is_noticed() {
        let folders = build_folders().unwrap();
        assert!(
            folders.len() >= 2,
            "the sources and what is kept of libraries: {folders:?}"
        );
        for folder in &folders {
            let named = format!("panic at {folder}/src/main.rs");
            assert!(
                names_none_of(&folders, named.as_bytes()).is_err(),
                "{folder}"
            );
        }
        assert!(
            names_none_of(
                &folders,
                b"panic at /jitterscope/src/main.rs, /cargo/registry"
            )
            .is_ok()
        );
    }
}
