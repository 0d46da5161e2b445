//! `--require SOURCE`: refuses to record without a source.

use crate::exit::{UnavailableError, UsageError};
use jitterscope_model::{SourceReport, SourceStatus};
use jitterscope_platform::Machine;
use jitterscope_view::source_words;

/// Fails unless every named source is available.
///
/// # Errors
/// A source is unknown, degraded, denied or absent.
pub fn require(machine: &Machine, names: &[String]) -> anyhow::Result<()> {
    check(&jitterscope_source::sources(machine), names)
}

/// As [`require`], for sources surveyed already.
///
/// # Errors
/// As [`require`].
pub fn check(sources: &[SourceReport], names: &[String]) -> anyhow::Result<()> {
    for name in names {
        let Some(source) = sources.iter().find(|source| source.name == *name) else {
            let known: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
            let text = format!(
                "--require {name}: no such source; there are {}",
                known.join(", ")
            );
            return Err(UsageError(text).into());
        };
        if source.status != SourceStatus::Available {
            return Err(unavailable(source));
        }
    }
    Ok(())
}

/// Fails if a source is unusable. A source that lacks a part, as an older kernel's events do, is accepted.
///
/// # Errors
/// The source is denied or absent.
pub fn at_least_degraded(sources: &[SourceReport], name: &str) -> anyhow::Result<()> {
    let gives_nothing = |source: &&SourceReport| {
        !matches!(
            source.status,
            SourceStatus::Available | SourceStatus::Degraded
        )
    };
    match sources
        .iter()
        .filter(|source| source.name == name)
        .find(gives_nothing)
    {
        Some(source) => Err(unavailable(source)),
        None => Ok(()),
    }
}

fn unavailable(source: &SourceReport) -> anyhow::Error {
    let words = source_words(&source.problems, &source.losses);
    let fix = if words.fix.is_empty() {
        String::new()
    } else {
        format!("; to have it: {}", words.fix)
    };
    UnavailableError(format!(
        "{} is {}: {}{fix}",
        source.name,
        source.status.as_str(),
        words.reason
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::SourceProblem;

    fn source(status: SourceStatus) -> SourceReport {
        SourceReport {
            problems: vec![SourceProblem::EventsLost { lost: 3 }],
            ..SourceReport::of_status("tracefs", status)
        }
    }

    #[test]
    fn missing_events_fail_a_requirement_but_not_a_selftest() {
        for (status, required, will_do) in [
            (SourceStatus::Available, true, true),
            (SourceStatus::Degraded, false, true),
            (SourceStatus::Denied, false, false),
            (SourceStatus::Absent, false, false),
        ] {
            let sources = [source(status)];
            assert_eq!(check(&sources, &["tracefs".to_owned()]).is_ok(), required);
            let usable = at_least_degraded(&sources, "tracefs");
            assert_eq!(usable.is_ok(), will_do);
            if let Err(error) = usable {
                assert!(
                    error
                        .to_string()
                        .ends_with("lost 3 events; to have it: make the trace buffer larger"),
                    "{error}"
                );
            }
        }
    }
}
