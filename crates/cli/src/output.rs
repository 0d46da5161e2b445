//! Results to stdout, talk to stderr.

use clap::ValueEnum;
use jitterscope_report::Style;
use owo_colors::OwoColorize;
use std::io::{self, IsTerminal, Write};

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
        unicode: unicode && io::stdout().is_terminal(),
        all_cpus: false,
        periods: false,
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

/// Prints a result. Colours are stripped where they are not wanted.
///
/// # Errors
/// stdout is closed or full.
pub fn result(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Says something on the side.
pub fn talk(text: impl std::fmt::Display) {
    anstream::eprintln!("{text}");
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
    format!("{} {text}", "error:".red().bold())
}
