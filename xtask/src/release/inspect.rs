//! What was built, looked at before it is handed out: whether it is what a release promises to be.

use super::{copy, version};
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
    let (told, version) = (ask(&["--version"])?, version()?);
    let told = String::from_utf8_lossy(&told).into_owned();
    ensure!(told.split_whitespace().any(|word| word == version), "it says {told:?}, and is {version}");
    let runs = folder.join("runs");
    fs::create_dir(&runs)?;
    copy(&shell::root().join(RUN), &runs.join("looked-at"))?;
    let at = |name: &str| folder.join(name).to_str().map(str::to_owned).context("the path is no UTF-8");
    let (runs, page, chart) = (at("runs")?, at("page.html")?, at("chart.png")?);
    ask(&["--runs", &runs, "report", "looked-at", "--html", &page])?;
    let bundle = fs::read_to_string(shell::root().join("web/dist/page.js")).context("web/dist/page.js")?;
    interactive(&fs::read_to_string(&page)?, &bundle)?;
    for kind in ["percentiles", "series", "outliers", "culprits", "offsets"] {
        ask(&["--runs", &runs, "report", "looked-at", "--chart", kind, "--out", &chart])?;
        png(&fs::read(&chart)?).with_context(|| format!("--chart {kind}"))?;
    }
    nobodys_folders(&fs::read(program)?)
}

fn ask(program: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(program).args(args).output().context("the program cannot be started")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("jitterscope {} failed ({}): {said}", args.join(" "), output.status);
    }
    Ok(output.stdout)
}

/// Whether a page has the script that was built, and its data.
fn interactive(page: &str, bundle: &str) -> anyhow::Result<()> {
    ensure!(!bundle.trim().is_empty(), "the bundle is empty");
    ensure!(page.contains(bundle), "its pages have not the script that was built: they stand still");
    let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split('<').next());
    ensure!(data.is_some_and(|data| data.len() > 100), "its pages have no data");
    Ok(())
}

fn png(bytes: &[u8]) -> anyhow::Result<()> {
    ensure!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "that is no PNG");
    ensure!(bytes.len() > CHART, "an image of {} bytes shows nothing", bytes.len());
    Ok(())
}

/// Whether it names the folder that it was built in.
fn nobodys_folders(program: &[u8]) -> anyhow::Result<()> {
    let root = shell::root();
    let root = root.to_str().context("the path is no UTF-8")?.as_bytes();
    let found = program.windows(root.len()).any(|window| window == root);
    ensure!(!found, "the program names the folder that it was built in");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_stands_still_is_noticed() {
        let data = "QUJD".repeat(40);
        let page = |script: &str, data: &str| {
            format!("<html><script type=\"x\" id=\"data\">{data}</script><script>{script}</script></html>")
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
        let root = shell::root().to_str().unwrap().to_owned();
        assert!(nobodys_folders(format!("panic at {root}/src/main.rs").as_bytes()).is_err());
        assert!(nobodys_folders(b"panic at /jitterscope/src/main.rs").is_ok());
    }
}
