//! What the layout of the sources promises, as far as a look at them shows: one concept a file, no files that need
//! each other, a probe's kind compared nowhere but in its table, and every file that tells kinds of culprit apart in
//! the list of CONTRIBUTING.md.

mod cycles;
mod kinds;
mod words;

use crate::shell;
use anyhow::{Context, bail};
use cycles::Files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file; tests may be longer.
const LONGEST: usize = 520;

/// Files that need each other for a reason: their crate, and which of them may need which.
const HALVES: [(&str, &str, &str); 2] = [
    // A subject and its form in files: serde wants each to name the other.
    ("crates/model/src", "culprit/subject", "culprit/fields"),
    // A ring that is full folds what it holds, and what folds it needs all of it.
    ("crates/attribute/src", "occupancy/ring", "occupancy/fold"),
];

/// Fails with the list of what is not as CONTRIBUTING.md says.
pub fn run() -> anyhow::Result<()> {
    let root = shell::root();
    let mut objections = Vec::new();
    let mut files = 0;
    let mut of_kinds = BTreeSet::new();
    for (folder, sources) in &by_crate(&root)? {
        for (path, text) in sources {
            let path = folder.join(path);
            let name = path
                .strip_prefix(&root)
                .unwrap_or(&path)
                .display()
                .to_string();
            files += 1;
            objections.extend(of_file(&name, text));
            if !path.ends_with("tests.rs") && kinds::tells_apart(text) {
                of_kinds.insert(name);
            }
        }
        let sources = sources
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_str()));
        let name = folder
            .strip_prefix(&root)
            .unwrap_or(folder)
            .display()
            .to_string();
        let halves: Vec<_> = HALVES
            .iter()
            .filter(|(of, ..)| *of == name)
            .map(|(_, a, b)| (*a, *b))
            .collect();
        let found = Files::of(sources).objections(&halves);
        objections.extend(found.iter().map(|objection| format!("{name}: {objection}")));
    }
    let contributing =
        fs::read_to_string(root.join("CONTRIBUTING.md")).context("CONTRIBUTING.md")?;
    objections.extend(kinds::objections(&contributing, &of_kinds));
    if files == 0 {
        bail!("no source file was found: this check would pass whatever is in them");
    }
    if objections.is_empty() {
        eprintln!("{files} source files as laid out in CONTRIBUTING.md");
        return Ok(());
    }
    bail!("the layout of the sources:\n  {}", objections.join("\n  "))
}

/// What is wrong with one file.
fn of_file(name: &str, text: &str) -> Vec<String> {
    let mut objections = Vec::new();
    let lines = text.lines().count();
    if lines > LONGEST {
        objections.push(format!(
            "{name}: {lines} lines; split it by concept (at most {LONGEST})"
        ));
    }
    for (at, line) in text.lines().enumerate() {
        if compares_a_kind(line) {
            objections.push(format!(
                "{name}:{}: a kind is compared with a word, not with its type",
                at + 1
            ));
        }
    }
    let file = Path::new(name).file_stem().unwrap_or_default();
    if ["utils", "util", "helpers", "misc"]
        .iter()
        .any(|bad| file == *bad)
    {
        objections.push(format!("{name}: a name that says nothing"));
    }
    objections
}

/// `probe.kind == "spin"` and the like.
fn compares_a_kind(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    // Put together, so that this file is not found.
    ["== \"", "!= \""]
        .iter()
        .any(|sign| code.contains(&format!("probe.kind {sign}")))
}

/// The Rust files of each crate, by its folder `src`: their paths below it and what is in them.
fn by_crate(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<(PathBuf, String)>>> {
    let crates = fs::read_dir(root.join("crates")).context("crates cannot be read")?;
    let mut folders: Vec<PathBuf> = crates
        .flatten()
        .map(|entry| entry.path().join("src"))
        .collect();
    folders.push(root.join("xtask/src"));
    let mut all = BTreeMap::new();
    for folder in folders {
        let mut texts = Vec::new();
        for path in sources(&folder)? {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            texts.push((path.strip_prefix(&folder).unwrap_or(&path).to_owned(), text));
        }
        all.insert(folder, texts);
    }
    Ok(all)
}

/// The Rust files below a folder.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_compared_words_are_found() {
        assert_eq!(of_file("a.rs", &"x\n".repeat(LONGEST)), [""; 0]);
        assert_eq!(of_file("a.rs", &"x\n".repeat(LONGEST + 1)).len(), 1);
        assert_eq!(of_file("a.rs", "if run.probe.kind == \"spin\" {}").len(), 1);
        assert_eq!(
            of_file(
                "a.rs",
                "// run.probe.kind == \"spin\"\nif kind == \"cgroup2\" {}"
            ),
            [""; 0]
        );
        assert_eq!(of_file("src/utils.rs", "").len(), 1);
    }
}
