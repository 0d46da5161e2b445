//! Writes results to stdout and messages to stderr; and nothing but text to either.
//!
//! Names, labels, paths and file contents are untrusted, and root reads them on a terminal. They are escaped where they
//! enter a line ([`jitterscope_model::visible`]). As a second defence, all text leaves through the functions of this
//! module, which pass only printable characters, line ends and jitterscope's own colours: no text can move the cursor
//! or rewrite a line.

use crate::exit::Exit;
use anyhow::Context;
use clap::ValueEnum;
use jitterscope_model::{is_visible, push_visible, visible, visible_json, visible_page};
use jitterscope_view::{Style, wrap_whole};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Color {
    /// When writing to a terminal, and NO_COLOR is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Uses this choice for everything printed from now on.
    pub fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::AlwaysAnsi,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The style of texts. Colours are always rendered: [`result`] strips them if they are not wanted.
pub fn style() -> Style {
    let unicode = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_ascii_uppercase().replace('-', "").contains("UTF8"));
    Style {
        color: true,
        width: width(),
        height: height(),
        unicode: unicode && io::stdout().is_terminal(),
        all_cpus: false,
        periods: false,
        all_records: false,
    }
}

/// The smallest width that every screen fits, columns.
const COLUMNS: usize = 80;

/// The width of stdout's terminal, at least [`COLUMNS`]; exactly that for a file or a pipe, so that saved output does
/// not depend on the terminal.
fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(COLUMNS, |(width, _)| usize::from(width.0).max(COLUMNS))
}

/// The height of stdout's terminal in lines; 0 for a file or a pipe, which selects the smallest screen.
fn height() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(0, |(_, height)| usize::from(height.0))
}

/// The width of stderr's terminal in columns; the smallest width if it is not a terminal.
pub fn talk_width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stderr());
    terminal.map_or(COLUMNS, |(width, _)| usize::from(width.0))
}

/// Prints a result. Colours are stripped where they are not wanted.
///
/// # Errors
/// stdout is closed or full.
pub fn result(text: &str) -> anyhow::Result<()> {
    print(&colours_only(text))
}

/// Prints a result as JSON.
///
/// # Errors
/// stdout is closed or full.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    json_text(&serde_json::to_string_pretty(value)?)
}

/// Prints JSON text.
///
/// # Errors
/// stdout is closed or full.
pub fn json_text(text: &str) -> anyhow::Result<()> {
    print(&visible_json(text))
}

/// Prints a script of this program, byte for byte.
///
/// # Errors
/// stdout is closed or full.
pub fn script(text: &str) -> anyhow::Result<()> {
    print(text)
}

/// Prints clap's answer instead of running a command: help and version to stdout, errors to stderr.
///
/// # Errors
/// stdout is closed or full.
pub fn answer(answer: &clap::Error) -> anyhow::Result<Exit> {
    if answer.use_stderr() {
        let text = answer.render().ansi().to_string();
        let terminal = terminal_size::terminal_size_of(io::stderr());
        // Like other errors: files and pipes get whole lines, for programs.
        let text = match terminal {
            Some((width, _)) => text
                .lines()
                .map(|line| broken(line, usize::from(width.0)) + "\n")
                .collect(),
            None => text,
        };
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
        return Ok(Exit::Usage);
    }
    let printed = answer.print().and_then(|()| io::stdout().flush());
    printed.context("standard output cannot be written to")?;
    Ok(Exit::Ok)
}

/// A line broken between words to `width` columns, with further lines indented by two more columns; colours take none.
fn broken(line: &str, width: usize) -> String {
    let columns = |text: &str| {
        anstream::adapter::strip_str(text)
            .to_string()
            .chars()
            .count()
    };
    if columns(line) <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let (mut out, mut used) = (line[..indent].to_owned(), indent);
    for (at, word) in line.split_whitespace().enumerate() {
        let more = columns(word);
        if at > 0 && used + 1 + more > width {
            out += &format!("\n{}", " ".repeat(indent + 2));
            used = indent + 2;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += more;
    }
    out
}

fn print(text: &str) -> anyhow::Result<()> {
    to_stdout(|out| {
        out.write_all(text.as_bytes())?;
        if text.ends_with('\n') {
            Ok(())
        } else {
            out.write_all(b"\n")
        }
    })
}

/// Writes to stdout, without a panic as in `println!`.
///
/// # Errors
/// stdout is closed or full.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .context("standard output cannot be written to")
}

/// Prints a message to stderr: one line, or on a terminal as many as necessary.
pub fn talk(text: impl std::fmt::Display) {
    aside(&on_terminal(&text.to_string()));
}

/// A text without terminal control characters; if stderr is a terminal, broken between words. Files and pipes get one
/// line, for programs.
fn on_terminal(text: &str) -> String {
    match terminal_size::terminal_size_of(io::stderr()) {
        Some((width, _)) => wrap_whole(text, usize::from(width.0)).join("\n"),
        None => visible(text).into_owned(),
    }
}

/// Prints a page to stderr, without colours.
pub fn talk_page(text: &str) {
    aside(&visible_page(text.trim_end()));
}

pub fn error(error: &anyhow::Error) {
    const LEAD: &str = "error:";
    let text = on_terminal(&format!("{LEAD} {}", error_text(error)));
    aside(&text.replacen(LEAD, &LEAD.red().bold().to_string(), 1));
}

/// The only place that writes lines to stderr. `eprintln!` panics if stderr is full or its terminal was closed; here
/// the error is ignored, and the program goes on.
fn aside(text: &str) {
    let _ = anstream::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// The colour parameters that this program uses: bold, dim, three signal colours, headings, and their ends. No hidden
/// text, no background, no cursor movement.
const COLOURS: [&str; 10] = ["0", "1", "2", "22", "31", "32", "33", "36", "39", "49"];

/// `text` reduced to printable text, line ends and this program's colours.
fn colours_only(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || is_visible(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colour(rest) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            '\n' => out.push(c),
            c => push_visible(&mut out, c),
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// The length of this program's colour code at the beginning of `text`, if there is one.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?.split_once('m')?.0;
    let mut each = parameters.split(';');
    (each.clone().count() <= 3 && each.all(|p| COLOURS.contains(&p)))
        .then_some(parameters.len() + 3)
}

/// Whether stderr is a terminal.
pub fn someone_watches() -> bool {
    io::stderr().is_terminal()
}

/// Whether the only error is that the reader of the output has gone.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// An error with its causes, without causes that repeat the text of their parent.
pub fn error_text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{SourceLoss, SourceProblem, SourceReport, SourceStatus};

    #[test]
    fn long_lines_of_the_parser_are_broken_between_words() {
        let red = "a".red().to_string();
        let line = format!("  {red} bb ccc dddd eeeee");
        assert_eq!(broken(&line, 40), line);
        assert_eq!(
            broken(&line, 10),
            format!("  {red} bb ccc\n    dddd\n    eeeee")
        );
        assert_eq!(broken("aaaaaaaaaaaa", 5), "aaaaaaaaaaaa");
    }

    #[test]
    fn our_colours_pass_and_nothing_else_does() {
        let ours = format!(
            "{} {} {}\n",
            "a".red().bold(),
            "b".green(),
            "c".yellow().dimmed()
        );
        assert!(ours.contains('\u{1b}'));
        assert_eq!(colours_only(&ours), ours);
        for (text, shown) in [
            (
                "\u{1b}[2J\u{1b}[8mx\u{1b}[1;1H",
                "\\x1b[2J\\x1b[8mx\\x1b[1;1H",
            ),
            ("\u{1b}]0;title\u{7}", "\\x1b]0;title\\x07"),
            ("\u{1b}[1;31;31;31m", "\\x1b[1;31;31;31m"),
            ("\u{1b}[31", "\\x1b[31"),
            ("\u{1b}[", "\\x1b["),
            ("\u{9b}31m\r\t\u{202e}", "\\u{9b}31m\\r\\t\\u{202e}"),
        ] {
            assert_eq!(colours_only(text), shown);
        }
    }

    #[test]
    fn the_reports_own_colours_are_all_among_them() {
        let problem = SourceProblem::MountDenied;
        let source =
            SourceReport::limited("tracefs", SourceStatus::Denied, problem, SourceLoss::Causes);
        let all = [
            SourceStatus::Available,
            SourceStatus::Degraded,
            SourceStatus::Denied,
        ]
        .map(|status| SourceReport {
            status,
            ..source.clone()
        });
        let style = Style {
            color: true,
            ..Style::default()
        };
        for text in [
            jitterscope_view::doctor::render(&all).terminal(style),
            jitterscope_view::list::render(&[], &[], style),
        ] {
            assert_eq!(colours_only(&text), text);
        }
    }
}
