//! Inspects a program before it is released.

use super::build::folders;
use super::{FLEET, copy, version};
use crate::{shell, web};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A stored run from the tests.
const RUN: &str = "crates/recording/tests/fixtures/spin";
/// The largest program that may be released, in bytes.
const LARGEST: usize = 15_000_000;
/// Minimum size of a chart that is not empty.
const CHART: usize = 5_000;
/// Type of the ELF program header that names a dynamic loader.
const INTERPRETER: usize = 3;
/// Type of the ELF section with function names.
const SYMBOLS: usize = 2;

/// A program, and the emulator that runs it.
pub struct Built {
    pub program: PathBuf,
    /// The emulator, for a program of another architecture.
    pub runner: Option<&'static str>,
}

impl Built {
    /// Runs it with these arguments and returns its standard output.
    ///
    /// # Errors
    /// It fails.
    pub fn ask(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        let mut command = match self.runner {
            Some(runner) => {
                let mut command = Command::new(runner);
                command.arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let output = command
            .args(args)
            .output()
            .with_context(|| format!("{} cannot be started", self.program.display()))?;
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
}

/// Checks that the program is static, contains no folder of the builder, draws a stored run as users will see it, and
/// can record as root with a real-time priority.
pub fn program(built: &Built, folder: &Path) -> anyhow::Result<()> {
    file(built)?;
    file(&Built {
        program: built.program.with_file_name(FLEET),
        ..*built
    })?;
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
    built.ask(&["--runs", &runs, "report", "inspected", "--html", &page])?;
    let bundle = shell::root().join(web::BUNDLE).join("page.js");
    let bundle = fs::read_to_string(&bundle).with_context(|| bundle.display().to_string())?;
    interactive(&fs::read_to_string(&page)?, &bundle)?;
    for kind in ["percentiles", "series", "outliers", "culprits", "offsets"] {
        built.ask(&[
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
    let record = ["--runs", &runs, "record", "--quiet", "--duration", "300ms"];
    let priority: &[&str] = if rustix::process::geteuid().is_root() {
        &["--priority", "1"]
    } else {
        eprintln!("SKIPPED: record --priority, which needs root");
        &[]
    };
    built.ask(&[&record[..], priority].concat())?;
    alone(built, &folder.join("root"))
}

/// Checks that a program is static, stripped, of limited size, without a folder of the builder, and starts.
fn file(built: &Built) -> anyhow::Result<()> {
    let bytes = fs::read(&built.program).with_context(|| built.program.display().to_string())?;
    ensure!(
        is_static(&bytes)?,
        "{} asks for a dynamic loader: it runs only where one is",
        built.program.display()
    );
    ensure!(
        !section_types(&bytes)?.contains(&SYMBOLS),
        "{} is not stripped",
        built.program.display()
    );
    ensure!(
        bytes.len() <= LARGEST,
        "{} has {} bytes, and may have {LARGEST}",
        built.program.display(),
        bytes.len()
    );
    names_none_of(&folders()?, &bytes)?;
    let (printed, version) = (built.ask(&["--version"])?, version()?);
    let printed = String::from_utf8_lossy(&printed).into_owned();
    ensure!(
        printed.split_whitespace().any(|word| word == version),
        "it says {printed:?}, and is {version}"
    );
    println!("{}: {} bytes", built.program.display(), bytes.len());
    Ok(())
}

/// Records in a root that contains only the program: no library, no /proc, no /sys.
fn alone(built: &Built, root: &Path) -> anyhow::Result<()> {
    if built.runner.is_some() || !rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIPPED: recording in an empty root, which needs root and a program of this architecture"
        );
        return Ok(());
    }
    fs::create_dir_all(root.join("runs"))?;
    fs::copy(&built.program, root.join("jitterscope"))?;
    let output = Command::new("chroot")
        .arg(root)
        .args([
            "/jitterscope",
            "--runs",
            "/runs",
            "record",
            "--duration",
            "300ms",
        ])
        .output()
        .context("chroot cannot be started")?;
    ensure!(
        output.status.success(),
        "in an empty root, record failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let answer = String::from_utf8_lossy(&output.stdout);
    ensure!(
        answer.contains(" of its time: "),
        "in an empty root, record names no lost time:\n{answer}"
    );
    Ok(())
}

/// Whether a program starts without a dynamic loader.
///
/// # Errors
/// It is not a little-endian 64-bit ELF file.
pub fn is_static(program: &[u8]) -> anyhow::Result<bool> {
    // e_phoff, e_phentsize and e_phnum of the file's header; p_type is the first field of a program header.
    let [headers, size, count] = [(32, 8), (54, 2), (56, 2)];
    let types = types(program, headers, size, count, 0)?;
    Ok(!types.contains(&INTERPRETER))
}

/// The type of each of a program's sections.
fn section_types(program: &[u8]) -> anyhow::Result<Vec<usize>> {
    // e_shoff, e_shentsize and e_shnum; sh_type follows the name.
    types(program, (40, 8), (58, 2), (60, 2), 4)
}

/// The types in a table of an ELF file. Arguments: the header's fields with the table's offset, row size and row count,
/// each with its length in bytes, and the offset of the type within a row.
fn types(
    program: &[u8],
    table: (usize, usize),
    size: (usize, usize),
    count: (usize, usize),
    at: usize,
) -> anyhow::Result<Vec<usize>> {
    ensure!(
        program.starts_with(b"\x7fELF\x02\x01"),
        "the program is no 64-bit ELF file"
    );
    let number = |(at, bytes): (usize, usize)| -> anyhow::Result<usize> {
        let field = program
            .get(at..at + bytes)
            .context("the program is cut off")?;
        Ok(field
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (table, size, count) = (number(table)?, number(size)?, number(count)?);
    (0..count)
        .map(|row| number((table + row * size + at, 4)))
        .collect()
}

/// Whether a page contains the built script and its data.
fn interactive(page: &str, bundle: &str) -> anyhow::Result<()> {
    ensure!(!bundle.trim().is_empty(), "the bundle is empty");
    ensure!(
        page.contains(bundle),
        "its pages have not the script that was built: they stand still"
    );
    let data = page
        .split("class=\"rows\">")
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

/// Checks that the program contains none of the build machine's folders.
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
                "<html><script type=\"x\" class=\"rows\">{data}</script><script>{script}</script></html>"
            )
        };
        assert!(interactive(&page("draw()", &data), "draw()").is_ok());
        assert!(interactive(&page("other()", &data), "draw()").is_err());
        assert!(interactive(&page("draw()", ""), "draw()").is_err());
        assert!(interactive("<html></html>", "draw()").is_err());
        assert!(interactive(&page("", &data), "").is_err());
    }

    #[test]
    fn a_program_that_asks_for_a_loader_is_noticed() {
        let mut program = vec![0; 64 + 2 * 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (program[32], program[54], program[56]) = (64, 56, 2);
        program[64] = 1;
        assert!(is_static(&program).unwrap());
        assert!(section_types(&program).unwrap().is_empty());
        program[64 + 56] = 3;
        assert!(!is_static(&program).unwrap());
        assert!(is_static(&program[..100]).is_err());
        assert!(is_static(b"#!/bin/sh").is_err());
        // This test's own program, as Rust links it here by default.
        let own = fs::read("/proc/self/exe").unwrap();
        assert_eq!(
            is_static(&own).unwrap(),
            cfg!(target_feature = "crt-static")
        );
    }

    #[test]
    fn a_program_that_has_its_symbols_is_noticed() {
        let mut program = vec![0; 64 + 2 * 64];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (program[40], program[58], program[60]) = (64, 64, 2);
        (program[64 + 4], program[64 + 64 + 4]) = (1, 2);
        assert_eq!(section_types(&program).unwrap(), [1, SYMBOLS]);
        // Test programs are not stripped.
        let own = fs::read("/proc/self/exe").unwrap();
        assert!(section_types(&own).unwrap().contains(&SYMBOLS));
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
        let folders = folders().unwrap();
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
