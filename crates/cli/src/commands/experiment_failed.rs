//! How a command ends when an experiment failed.

use crate::exit::UsageError;
use jitterscope_experiment::ExperimentError;
use jitterscope_view::experiment::experiment_error;

/// An error in words.
pub(super) fn failed(error: ExperimentError) -> anyhow::Error {
    match experiment_error(&error) {
        text if text == error.to_string() => error.into(),
        text => anyhow::Error::msg(text),
    }
}

/// Of a change that was to be set up: wrong arguments where what was asked for cannot be tried, else a failure.
pub(super) fn refused(error: ExperimentError) -> anyhow::Error {
    if error.is_of_what_was_asked() {
        return UsageError(experiment_error(&error)).into();
    }
    failed(error)
}
