//! Manual pages, made from the command line's own declaration: one page per command.

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io::Write;
use std::path::Path;

/// The page of the program itself; all others refer to it.
const FIRST: &str = "jitterscope";
/// What the first page says beside the command line.
const SECTIONS: [(&str, &[(&str, &str)]); 2] = [
    (
        "ENVIRONMENT",
        &[
            ("JITTERSCOPE_RUNS", "The folder of the runs, as --runs."),
            (
                "JITTERSCOPE_READ_MEMORY",
                "The most memory for reading a run, in MiB.",
            ),
            (
                "NO_COLOR",
                "If it is set and not empty, output has no colour.",
            ),
        ],
    ),
    (
        "FILES",
        &[
            (
                "$XDG_DATA_HOME/jitterscope/runs",
                "The stored runs, readable only by their owner.",
            ),
            (
                "~/.config/jitterscope/profiles",
                "Your own profiles for record --profile.",
            ),
            (
                "/var/lib/jitterscope",
                "The journal of changed settings, which tune rollback restores.",
            ),
            (
                "/sys/kernel/tracing/instances",
                "Where a recording makes its own tracing instances, and removes them.",
            ),
        ],
    ),
];

/// Writes the pages into a folder, which is made if it is missing: `jitterscope.1`, `jitterscope-record.1`, ...
///
/// # Errors
/// The folder cannot be made or written.
pub fn write(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    for (name, page) in pages()? {
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The name and the text of each page.
fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut whole = crate::args::Cli::command().disable_help_subcommand(true);
    // Options of the whole program appear on each page, and each command gets its full name.
    whole.build();
    let mut pages = Vec::new();
    collect(&whole, None, &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command and those of its own commands.
fn collect(
    command: &Command,
    above: Option<&str>,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> std::io::Result<()> {
    let name = match above {
        Some(above) => format!("{above}-{}", command.get_name()),
        None => command.get_name().to_owned(),
    };
    pages.push((name.clone(), page(command, &name, above)?));
    for below in shown(command) {
        collect(below, Some(&name), pages)?;
    }
    Ok(())
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
}

fn page(command: &Command, name: &str, above: Option<&str>) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // The date is empty: a page says what it is about by its version.
    writeln!(
        page,
        ".TH \"{}\" \"1\" \"\" \"jitterscope {}\" \"jitterscope manual\"",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    )?;
    naming(command, name).to_writer(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let below: Vec<&Command> = shown(command).collect();
    if !below.is_empty() {
        commands(&below, name).to_writer(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        notes_of(&notes.to_string()).to_writer(&mut page)?;
    }
    if above.is_none() {
        for (heading, rows) in SECTIONS {
            section(heading, rows).to_writer(&mut page)?;
        }
    }
    see_also(&below, name, above).to_writer(&mut page)?;
    page.flush()?;
    Ok(page)
}

/// What `whatis` and `apropos` read: the page's name, and the line of the command without its full stop.
fn naming(command: &Command, name: &str) -> Roff {
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {}", about.trim_end_matches('.')))]);
    roff
}

/// The commands below one, each with its page.
fn commands(below: &[&Command], name: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for command in below {
        let about = command.get_about().map(ToString::to_string);
        roff.control("TP", []);
        roff.text(reference(&format!("{name}-{}", command.get_name())));
        roff.text([roman(about.unwrap_or_default())]);
    }
    roff
}

fn section(heading: &str, rows: &[(&str, &str)]) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (what, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(*what)]);
        roff.text([roman(*meaning)]);
    }
    roff
}

/// What help says after the options. Several lines are a table, whose lines and columns are kept.
fn notes_of(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]);
    if text.lines().count() == 1 {
        roff.text([roman(text)]);
        return roff;
    }
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line.trim_end())]);
    }
    roff.control("fi", []);
    roff
}

fn see_also(below: &[&Command], name: &str, above: Option<&str>) -> Roff {
    let mut names: Vec<String> = above.into_iter().map(str::to_owned).collect();
    if above.is_none() {
        names.extend(
            below
                .iter()
                .map(|command| format!("{name}-{}", command.get_name())),
        );
    } else if above != Some(FIRST) {
        names.push(FIRST.to_owned());
    }
    let mut line: Vec<Inline> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            line.push(roman(", "));
        }
        line.extend(reference(name));
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    roff.text(line);
    roff
}

/// A page as other pages name it: `jitterscope-record(1)`.
fn reference(name: &str) -> [Inline; 2] {
    [bold(name), roman("(1)")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_help_shows_has_a_page() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for wanted in [
            FIRST,
            "jitterscope-record",
            "jitterscope-tune-plan",
            "jitterscope-watch-save",
        ] {
            assert!(names.contains(&wanted), "{wanted} is not in {names:?}");
        }
        assert!(
            !names.iter().any(|name| name.ends_with("-help")),
            "{names:?}"
        );
        assert!(
            !names.contains(&"jitterscope-disturb"),
            "hidden commands have none: {names:?}"
        );
        for (name, page) in &pages {
            let page = String::from_utf8_lossy(page);
            let escaped = name.replace('-', "\\-");
            assert!(page.contains(&format!("{escaped} \\- ")), "{page}");
            assert!(
                page.contains(".SH SYNOPSIS") && page.contains(".SH \"SEE ALSO\""),
                "{page}"
            );
            // The words of a command are apart where it is called.
            let called = escaped.replace("\\-", " ");
            assert!(
                page.contains(&format!("\\fB{called}\\fR")),
                "{name}: {called}"
            );
        }
    }

    #[test]
    fn the_first_page_states_exit_codes_and_files() {
        let pages = pages().unwrap();
        let first = String::from_utf8_lossy(&pages[0].1).into_owned();
        for wanted in ["Exit codes: 0 ok", "JITTERSCOPE_RUNS", ".SH FILES"] {
            assert!(first.contains(wanted), "{wanted}: {first}");
        }
    }
}
