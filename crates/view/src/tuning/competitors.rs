//! Words for programs that write the same settings.

use jitterscope_tune::{Competes, Competitor};

/// A running program, with what it changes.
pub(super) fn competes(of: &Competitor) -> String {
    format!("{} (pid {}) runs: {}", of.name, of.pid, does(of.does))
}

/// What it changes, as part of a sentence.
pub(super) fn does(of: Competes) -> &'static str {
    match of {
        Competes::MovesInterrupts => "it rewrites interrupt affinities every 10 s",
        Competes::SetsProfile => {
            "its profile sets many of the same values, and restores its own values when it stops"
        }
        Competes::SwitchesProfile => "it switches tuned's profile",
        Competes::SwitchesMerging => "it turns same-page merging on automatically",
        Competes::SetsGovernorsAndPreferences => "it sets governors and energy preferences",
        Competes::LimitsFrequency => "it limits the frequency",
        Competes::SetsGovernors => "it sets governors",
        Competes::SetsGovernorsAndPower => "it sets governors and power saving",
    }
}
