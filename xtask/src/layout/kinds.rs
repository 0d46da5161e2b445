//! The files that tell kinds of culprit apart: who adds a kind must know all of them, so CONTRIBUTING.md lists them.
//! In most of them the compiler asks, for their matches have no wildcard; the list says what is decided in each.

use super::words::{without_tests, words};
use std::collections::BTreeSet;

/// A file tells kinds apart when it names so many variants of one of these.
const MANY: usize = 6;
/// `NameOf` is a column of the table of kinds, by which files tell them apart, too.
const ENUMS: [&str; 3] = ["CulpritKind", "Subject", "NameOf"];

/// How the rows of CONTRIBUTING.md begin that name the files.
const ROWS: [&str; 2] = ["| a kind of culprit ", "| a culprit with facts "];

/// Whether a source tells kinds of culprit apart, tests aside.
pub(super) fn tells_apart(text: &str) -> bool {
    let words = without_tests(words(text));
    ENUMS.iter().any(|of| {
        let named = words
            .windows(3)
            .filter(|path| path[0] == *of && path[1] == "::")
            .map(|path| path[2]);
        let variants = named.filter(|name| name.starts_with(char::is_uppercase) && *name != "ALL");
        variants.collect::<BTreeSet<&str>>().len() >= MANY
    })
}

/// Where the list and the sources differ. `found`: the files that tell kinds apart.
pub(super) fn objections(contributing: &str, found: &BTreeSet<String>) -> Vec<String> {
    let rows = contributing
        .lines()
        .filter(|line| ROWS.iter().any(|row| line.starts_with(row)));
    let listed: BTreeSet<String> = rows
        .flat_map(|row| row.split('`'))
        .filter(|word| word.starts_with("crates/") && word.ends_with(".rs"))
        .map(str::to_owned)
        .collect();
    let missing = found.difference(&listed).map(|file| {
        format!(
            "{file} tells kinds of culprit apart: put it into the list in CONTRIBUTING.md (\"Adding things\")"
        )
    });
    // What is listed and names no variants is a table of them, or is gone.
    let gone = listed
        .difference(found)
        .filter(|file| !crate::shell::root().join(file).is_file());
    missing
        .chain(gone.map(|file| format!("{file} is listed in CONTRIBUTING.md and is not there")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_tells_kinds_apart_must_be_listed() {
        let text = |of: &str, n: usize| {
            (0..n)
                .map(|n| format!("{of}::V{n} => {n},\n"))
                .collect::<String>()
        };
        assert!(ENUMS.iter().all(|of| tells_apart(&text(of, MANY))));
        assert!(!tells_apart(&text("Subject", MANY - 1)) && !tells_apart(&text("Other", MANY)));
        assert!(!tells_apart(
            &"CulpritKind::Irq CulpritKind::ALL Subject::verdict ".repeat(MANY)
        ));
        assert!(!tells_apart(&format!(
            "#[cfg(test)] mod tests {{ {} }}",
            text("Subject", MANY)
        )));
        let found = BTreeSet::from(["crates/a.rs".to_owned()]);
        let list = "| a kind of culprit | `crates/a.rs` |\n| a culprit with facts | `crates/gone.rs`, `b.rs` |";
        assert_eq!(objections("| other | `crates/a.rs` |", &found).len(), 1);
        assert_eq!(
            objections(list, &found),
            ["crates/gone.rs is listed in CONTRIBUTING.md and is not there"]
        );
    }
}
