//! Text made line by line: prose that wraps behind a heading, and counts of things.

use jitterscope_model::{CpuSet, visible};
use std::fmt;
use unicode_width::UnicodeWidthStr;

use crate::style::Style;

/// Every screen is made for at least so many columns.
const LEAST_WIDTH: usize = 80;
/// Words keep so much room, however long the heading.
const LEAST_ROOM: usize = 20;

/// A text that grows.
pub(crate) struct Lines {
    text: String,
    width: usize,
}

impl Lines {
    /// An empty one, as wide as the screen.
    pub(crate) fn new(style: Style) -> Lines {
        Lines { text: String::new(), width: style.width.max(LEAST_WIDTH) }
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// `text` broken at white space: `first` starts the first line, blanks of the same width the others. Names
    /// that somebody else gave may be in it: they are spelt out. A word that is too long for a line is left
    /// whole, for it is often a path to be copied.
    pub(crate) fn wrapped(&mut self, first: &str, text: &str) {
        let indent = first.rsplit('\n').next().unwrap_or(first).width();
        let room = self.width.saturating_sub(indent).max(LEAST_ROOM);
        let mut line = String::new();
        let mut start = first.to_owned();
        for word in visible(text).split_whitespace() {
            if !line.is_empty() && line.width() + 1 + word.width() > room {
                self.line(&start, &line);
                start = " ".repeat(indent);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&start, &line);
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
    if cpus.len() == 1 { format!("CPU {cpus}") } else { format!("CPUs {cpus}") }
}

/// `1 change`, `2 changes`.
#[must_use]
pub fn counted(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
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
    fn no_line_is_wider_than_the_screen_unless_a_word_is() {
        let text = wrapped("      now   ", &"word ".repeat(60));
        assert!(text.lines().all(|l| l.len() <= LEAST_WIDTH));
        assert!(text.lines().skip(1).all(|l| l.starts_with("            word")));
        assert_eq!(wrapped("a ", ""), "a\n");
        assert_eq!(wrapped("- ", "a\u{1b}[2Jb\nc \u{9b}d"), "- a\\x1b[2Jb\\nc \\u{9b}d\n");
    }
}
