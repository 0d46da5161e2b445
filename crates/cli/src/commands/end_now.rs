//! The hidden successor of a recording that a second Ctrl-C ended.

use super::leftovers;
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use jitterscope_platform::{Machine, is_ignored};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Undoes the recording's changes, and ends as the signal would have ended it.
///
/// # Errors
/// The signal handlers cannot be set.
pub fn run(places: &Places) -> anyhow::Result<Exit> {
    // A third Ctrl-C changes nothing: the clean-up is short and must not be interrupted.
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| !is_ignored(*signal))
    {
        signal_hook::flag::register(signal, Arc::clone(&heard))?;
    }
    let put_right = leftovers::clean(&Machine::host(), places, &leftovers::usual_state());
    for what in put_right.done {
        output::talk(format_args!("removed: {what}"));
    }
    for what in put_right.failed {
        output::talk(format_args!("failed: {what}"));
    }
    output::talk("ended at once by a second Ctrl-C: nothing was kept");
    // It does not return if the signal's own action ends the process.
    signal_hook::low_level::emulate_default_handler(SIGINT)?;
    Ok(Exit::Failed)
}
