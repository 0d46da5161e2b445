//! The end of a command whose experiment failed.

use crate::exit::UsageError;
use jitterscope_experiment::ExperimentError;
use jitterscope_view::experiment::experiment_error;

/// The error in words.
pub(super) fn failed(error: ExperimentError) -> anyhow::Error {
    match experiment_error(&error) {
        text if text == error.to_string() => error.into(),
        text => anyhow::Error::msg(text),
    }
}

/// The error of setting up a change: wrong arguments if it cannot be tried, else a failure.
pub(super) fn refused(error: ExperimentError) -> anyhow::Error {
    if error.is_of_what_was_asked() {
        return UsageError(experiment_error(&error)).into();
    }
    failed(error)
}
