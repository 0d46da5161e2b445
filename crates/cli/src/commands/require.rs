//! `--require SOURCE`: no run is better than one that cannot see.

use crate::exit::{UnavailableError, UsageError};
use jitterscope_model::{SourceReport, SourceStatus};
use jitterscope_platform::Machine;

/// Fails unless every named source is available.
///
/// # Errors
/// A source is unknown, degraded, denied or absent.
pub fn require(machine: &Machine, names: &[String]) -> anyhow::Result<()> {
    check(&jitterscope_source::sources(machine), names)
}

/// As [`require`], over sources already surveyed.
///
/// # Errors
/// As [`require`].
pub fn check(sources: &[SourceReport], names: &[String]) -> anyhow::Result<()> {
    for name in names {
        let Some(source) = sources.iter().find(|source| source.name == *name) else {
            let known: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
            let text = format!("--require {name}: no such source; there are {}", known.join(", "));
            return Err(UsageError(text).into());
        };
        if source.status != SourceStatus::Available {
            let fix =
                if source.fix.is_empty() { String::new() } else { format!("; to have it: {}", source.fix) };
            let text = format!("{name} is {}: {}{fix}", source.status.as_str(), source.reason);
            return Err(UnavailableError(text).into());
        }
    }
    Ok(())
}
