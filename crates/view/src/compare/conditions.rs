//! Words for the conditions of runs, and for why runs are not a sample of one setting.

use jitterscope_analyze::compare::{
    ConditionDifference, ConditionKind, ConditionValue, PoolError, SettingDifference,
};
use jitterscope_analyze::{MachineDifference, MachineValue};
use jitterscope_model::{ClockKind, CpuId, JournalWriting, PipelinePacing, PipelineRole};

/// The text for a run without this condition.
const ABSENT: &str = "none";

/// The name of a condition.
pub(crate) fn condition(of: ConditionKind) -> &'static str {
    match of {
        ConditionKind::Probe => "probe",
        ConditionKind::Threshold => "threshold",
        ConditionKind::Clock => "clock",
        ConditionKind::Priority => "priority",
        ConditionKind::KernelEvents => "kernel events recorded",
        ConditionKind::EventGrain => "kernel events",
        ConditionKind::Pacing => "pacing",
        ConditionKind::NoDeepIdle => "deep idle disabled",
        ConditionKind::RecordLength => "record",
        ConditionKind::RingSlots => "ring",
        ConditionKind::Via => "messages via",
        ConditionKind::Journal => "journal",
        ConditionKind::Threads => "threads",
        ConditionKind::Placement => "placement",
        ConditionKind::Owner => "owner",
        ConditionKind::Program => "program followed",
        ConditionKind::Command => "command",
    }
}

/// The value on each side.
pub(crate) fn both_sides(of: &ConditionDifference) -> [String; 2] {
    [&of.before, &of.after].map(|side| side.as_ref().map_or_else(|| ABSENT.to_owned(), value))
}

fn value(of: &ConditionValue) -> String {
    match of {
        ConditionValue::Probe(word) | ConditionValue::Program(word) => word.clone(),
        ConditionValue::Threshold(length) => length.to_string(),
        ConditionValue::Clock(ClockKind::Tsc) => "tsc".into(),
        ConditionValue::Clock(ClockKind::MonotonicRaw) => "monotonicraw".into(),
        ConditionValue::Priority(None) => "fair".into(),
        ConditionValue::Priority(Some(priority)) => format!("FIFO {priority}"),
        ConditionValue::EventGrain(grain) => grain.to_string(),
        ConditionValue::KernelEvents(is) | ConditionValue::NoDeepIdle(is) => yes(*is),
        ConditionValue::Deadlines(each) => format!("a deadline every {each}"),
        ConditionValue::Messages {
            pacing: PipelinePacing::Schedule,
            interval_ns,
        } => {
            format!("a schedule of its own, every {interval_ns}")
        }
        ConditionValue::Messages {
            pacing: PipelinePacing::AfterPublication,
            interval_ns,
        } => {
            format!("after the last publication, every {interval_ns}")
        }
        ConditionValue::RecordLength(bytes) => format!("{bytes} bytes"),
        ConditionValue::RingSlots(slots) => format!("{slots} slots"),
        ConditionValue::Via(via) => via.to_string(),
        ConditionValue::Journal(JournalWriting::Mapped) => "mapped memory".into(),
        ConditionValue::Journal(JournalWriting::PageCache) => "page cache".into(),
        ConditionValue::Threads(threads) => threads.to_string(),
        ConditionValue::Placement(placed) => {
            let on = |(role, cpu): &(PipelineRole, Option<CpuId>)| match cpu {
                Some(cpu) => format!("{} on CPU {cpu}", role.as_str()),
                None => format!("{} anywhere", role.as_str()),
            };
            placed.iter().map(on).collect::<Vec<_>>().join(", ")
        }
        ConditionValue::OwnersFound(names) => names.join(", "),
        ConditionValue::OwnerNamed(most) => {
            format!("{}, as named", most.as_deref().unwrap_or("nobody who ran"))
        }
        ConditionValue::Command(words) => words.join(" "),
    }
}

/// A value of a machine: `powersave`, or `powersave (0-6); performance (7)`.
pub(crate) fn machine_value(of: &MachineValue) -> String {
    match of {
        MachineValue::Text(text) => text.clone(),
        MachineValue::Number(number) => number.to_string(),
        MachineValue::Switch(on) => yes(*on),
        MachineValue::Thousandths(share) => format!("{}.{} %", share / 10, share % 10),
        MachineValue::Absent => "absent".into(),
        MachineValue::Denied => "denied".into(),
        MachineValue::Unreadable => "unreadable".into(),
        MachineValue::With { value, with } => format!("{} ({with})", machine_value(value)),
        MachineValue::Several(all) => all.iter().map(machine_value).collect::<Vec<_>>().join("; "),
    }
}

/// The machine's value on each side.
pub(crate) fn both_machines(of: &MachineDifference) -> [String; 2] {
    [&of.before, &of.after].map(|side| {
        side.as_ref()
            .map_or_else(|| ABSENT.to_owned(), machine_value)
    })
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.into()
}

/// Why runs are not a sample, with the difference.
#[must_use]
pub fn pool_error(error: &PoolError) -> String {
    let PoolError::Different {
        name,
        first,
        other,
        what,
        more,
    } = error
    else {
        return error.to_string();
    };
    let more = if *more == 0 {
        String::new()
    } else {
        format!(", and {more} more")
    };
    let or = match &**what {
        // An automatic threshold follows the clock's noise.
        SettingDifference::Condition(of) if of.what == ConditionKind::Threshold => {
            ", or record with one --threshold"
        }
        SettingDifference::Condition(of) if of.what == ConditionKind::EventGrain => {
            ", or record with one --events"
        }
        _ => "",
    };
    format!(
        "{name} has runs of different settings, which are no sample of either: {} (runs {first} and {other}){more}; \
         name by id the runs that belong together{or}",
        setting(what)
    )
}

fn setting(of: &SettingDifference) -> String {
    let (what, [before, after]) = match of {
        SettingDifference::Condition(of) => (condition(of.what).to_owned(), both_sides(of)),
        SettingDifference::Cpus(cpus) => ("CPUs".into(), cpus.each_ref().map(ToString::to_string)),
        SettingDifference::Machine(of) => (of.what.clone(), both_machines(of)),
    };
    format!("{what}: {before}, {after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{EventGrain, Nanos};

    fn threshold(ns: u64) -> Option<ConditionValue> {
        Some(ConditionValue::Threshold(Nanos(ns)))
    }

    #[test]
    fn both_sides_are_reported_and_what_one_lacks_is_none() {
        let pacing = ConditionValue::Messages {
            pacing: PipelinePacing::AfterPublication,
            interval_ns: Nanos(50_000),
        };
        let of = |before, after| ConditionDifference {
            what: ConditionKind::Pacing,
            before,
            after,
            incomparable: true,
        };
        assert_eq!(
            both_sides(&of(
                Some(ConditionValue::Deadlines(Nanos(1_000_000))),
                Some(pacing)
            )),
            [
                "a deadline every 1.00 ms",
                "after the last publication, every 50.0 us"
            ]
        );
        assert_eq!(
            both_sides(&of(None, Some(ConditionValue::OwnerNamed(None))))[0],
            "none"
        );
        assert_eq!(
            value(&ConditionValue::OwnerNamed(None)),
            "nobody who ran, as named"
        );
        assert_eq!(
            value(&ConditionValue::Clock(ClockKind::MonotonicRaw)),
            "monotonicraw"
        );
        let newer = ConditionValue::EventGrain(EventGrain::Other("dust".into()));
        assert_eq!(
            (condition(newer.kind()), value(&newer)),
            ("kernel events", "dust".into())
        );
    }

    #[test]
    fn values_of_machines_are_reported_in_a_few_words() {
        let text = |text: &str| MachineValue::Text(text.into());
        let with = |value, with: &str| MachineValue::With {
            value: Box::new(value),
            with: with.into(),
        };
        let several = MachineValue::Several(vec![
            with(text("a"), "0-1"),
            with(MachineValue::Denied, "2"),
        ]);
        assert_eq!(machine_value(&several), "a (0-1); denied (2)");
        let all = [
            MachineValue::Number(7),
            MachineValue::Switch(true),
            MachineValue::Thousandths(123),
        ];
        assert_eq!(
            all.map(|value| machine_value(&value)),
            ["7", "yes", "12.3 %"]
        );
    }

    #[test]
    fn runs_of_different_settings_report_the_difference_and_a_fix() {
        let of = |what, more| PoolError::Different {
            name: "BEFORE".into(),
            first: "aa".into(),
            other: "bb".into(),
            what: Box::new(what),
            more,
        };
        let apart = ConditionDifference {
            what: ConditionKind::Threshold,
            before: threshold(1_000),
            after: threshold(2_000),
            incomparable: true,
        };
        assert_eq!(
            pool_error(&of(SettingDifference::Condition(apart), 0)),
            "BEFORE has runs of different settings, which are no sample of either: threshold: 1.00 us, 2.00 us (runs \
             aa and bb); name by id the runs that belong together, or record with one --threshold"
        );
        let cpus = SettingDifference::Cpus(["1".parse().unwrap(), "2-3".parse().unwrap()]);
        assert!(pool_error(&of(cpus, 2)).ends_with(
            "CPUs: 1, 2-3 (runs aa and bb), and 2 more; name by id the runs that belong together"
        ));
        let empty = PoolError::Empty {
            name: "AFTER".into(),
        };
        assert_eq!(pool_error(&empty), "AFTER: no runs");
    }
}
