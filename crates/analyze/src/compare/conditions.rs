//! Under which conditions a run was measured, beyond its machine.

use jitterscope_model::{PipelinePacing, ProbeKind, RunManifest};
use serde::Serialize;

/// The condition that says which probe measured.
pub(super) const PROBE: &str = "probe";
/// The one that says from which length on stalls were kept.
pub(super) const THRESHOLD: &str = "threshold";

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

/// The words before and after `--`.
fn split_at_dashes(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

/// The conditions of a run in words: what, how, and whether runs are incomparable where it differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conditions(Vec<(&'static str, String, bool)>);

impl Conditions {
    pub(super) fn of(manifest: &RunManifest) -> Conditions {
        let probe = &manifest.probe;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let mut all = vec![
            (PROBE, probe.kind.clone(), true),
            (THRESHOLD, probe.threshold_ns.to_string(), true),
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
            let schedule = match setup.pacing {
                PipelinePacing::Schedule => "a schedule of its own",
                PipelinePacing::AfterPublication => "after the last publication",
            };
            all.push(("pacing", format!("{schedule}, every {}", setup.interval_ns), true));
            all.push(("record", format!("{} bytes", setup.record_length), true));
            all.push(("ring", format!("{} slots", setup.ring), true));
        }
        if !manifest.passive.is_empty() {
            // What was found to belong there, or was named, is who was stolen from.
            let chosen = manifest.passive.iter().filter_map(|cpu| cpu.chosen.as_ref());
            let mut names: Vec<&str> = chosen.map(|chosen| chosen.comm.as_str()).collect();
            names.sort_unstable();
            // Of several that were named together, who ran most.
            let most = manifest.passive.iter().flat_map(|cpu| &cpu.threads).max_by_key(|of| of.running_ns);
            let named = || most.map_or("nobody who ran", |thread| thread.comm.as_str());
            let whose = if names.is_empty() { format!("{}, as named", named()) } else { names.join(", ") };
            all.push(("what belongs there", whose, true));
        }
        if probe.kind() == Some(ProbeKind::Attach) {
            // What one program waits for says nothing of another one; the same with other arguments is only reported.
            let first = manifest.threads.iter().min_by_key(|thread| (thread.from, thread.tid));
            all.push(("program followed", first.map_or("none".into(), |of| of.comm.clone()), true));
            let (_, command) = split_at_dashes(&manifest.command_line);
            if !command.is_empty() {
                all.push(("command", command.join(" "), false));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_stands_behind_the_first_dashes() {
        let all = words("attach --cpus 1 -- make -- all");
        let (before, after) = split_at_dashes(&all);
        assert_eq!((before, after), (&words("attach --cpus 1")[..], &words("make -- all")[..]));
        let all = words("record");
        assert_eq!(split_at_dashes(&all), (&all[..], &[][..]));
        let all = words("--");
        assert_eq!(split_at_dashes(&all), (&[][..], &[][..]));
    }

    #[test]
    fn what_differs_is_told_once_with_both_sides_and_what_is_absent_is_none() {
        let of = |all: &[(&'static str, &str, bool)]| {
            Conditions(all.iter().map(|(what, how, hard)| (*what, (*how).to_owned(), *hard)).collect())
        };
        let first = of(&[("probe", "spin", true), ("clock", "tsc", true), ("command", "make", false)]);
        let second = of(&[("probe", "wakeup", true), ("clock", "tsc", true), ("pacing", "1 ms", true)]);
        assert_eq!(first.differences(&first), []);
        let told: Vec<(&str, String, String, bool)> = first
            .differences(&second)
            .into_iter()
            .map(|of| (of.what, of.before, of.after, of.incomparable))
            .collect();
        let row = |what, before: &str, after: &str, hard| (what, before.to_owned(), after.to_owned(), hard);
        assert_eq!(
            told,
            [
                row("probe", "spin", "wakeup", true),
                row("command", "make", "none", false),
                row("pacing", "none", "1 ms", true)
            ]
        );
    }
}
