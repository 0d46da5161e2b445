//! Events that the user asked for with `--event`.

use crate::exit::{UnavailableError, UsageError};
use jitterscope_model::{AskedEvent, visible};
use jitterscope_platform::Machine;
use jitterscope_recording::{AskedError, check_asked};

/// The most edits between a name and the one that is probably meant.
const NEAR: usize = 4;
/// The most fields of an event that are named.
const MOST_FIELDS: usize = 20;

/// Checks before anything is measured that this kernel records these events.
///
/// # Errors
/// An event does not exist, its filter is refused, or tracing is unavailable.
pub fn check(machine: &Machine, asked: &[AskedEvent]) -> anyhow::Result<()> {
    check_asked(machine, asked).map_err(|error| match error {
        AskedError::Trace(error) => UnavailableError(format!(
            "--event: {error}; jitterscope doctor says what helps"
        ))
        .into(),
        other => UsageError(format!("--event: {}", words(&other))).into(),
    })
}

/// The error, with what the user can write instead.
fn words(error: &AskedError) -> String {
    match error {
        AskedError::Unknown { name, known } => {
            let far = |other: &&String| strsim::damerau_levenshtein(other, name);
            let nearest = known.iter().min_by_key(far);
            match nearest.filter(|other| far(other) <= NEAR) {
                Some(nearest) => format!("{error}; do you mean {}?", visible(nearest)),
                None => format!("{error}; its file available_events has all of them"),
            }
        }
        AskedError::Filter { fields, .. } => {
            let shown: Vec<&str> = fields
                .iter()
                .take(MOST_FIELDS)
                .map(String::as_str)
                .collect();
            format!("{error}; the event's fields: {}", shown.join(", "))
        }
        AskedError::Own { .. } | AskedError::Twice { .. } | AskedError::Trace(_) => {
            error.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(name: &str) -> String {
        let known = [
            "block:block_rq_issue",
            "block:block_rq_complete",
            "net:netif_rx",
        ];
        words(&AskedError::Unknown {
            name: name.into(),
            known: known.map(String::from).to_vec(),
        })
    }

    #[test]
    fn a_misspelt_event_is_refused_with_the_nearest_one() {
        assert_eq!(
            unknown("blok:block_rq_isue"),
            "this kernel has no event blok:block_rq_isue; do you mean block:block_rq_issue?"
        );
        assert_eq!(
            unknown("syscalls:sys_enter_read"),
            "this kernel has no event syscalls:sys_enter_read; its file available_events has all of them"
        );
    }
}
