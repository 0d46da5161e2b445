//! Messages about wrong arguments.

use crate::args::{Cli, PROBES};
use crate::places::shell_word;
use crate::units::duration;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use jitterscope_model::visible_os;
use std::ffi::OsString;

/// A command in place of a probe: `record sleep 5`.
fn to_be_followed(given: &[OsString], error: &clap::Error) -> Option<clap::Error> {
    let unknown = match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict => {
            error.get(ContextKind::InvalidSubcommand)
        }
        ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
        _ => None,
    };
    let Some(ContextValue::String(word)) = unknown else {
        return None;
    };
    let record = given.iter().position(|arg| arg == "record")?;
    let at = record
        + 1
        + given[record + 1..]
            .iter()
            .position(|arg| arg == word.as_str())?;
    // clap reports a misspelt probe.
    if word.starts_with('-')
        || PROBES.contains(&word.as_str())
        || error.get(ContextKind::SuggestedSubcommand).is_some()
    {
        return None;
    }
    let words: Vec<_> = given[at..]
        .iter()
        .map(|arg| shell_word(&arg.to_string_lossy()))
        .collect();
    let text = format!(
        "'{word}' is no probe: there are {}. To start a command and follow its threads: \
         jitterscope attach -- {}",
        PROBES.join(", "),
        words.join(" ")
    );
    let mut cli = Cli::command();
    // So that the usage is that of `record`.
    cli.build();
    Some(
        cli.find_subcommand_mut("record")?
            .error(ErrorKind::InvalidSubcommand, text),
    )
}

/// A word that belongs after an option or after `--`: `record spin 5`, `attach sleep 2`.
fn misplaced(given: &[OsString], error: &clap::Error) -> Option<clap::Error> {
    let word = match error.kind() {
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
        _ => None,
    };
    let Some(ContextValue::String(word)) = word else {
        return None;
    };
    if word.starts_with('-') {
        return None;
    }
    // Options before it may have values.
    let command = ["record", "attach", "guard"]
        .into_iter()
        .find(|name| given.iter().skip(1).any(|arg| arg == name))?;
    let at = given.iter().position(|arg| arg == word.as_str())?;
    let number = word.parse::<f64>().is_ok();
    let text = match command {
        "attach" if word.parse::<u32>().is_ok() => {
            format!(
                "'{word}' stands alone; a process is an option: --pid {word}; so is a length of time: -d {word}s"
            )
        }
        "record" | "attach" if number || duration(word).is_ok() => {
            let length = if number {
                format!("{word}s")
            } else {
                word.clone()
            };
            format!("'{word}' stands alone; a length of time is an option: -d {length}")
        }
        "attach" | "guard" => {
            let words: Vec<_> = given[at..]
                .iter()
                .map(|arg| shell_word(&arg.to_string_lossy()))
                .collect();
            format!(
                "'{word}' stands alone; a command to start stands behind --: jitterscope {command} -- {}",
                words.join(" ")
            )
        }
        _ => return None,
    };
    let mut cli = Cli::command();
    cli.build();
    Some(cli.find_subcommand_mut(command)?.error(error.kind(), text))
}

/// An option of a probe without its name: `record --period 1ms`.
fn of_another_probe(given: &[OsString], error: &clap::Error) -> Option<clap::Error> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let long = option.strip_prefix("--")?;
    let mut cli = Cli::command();
    cli.build();
    given.iter().find(|arg| *arg == "record")?;
    let record = cli.find_subcommand_mut("record")?;
    let has = |probe: &&clap::Command| probe.get_arguments().any(|of| of.get_long() == Some(long));
    let probe = record.get_subcommands().find(has)?.get_name().to_owned();
    let text = format!("'{option}' is an option of the probe '{probe}': record {probe} {option}");
    Some(record.error(ErrorKind::UnknownArgument, text))
}

/// An invalid number: the standard library's messages are about digits and its types.
fn of_number(error: &clap::Error) -> Option<clap::Error> {
    use std::num::{IntErrorKind, ParseIntError};
    let cause = std::error::Error::source(error)?;
    let why = match cause
        .downcast_ref::<ParseIntError>()
        .map(ParseIntError::kind)
    {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
            "is a greater number than this option takes"
        }
        Some(_) => "is no whole number",
        None if cause.is::<std::num::ParseFloatError>() => "is no number",
        None => return None,
    };
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    let (value, option) = (
        text_of(ContextKind::InvalidValue)?,
        text_of(ContextKind::InvalidArg)?,
    );
    let text = format!(
        "invalid value '{value}' for '{option}': '{value}' {why}\n\nFor more information, try '--help'.\n"
    );
    // Without a command, so that no usage follows, as for any other invalid value.
    Some(clap::Error::raw(ErrorKind::ValueValidation, text))
}

/// Removes internal commands from suggestions.
fn without_hidden(error: &mut clap::Error) {
    let cli = Cli::command();
    let hidden = |name: &String| {
        cli.find_subcommand(name)
            .is_some_and(clap::Command::is_hide_set)
    };
    for kind in [
        ContextKind::ValidSubcommand,
        ContextKind::SuggestedSubcommand,
    ] {
        if let Some(ContextValue::Strings(names)) = error.get(kind) {
            let shown: Vec<String> = names.iter().filter(|name| !hidden(name)).cloned().collect();
            error.insert(kind, ContextValue::Strings(shown));
        }
    }
}

/// `error` with a better message where the parser's is unhelpful.
fn reworded(given: &[OsString], mut error: clap::Error) -> clap::Error {
    without_hidden(&mut error);
    let better = misplaced(given, &error)
        .or_else(|| to_be_followed(given, &error))
        .or_else(|| of_another_probe(given, &error));
    better.or_else(|| of_number(&error)).unwrap_or(error)
}

/// The error to print.
///
/// # Errors
/// Always, unless the argument is invalid only because of its control characters.
pub fn explained(given: &[OsString], error: clap::Error) -> Result<Cli, clap::Error> {
    let error = reworded(given, error);
    let spelt: Vec<OsString> = given
        .iter()
        .map(|arg| OsString::from(visible_os(arg).as_ref()))
        .collect();
    if spelt.as_slice() == given {
        return Err(error);
    }
    match Cli::try_parse_from(&spelt) {
        Err(error) => Err(reworded(&spelt, error)),
        Ok(_) => {
            let spelt: Vec<_> = spelt
                .iter()
                .skip(1)
                .map(|arg| arg.to_string_lossy())
                .collect();
            let text = format!(
                "an argument has characters that it cannot have: {}",
                spelt.join(" ")
            );
            Err(Cli::command().error(ErrorKind::InvalidValue, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_our_own_are_not_offered() {
        for given in [
            vec!["jitterscope", "--color", "never"],
            vec!["jitterscope", "disturbe"],
        ] {
            let given: Vec<OsString> = given.into_iter().map(OsString::from).collect();
            let error = Cli::try_parse_from(&given).unwrap_err();
            let text = explained(&given, error).unwrap_err().to_string();
            for hidden in ["disturb,", "'disturb'", "experiment-guard", "end-now"] {
                assert!(!text.contains(hidden), "{text}");
            }
        }
    }
}
