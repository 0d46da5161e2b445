//! Reports in a page.

use super::table::{Row, Table};
use super::{Block, Fact, Facts, Report, Sentence};
use crate::html::markup::{self, Head, Markup};
use crate::style::Tone;

impl Report {
    /// Adds the blocks to a page.
    pub(crate) fn html(&self, body: &mut Markup) {
        for block in &self.blocks {
            match block {
                Block::Heading { text, .. } => {
                    body.element("<h3>", text, "</h3>\n");
                }
                Block::Sentence(of) => sentence(body, of),
                Block::Facts(of) => facts(body, of),
                Block::Table(of) => table(body, of),
                Block::Warnings(all) => {
                    for warning in all {
                        body.element("<p class=\"warning\">", warning, "</p>\n");
                    }
                }
                // The page has tables of its own in place of these.
                Block::Line(_) => {}
            }
        }
    }
}

fn sentence(body: &mut Markup, of: &Sentence) {
    let Sentence {
        tone, lead, text, ..
    } = of;
    body.raw(match tone {
        Some(Tone::Strong | Tone::Heading) => "<p class=\"lead\">",
        Some(Tone::Good) => "<p class=\"lead good\">",
        Some(Tone::Bad) if lead.is_empty() => "<p class=\"lead bad\">",
        Some(Tone::Bad | Tone::Warning) => "<p class=\"warning\">",
        Some(Tone::Dim) => "<p class=\"note\">",
        None => "<p>",
    });
    if !lead.is_empty() {
        body.raw("<strong>").raw(lead).raw(":</strong> ");
    }
    body.text(text).raw("</p>\n");
}

fn facts(body: &mut Markup, facts: &Facts) {
    let list = |body: &mut Markup, all: &[Fact]| {
        body.facts(all.iter().map(|of| (of.name.as_str(), of.text.clone())));
    };
    if !facts.shown.is_empty() {
        list(body, &facts.shown);
    }
    let [one, several] = facts.aside_is;
    let summary = match facts.aside.len() {
        0 => return,
        1 => format!("1 {one}"),
        n => format!("{n} {several}"),
    };
    body.details(&summary, |body| list(body, &facts.aside));
}

fn table(body: &mut Markup, table: &Table) {
    let heads: Vec<Head<'_>> = table
        .columns
        .iter()
        .map(|column| match column.number {
            true => Head::Number(&column.head),
            false => Head::Text(&column.head),
        })
        .collect();
    let (aside, shown): (Vec<&Row>, Vec<&Row>) = table.rows.iter().partition(|row| row.aside);
    let cells = |rows: Vec<&Row>| rows.into_iter().map(|row| self::row(table, row)).collect();
    body.table(&table.title, &heads, cells(shown));
    if !aside.is_empty() {
        let summary = format!("{} more, {}", aside.len(), table.aside);
        body.details(&summary, |body| {
            body.table(&summary, &heads, cells(aside));
        });
    }
}

fn row(table: &Table, row: &Row) -> Vec<markup::Cell> {
    let remarks = |at: usize| if at == 0 { &row.remarks[..] } else { &[] };
    let cells = row.cells.iter().zip(&table.columns).enumerate();
    cells
        .map(|(at, (cell, column))| {
            let mut lines = vec![cell.text.clone()];
            lines.extend(cell.more.iter().chain(remarks(at)).cloned());
            match cell.tone {
                _ if column.number => markup::Cell::Number(cell.text.clone()),
                Some(Tone::Good) => markup::Cell::Good(cell.text.clone()),
                Some(Tone::Bad) => markup::Cell::Bad(cell.text.clone()),
                _ => markup::Cell::Lines(lines),
            }
        })
        .collect()
}
