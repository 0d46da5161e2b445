//! Parses the arguments of this process.

use crate::args::{Cli, PROBES};
use crate::exit::UsageError;
use crate::profile;
use crate::wrong_args::explained;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// The arguments of this process, with the settings of the profile that they name.
///
/// # Errors
/// There is no such profile, or it is wrong.
pub fn given() -> Result<Vec<OsString>, UsageError> {
    let given: Vec<OsString> = std::env::args_os().collect();
    Ok(profile::expand(&given)?.unwrap_or(given))
}

/// The parsed arguments.
///
/// clap repeats a wrong argument unchanged, and a script may pass an untrusted one: so the error is computed from the
/// same arguments with control characters escaped.
///
/// # Errors
/// The arguments are wrong, or ask for help or the version: the text to print, and where.
pub fn parse(given: &[OsString]) -> Result<Cli, clap::Error> {
    let error = match Cli::try_parse_from(given) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    // `record -d 3s wakeup` means `record wakeup -d 3s`.
    if let Some(ordered) = probe_first(given, &error) {
        return parse_given(&ordered);
    }
    explained(given, error)
}

fn parse_given(given: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(given).or_else(|error| explained(given, error))
}

/// The arguments with the probe directly after `record`, if it came after options.
fn probe_first(given: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    let probe = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::ArgumentConflict, Some(ContextValue::String(probe)))
            if PROBES.contains(&probe.as_str()) =>
        {
            probe
        }
        _ => return None,
    };
    let record = given.iter().position(|arg| arg == "record")?;
    let at = record
        + 1
        + given[record + 1..]
            .iter()
            .position(|arg| arg == probe.as_str())?;
    let mut ordered = given.to_vec();
    let word = ordered.remove(at);
    ordered.insert(record + 1, word);
    Some(ordered)
}
