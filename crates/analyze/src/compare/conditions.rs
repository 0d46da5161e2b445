//! Under which conditions a run was measured, beyond its machine.

use jitterscope_model::{ClockKind, EventGrain, Nanos, PipelinePacing, ProbeKind, RunManifest};

/// Something about how a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// Which probe measured.
    Probe,
    /// From which length on stalls were kept.
    Threshold,
    /// By which clock.
    Clock,
    /// The scheduling of what measured.
    Priority,
    /// Whether kernel events were recorded.
    KernelEvents,
    /// Which classes of them.
    EventGrain,
    /// What wake-ups or messages kept to.
    Pacing,
    /// Whether CPUs were kept from deep idle states.
    NoDeepIdle,
    /// The length of a message.
    RecordLength,
    /// The slots of the ring.
    RingSlots,
    /// What belongs on watched CPUs.
    Owner,
    /// The program whose threads were followed.
    Program,
    /// The command that was started and followed.
    Command,
}

impl ConditionKind {
    /// Whether figures of two runs say nothing of one another where it differs.
    fn makes_incomparable(self) -> bool {
        !matches!(self, ConditionKind::KernelEvents | ConditionKind::Command)
    }
}

/// How it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionValue {
    /// The probe's word ([`ProbeKind`]), or that of a newer version.
    Probe(String),
    /// From this length on.
    Threshold(Nanos),
    /// This clock.
    Clock(ClockKind),
    /// This priority in the real-time class; the fair class where there is none.
    Priority(Option<u32>),
    /// Whether they were recorded.
    KernelEvents(bool),
    /// Which classes of kernel events.
    EventGrain(EventGrain),
    /// A deadline each of these.
    Deadlines(Nanos),
    /// A message each of these.
    Messages {
        /// What they kept to.
        pacing: PipelinePacing,
        /// From one to the next.
        interval_ns: Nanos,
    },
    /// Whether they were kept from them.
    NoDeepIdle(bool),
    /// So many bytes.
    RecordLength(u64),
    /// So many.
    RingSlots(u64),
    /// Programs that were found to belong there, by name.
    OwnersFound(Vec<String>),
    /// What was named, by the thread that ran most; none where nobody ran.
    OwnerNamed(Option<String>),
    /// Its name.
    Program(String),
    /// Its words.
    Command(Vec<String>),
}

impl ConditionValue {
    /// What it says something about.
    #[must_use]
    pub fn kind(&self) -> ConditionKind {
        match self {
            ConditionValue::Probe(_) => ConditionKind::Probe,
            ConditionValue::Threshold(_) => ConditionKind::Threshold,
            ConditionValue::Clock(_) => ConditionKind::Clock,
            ConditionValue::Priority(_) => ConditionKind::Priority,
            ConditionValue::KernelEvents(_) => ConditionKind::KernelEvents,
            ConditionValue::EventGrain(_) => ConditionKind::EventGrain,
            ConditionValue::Deadlines(_) | ConditionValue::Messages { .. } => ConditionKind::Pacing,
            ConditionValue::NoDeepIdle(_) => ConditionKind::NoDeepIdle,
            ConditionValue::RecordLength(_) => ConditionKind::RecordLength,
            ConditionValue::RingSlots(_) => ConditionKind::RingSlots,
            ConditionValue::OwnersFound(_) | ConditionValue::OwnerNamed(_) => ConditionKind::Owner,
            ConditionValue::Program(_) => ConditionKind::Program,
            ConditionValue::Command(_) => ConditionKind::Command,
        }
    }

    fn is_like(&self, other: &ConditionValue) -> bool {
        // A threshold is kept in ticks, whose rate is measured anew for every run: lengths that read alike are alike.
        let alike = |one: &Nanos, other: &Nanos| one.to_string() == other.to_string();
        match (self, other) {
            (ConditionValue::Threshold(one), ConditionValue::Threshold(other)) => alike(one, other),
            (ConditionValue::Deadlines(one), ConditionValue::Deadlines(other)) => alike(one, other),
            (
                ConditionValue::Messages {
                    pacing,
                    interval_ns,
                },
                ConditionValue::Messages {
                    pacing: of_other,
                    interval_ns: other,
                },
            ) => pacing == of_other && alike(interval_ns, other),
            (one, other) => one == other,
        }
    }
}

/// Something about how two runs were measured that was not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionDifference {
    /// What.
    pub what: ConditionKind,
    /// In the first run; none where it has no such thing.
    pub before: Option<ConditionValue>,
    /// In the second.
    pub after: Option<ConditionValue>,
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

/// The conditions of a run, one of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conditions(Vec<ConditionValue>);

impl Conditions {
    pub(super) fn of(manifest: &RunManifest) -> Conditions {
        let probe = &manifest.probe;
        let mut all = vec![
            ConditionValue::Probe(probe.kind.clone()),
            ConditionValue::Threshold(probe.threshold_ns),
            ConditionValue::Clock(manifest.clock),
            ConditionValue::Priority(probe.fifo_priority),
            ConditionValue::KernelEvents(manifest.attributed),
        ];
        if manifest.attributed {
            all.push(ConditionValue::EventGrain(probe.event_grain.clone()));
        }
        if let Some(wakeup) = &probe.wakeup {
            all.push(ConditionValue::Deadlines(wakeup.period_ns));
            all.push(ConditionValue::NoDeepIdle(wakeup.hold_latency));
        }
        if let Some(pipeline) = &manifest.pipeline {
            let setup = &pipeline.setup;
            all.push(ConditionValue::Messages {
                pacing: setup.pacing,
                interval_ns: setup.interval_ns,
            });
            all.push(ConditionValue::RecordLength(setup.record_length));
            all.push(ConditionValue::RingSlots(setup.ring));
        }
        if !manifest.passive.is_empty() {
            // What was found to belong there, or was named, is who was stolen from.
            let chosen = manifest
                .passive
                .iter()
                .filter_map(|cpu| cpu.chosen.as_ref());
            let mut names: Vec<String> = chosen.map(|chosen| chosen.comm.clone()).collect();
            names.sort_unstable();
            // Of several that were named together, who ran most.
            let most = manifest
                .passive
                .iter()
                .flat_map(|cpu| &cpu.threads)
                .max_by_key(|of| of.running_ns);
            all.push(if names.is_empty() {
                ConditionValue::OwnerNamed(most.map(|thread| thread.comm.clone()))
            } else {
                ConditionValue::OwnersFound(names)
            });
        }
        if probe.kind() == Some(ProbeKind::Attach) {
            // What one program waits for says nothing of another one; the same with other arguments is only reported.
            let first = manifest
                .threads
                .iter()
                .min_by_key(|thread| (thread.from, thread.tid));
            all.extend(first.map(|of| ConditionValue::Program(of.comm.clone())));
            let (_, command) = split_at_dashes(&manifest.command_line);
            if !command.is_empty() {
                all.push(ConditionValue::Command(command.to_vec()));
            }
        }
        Conditions(all)
    }

    pub(super) fn differences(&self, other: &Conditions) -> Vec<ConditionDifference> {
        let find =
            |all: &Conditions, what| all.0.iter().find(|value| value.kind() == what).cloned();
        let mut kinds: Vec<ConditionKind> = Vec::new();
        for kind in self.0.iter().chain(&other.0).map(ConditionValue::kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
            .into_iter()
            .filter_map(|what| {
                let (before, after) = (find(self, what), find(other, what));
                let alike = match (&before, &after) {
                    (Some(before), Some(after)) => before.is_like(after),
                    // Whether there were any is a condition of its own.
                    _ => what == ConditionKind::EventGrain,
                };
                let incomparable = what.makes_incomparable();
                (!alike).then_some(ConditionDifference {
                    what,
                    before,
                    after,
                    incomparable,
                })
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
        assert_eq!(
            (before, after),
            (&words("attach --cpus 1")[..], &words("make -- all")[..])
        );
        let all = words("record");
        assert_eq!(split_at_dashes(&all), (&all[..], &[][..]));
        let all = words("--");
        assert_eq!(split_at_dashes(&all), (&[][..], &[][..]));
    }

    #[test]
    fn what_differs_is_reported_once_with_both_sides_and_what_is_absent_is_none() {
        let of = |all: &[ConditionValue]| Conditions(all.to_vec());
        let probe = |word: &str| ConditionValue::Probe(word.into());
        let clock = || ConditionValue::Clock(ClockKind::Tsc);
        let command = || ConditionValue::Command(words("make"));
        let pacing = || ConditionValue::Deadlines(Nanos(1_000_000));
        let first = of(&[probe("spin"), clock(), command()]);
        let second = of(&[probe("wakeup"), clock(), pacing()]);
        assert_eq!(first.differences(&first), []);
        let row = |what, before, after, incomparable| ConditionDifference {
            what,
            before,
            after,
            incomparable,
        };
        assert_eq!(
            first.differences(&second),
            [
                row(
                    ConditionKind::Probe,
                    Some(probe("spin")),
                    Some(probe("wakeup")),
                    true
                ),
                row(ConditionKind::Command, Some(command()), None, false),
                row(ConditionKind::Pacing, None, Some(pacing()), true)
            ]
        );
    }

    #[test]
    fn culprits_of_another_grain_are_others_and_none_at_all_have_no_grain() {
        let of = |grain| Conditions(vec![ConditionValue::EventGrain(grain)]);
        let (all, coarse) = (of(EventGrain::All), of(EventGrain::Coarse));
        assert_eq!(all.differences(&all), []);
        let found = all.differences(&coarse);
        let sides = (
            Some(ConditionValue::EventGrain(EventGrain::All)),
            Some(ConditionValue::EventGrain(EventGrain::Coarse)),
        );
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].before, &found[0].after, found[0].incomparable),
            (&sides.0, &sides.1, true)
        );
        let without = Conditions(vec![ConditionValue::KernelEvents(false)]);
        let with = |grain: EventGrain| {
            Conditions(vec![
                ConditionValue::KernelEvents(true),
                ConditionValue::EventGrain(grain),
            ])
        };
        for grain in [EventGrain::All, EventGrain::Coarse] {
            let found = without.differences(&with(grain));
            assert_eq!(
                found.iter().map(|of| of.what).collect::<Vec<_>>(),
                [ConditionKind::KernelEvents]
            );
        }
    }

    #[test]
    fn lengths_that_read_alike_are_alike() {
        let of = |ns| Conditions(vec![ConditionValue::Threshold(Nanos(ns))]);
        assert_eq!(of(10_001).differences(&of(10_000)), []);
        assert_eq!(of(10_100).differences(&of(10_000)).len(), 1);
    }
}
