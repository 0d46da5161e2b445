//! Reports as Markdown, for the summary page of a build.

use super::{Block, Cell, Fact, Facts, Report, Row, Sentence, Table};
use crate::style::Tone;
use jitterscope_model::visible;

impl Report {
    /// The page, with `title` as its heading.
    #[must_use]
    pub fn markdown(&self, title: &str) -> String {
        let mut page = format!("### {}\n", cell(title));
        let mut lines = Vec::new();
        for block in &self.blocks {
            if let Block::Line(line) = block {
                lines.push(line.as_str());
                continue;
            }
            page.push_str(&fenced(&std::mem::take(&mut lines)));
            page.push('\n');
            match block {
                Block::Heading { text, remark, .. } => {
                    page.push_str(&format!("#### {}\n", cell(text)));
                    if !remark.is_empty() {
                        page.push_str(&format!("\n{}\n", cell(remark)));
                    }
                }
                Block::Sentence(of) => page.push_str(&format!("{}\n", sentence(of))),
                Block::Facts(facts) => page.push_str(&list(facts)),
                Block::Table(of) => page.push_str(&table(of)),
                Block::Warnings(all) => {
                    let line = |warning: &String| format!("- {}\n", cell(warning));
                    page.extend(all.iter().map(line));
                }
                Block::Line(_) => {}
            }
        }
        page + &fenced(&lines)
    }
}

/// Lines as they are on a screen; nothing for blank ones.
fn fenced(lines: &[&str]) -> String {
    let text = lines.join("\n");
    let text = text.trim_matches('\n');
    if text.is_empty() {
        return String::new();
    }
    // A name in the text may contain backticks; a longer fence keeps them inside.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}text\n{text}\n{fence}\n")
}

fn sentence(of: &Sentence) -> String {
    let Sentence {
        tone, lead, text, ..
    } = of;
    match (*lead, tone) {
        ("", Some(Tone::Strong | Tone::Good | Tone::Bad | Tone::Heading)) => bold(text),
        ("", _) => cell(text),
        (lead, _) => format!("{}: {}", bold(lead), cell(text)),
    }
}

fn bold(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("**{}**", cell(text)),
    }
}

fn list(facts: &Facts) -> String {
    let all = facts.shown.iter().chain(&facts.aside);
    let line = |Fact { name, text, .. }: &Fact| format!("- {}: {}\n", cell(name), cell(text));
    all.map(line).collect()
}

fn table(table: &Table) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let beside = Some(table.remarks).filter(|head| !head.is_empty());
    let heads = table.columns.iter().map(|of| of.head.as_str());
    let mut text = row(heads.chain(beside).map(cell).collect());
    let numbers = table.columns.iter().map(|of| of.number);
    let rules = numbers.chain(beside.map(|_| false));
    let rule = |number: bool| if number { "--:" } else { "---" };
    text.push_str(&row(rules.map(|number| rule(number).to_owned()).collect()));
    for of in table.shown() {
        if let Some(group) = &of.group {
            let mut cells = vec![String::new(); table.columns.len() + beside.iter().len()];
            cells[table.naming()] = bold(&group.text);
            text.push_str(&row(cells));
        }
        text.push_str(&row(cells(table, of)));
    }
    if let Some(aside) = table.left_aside() {
        text.push_str(&format!("\nand {}\n", cell(&aside)));
    }
    text
}

/// The cells of a row. Its remarks follow its name, or have a cell of their own.
fn cells(table: &Table, row: &Row) -> Vec<String> {
    let mut cells: Vec<String> = row.cells.iter().map(toned).collect();
    let remarks: Vec<String> = row.remarks_and_details().map(|of| cell(of)).collect();
    cells.resize(table.columns.len(), String::new());
    if !table.remarks.is_empty() {
        cells.push(remarks.join("; "));
    } else if let Some(name) = cells.get_mut(table.naming()) {
        name.extend(remarks.iter().map(|of| format!("<br>{of}")));
    }
    cells
}

fn toned(of: &Cell) -> String {
    let text = match of.tone {
        Some(Tone::Bad | Tone::Good | Tone::Strong) => bold(&of.text),
        _ => cell(of.text.trim()),
    };
    let text = Some(text).filter(|text| !text.is_empty());
    let parts = of.few_parts().map(|part| cell(&part));
    text.into_iter()
        .chain(parts)
        .collect::<Vec<_>>()
        .join("<br>")
}

/// Text that has no meaning in Markdown or HTML.
fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' => safe.extend(['\\', c]),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Column;

    #[test]
    fn names_of_others_are_neither_markup_nor_cells() {
        let evil = "a|<b>*`c`\n# d";
        let mut report = Report::default();
        report.heading(evil);
        report.sentence(Tone::Bad, evil);
        report.lead(None, "Measured differently", evil);
        report.facts(Facts {
            shown: vec![Fact {
                name: evil.into(),
                tone: None,
                text: evil.into(),
            }],
            ..Facts::default()
        });
        report.table(Table {
            title: evil.into(),
            columns: vec![Column::text(evil), Column::number("n")],
            rows: vec![Row {
                remarks: vec![evil.into()],
                ..Row::from([evil.into(), "1".into()])
            }],
            ..Table::default()
        });
        let page = report.markdown(evil);
        let safe = "a\\|&lt;b>\\*\\`c\\`\\\\n\\# d";
        assert!(page.starts_with(&format!("### {safe}\n")), "{page}");
        assert!(page.contains(&format!("\n**{safe}**\n")), "{page}");
        assert!(page.contains(&format!("\n**Measured differently**: {safe}\n")));
        assert!(page.contains(&format!("\n- {safe}: {safe}\n")), "{page}");
        assert!(page.contains(&format!(
            "\n| {safe} | n |\n| --- | --: |\n| {safe}<br>{safe} | 1 |\n"
        )));
        assert_eq!(page.matches("\n#### ").count(), 1, "{page}");
    }

    #[test]
    fn rows_left_aside_are_counted() {
        let mut report = Report::default();
        let row = |aside| Row {
            aside,
            ..Row::from([Cell::toned("x", Tone::Good)])
        };
        report.table(Table {
            columns: vec![Column::text("a")],
            rows: vec![row(false), row(true)],
            aside: "all clean",
            ..Table::default()
        });
        let page = report.markdown("t");
        assert!(
            page.ends_with("| **x** |\n\nand 1 more, all clean\n"),
            "{page}"
        );
    }
}
