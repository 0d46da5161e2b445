//! Tables that a trial generates for a document: the document is compared with the trial's results.

use super::Finding;
use crate::shell;
use anyhow::{Context, bail};
use std::fs;

/// Set to update the document instead.
const WRITE: &str = "JITTERSCOPE_WRITE_DOCS";

pub struct Table(String);

impl Table {
    /// A table with these columns.
    pub fn new(head: &[String]) -> Table {
        let mut table = Table(String::new());
        table.row(head.to_vec());
        table.row(vec!["---".to_owned(); head.len()]);
        table
    }

    pub fn row(&mut self, cells: Vec<String>) {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', r"\|")).collect();
        self.0 += &format!("| {} |\n", cells.join(" | "));
    }

    pub fn text(self) -> String {
        self.0
    }
}

/// Compares the part of a document between the two marks of `name` with what was seen; writes it there if
/// `JITTERSCOPE_WRITE_DOCS` is set.
///
/// # Errors
/// The document has no such marks, or cannot be written.
pub fn compare(finding: &mut Finding, path: &str, name: &str, seen: &str) -> anyhow::Result<()> {
    let file = shell::root().join(path);
    let text = fs::read_to_string(&file).with_context(|| path.to_owned())?;
    let changed = with(&text, name, seen).with_context(|| format!("{path}: no marks of {name}"))?;
    if std::env::var_os(WRITE).is_some() && changed != text {
        fs::write(&file, &changed)?;
        eprintln!("{path} is written anew");
    } else {
        finding.check(
            changed == text,
            format!("{path} has the table that was seen ({WRITE}=1 writes it):\n{seen}"),
        );
    }
    Ok(())
}

fn with(text: &str, name: &str, seen: &str) -> anyhow::Result<String> {
    let (begin, end) = (
        format!("<!-- seen: {name} -->\n"),
        format!("<!-- end: {name} -->"),
    );
    let Some((before, rest)) = text.split_once(&begin) else {
        bail!("{begin:?} is missing");
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("{end:?} is missing");
    };
    Ok(format!("{before}{begin}{seen}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced() {
        let text = "a\n<!-- seen: x -->\nold\n<!-- end: x -->\nb\n";
        let changed = with(text, "x", "new\n").unwrap();
        assert_eq!(changed, text.replace("old", "new"));
        assert!(with(text, "y", "").is_err());
    }
}
