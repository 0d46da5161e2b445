//! The conditions of a measurement, beyond its machine.

use jitterscope_model::{
    ClockKind, CpuId, EventGrain, JournalWriting, Nanos, PipelinePacing, PipelineRole, PipelineVia,
    ProbeKind, PutInOrder, RunManifest,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A property of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    Probe,
    /// The length from which stalls were kept.
    Threshold,
    Clock,
    /// The scheduling of the measuring threads.
    Priority,
    /// Whether kernel events were recorded.
    KernelEvents,
    /// The recorded classes of kernel events.
    EventGrain,
    /// The pacing of wake-ups or messages.
    Pacing,
    /// Whether the recorder kept CPUs out of deep idle states.
    NoDeepIdle,
    /// The length of a message.
    RecordLength,
    /// The slots of the ring.
    RingSlots,
    /// The way of messages.
    Via,
    /// How the journal is written.
    Journal,
    /// The number of a pipeline's threads.
    Threads,
    /// The CPUs of a pipeline's threads: often what is compared, so it is reported and judged.
    Placement,
    /// The owners of watched CPUs.
    Owner,
    /// The program of the followed threads.
    Program,
    Command,
}

impl ConditionKind {
    /// Whether a difference makes the figures of two runs incomparable.
    fn makes_incomparable(self) -> bool {
        !matches!(
            self,
            ConditionKind::KernelEvents | ConditionKind::Command | ConditionKind::Placement
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionValue {
    /// The probe's word ([`ProbeKind`]), or that of a newer version.
    Probe(String),
    Threshold(Nanos),
    Clock(ClockKind),
    /// The priority in the real-time class; `None` for the fair class.
    Priority(Option<u32>),
    /// Whether kernel events were recorded.
    KernelEvents(bool),
    EventGrain(EventGrain),
    /// The time between deadlines.
    Deadlines(Nanos),
    Messages {
        /// The reference of their schedule.
        pacing: PipelinePacing,
        /// The time between messages.
        interval_ns: Nanos,
    },
    /// Whether deep idle states were off.
    NoDeepIdle(bool),
    /// The length in bytes.
    RecordLength(u64),
    RingSlots(u64),
    Via(PipelineVia),
    Journal(JournalWriting),
    Threads(usize),
    /// Each thread's only CPU; `None` if the scheduler chose.
    Placement(Vec<(PipelineRole, Option<CpuId>)>),
    /// Names of the owners that were found automatically.
    OwnersFound(Vec<String>),
    /// The owner that the user named, as the thread that ran most; `None` if none ran.
    OwnerNamed(Option<String>),
    Program(String),
    Command(Vec<String>),
}

impl ConditionValue {
    /// The kind of condition.
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
            ConditionValue::Via(_) => ConditionKind::Via,
            ConditionValue::Journal(_) => ConditionKind::Journal,
            ConditionValue::Threads(_) => ConditionKind::Threads,
            ConditionValue::Placement(_) => ConditionKind::Placement,
            ConditionValue::OwnersFound(_) | ConditionValue::OwnerNamed(_) => ConditionKind::Owner,
            ConditionValue::Program(_) => ConditionKind::Program,
            ConditionValue::Command(_) => ConditionKind::Command,
        }
    }

    fn is_like(&self, other: &ConditionValue) -> bool {
        // A threshold is kept in ticks, whose rate is measured anew for each run: compare the printed lengths.
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

/// A condition that differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConditionDifference {
    /// In JSON, view adds it and both values in words.
    #[serde(skip)]
    pub what: ConditionKind,
    /// In the first run; `None` if it does not have this condition.
    #[serde(skip)]
    pub before: Option<ConditionValue>,
    /// In the second run.
    #[serde(skip)]
    pub after: Option<ConditionValue>,
    /// Whether the figures of the two are incomparable.
    pub incomparable: bool,
}

/// Splits the words at `--`.
fn split_at_dashes(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

/// The conditions of a run, one of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conditions {
    all: Vec<ConditionValue>,
    /// The length from which stalls are counted: the threshold, or a longer one of a run beside it.
    counted_from: Nanos,
}

impl Conditions {
    /// `counted_from`: the length from which stalls are counted, if it is not the threshold.
    pub(super) fn of(manifest: &RunManifest, counted_from: Option<Nanos>) -> Conditions {
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
            all.push(ConditionValue::Via(setup.via));
            if setup.journaller {
                all.push(ConditionValue::Journal(setup.journal));
            }
            all.push(ConditionValue::Threads(pipeline.threads.len()));
            let mut placed: Vec<_> = pipeline
                .threads
                .iter()
                .map(|of| (of.role, of.cpu))
                .collect();
            placed.put_in_order();
            all.push(ConditionValue::Placement(placed));
        }
        if !manifest.passive.is_empty() {
            // The owners, found or named, define what counts as stolen.
            let chosen = manifest
                .passive
                .iter()
                .filter_map(|cpu| cpu.chosen.as_ref());
            let mut names: Vec<String> = chosen.map(|chosen| chosen.comm.clone()).collect();
            names.put_in_order();
            // Several owners may have been named: take the one that ran most.
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
            // The waits of one program say nothing about another; different arguments of the same program are only
            // reported.
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
        Conditions {
            all,
            counted_from: counted_from.unwrap_or(probe.threshold_ns),
        }
    }

    pub(super) fn differences(&self, other: &Conditions) -> Vec<ConditionDifference> {
        let find =
            |all: &Conditions, what| all.all.iter().find(|value| value.kind() == what).cloned();
        let mut kinds: Vec<ConditionKind> = Vec::new();
        for kind in self.all.iter().chain(&other.all).map(ConditionValue::kind) {
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
                    // `KernelEvents` covers whether there were any events.
                    _ => what == ConditionKind::EventGrain,
                };
                let incomparable = match what {
                    // Counted from the same length, both are as if recorded with it.
                    ConditionKind::Threshold => self.counted_from != other.counted_from,
                    other => other.makes_incomparable(),
                };
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

    fn conditions(all: &[ConditionValue]) -> Conditions {
        Conditions {
            all: all.to_vec(),
            counted_from: Nanos(300),
        }
    }

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
    fn differences_are_reported_once_and_absent_values_as_none() {
        let of = |all: &[ConditionValue]| conditions(all);
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
        let of = |grain| conditions(&[ConditionValue::EventGrain(grain)]);
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
        let without = conditions(&[ConditionValue::KernelEvents(false)]);
        let with = |grain: EventGrain| {
            conditions(&[
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
        let of = |ns| conditions(&[ConditionValue::Threshold(Nanos(ns))]);
        assert_eq!(of(10_001).differences(&of(10_000)), []);
        assert_eq!(of(10_100).differences(&of(10_000)).len(), 1);
    }

    #[test]
    fn thresholds_are_comparable_if_both_are_counted_from_one_length() {
        let of = |threshold, counted_from| Conditions {
            all: vec![ConditionValue::Threshold(Nanos(threshold))],
            counted_from: Nanos(counted_from),
        };
        let incomparable = |a: &Conditions, b: &Conditions| a.differences(b)[0].incomparable;
        assert!(incomparable(&of(300, 300), &of(500, 500)));
        assert!(!incomparable(&of(300, 500), &of(500, 500)));
    }
}
