//! Events that the user asked for.

use jitterscope_model::AskedEvent;
use jitterscope_platform::Machine;
use jitterscope_source::{AskedError, Tracefs};

/// Checks before a recording that this kernel records these events with these filters.
///
/// # Errors
/// The first event that cannot be recorded, or tracing is unavailable.
pub fn check_asked(machine: &Machine, asked: &[AskedEvent]) -> Result<(), AskedError> {
    if asked.is_empty() {
        return Ok(());
    }
    Tracefs::open(machine)?.check_asked(asked)
}
