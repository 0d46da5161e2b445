//! Colour, width and text that fits.

use owo_colors::{OwoColorize, Style as Ansi};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The smallest height that every screen fits, lines.
const LINES: usize = 24;

/// The style of a rendered text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// The width in columns, clamped to 72..=120.
    pub width: usize,
    /// The height of the screen in lines, at least 24.
    pub height: usize,
    /// Whether the terminal shows block characters; everything else is ASCII, except names.
    pub unicode: bool,
    /// Whether the user asked for periods: then all are listed, and their absence is reported.
    pub periods: bool,
    /// Whether tables show every CPU.
    pub all_cpus: bool,
    /// Whether timelines show every record.
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

/// The replacement of words that do not fit.
const CUT: &str = " ..";

/// The tone of a piece of text.
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
    pub(crate) fn columns(self) -> usize {
        self.width.clamp(72, 120)
    }

    /// The number of lines for a text that must fit on a screen.
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

/// A name made safe for a terminal: control characters are escaped, because a thread may have any name.
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

/// The same, cut so that it differs from each of `others`: what they have in common at the beginning is left out, up to
/// the component of the path that differs.
pub(crate) fn fit_apart<'t>(
    text: &str,
    others: impl IntoIterator<Item = &'t str>,
    width: usize,
) -> String {
    let cut = fit(text, width);
    let alike = others
        .into_iter()
        .filter(|other| *other != text && fit(other, width) == cut);
    let common = |other: &str| {
        let pairs = text.char_indices().zip(other.chars());
        let differs = pairs
            .skip_while(|((_, a), b)| a == b)
            .map(|((at, _), _)| at);
        differs.min().unwrap_or(text.len().min(other.len()))
    };
    let Some(common) = alike.map(common).max() else {
        return cut;
    };
    let component = text[..common].rfind('/');
    fit(
        &format!("..{}", &text[component.unwrap_or(common)..]),
        width,
    )
}

/// `text`, cut or padded to exactly `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let mut text = fit(text, width);
    let missing = width.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Words in lines of at most `width` columns; a word that is too long is cut.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrapped(text, width, |word| fit(word, width))
}

/// The beginning of a text in at most `lines` lines, cut between words; a cut shows as `..`.
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

/// Words, made safe for a terminal, in lines of at most `width` columns; a word longer than a line stays whole, because
/// it is often a path to copy.
#[must_use]
pub fn wrap_whole(text: &str, width: usize) -> Vec<String> {
    wrapped(text, width, str::to_owned)
}

/// The same, with words longer than a line broken anywhere.
pub(crate) fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in wrap_whole(text, width) {
        let (mut part, mut used) = (String::new(), 0);
        for c in line.chars() {
            let columns = c.width().unwrap_or(0);
            if used + columns > width {
                lines.push(std::mem::take(&mut part));
                used = 0;
            }
            used += columns;
            part.push(c);
        }
        lines.push(part);
    }
    lines
}

fn wrapped(text: &str, width: usize, fitted: impl Fn(&str) -> String) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in &pieces(&tame(text), width) {
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

/// The words of a text. A command between backquotes is one piece if it fits into a line, so that it can be copied.
fn pieces(text: &str, width: usize) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let quotes = |word: &&str| word.matches('`').count() % 2 == 1;
    let mut pieces = Vec::new();
    let mut rest = words.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let closing = behind.iter().position(quotes);
        let length = closing.filter(|_| quotes(first)).map_or(1, |at| at + 2);
        let command = rest[..length].join(" ");
        if command.width() <= width || length == 1 {
            pieces.push(command);
            rest = &rest[length..];
        } else {
            pieces.push((*first).to_owned());
            rest = behind;
        }
    }
    pieces
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
    fn texts_that_begin_alike_are_cut_where_they_differ() {
        let groups = [
            "/kubepods/burstable/pod-0123456789/main",
            "/kubepods/burstable/pod-0123456789/main/batch",
            "/kubepods/burstable/pod-9876543210/main",
            "/user.slice",
        ];
        let cut = groups.map(|group| fit_apart(group, groups, 20));
        assert_eq!(
            cut,
            [
                "../main",
                "../main/batch",
                "../pod-9876543210/..",
                "/user.slice"
            ]
        );
        assert_eq!(fit_apart("a common name", ["another"], 8), "a comm..");
        assert_eq!(fit_apart("\u{4e2d}bbbbbb1", ["\u{4e2d}bbbbbb2"], 6), "..1");
    }

    #[test]
    fn a_command_is_broken_only_where_it_fits_into_no_line() {
        assert_eq!(wrap("do `a b`, `c d`.", 8), ["do", "`a b`,", "`c d`."]);
        assert_eq!(wrap("`a b c d`, e", 6), ["`a b c", "d`, e"]);
        assert_eq!(wrap("don`t `x y", 6), ["don`t", "`x y"]);
        assert_eq!(wrap("an open `x y", 8), ["an open", "`x y"]);
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
        assert_eq!(broken("enormously long", 6), ["enormo", "usly", "long"]);
        assert!(wrap("", 6).is_empty() && wrap_whole(" ", 6).is_empty());
    }
}
