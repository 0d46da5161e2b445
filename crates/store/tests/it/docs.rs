//! `docs/runs.md` lists the columns of the schema.

use jitterscope_store::{Column, SCHEMA};
use std::fmt::Write;
use std::path::Path;

/// The marker before the generated part, which goes to the end of the page.
const BEGIN: &str = "<!-- The rest is generated from the schema. -->\n";

fn word(column: Column) -> &'static str {
    match column {
        Column::U64 => "u64",
        Column::U32 => "u32",
        Column::I32 => "i32",
        Column::Text => "text",
        Column::TextOrNull => "text or null",
        Column::I32OrNull => "i32 or null",
        Column::U32OrNull => "u32 or null",
        Column::U64OrNull => "u64 or null",
    }
}

fn columns() -> String {
    let mut out = String::new();
    for (table, columns) in SCHEMA {
        let _ = write!(out, "\n### {table}\n\n| column | type | |\n|---|---|---|\n");
        for (name, column, meaning) in columns {
            let _ = writeln!(out, "| `{name}` | {} | {meaning} |", word(*column));
        }
    }
    out
}

#[test]
fn the_page_lists_the_columns_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runs.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let at = page.find(BEGIN).expect("the page has the mark") + BEGIN.len();
    if std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{}", &page[..at], columns())).unwrap();
    } else {
        assert!(
            page[at..] == columns(),
            "run JITTERSCOPE_WRITE_DOCS=1 cargo test -p jitterscope-store --test it docs"
        );
    }
}
