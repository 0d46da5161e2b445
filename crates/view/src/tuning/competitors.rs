//! Programs that write the same settings, in words.

use jitterscope_tune::{Competes, Competitor};

/// One that runs, with what it does.
pub(super) fn competes(of: &Competitor) -> String {
    format!("{} (pid {}) runs: {}", of.name, of.pid, does(of.does))
}

/// What it does, as part of a sentence.
pub(super) fn does(of: Competes) -> &'static str {
    match of {
        Competes::MovesInterrupts => "it rewrites interrupt affinities every 10 s",
        Competes::SetsProfile => {
            "its profile sets many of the same values and puts its own back when it stops"
        }
        Competes::SwitchesProfile => "it switches tuned's profile",
        Competes::SwitchesMerging => "it switches same-page merging on by itself",
        Competes::SetsGovernorsAndPreferences => "it sets governors and energy preferences",
        Competes::LimitsFrequency => "it limits the frequency",
        Competes::SetsGovernors => "it sets governors",
        Competes::SetsGovernorsAndPower => "it sets governors and power saving",
    }
}
