//! Tables of a report.

use crate::style::Tone;
use jitterscope_model::{StallId, Subject};

/// Rows under named columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// What it lists. Terminals do not show it, because the head of the first column says it.
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// The head of a column of remarks, for views with room for it; empty for remarks below the row's name.
    pub remarks: &'static str,
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

/// The rank of a column that no terminal shows.
pub(super) const PAGE: u8 = u8::MAX;
/// The number of parts of a cell in views with room for a few lines.
const PARTS: usize = 3;

/// A row: one cell for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// A line above it, which begins a group of rows.
    pub group: Option<Cell>,
    pub cells: Vec<Cell>,
    /// Remarks about the row, below it.
    pub remarks: Vec<String>,
    /// Whether a terminal leaves out its remarks.
    pub minor: bool,
    /// Whether short views only count it.
    pub aside: bool,
    /// Whether it sums up rows left aside, for views that leave them out.
    pub is_rest: bool,
    /// A screen without room for all rows shows those of the smallest ranks.
    pub rank: usize,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub text: String,
    pub tone: Option<Tone>,
    /// What identifies it further. A terminal shows it beside the text if there is room, otherwise among the remarks.
    pub detail: String,
    /// What it is made of, the largest first. A view shows as many as it has room for, and counts the others.
    pub parts: Vec<Part>,
    /// What a click on it shows, on a page.
    pub link: Option<Link>,
}

/// One of the things that a cell's subject is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub text: String,
    /// The text for a line that has little room.
    pub short: String,
}

/// What a click on a cell shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Stall(StallId),
    /// Only the stalls of this culprit.
    Culprit(Box<Subject>),
    /// The same, of the culprit of this kind and name.
    Named(String),
}

impl Table {
    /// The column that names the rows: the first of text.
    pub(super) fn naming(&self) -> usize {
        let first = self.columns.iter().position(|column| !column.number);
        first.unwrap_or(0)
    }

    /// The rows of short views.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.aside)
    }

    /// The text that counts rows left aside; `None` if there are none, or a row sums them up.
    pub(super) fn left_aside(&self) -> Option<String> {
        let rows = self.rows.iter().filter(|row| row.aside).count();
        let summed = self.rows.iter().any(|row| row.is_rest);
        match (rows, self.aside) {
            (0, _) => None,
            _ if summed => None,
            (rows, "") => Some(format!("{rows} more")),
            (rows, aside) => Some(format!("{rows} more, {aside}")),
        }
    }
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

    /// Columns of numbers.
    pub(crate) fn numbers<H: Into<String>>(
        heads: impl IntoIterator<Item = H>,
    ) -> impl Iterator<Item = Column> {
        heads.into_iter().map(Column::number)
    }

    /// The same column, left out where a screen is narrow.
    pub(crate) fn of_rank(self, rank: u8) -> Column {
        Column { rank, ..self }
    }

    /// The same column, left out of terminals.
    pub(crate) fn of_pages(self) -> Column {
        self.of_rank(PAGE)
    }
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: impl Into<Option<Tone>>) -> Cell {
        Cell {
            text: text.into(),
            tone: tone.into(),
            ..Cell::default()
        }
    }

    /// The value, or a dash.
    pub(crate) fn known(value: Option<impl ToString>) -> Cell {
        value
            .map_or_else(|| "-".to_owned(), |value| value.to_string())
            .into()
    }

    pub(crate) fn with_link(self, link: Link) -> Cell {
        Cell {
            link: Some(link),
            ..self
        }
    }
}

impl Cell {
    /// Its largest parts, and the number of the others.
    pub(super) fn few_parts(&self) -> impl Iterator<Item = String> {
        let rest = self.parts.len().saturating_sub(PARTS);
        let more = (rest > 0).then(|| format!("{rest} more"));
        let few = self.parts.iter().take(PARTS);
        few.map(|part| part.text.clone()).chain(more)
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
        Vec::from(cells).into()
    }
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Row {
        Row {
            cells,
            ..Row::default()
        }
    }
}

impl Row {
    /// Its remarks, with the details of its cells behind the first one. No detail repeats a remark.
    pub(super) fn remarks_and_details(&self) -> impl Iterator<Item = &String> {
        let details = self.cells.iter().map(|cell| &cell.detail);
        let is_new = move |detail: &&String| {
            !detail.is_empty() && !self.remarks.iter().any(|of| of.contains(detail.as_str()))
        };
        let first = self.remarks.iter().take(1);
        let others = self.remarks.iter().skip(1);
        first.chain(details.filter(is_new)).chain(others)
    }

    /// The row that sums up `rows` rows that short views leave aside; `None` if there are none. Its name has a detail.
    pub(crate) fn rest(rows: usize, detail: String, cells: [String; 2]) -> Option<Row> {
        let name = Cell {
            detail,
            ..format!("{rows} more").into()
        };
        let cells = [name].into_iter().chain(cells.map(Cell::from));
        (rows > 0).then(|| Row {
            is_rest: true,
            ..Row::from(cells.collect::<Vec<_>>())
        })
    }

    /// The row that sums the others up.
    pub(crate) fn total(mut self) -> Row {
        for cell in &mut self.cells {
            cell.tone = Some(Tone::Strong);
        }
        self
    }
}
