//! Reports on a terminal.

use super::table::{Cell, Column, Row, Table};
use super::{Block, Fact, Facts, Report, Sentence};
use crate::style::{Style, Tone, fit, pad, tame, wrap};
use unicode_width::UnicodeWidthStr;

/// Blanks between two columns.
const GAP: usize = 2;
/// Blanks before a fact.
const INDENT: usize = 2;
/// The least width of a first column that gives room to the others, columns.
const LEAST: usize = 18;
/// The largest width of a fact's name beside its text, columns.
const MOST_OF_A_NAME: usize = 24;

impl Report {
    /// The text, each line within `style`'s width.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        let mut text = Text {
            style,
            out: String::new(),
        };
        for block in &self.blocks {
            match block {
                Block::Heading {
                    text: name,
                    name: true,
                    remark,
                } => text.heading(name, remark),
                Block::Heading {
                    text: words,
                    remark,
                    ..
                } => text.heading(&words.to_uppercase(), remark),
                Block::Sentence(sentence) => text.sentence(sentence),
                Block::Facts(facts) => text.facts(facts),
                Block::Warnings(all) => text.warnings(all),
                Block::Table(table) => text.table(table),
                Block::Line(line) => text.line(line),
            }
        }
        text.out
    }
}

struct Text {
    style: Style,
    out: String,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// A blank line, except at the beginning.
    fn apart(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn heading(&mut self, words: &str, remark: &str) {
        if self.out != "\n" {
            self.apart();
        }
        let words = fit(words, self.style.columns());
        let used = words.width() + remark.width();
        let gap = self.style.columns().saturating_sub(used).max(1);
        let words = self.style.paint(Tone::Heading, &words);
        let remark = self.style.paint(Tone::Dim, remark);
        self.line(&format!("{words}{}{remark}", " ".repeat(gap)));
    }

    fn warnings(&mut self, all: &[String]) {
        for warning in all {
            let mut mark = self.style.paint(Tone::Warning, "!");
            for line in wrap(warning, self.style.columns() - 4) {
                self.line(&format!("  {mark} {line}"));
                mark = " ".into();
            }
        }
    }

    fn prose(&mut self, tone: Option<Tone>, indent: usize, text: &str) {
        for line in self.style.prose(tone, indent, text) {
            self.line(&line);
        }
    }

    fn sentence(&mut self, sentence: &Sentence) {
        let Sentence {
            tone,
            indent,
            lead,
            text,
        } = sentence;
        match *lead {
            "" => self.prose(*tone, *indent, text),
            lead => self.prose(*tone, *indent, &format!("{}: {text}", lead.to_uppercase())),
        }
    }

    fn facts(&mut self, facts: &Facts) {
        let names = facts.shown.iter().map(|fact| tame(&fact.name).width());
        let names = names.max().unwrap_or(0).min(MOST_OF_A_NAME);
        for Fact { name, tone, text } in &facts.shown {
            // A long name is a line of its own.
            let mut name = tame(name);
            if name.width() > names {
                self.prose(Some(Tone::Dim), INDENT, &name);
                name.clear();
            }
            let room = self.style.columns().saturating_sub(INDENT + names + GAP);
            for line in wrap(text, room) {
                let start = format!("{}{}", " ".repeat(INDENT), pad(&name, names + GAP));
                let start = self.style.paint(Tone::Dim, &start);
                let line = tone.map_or(line.clone(), |tone| self.style.paint(tone, &line));
                self.line(&format!("{start}{line}"));
                name.clear();
            }
        }
        let [one, several] = facts.aside_is;
        match facts.aside.len() {
            0 => {}
            1 => self.prose(Some(Tone::Dim), 0, &format!("and 1 {one}")),
            n => self.prose(Some(Tone::Dim), 0, &format!("and {n} {several}")),
        }
    }

    fn table(&mut self, table: &Table) {
        self.apart();
        let shown: Vec<&Row> = table.rows.iter().filter(|row| !row.aside).collect();
        let laid = Laid::out(&table.columns, &shown, self.style.columns());
        let heads = laid.line(Style::default(), |at| {
            (table.columns[at].head.as_str(), None)
        });
        let heads = self.style.paint(Tone::Heading, heads.trim_end());
        self.line(&heads);
        let empty = Cell::default();
        for row in &shown {
            let cell = |at: usize| row.cells.get(at).unwrap_or(&empty);
            let line = laid.line(self.style, |at| (cell(at).text.as_str(), cell(at).tone));
            self.line(&line);
            for remark in &row.remarks {
                self.prose(Some(Tone::Dim), 2, remark);
            }
        }
        let aside = table.rows.len() - shown.len();
        if aside > 0 {
            let text = format!("and {aside} more, {}", table.aside);
            self.prose(Some(Tone::Dim), 0, &text);
        }
    }
}

/// The columns that fit a width.
struct Laid {
    columns: Vec<LaidColumn>,
    /// Blanks between two columns.
    gap: usize,
}

struct LaidColumn {
    /// Its place among all columns.
    at: usize,
    width: usize,
    number: bool,
    rank: u8,
}

impl Laid {
    /// Narrows the gaps, then leaves out columns by their rank, and then narrows the first one, until a line fits into
    /// `room` columns.
    fn out(columns: &[Column], rows: &[&Row], room: usize) -> Laid {
        let width = |at: usize, column: &Column| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            let widest = cells.map(|cell| tame(&cell.text).width()).max();
            column.head.width().max(widest.unwrap_or(0))
        };
        let of_each = columns.iter().enumerate().map(|(at, column)| LaidColumn {
            at,
            width: width(at, column),
            number: column.number,
            rank: column.rank,
        });
        let mut laid = Laid {
            columns: of_each.collect(),
            gap: GAP,
        };
        if laid.excess(room) > 0 {
            laid.gap = 1;
        }
        // The first column may become narrow before another one disappears.
        while laid.excess(room) > laid.spare() {
            let least = laid.columns.iter().enumerate().skip(1);
            let dropped = least
                .filter(|(_, column)| column.rank > 0)
                .max_by_key(|(_, column)| column.rank);
            let Some(at) = dropped.map(|(at, _)| at) else {
                break;
            };
            laid.columns.remove(at);
        }
        let narrower = laid.excess(room).min(laid.spare());
        if let Some(first) = laid.columns.first_mut() {
            first.width -= narrower;
        }
        laid
    }

    /// By how many columns a line is too long.
    fn excess(&self, room: usize) -> usize {
        let all: usize = self.columns.iter().map(|of| of.width + self.gap).sum();
        all.saturating_sub(room + self.gap)
    }

    /// By how many columns the first one may become narrower.
    fn spare(&self) -> usize {
        let first = self.columns.first().map_or(0, |column| column.width);
        first.saturating_sub(LEAST)
    }

    fn line<'c>(&self, style: Style, cell: impl Fn(usize) -> (&'c str, Option<Tone>)) -> String {
        let mut line = String::new();
        for (nth, column) in self.columns.iter().enumerate() {
            if nth > 0 {
                line.push_str(&" ".repeat(self.gap));
            }
            let (text, tone) = cell(column.at);
            let text = if column.number {
                let text = fit(text, column.width);
                format!("{}{text}", " ".repeat(column.width - text.width()))
            } else if nth + 1 == self.columns.len() {
                fit(text, column.width)
            } else {
                pad(text, column.width)
            };
            line.push_str(&tone.map_or(text.clone(), |tone| style.paint(tone, &text)));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, figure: &str, margin: &str) -> Row {
        Row::from([name.into(), figure.into(), margin.into(), "worse".into()])
    }

    fn table(rows: Vec<Row>) -> Report {
        let mut report = Report::default();
        report.table(Table {
            title: "Figures".into(),
            columns: vec![
                Column::text("figure"),
                Column::number("A"),
                Column::number("margin").of_rank(1),
                Column::text("verdict"),
            ],
            rows,
            aside: "none of them worse",
        });
        report
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let text = table(vec![row("a", "1", "10 %"), row("bc", "1,000", "5 %")]);
        assert_eq!(
            text.terminal(Style::default()),
            "figure      A  margin  verdict\n\
             a           1    10 %  worse\n\
             bc      1,000     5 %  worse\n"
        );
    }

    #[test]
    fn a_narrow_screen_leaves_out_columns_and_cuts_names_but_no_verdict() {
        let long = "a name of a culprit that is far too long for a line of this screen, really";
        let text = table(vec![row(long, &"9".repeat(20), &"8".repeat(40))]);
        let text = text.terminal(Style::default());
        assert!(!text.contains("margin") && text.contains("worse"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.contains(".."), "{text}");
    }

    #[test]
    fn rows_left_aside_are_counted_and_names_cannot_control_the_terminal() {
        let aside = Row {
            aside: true,
            ..row("hidden", "1", "")
        };
        let remarked = Row {
            remarks: vec!["runs: 1, 2".into()],
            ..row("a\u{1b}[2J", "1", "")
        };
        let text = table(vec![aside, remarked]).terminal(Style::default());
        assert!(
            !text.contains("hidden") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(text.contains("  runs: 1, 2\nand 1 more, none of them worse\n"));
    }

    #[test]
    fn facts_and_sentences_wrap_and_what_is_left_aside_is_counted() {
        let fact = |name: &str| Fact {
            name: name.into(),
            tone: None,
            text: "1 in A, 2 in B".into(),
        };
        let mut report = Report::default();
        report.heading("What else differs");
        report.lead(Tone::Bad, "Not comparable", "probe");
        report.facts(Facts {
            shown: vec![fact("cpufreq")],
            aside: vec![fact("load"), fact("uptime")],
            aside_is: ["thing", "things"],
        });
        assert_eq!(
            report.terminal(Style::default()),
            "WHAT ELSE DIFFERS\nNOT COMPARABLE: probe\n  cpufreq  1 in A, 2 in B\nand 2 things\n"
        );
    }
}
