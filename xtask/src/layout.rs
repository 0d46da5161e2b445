//! What the layout of the sources promises, as far as a look at them tells: one concept a file, and a probe's
//! kind compared nowhere but in its table.

use crate::shell;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file; tests may be longer.
const LONGEST: usize = 520;

/// Fails with the list of what is not as CONTRIBUTING.md says.
pub fn run() -> anyhow::Result<()> {
    let root = shell::root();
    let mut objections = Vec::new();
    let mut files = 0;
    for path in sources(&root)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        files += 1;
        objections.extend(of_file(&name, &text));
    }
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
        objections.push(format!("{name}: {lines} lines; split it by concept (at most {LONGEST})"));
    }
    for (at, line) in text.lines().enumerate() {
        if compares_a_kind(line) {
            objections.push(format!("{name}:{}: a kind is compared with a word, not with its type", at + 1));
        }
    }
    let file = Path::new(name).file_stem().unwrap_or_default();
    if ["utils", "util", "helpers", "misc"].iter().any(|bad| file == *bad) {
        objections.push(format!("{name}: a name that says nothing"));
    }
    objections
}

/// `probe.kind == "spin"` and the like.
fn compares_a_kind(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    // Put together, lest this file be found.
    ["== \"", "!= \""].iter().any(|sign| code.contains(&format!("probe.kind {sign}")))
}

/// The Rust files below `src` of every crate.
fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let crates = fs::read_dir(root.join("crates")).context("crates cannot be read")?;
    let mut folders: Vec<PathBuf> = crates.flatten().map(|entry| entry.path().join("src")).collect();
    folders.push(root.join("xtask/src"));
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
        assert_eq!(of_file("a.rs", "// run.probe.kind == \"spin\"\nif kind == \"cgroup2\" {}"), [""; 0]);
        assert_eq!(of_file("src/utils.rs", "").len(), 1);
    }
}
