//! A report cut to one screen.

use super::{Block, Report, Row};
use crate::style::Style;
use jitterscope_model::PutInOrder;

/// The fewest rows of a table on a screen.
const ROWS: usize = 2;

impl Report {
    /// The text on one screen: without optional sentences, and with the rows of the smallest ranks, as far as there is
    /// no room for all.
    #[must_use]
    pub fn screen(&self, style: Style) -> String {
        let mut shown = self.clone();
        loop {
            let text = shown.terminal(style);
            // A line for the prompt.
            let excess = (text.lines().count() + 1).saturating_sub(style.lines());
            if excess == 0 || !shown.shorten(excess) {
                return text;
            }
        }
    }

    /// Leaves out about `lines` lines, at least one; returns false if everything left must be shown.
    fn shorten(&mut self, lines: usize) -> bool {
        let optional =
            |block: &Block| matches!(block, Block::Sentence(sentence) if sentence.optional);
        if let Some(at) = self.blocks.iter().rposition(optional) {
            self.blocks.remove(at);
            return true;
        }
        let tables = self.blocks.iter_mut().filter_map(|block| match block {
            Block::Table(table) => Some(&mut table.rows),
            _ => None,
        });
        let shown = |rows: &Vec<Row>| rows.iter().filter(|row| !row.aside).count();
        let Some(rows) = tables.max_by_key(|rows| shown(rows)) else {
            return false;
        };
        let spare = shown(rows).saturating_sub(ROWS);
        let mut least: Vec<&mut Row> = rows.iter_mut().filter(|row| !row.aside).collect();
        least.order_by_key(|row| std::cmp::Reverse(row.rank));
        for row in least.into_iter().take(lines.min(spare)) {
            row.aside = true;
        }
        spare > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Column, Table};

    #[test]
    fn a_screen_keeps_what_matters_most() {
        let mut report = Report::default();
        report.sentence(None, "headline");
        let row = |rank: usize| Row {
            rank,
            ..Row::from([format!("row {rank}").into()])
        };
        report.table(Table {
            columns: vec![Column::text("what")],
            rows: (0..40).rev().map(row).collect(),
            aside: "smaller",
            ..Table::default()
        });
        report.sentence(None, "reason");
        report.optional(None, "another reason");
        let screen = report.screen(Style::default());
        assert_eq!(screen.lines().count(), 23, "{screen}");
        assert!(screen.starts_with("headline") && screen.contains("row 0\n"));
        assert!(!screen.contains("row 39") && !screen.contains("another"));
        assert!(
            screen.contains("\nand 22 more, smaller\nreason\n"),
            "{screen}"
        );
        let whole = report.terminal(Style::default());
        assert!(whole.contains("row 39") && whole.contains("another"));
        // What must be shown may exceed a screen.
        let mut long = Report::default();
        (0..40).for_each(|_| long.sentence(None, "x"));
        assert_eq!(long.screen(Style::default()).lines().count(), 40);
    }
}
