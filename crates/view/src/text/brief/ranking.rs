//! The five largest culprits of all kinds in one ranking.

use crate::pipeline::blame;
use crate::report::{Column, Report, Table};
use crate::style::Style;
use crate::text::culprits;
use jitterscope_analyze::{AttributionSummary, Blame, RunSummary};

const ROWS: usize = 5;

/// The largest culprits, and the rest.
pub(super) enum Ranking<'a> {
    /// All stalled time, explained or not.
    Culprits(&'a RunSummary, &'a AttributionSummary),
    /// What delayed a consumer's messages.
    Blame(&'a Blame),
}

impl Ranking<'_> {
    /// The number of lines without explanations, with or without a blank line above.
    pub(super) fn needed(&self, blank: bool, style: Style) -> usize {
        text(&self.plain(ROWS), blank, style).lines().count()
    }

    /// At most `lines` lines if possible: first the explanations go, then the smallest culprits join the rest.
    pub(super) fn text(&self, lines: usize, blank: bool, style: Style) -> String {
        let fits = |text: &String| text.lines().count() <= lines;
        let shorter = (1..=ROWS).rev();
        let mut plain = shorter.map(|rows| self.plain(rows));
        let Some(mut table) = plain.find(|table| fits(&text(table, blank, style))) else {
            return text(&self.plain(1), blank, style);
        };
        // The largest are explained first.
        for (at, row) in self.table(ROWS).rows.iter().take(ROWS).enumerate() {
            let mut explained = table.clone();
            if let Some(of) = explained.rows.get_mut(at) {
                of.minor = row.minor;
            }
            if fits(&text(&explained, blank, style)) {
                table = explained;
            }
        }
        text(&table, blank, style)
    }

    /// The table without minima: on one screen their room is for names.
    fn table(&self, rows: usize) -> Table {
        let table = match self {
            Ranking::Culprits(summary, attribution) => {
                culprits::ranking(summary, attribution, rows)
            }
            Ranking::Blame(blame) => blame::table(blame, rows),
        };
        let of_screen = |column: Column| match column.rank {
            0 => column,
            _ => column.of_pages(),
        };
        Table {
            columns: table.columns.into_iter().map(of_screen).collect(),
            ..table
        }
    }

    /// The table without explanations.
    fn plain(&self, rows: usize) -> Table {
        let mut table = self.table(rows);
        for row in &mut table.rows {
            row.minor = true;
        }
        table
    }
}

/// The lines of a table; none if it is empty.
fn text(table: &Table, blank: bool, style: Style) -> String {
    let mut report = Report::default();
    report.rows(table.clone());
    let text = report.terminal(style);
    match blank && !text.is_empty() {
        true => format!("\n{text}"),
        false => text,
    }
}
