//! Words for the outcome of conditions.

use crate::compare::conditions::{both_sides, condition};
use crate::doubts::doubts_text;
use crate::sources;
use jitterscope_analyze::gate::{
    Counted, GateNote, GateReason, GateSource, GateValue, InsteadOfSpinning, MoreRuns, SourceDoubt,
};

/// A value with its unit.
#[must_use]
pub fn gate_value(of: Option<GateValue>) -> String {
    match of {
        None => "not known".into(),
        Some(GateValue::Time(time)) => time.to_string(),
        Some(GateValue::Share(share)) => format!("{:.4} %", share * 100.0),
        Some(GateValue::PerSec(rate)) => format!("{rate:.2}/s"),
        Some(GateValue::BecameWorse(true)) => "worse".into(),
        Some(GateValue::BecameWorse(false)) => "not worse".into(),
    }
}

/// Why a condition is undecided, as part of a sentence.
#[must_use]
pub fn gate_reason(of: &GateReason) -> String {
    match of {
        GateReason::OnlyDiffCompares => "only diff compares".into(),
        GateReason::Unproven(doubts) => {
            format!("who did it cannot be said: {}", doubts_text(doubts))
        }
        GateReason::EventsLost(lost) => format!("{lost} kernel events were lost"),
        GateReason::StallsUnrecorded(stalls) => format!("{stalls} stalls have no record"),
        GateReason::LostWithinStalls => "trace data was lost within stalls".into(),
        GateReason::Source { source, why } => missing(*source, why),
        GateReason::NobodyNamed => "no kernel events were recorded, and nobody is named".into(),
        GateReason::NoProbeSpun(instead) => match instead {
            InsteadOfSpinning::Nothing => "no probe spun",
            InsteadOfSpinning::Lateness => "no probe spun: lateness is not time that was stolen",
            InsteadOfSpinning::Work => "no probe spun (lost>... is the share of what had work)",
        }
        .into(),
        GateReason::NoProbeSlept => "no probe slept and woke".into(),
        GateReason::NoMessages => "no messages were passed".into(),
        GateReason::NoMessagesReceived => "no messages were received".into(),
        GateReason::NothingMeasured => "nothing was measured".into(),
        GateReason::NoWork => "no thread was followed that had work".into(),
        GateReason::FewAbove(of) => format!("fewer than ten {} lie above it", counted(*of)),
        GateReason::RestsOnFew { of, above, needed } => {
            format!(
                "it rests on {above:.1} {}, and takes {needed}: measure longer",
                counted(*of)
            )
        }
        GateReason::GoesByProcess { thread, program } => format!(
            "{thread} is a thread of {program}, and threads go by their process: write culprit({program}), or ask \
             report --by thread"
        ),
        GateReason::HostNotRecorded => {
            "what the host takes from a thread that runs is not recorded: only probes see it".into()
        }
        GateReason::HostMayHaveTaken(share) => format!(
            "of another {:.4} % no record tells who took it, and the host may have had any part",
            100.0 * share
        ),
        GateReason::NotAllNamed => "not every run names culprits".into(),
        GateReason::NoFigureCompared => "no figure could be compared".into(),
        GateReason::NothingCompared => "nothing could be compared".into(),
        GateReason::NotComparable(of) => {
            let [before, after] = both_sides(of);
            format!(
                "not comparable: {} is {before} in one and {after} in the other",
                condition(of.what)
            )
        }
        GateReason::MayBeWorse { open, all, help } => {
            let what = match all {
                1 => "it may be worse".to_owned(),
                many => format!("{open} of {many} figures may be worse"),
            };
            match help {
                MoreRuns::NotMeasured => format!("{what}: not every run has them"),
                MoreRuns::Some(more) => format!("{what}: {more} more runs of each might decide"),
                MoreRuns::Unknown => what,
            }
        }
    }
}

fn counted(of: Counted) -> &'static str {
    match of {
        Counted::Waits => "waits",
        Counted::Stalls => "stalls",
        Counted::WakeUps => "wake-ups",
        Counted::Messages => "messages",
    }
}

fn missing(source: GateSource, why: &SourceDoubt) -> String {
    let what = match source {
        GateSource::Events => "kernel events were not all to be had",
        GateSource::Symbols => "names of kernel functions (symbols) were not all to be had",
        GateSource::Smi => "firmware (smi) could not be told apart",
    };
    let why = match why {
        SourceDoubt::Limited(problems) => sources::source_words(problems, &[]).reason,
        SourceDoubt::NotCounted => "this run did not count its interrupts".into(),
        SourceDoubt::VirtualMachine => "a virtual machine's counter does not see the host's".into(),
    };
    if why.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {why}")
    }
}

/// A note on a kept condition, as part of a sentence.
#[must_use]
pub fn gate_note(of: &GateNote) -> String {
    match of {
        GateNote::NoneSeen => "none was seen".into(),
        GateNote::Alike(names) => format!("nobody of this name was seen; {} was", names.join(", ")),
        GateNote::Others(names) => {
            format!(
                "nobody of this name was seen; most was taken by {}",
                names.join(", ")
            )
        }
        GateNote::Nobody => "nobody of this name was seen, nor anybody else".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Nanos;

    #[test]
    fn who_was_seen_is_reported_where_nobody_has_the_name() {
        let text = gate_note(&GateNote::Others(vec![
            "thread java".into(),
            "thread postgres".into(),
        ]));
        assert_eq!(
            text,
            "nobody of this name was seen; most was taken by thread java, thread postgres"
        );
        let text = gate_note(&GateNote::Alike(vec!["thread postgres".into()]));
        assert_eq!(text, "nobody of this name was seen; thread postgres was");
    }

    #[test]
    fn a_value_has_its_unit() {
        let all = [
            GateValue::Time(Nanos(1_500)),
            GateValue::Share(0.015),
            GateValue::PerSec(2.5),
        ];
        assert_eq!(
            all.map(|value| gate_value(Some(value))),
            ["1.50 us", "1.5000 %", "2.50/s"]
        );
        assert_eq!(gate_value(Some(GateValue::BecameWorse(false))), "not worse");
        assert_eq!(gate_value(None), "not known");
    }

    #[test]
    fn what_would_decide_is_reported() {
        let text = |open, all, help| gate_reason(&GateReason::MayBeWorse { open, all, help });
        assert_eq!(text(1, 1, MoreRuns::Unknown), "it may be worse");
        assert_eq!(
            text(2, 5, MoreRuns::Some(3)),
            "2 of 5 figures may be worse: 3 more runs of each might decide"
        );
        let few = GateReason::RestsOnFew {
            of: Counted::Waits,
            above: 2.04,
            needed: 10,
        };
        assert_eq!(
            gate_reason(&few),
            "it rests on 2.0 waits, and takes 10: measure longer"
        );
    }
}
