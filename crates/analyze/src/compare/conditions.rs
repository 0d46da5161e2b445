//! Under which conditions a run was measured, beyond its machine.

use jitterscope_model::RunManifest;
use serde::Serialize;

/// Something about how two runs were measured that was not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionDifference {
    /// What: `probe`, `threshold`, `clock`, ...
    pub what: &'static str,
    /// In the first run.
    pub before: String,
    /// In the second.
    pub after: String,
    /// Whether figures of the two say nothing of one another.
    pub incomparable: bool,
}

/// The conditions of a run in words: what, how, and whether runs are incomparable where it differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conditions(Vec<(&'static str, String, bool)>);

impl Conditions {
    pub(super) fn of(manifest: &RunManifest) -> Conditions {
        let probe = &manifest.probe;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let mut all = vec![
            ("probe", probe.kind.clone(), true),
            ("threshold", probe.threshold_ns.to_string(), true),
            ("clock", format!("{:?}", manifest.clock).to_ascii_lowercase(), true),
            (
                "priority",
                probe.fifo_priority.map_or_else(|| "fair".into(), |priority| format!("FIFO {priority}")),
                true,
            ),
            ("kernel events recorded", yes(manifest.attributed), false),
        ];
        if let Some(wakeup) = &probe.wakeup {
            all.push(("pacing", format!("a deadline every {}", wakeup.period_ns), true));
            all.push(("kept from deep idle", yes(wakeup.hold_latency), true));
        }
        if let Some(pipeline) = &manifest.pipeline {
            let setup = &pipeline.setup;
            all.push(("pacing", format!("{:?}, every {}", setup.pacing, setup.interval_ns), true));
            all.push(("record", format!("{} bytes", setup.record_length), true));
            all.push(("ring", format!("{} slots", setup.ring), true));
        }
        if !manifest.passive.is_empty() {
            // What was found to belong there is who was stolen from; names are a user's choice of that.
            let chosen = manifest.passive.iter().filter_map(|cpu| cpu.chosen.as_ref());
            let mut names: Vec<&str> = chosen.map(|chosen| chosen.comm.as_str()).collect();
            names.sort_unstable();
            let whose = if names.is_empty() { "what was named".into() } else { names.join(", ") };
            all.push(("what belongs there", whose, true));
        }
        Conditions(all)
    }

    pub(super) fn differences(&self, other: &Conditions) -> Vec<ConditionDifference> {
        let absent = || "none".to_owned();
        let find = |all: &Conditions, what: &str| {
            all.0.iter().find(|(name, ..)| *name == what).map_or_else(absent, |(_, how, _)| how.clone())
        };
        let mut names: Vec<(&'static str, bool)> = Vec::new();
        for (what, _, incomparable) in self.0.iter().chain(&other.0) {
            if !names.iter().any(|(name, _)| name == what) {
                names.push((what, *incomparable));
            }
        }
        names
            .into_iter()
            .filter_map(|(what, incomparable)| {
                let (before, after) = (find(self, what), find(other, what));
                (before != after).then_some(ConditionDifference { what, before, after, incomparable })
            })
            .collect()
    }
}
