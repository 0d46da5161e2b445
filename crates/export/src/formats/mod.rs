//! The formats: each is a file or a folder of this module and a row of [`FORMATS`]. No other code names them.
//!
//! A file named `-` is standard output. Destinations are opened before the measurement, so that an unreachable server
//! or an unwritable file shows early. Lost rows are counted and reported ([`Delivery`](jitterscope_model::Delivery)).

mod csv;
mod ctf;
pub(crate) mod hgrm;
pub(crate) mod hlog;
pub mod influx;
mod json;
mod parquet;
mod perfetto;
mod tracedat;

use crate::address::Address;
use crate::error::DestinationError;
use crate::exporter::Exporter;
pub use json::JsonLine;

/// All formats, in the order of the help.
pub static FORMATS: &[&Format] = &[
    &csv::FORMAT,
    &json::FORMAT,
    &hlog::FORMAT,
    &hgrm::FORMAT,
    &parquet::FORMAT,
    &perfetto::FORMAT,
    &tracedat::FORMAT,
    &ctf::FORMAT,
    &influx::FORMAT,
];

/// A format. `tests/formats.rs` tests each one with the data given here.
pub struct Format {
    /// The texts that may precede `://`. Each scheme belongs to one format.
    pub schemes: &'static [&'static str],
    /// For the help: the syntax of a destination, and its content, in lines. `FILE`, `FOLDER`, `HOST:PORT` and `NAME`
    /// are placeholders for the user's values.
    pub usage: &'static [(&'static str, &'static str)],
    /// Notes at the end of the help; may be empty.
    pub notes: &'static str,
    /// Parses place and options. Opens nothing.
    pub(crate) read: fn(&Address<'_>) -> Result<Exporter, DestinationError>,
}

/// The help's column of a format's content, where its usage leaves room.
const USAGE: usize = 29;

/// The help on destinations: every format, its syntax and its content.
#[must_use]
pub fn help() -> String {
    let mut text = String::from("Targets:\n");
    for format in FORMATS {
        let width = format
            .usage
            .iter()
            .map(|(usage, _)| usage.len())
            .fold(USAGE, usize::max);
        for (usage, what) in format.usage {
            for (n, line) in what.lines().enumerate() {
                let usage = if n == 0 { usage } else { "" };
                text.push_str(&format!("  {usage:width$}  {line}\n"));
            }
        }
    }
    text.push_str("- as FILE is standard output.");
    for notes in FORMATS
        .iter()
        .map(|format| format.notes)
        .filter(|notes| !notes.is_empty())
    {
        text.push('\n');
        text.push_str(notes);
    }
    text
}

/// Finds a scheme and its format by name.
pub(crate) fn of_scheme(scheme: &str) -> Result<(&'static str, &'static Format), DestinationError> {
    let mut all = FORMATS
        .iter()
        .flat_map(|format| format.schemes.iter().map(move |own| (*own, *format)));
    all.clone().find(|(own, _)| *own == scheme).ok_or_else(|| {
        let last = all.next_back().map_or("", |(own, _)| own);
        let others: Vec<&str> = all.map(|(own, _)| own).collect();
        DestinationError::Scheme {
            scheme: scheme.to_owned(),
            known: format!("{} and {last}", others.join(", ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn each_file_of_the_folder_is_a_row_and_each_scheme_has_one_format() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats");
        let names = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name != "mod.rs").count(), FORMATS.len());
        let schemes: Vec<&str> = FORMATS
            .iter()
            .flat_map(|format| format.schemes)
            .copied()
            .collect();
        let apart: BTreeSet<&str> = schemes.iter().copied().collect();
        assert_eq!(schemes.len(), apart.len(), "{schemes:?}");
    }

    #[test]
    fn the_help_fits_its_screen() {
        let help = help();
        for line in help.lines() {
            assert!(line.len() <= 100, "{line}");
        }
    }
}
