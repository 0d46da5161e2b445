//! Text made line by line: prose that wraps behind a heading, and counts of things.

use jitterscope_model::CpuSet;
use std::fmt;
use unicode_width::UnicodeWidthStr;

use crate::style::{Style, fit, wrap_whole};

/// The largest width of a list of CPUs in a sentence, columns.
const MOST_CPUS_TEXT: usize = 45;
/// The least width for the words, however long the heading, columns.
const LEAST_ROOM: usize = 20;

pub(crate) struct Lines {
    text: String,
    width: usize,
}

impl Lines {
    pub(crate) fn new(style: Style) -> Lines {
        Lines {
            text: String::new(),
            width: style.columns(),
        }
    }

    /// The width of its lines, columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// `text` broken at white space: `first` starts the first line, blanks of the same width the others. The text may
    /// contain untrusted names, whose control characters are escaped. A word longer than a line stays whole, because it
    /// is often a path to copy.
    pub(crate) fn wrapped(&mut self, first: &str, text: &str) {
        let indent = first.rsplit('\n').next().unwrap_or(first).width();
        let room = self.width.saturating_sub(indent).max(LEAST_ROOM);
        let lines = wrap_whole(text, room);
        let words = lines.iter().map(String::as_str);
        // The heading appears even without text.
        let words = words.chain(lines.is_empty().then_some(""));
        for (at, words) in words.enumerate() {
            let blank = " ".repeat(indent);
            self.line(if at == 0 { first } else { &blank }, words);
        }
    }

    fn line(&mut self, start: &str, words: &str) {
        self.text.push_str(format!("{start}{words}").trim_end());
        self.text.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl fmt::Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

/// `CPU 1`, `CPUs 1-3`.
#[must_use]
pub fn cpus_text(cpus: &CpuSet) -> String {
    cpus.in_words()
}

/// A list of CPUs, cut if it is too long for a sentence.
pub(crate) fn short_cpus_text(cpus: &CpuSet) -> String {
    fit(&cpus_text(cpus), MOST_CPUS_TEXT)
}

/// `1 change`, `2 changes`.
#[must_use]
pub fn counted(n: usize, thing: &str) -> String {
    if n == 1 {
        format!("1 {thing}")
    } else {
        format!("{n} {thing}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(first: &str, text: &str) -> String {
        let mut lines = Lines::new(Style::default());
        lines.wrapped(first, text);
        lines.into_text()
    }

    #[test]
    fn no_more_columns_are_used_than_a_style_says_however_wide_the_screen() {
        for (screen, used) in [(200, 120), (100, 100), (40, 72)] {
            let mut lines = Lines::new(Style {
                width: screen,
                ..Style::default()
            });
            lines.wrapped("", &"word ".repeat(100));
            let longest = lines.into_text().lines().map(str::len).max();
            assert!(
                longest.is_some_and(|longest| longest <= used && longest + 5 > used),
                "{screen}"
            );
        }
    }

    #[test]
    fn a_long_list_of_cpus_is_cut_within_a_sentence() {
        let cpus = |text: &str| text.parse::<CpuSet>().unwrap();
        assert_eq!(short_cpus_text(&cpus("1-3")), "CPUs 1-3");
        let odd = (0..100)
            .map(|n| (2 * n + 1).to_string())
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(short_cpus_text(&cpus(&odd)).len(), MOST_CPUS_TEXT);
        assert!(cpus_text(&cpus(&odd)).len() > 200);
    }

    #[test]
    fn no_line_is_wider_than_the_screen_unless_a_word_is() {
        let text = wrapped("      now   ", &"word ".repeat(60));
        assert!(text.lines().all(|l| l.len() <= Style::default().columns()));
        assert!(
            text.lines()
                .skip(1)
                .all(|l| l.starts_with("            word"))
        );
        assert_eq!(wrapped("a ", ""), "a\n");
        assert_eq!(
            wrapped("- ", "a\u{1b}[2Jb\nc \u{9b}d"),
            "- a\\x1b[2Jb\\nc \\u{9b}d\n"
        );
    }
}
