//! Tables of a report.

use crate::style::Tone;

/// Rows under named columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// What it lists. Terminals do not show it, because the head of the first column says it.
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// What the rows left aside are, for views that only count them: `none of them better or worse`.
    pub aside: &'static str,
}

/// A column and its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub head: String,
    /// Whether its cells are numbers, which align to the right.
    pub number: bool,
    /// Narrow screens leave out columns above zero, the largest first.
    pub rank: u8,
}

/// A row: one cell for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub cells: Vec<Cell>,
    /// Remarks about the row, below it.
    pub remarks: Vec<String>,
    /// Whether short views only count it.
    pub aside: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub text: String,
    pub tone: Option<Tone>,
    /// Further lines, where a view has room for several.
    pub more: Vec<String>,
}

impl Column {
    pub(crate) fn text(head: impl Into<String>) -> Column {
        Column {
            head: head.into(),
            number: false,
            rank: 0,
        }
    }

    pub(crate) fn number(head: impl Into<String>) -> Column {
        Column {
            number: true,
            ..Column::text(head)
        }
    }

    /// The same column, left out where a screen is narrow.
    pub(crate) fn of_rank(self, rank: u8) -> Column {
        Column { rank, ..self }
    }
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: impl Into<Option<Tone>>) -> Cell {
        Cell {
            text: text.into(),
            tone: tone.into(),
            more: Vec::new(),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::toned(text, None)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::toned(text, None)
    }
}

impl<const N: usize> From<[Cell; N]> for Row {
    fn from(cells: [Cell; N]) -> Row {
        Row {
            cells: cells.into(),
            ..Row::default()
        }
    }
}
