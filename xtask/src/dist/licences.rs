//! The licences of everything in the program, which their authors require to be included.

use crate::shell;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Prefixes of the names of files with a licence or a notice.
const FILES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];
/// Parts of the program that are not Rust libraries, and their licences.
const OTHERS: [(&str, &str); 3] = [
    ("musl, the C library", "packaging/licences/musl"),
    ("uPlot, in pages", "packaging/licences/uplot"),
    (
        "DejaVu Sans, in charts",
        "crates/view/src/chart/font/LICENCE",
    ),
];

/// Libraries known to come without a licence text: the archive lists their declared licence.
const WITHOUT_TEXT: [&str; 2] = ["eventheader_types", "tracepoint_decode"];

/// All licences as one text. Libraries with the same text share it.
pub fn all(target: &str) -> anyhow::Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = BTreeSet::new();
    let libraries = libraries(target)?;
    texts_are_there(&libraries)?;
    for library in libraries {
        list.insert(format!(
            "{} {}: {}",
            library.name, library.version, library.licence
        ));
        for text in library.texts {
            texts
                .entry(text)
                .or_default()
                .insert(format!("{} {}", library.name, library.version));
        }
    }
    ensure!(
        !list.is_empty(),
        "the program has no libraries, which cannot be"
    );
    for (what, path) in OTHERS {
        let text = fs::read_to_string(shell::root().join(path)).with_context(|| path.to_owned())?;
        list.insert(what.to_owned());
        texts
            .entry(text.trim().to_owned())
            .or_default()
            .insert(what.to_owned());
    }
    let mut out = String::from("jitterscope has these in it, each under its own licence.\n\n");
    for line in list {
        let _ = writeln!(out, "{line}");
    }
    for (text, whose) in texts {
        let whose: Vec<String> = whose.into_iter().collect();
        let _ = write!(
            out,
            "\n{}\n{}\n\n{text}\n",
            "=".repeat(80),
            whose.join(", ")
        );
    }
    Ok(out)
}

/// The licences of Rust's standard library and its parts, from the toolchain.
pub fn standard_library() -> anyhow::Result<PathBuf> {
    let root = shell::output("rustc", &["--print", "sysroot"])?;
    let path = Path::new(root.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    ensure!(
        path.is_file(),
        "{} is not there: the program has Rust's standard library in it, and its licences go with it",
        path.display()
    );
    Ok(path)
}

/// Fails for a library without a licence text, which a person must check.
fn texts_are_there(libraries: &[Library]) -> anyhow::Result<()> {
    for Library {
        name,
        version,
        licence,
        texts,
    } in libraries
    {
        ensure!(
            !texts.is_empty() || WITHOUT_TEXT.contains(&name.as_str()),
            "{name} {version} ({licence}) comes without a licence text: see what its authors ask for, and name it in \
             WITHOUT_TEXT"
        );
    }
    Ok(())
}

pub(super) struct Library {
    pub(super) name: String,
    pub(super) version: String,
    /// As declared, in SPDX's grammar.
    pub(super) licence: String,
    texts: Vec<String>,
}

/// The libraries that the programs are linked with.
pub(super) fn libraries(target: &str) -> anyhow::Result<Vec<Library>> {
    let tree = [
        "tree",
        "--locked",
        "-p",
        "jitterscope",
        "-p",
        super::FLEET,
        "--features",
        crate::program::FEATURES,
        "--target",
        target,
    ];
    let more = [
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
        "--format",
        "{p}",
    ];
    let tree = shell::output("cargo", &[&tree[..], &more].concat())?;
    // `serde v1.0.0`, followed by its source.
    let linked: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let metadata = shell::output(
        "cargo",
        &[
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--all-features",
        ],
    )?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    let mut found = Vec::new();
    for package in packages
        .iter()
        .filter(|package| !package["source"].is_null())
    {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        if !linked.contains(&(&name, &version)) {
            continue;
        }
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest)
            .parent()
            .context("a manifest lies in a folder")?;
        let licence = text("license");
        ensure!(
            !licence.is_empty(),
            "{name} {version} does not say under which licence it is"
        );
        found.push(Library {
            texts: texts(folder)?,
            name,
            version,
            licence,
        });
    }
    Ok(found)
}

/// The licence texts in a library's folder.
fn texts(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if FILES.iter().any(|file| name.starts_with(file)) && entry.path().is_file() {
            texts.push(
                String::from_utf8_lossy(&fs::read(entry.path())?)
                    .trim()
                    .to_owned(),
            );
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("LICENSE-MIT", "mit\n"),
            ("Notice.txt", "note"),
            ("README.md", "no"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let mut found = texts(dir.path()).unwrap();
        found.sort();
        assert_eq!(found, ["mit", "note"]);
    }

    #[test]
    fn a_new_library_without_a_text_is_refused() {
        let library = |name: &str, texts: &[&str]| Library {
            name: name.into(),
            version: "1.0.0".into(),
            licence: "MIT".into(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert!(
            texts_are_there(&[library("new", &["text"]), library(WITHOUT_TEXT[0], &[])]).is_ok()
        );
        let refused = texts_are_there(&[library("new", &[])])
            .unwrap_err()
            .to_string();
        assert!(refused.contains("new 1.0.0 (MIT)"), "{refused}");
    }

    #[test]
    fn what_is_linked_is_named_and_what_only_tests_use_is_not() {
        let libraries = libraries("x86_64-unknown-linux-gnu").unwrap();
        let has = |name: &str| libraries.iter().any(|library| library.name == name);
        assert!(
            has("serde_json") && has("resvg"),
            "with what the features bring"
        );
        assert!(!has("proptest") && !has("trycmd") && !has("jitterscope-model"));
        texts_are_there(&libraries).unwrap();
        let lacks = |name: &&&str| {
            libraries
                .iter()
                .any(|library| library.name == **name && library.texts.is_empty())
        };
        assert_eq!(
            WITHOUT_TEXT.iter().filter(lacks).count(),
            WITHOUT_TEXT.len(),
            "none is named for nothing"
        );
    }
}
