//! Reports on a terminal.

use super::terminal_table::Laid;
use super::{Block, Fact, Facts, Report, Row, Sentence, Table};
use crate::style::{Style, Tone, broken, fit, pad, tame, wrap};
use std::collections::HashSet;
use unicode_width::UnicodeWidthStr;

/// Blanks between a fact's name and its text.
const GAP: usize = 2;
/// Blanks before a fact.
const INDENT: usize = 2;
/// The largest width of a fact's name beside its text, columns.
const MOST_OF_A_NAME: usize = 24;

impl Report {
    /// The text, each line within `style`'s width.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        let mut text = Text {
            style,
            out: String::new(),
            headed: false,
        };
        for block in &self.blocks {
            let headed = matches!(block, Block::Heading { .. });
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
            text.headed = headed;
        }
        text.out
    }
}

struct Text {
    style: Style,
    out: String,
    /// Whether a heading is the last block of `out`.
    headed: bool,
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
        let remark = fit(
            remark,
            self.style.columns().saturating_sub(words.width() + 1),
        );
        let used = words.width() + remark.width();
        let gap = self.style.columns().saturating_sub(used).max(1);
        let words = self.style.paint(Tone::Heading, &words);
        let remark = self.style.paint(Tone::Dim, &remark);
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
            ..
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
        if !self.headed {
            self.apart();
        }
        let shown: Vec<&Row> = table.shown().collect();
        let laid = Laid::out(table, &shown, self.style.columns());
        let heads = self.style.paint(Tone::Heading, &laid.heads());
        self.line(&heads);
        let mut said = HashSet::new();
        for row in &shown {
            if let Some(group) = &row.group {
                self.prose(group.tone, 0, &group.text);
            }
            let (line, left) = laid.row(self.style, row);
            self.line(&line);
            if row.minor {
                continue;
            }
            // What a column of remarks says of several rows appears once.
            let remarks = row.remarks.iter().map(String::as_str);
            let mut remarks = remarks.filter(|of| table.remarks.is_empty() || said.insert(*of));
            let first = remarks.next();
            let remarks: Vec<&str> = first.into_iter().chain(left).chain(remarks).collect();
            match table.remarks {
                "" => remarks.iter().for_each(|of| self.remark(laid.indent(), of)),
                _ => self.remark(laid.indent(), &remarks.join("; ")),
            }
        }
        if let Some(aside) = table.left_aside() {
            self.prose(Some(Tone::Dim), 0, &format!("and {aside}"));
        }
    }

    /// A remark, no word of which is cut: names in it may differ at their ends only.
    fn remark(&mut self, indent: usize, text: &str) {
        for line in broken(text, self.style.columns() - indent) {
            let line = self.style.paint(Tone::Dim, &line);
            self.line(&format!("{}{line}", " ".repeat(indent)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Column;

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
            ..Table::default()
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
