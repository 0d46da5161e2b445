//! Results to stdout, talk to stderr; and nothing but text to either.
//!
//! Names, labels, paths and what files say were made by others, and root reads them on a terminal. They are
//! spelt out where they enter a line ([`jitterscope_model::visible`]); here, where all text leaves, only
//! characters, the ends of lines and the colours that we give pass, so that what was forgotten there can
//! neither move the cursor nor rewrite a line. Everything that is printed leaves by one of these functions.

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
    /// Makes it the choice for everything printed from now on.
    pub fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::AlwaysAnsi,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// How texts are rendered here. Colours are always rendered: [`result`] strips them where they are not
/// wanted.
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

/// The least that every screen is made for.
const COLUMNS: usize = 80;

/// Columns of the terminal that stdout is, [`COLUMNS`] at least; just these for a file or a pipe, so that what
/// is saved does not depend on where it was made.
fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(COLUMNS, |(width, _)| usize::from(width.0).max(COLUMNS))
}

/// Lines of the terminal that stdout is; of a file or a pipe none, so that the least that screens are made for is
/// used.
fn height() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(0, |(_, height)| usize::from(height.0))
}

/// Columns of the terminal that talk goes to; as many as every screen is made for where it is none.
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

/// Prints what is JSON already.
///
/// # Errors
/// stdout is closed or full.
pub fn json_text(text: &str) -> anyhow::Result<()> {
    print(&visible_json(text))
}

/// Prints a script of our own, byte for byte.
///
/// # Errors
/// stdout is closed or full.
pub fn script(text: &str) -> anyhow::Result<()> {
    print(text)
}

/// Prints what clap answers instead of arguments: help and the version to stdout, errors to stderr.
///
/// # Errors
/// stdout is closed or full.
pub fn answer(answer: &clap::Error) -> anyhow::Result<Exit> {
    if answer.use_stderr() {
        let text = answer.render().ansi().to_string();
        let terminal = terminal_size::terminal_size_of(io::stderr());
        // As our own errors: files and pipes get the lines whole, for programs.
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

/// A line broken between words to `width` columns, the others two columns further in than the first; colours take none.
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

/// Writes to stdout, without ever panicking as `println!` does.
///
/// # Errors
/// stdout is closed or full.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .context("standard output cannot be written to")
}

/// Says something on the side: in a line, or on a terminal in as many as its words take.
pub fn talk(text: impl std::fmt::Display) {
    aside(&on_terminal(&text.to_string()));
}

/// A text without what would control a terminal; where stderr is one, broken between words only. Files and pipes
/// get one line, for programs.
fn on_terminal(text: &str) -> String {
    match terminal_size::terminal_size_of(io::stderr()) {
        Some((width, _)) => wrap_whole(text, usize::from(width.0)).join("\n"),
        None => visible(text).into_owned(),
    }
}

/// Shows a page on the side, without colours.
pub fn talk_page(text: &str) {
    aside(&visible_page(text.trim_end()));
}

/// Says why it failed.
pub fn error(error: &anyhow::Error) {
    const LEAD: &str = "error:";
    let text = on_terminal(&format!("{LEAD} {}", error_text(error)));
    aside(&text.replacen(LEAD, &LEAD.red().bold().to_string(), 1));
}

/// The one place that writes lines to stderr. `eprintln!` panics when stderr is full or its terminal has
/// been closed; there is nobody to report it to then, and what runs goes on.
fn aside(text: &str) {
    let _ = anstream::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// The parameters of the colours that our texts are given; bold, dim, three signal colours, headings, and
/// the ends of each. No concealing, no background, nothing that moves.
const COLOURS: [&str; 10] = ["0", "1", "2", "22", "31", "32", "33", "36", "39", "49"];

/// `text` with nothing but text, the ends of lines and our own colours.
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

/// The length of the colour that `text` begins with, if it is one of ours.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?.split_once('m')?.0;
    let mut each = parameters.split(';');
    (each.clone().count() <= 3 && each.all(|p| COLOURS.contains(&p)))
        .then_some(parameters.len() + 3)
}

/// Whether somebody looks at stderr.
pub fn someone_watches() -> bool {
    io::stderr().is_terminal()
}

/// Whether an error is only that the reader of our output has gone.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// An error with its causes. A cause whose text its parent already has is not repeated.
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
        for text in [
            jitterscope_view::doctor::render(
                &all,
                Style {
                    color: true,
                    ..Style::default()
                },
            ),
            jitterscope_view::list::render(
                &[],
                &[],
                Style {
                    color: true,
                    ..Style::default()
                },
            ),
        ] {
            assert_eq!(colours_only(&text), text);
        }
    }
}
