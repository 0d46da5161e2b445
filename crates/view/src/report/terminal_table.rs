//! A table's columns on a terminal.

use super::table::PAGE;
use super::{Cell, Row, Table};
use crate::style::{Style, Tone, fit, fit_apart, tame};
use unicode_width::UnicodeWidthStr;

/// Blanks between two columns.
const GAP: usize = 2;
/// Blanks before remarks on a row that begins with its name.
const INDENT: usize = 2;
/// The least width of a name that gives room to other columns.
const LEAST: usize = 18;
/// The least room for a part of a detail.
const LEAST_DETAIL: usize = 9;

/// The columns that fit a width.
pub(super) struct Laid<'t> {
    table: &'t Table,
    shown: &'t [&'t Row],
    columns: Vec<LaidColumn>,
    /// Blanks between two columns.
    gap: usize,
    /// The width of the terminal.
    room: usize,
}

struct LaidColumn {
    /// Its place among all columns.
    at: usize,
    width: usize,
    number: bool,
    rank: u8,
}

impl<'t> Laid<'t> {
    /// Narrows the gaps, then leaves out columns by their rank, and then narrows the names, until a line fits into
    /// `room` columns. What names leave free is for their details.
    pub(super) fn out(table: &'t Table, shown: &'t [&'t Row], room: usize) -> Laid<'t> {
        let widest = |at: usize, of: fn(&Cell) -> usize| {
            let cells = shown.iter().filter_map(|row| row.cells.get(at));
            cells.map(of).max().unwrap_or(0)
        };
        let columns = table.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| column.rank != PAGE);
        let of_each = columns.map(|(at, column)| LaidColumn {
            at,
            width: widest(at, |cell| tame(&cell.text).width()).max(column.head.width()),
            number: column.number,
            rank: column.rank,
        });
        let mut laid = Laid {
            columns: of_each.collect(),
            table,
            shown,
            gap: GAP,
            room,
        };
        if laid.excess() > 0 {
            laid.gap = 1;
        }
        // Names may become narrow before a column disappears.
        while laid.excess() > laid.spare() {
            let least = laid.columns.iter().enumerate();
            let least = least.filter(|(_, column)| column.rank > 0);
            let Some((at, _)) = least.max_by_key(|(_, column)| column.rank) else {
                break;
            };
            laid.columns.remove(at);
        }
        let narrower = laid.excess().min(laid.spare());
        let free = room.saturating_sub(laid.width());
        if let Some(names) = laid.columns.iter_mut().find(|of| of.at == table.naming()) {
            names.width -= narrower;
            let whole = widest(names.at, whole).max(names.width);
            names.width = whole.min(names.width + free);
        }
        laid
    }

    /// The width of a line, columns.
    fn width(&self) -> usize {
        let all: usize = self.columns.iter().map(|of| of.width + self.gap).sum();
        all.saturating_sub(self.gap)
    }

    /// By how many columns a line is too long.
    fn excess(&self) -> usize {
        self.width().saturating_sub(self.room)
    }

    /// By how many columns names may become narrower.
    fn spare(&self) -> usize {
        let naming = self.table.naming();
        let names = self.columns.iter().find(|column| column.at == naming);
        names.map_or(0, |names| names.width.saturating_sub(LEAST))
    }

    /// Blanks before remarks on a row: they begin with its second column, or near the margin below its name.
    pub(super) fn indent(&self) -> usize {
        match self.columns.first() {
            Some(first) if first.number => first.width + self.gap,
            _ => INDENT,
        }
    }

    /// The line of heads.
    pub(super) fn heads(&self) -> String {
        let heads = self.columns.iter().map(|column| {
            let head = &self.table.columns[column.at].head;
            column.aligned(fit(head, column.width))
        });
        self.line(heads)
    }

    /// The line of a row, and the details that have no room in it.
    pub(super) fn row(&self, style: Style, row: &'t Row) -> (String, Vec<&'t str>) {
        let empty = Cell::default();
        let cells = self.columns.iter().map(|column| {
            let cell = row.cells.get(column.at).unwrap_or(&empty);
            if column.at == self.table.naming() && !column.number {
                return self.name(style, row, cell, column);
            }
            let mut text = column.aligned(fit(&cell.text, column.width));
            if self.columns.last().is_some_and(|last| last.at == column.at) {
                text.truncate(text.trim_end().len());
            }
            cell.tone
                .map_or(text.clone(), |tone| style.paint(tone, &text))
        });
        let line = self.line(cells);
        let details = row.cells.iter().map(|cell| cell.detail.as_str());
        let left = details.filter(|of| !of.is_empty() && !line.contains(&tame(of)));
        (line.clone(), left.collect())
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(self.gap));
        line.trim_end().to_owned()
    }

    /// The name of a row, with its detail or its parts as far as there is room for them. A name that is cut differs from
    /// those of other rows.
    fn name(&self, style: Style, row: &Row, cell: &Cell, column: &LaidColumn) -> String {
        let others = || self.shown.iter().filter_map(|row| row.cells.get(column.at));
        let names = others().map(|other| other.text.as_str());
        let name = fit_apart(&cell.text, names, column.width);
        let room = column.width.saturating_sub(name.width());
        let (beside, tone) = match cell.parts.is_empty() {
            true => (detail(row, cell, others(), room), Some(Tone::Dim)),
            false if name.is_empty() => (parts(cell, room), None),
            false => (format!(": {}", parts(cell, room.saturating_sub(2))), None),
        };
        let blank = room.saturating_sub(beside.width());
        let painted = |text: String, tone: Option<Tone>| match tone {
            Some(tone) => style.paint(tone, &text),
            None => text,
        };
        let (name, beside) = (painted(name, cell.tone), painted(beside, tone));
        format!("{name}{beside}{}", " ".repeat(blank))
    }
}

impl LaidColumn {
    /// Text in the column: numbers are at its right.
    fn aligned(&self, text: String) -> String {
        let blank = " ".repeat(self.width.saturating_sub(text.width()));
        match self.number {
            true => format!("{blank}{text}"),
            false => format!("{text}{blank}"),
        }
    }
}

/// The width of a name with everything beside it.
fn whole(cell: &Cell) -> usize {
    let name = tame(&cell.text).width();
    let parts = parts(cell, usize::MAX).width();
    match (parts, name, tame(&cell.detail).width()) {
        (0, name, 0) => name,
        (0, name, detail) => name + GAP + detail,
        (parts, 0, _) => parts,
        (parts, name, _) => name + 2 + parts,
    }
}

/// The detail beside a name that leaves `room`; empty if it does not fit.
fn detail<'c>(
    row: &Row,
    cell: &Cell,
    others: impl Iterator<Item = &'c Cell>,
    room: usize,
) -> String {
    let room = room.saturating_sub(GAP);
    let fits = tame(&cell.detail).width() <= room;
    let alike: Vec<&str> = others
        .filter(|other| other.text == cell.text)
        .map(|other| other.detail.as_str())
        .collect();
    // A row without remarks has its detail here alone. It is cut if it distinguishes rows of one name.
    let is_cut = row.minor && alike.len() > 1 && room >= LEAST_DETAIL;
    if cell.detail.is_empty() || !fits && !is_cut {
        return String::new();
    }
    let detail = fit_apart(&cell.detail, alike, room);
    format!("{}{detail}", " ".repeat(GAP))
}

/// `88 % late interrupt, 9 % tick_nohz_handler, +2 more`, within `room`.
fn parts(cell: &Cell, room: usize) -> String {
    let mut text = String::new();
    for (at, part) in cell.parts.iter().enumerate() {
        let left = cell.parts.len() - at;
        let separator = if at == 0 { "" } else { ", " };
        // The first part always appears, cut if necessary; a later one only if `+n more` fits after it.
        let reserve = match left {
            1 => 0,
            left => format!(", +{} more", left - 1).len(),
        };
        let space = room.saturating_sub(text.width() + separator.len() + reserve);
        if at > 0 && tame(&part.short).width() > space {
            return format!("{text}, +{left} more");
        }
        text += &format!("{separator}{}", fit(&part.short, space));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Column, Part, Report};

    fn shown(rows: Vec<Row>) -> String {
        let mut report = Report::default();
        report.table(Table {
            columns: vec![
                Column::text("culprit"),
                Column::number("total").of_pages(),
                Column::number("max"),
            ],
            rows,
            remarks: "what it is",
            ..Table::default()
        });
        report.terminal(Style::default())
    }

    fn row(name: &str, detail: &str, remarks: &[&str]) -> Row {
        let name = Cell {
            detail: detail.into(),
            ..name.into()
        };
        Row {
            remarks: remarks.iter().map(|of| (*of).to_owned()).collect(),
            ..Row::from([name, "of pages".into(), "1.30 ms".into()])
        }
    }

    #[test]
    fn a_detail_is_beside_its_name_or_among_the_remarks_and_a_remark_appears_once() {
        let long = "a detail that has no room beside the name of the culprit on a terminal";
        let text = shown(vec![
            row("thread a", "pid 1", &["a thread", "woken by b"]),
            row("thread c", long, &["a thread"]),
            Row {
                minor: true,
                ..row("thread d", long, &["a remark of pages"])
            },
        ]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[1].starts_with("thread a  pid 1  "), "{text}");
        assert_eq!(lines[2], "  a thread; woken by b");
        assert!(lines[3].starts_with("thread c  ") && lines[3].ends_with("  1.30 ms"));
        assert_eq!(lines[4], format!("  {long}"));
        assert!(lines[5].starts_with("thread d  ") && !lines[5].contains("detail"));
        assert_eq!(lines.len(), 6, "{text}");
        assert!(!text.contains("of pages"), "{text}");
    }

    #[test]
    fn names_that_would_be_cut_to_the_same_text_are_cut_apart() {
        let folder = "/system.slice/".to_owned() + &"very-long/".repeat(9);
        let of = |name: &str| row(&format!("{folder}{name}"), "", &[]);
        let text = shown(vec![of("inner"), of("outer")]);
        assert!(
            text.contains("../inner") && text.contains("../outer"),
            "{text}"
        );
        assert!(shown(vec![of("inner")]).contains("/system.slice/very-long"));
    }

    #[test]
    fn details_that_would_be_cut_to_the_same_text_are_cut_apart() {
        let folder = "control group /kubepods.slice/burstable.slice/pod-0123456789-0123456789/";
        let of = |name: &str| Row {
            minor: true,
            ..row("quota", &format!("{folder}{name}"), &[])
        };
        let text = shown(vec![of("one"), of("two")]);
        assert!(text.contains("../one") && text.contains("../two"), "{text}");
    }

    #[test]
    fn parts_without_room_are_counted() {
        let part = |short: &str| Part {
            short: short.into(),
            ..Part::default()
        };
        let cell = Cell {
            parts: vec![part("88 % one"), part("9 % two"), part("3 % three")],
            ..Cell::default()
        };
        assert_eq!(parts(&cell, 80), "88 % one, 9 % two, 3 % three");
        assert_eq!(parts(&cell, 27), "88 % one, 9 % two, +1 more");
        assert_eq!(parts(&cell, 20), "88 % one, +2 more");
        assert_eq!(parts(&cell, 16), "88 % .., +2 more");
    }
}
