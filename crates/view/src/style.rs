//! Colour, width and text that fits.

use owo_colors::{OwoColorize, Style as Ansi};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The least that every screen is made for.
const LINES: usize = 24;

/// How a text is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour.
    pub color: bool,
    /// Columns to use: at least 72, at most 120 are used.
    pub width: usize,
    /// Lines of the screen: at least 24 are used.
    pub height: usize,
    /// Whether the terminal shows block characters; all else is ASCII, but for names.
    pub unicode: bool,
    /// Whether periods were asked for: then all are listed, and that there are none too.
    pub periods: bool,
    /// Whether tables show every CPU, however many.
    pub all_cpus: bool,
    /// Whether timelines show every record, however many and however short.
    pub all_records: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            color: false,
            width: 80,
            height: LINES,
            unicode: false,
            all_cpus: false,
            periods: false,
            all_records: false,
        }
    }
}

/// What stands for words that were left out.
const CUT: &str = " ..";

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Heading,
    Strong,
    Dim,
    Warning,
    Bad,
    Good,
}

impl Style {
    /// Columns used.
    pub(crate) fn columns(self) -> usize {
        self.width.clamp(72, 120)
    }

    /// Lines used by what is to fit on a screen.
    pub(crate) fn lines(self) -> usize {
        self.height.max(LINES)
    }

    /// Prose over the whole width, line by line.
    pub(crate) fn prose(self, tone: Option<Tone>, indent: usize, text: &str) -> Vec<String> {
        let lines = wrap(text, self.columns().saturating_sub(indent)).into_iter();
        let painted = |line: String| tone.map_or(line.clone(), |tone| self.paint(tone, &line));
        lines
            .map(|line| format!("{}{}", " ".repeat(indent), painted(line)))
            .collect()
    }

    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let ansi = match tone {
            Tone::Heading => Ansi::new().bold().cyan(),
            Tone::Strong => Ansi::new().bold(),
            Tone::Dim => Ansi::new().dimmed(),
            Tone::Warning => Ansi::new().yellow(),
            Tone::Bad => Ansi::new().red().bold(),
            Tone::Good => Ansi::new().green().bold(),
        };
        text.style(ansi).to_string()
    }
}

/// A name made safe for a terminal: what would control it is spelt out, for a thread may call itself
/// anything.
pub(crate) fn tame(text: &str) -> String {
    jitterscope_model::visible(text).into_owned()
}

/// `text`, made safe and cut to `width` columns; a cut shows as `..`.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = tame(text);
    if text.width() <= width {
        return text;
    }
    let (mut cut, mut used) = (String::new(), 0);
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 2 > width {
            break;
        }
        used += columns;
        cut.push(c);
    }
    cut.push_str(&".."[..2.min(width)]);
    cut
}

/// `text` cut or padded to exactly `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let mut text = fit(text, width);
    let missing = width.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Words put into lines of at most `width` columns; a word that is too long for one is cut.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrapped(text, width, |word| fit(word, width))
}

/// The beginning of a text in at most so many lines, cut between words; a cut shows as `..`.
pub(crate) fn shortened(text: &str, width: usize, lines: usize) -> Vec<String> {
    let mut all = wrap(text, width);
    if all.len() <= lines {
        return all;
    }
    all.truncate(lines);
    let Some(last) = all.last_mut() else {
        return all;
    };
    let mut kept = last.as_str();
    while kept.width() + CUT.len() > width {
        let Some(at) = kept.rfind(' ') else {
            // One word as wide as the line.
            *last = fit(&format!("{last}{CUT}"), width);
            return all;
        };
        kept = &kept[..at];
    }
    *last = format!("{}{CUT}", kept.trim_end_matches([',', ';', ':']));
    all
}

/// Words, made safe for a terminal, put into lines of at most `width` columns; one that is too long for a line is
/// left whole, for it is often a path to be copied.
#[must_use]
pub fn wrap_whole(text: &str, width: usize) -> Vec<String> {
    wrapped(text, width, str::to_owned)
}

fn wrapped(text: &str, width: usize, fitted: impl Fn(&str) -> String) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in tame(text).split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&fitted(word));
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_control_the_terminal() {
        assert_eq!(tame("a\u{1b}[31mb\n\u{202e}c"), "a\\x1b[31mb\\n\\u{202e}c");
    }

    #[test]
    fn cuts_count_columns_not_characters() {
        assert_eq!(fit("tick_nohz_handler", 10), "tick_noh..");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("\u{4e2d}\u{6587}\u{5b57}", 5), "\u{4e2d}..");
        assert_eq!(pad("\u{4e2d}", 4), "\u{4e2d}  ");
        assert_eq!(fit("abc", 1), ".");
    }

    #[test]
    fn what_is_left_out_is_cut_between_words() {
        assert_eq!(shortened("one two three", 7, 2), ["one two", "three"]);
        assert_eq!(shortened("one two three", 7, 1), ["one .."]);
        assert_eq!(shortened("one, two three four", 13, 1), ["one, two .."]);
        assert_eq!(shortened("one, two three", 8, 1), ["one .."]);
        assert_eq!(shortened("enormous words", 8, 1), ["enormo.."]);
        assert!(shortened("one two", 7, 0).is_empty());
    }

    #[test]
    fn words_wrap_within_the_width() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("enormously long", 6), ["enor..", "long"]);
        assert_eq!(wrap_whole("enormously long", 6), ["enormously", "long"]);
        assert!(wrap("", 6).is_empty() && wrap_whole(" ", 6).is_empty());
    }
}
