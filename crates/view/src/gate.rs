//! Words for the outcome of conditions.

use crate::compare::words::{change, figure_name, interval, level};
use crate::compare::{both_sides, condition};
use crate::doubts::doubts_text;
use crate::report::{Cell, Column, Report, Row, Table};
use crate::sources;
use crate::style::Tone;
use crate::worst_case::none_above;
use jitterscope_analyze::gate::{
    Changed, Counted, GateNote, GateReason, GateResult, GateSource, GateValue, GateVerdict,
    InsteadOfSpinning, MoreRuns, SeenChange, SourceDoubt,
};

/// The outcome of a condition, as part of a sentence.
#[must_use]
pub fn gate_outcome(of: &GateResult) -> String {
    let value = gate_value(of);
    let outcome = match of.verdict {
        GateVerdict::Kept => match &of.note {
            None => format!("{value}, kept"),
            Some(note) => format!("{value}, kept: {}", gate_note(note)),
        },
        GateVerdict::Exceeded => format!("{value}, exceeded"),
        GateVerdict::Undecided => format!(
            "{value}, cannot be decided: {}",
            of.why.as_ref().map(gate_reason).unwrap_or_default()
        ),
    };
    match &of.value {
        Some(GateValue::Longest(worst)) => match none_above(worst, "that") {
            Some(bound) => format!("{outcome}; {bound}"),
            None => outcome,
        },
        _ => outcome,
    }
}

/// Each condition with its outcome.
#[must_use]
pub fn gate_table(results: &[GateResult]) -> Report {
    let row = |result: &GateResult| {
        let mark = match result.verdict {
            GateVerdict::Kept => Cell::toned("kept", Tone::Good),
            GateVerdict::Exceeded => Cell::toned("FAILED", Tone::Bad),
            GateVerdict::Undecided => Cell::toned("undecided", Tone::Bad),
        };
        let outcome = gate_outcome(result);
        Row::from([mark, result.condition.as_str().into(), outcome.into()])
    };
    let mut report = Report::default();
    if !results.is_empty() {
        report.table(Table {
            title: "Conditions".into(),
            columns: ["", "condition", "outcome"].map(Column::text).into(),
            rows: results.iter().map(row).collect(),
            ..Table::default()
        });
    }
    report
}

/// A value with its unit.
fn gate_value(of: &GateResult) -> String {
    let judged = |seen: &SeenChange| match (of.verdict, seen.at_most) {
        (GateVerdict::Exceeded, _) => "worse".to_owned(),
        (GateVerdict::Kept, _) => "not worse".to_owned(),
        (GateVerdict::Undecided, None) => "worse or not".to_owned(),
        (GateVerdict::Undecided, Some(at_most)) => format!(
            "at most {} (the margin is {})",
            change(at_most, seen.scale, seen.unit),
            change(seen.margin, seen.scale, seen.unit)
        ),
    };
    match &of.value {
        None => "not known".into(),
        Some(GateValue::Time(time)) => time.to_string(),
        Some(GateValue::Longest(worst)) => worst.longest_ns.to_string(),
        Some(GateValue::Share(share)) => format!("{:.4} %", share * 100.0),
        Some(GateValue::PerSec(rate)) => format!("{rate:.2}/s"),
        Some(GateValue::NoChange) => "not worse".into(),
        Some(GateValue::Change(seen)) => format!("{}, {}", seen_change(seen), judged(seen)),
    }
}

/// `stolen +12.3 % (95 % interval +4.0..+21 %, p = 0.008)`.
fn seen_change(of: &SeenChange) -> String {
    let name = match &of.of {
        Changed::Figure(kind) => figure_name(*kind).trim().to_owned(),
        Changed::Culprit(title) => title.clone(),
    };
    let Some(by) = of.by else {
        return format!("{name} not known of every run");
    };
    let within = of.interval.map(|within| {
        let bounds = interval(Some(within), of.scale, of.unit);
        format!("{} % interval {bounds}", level(within))
    });
    let chance = of.probability.map(|p| match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    });
    let by = change(by, of.scale, of.unit);
    let more: Vec<String> = within.into_iter().chain(chance).collect();
    match more.as_slice() {
        [] => format!("{name} {by}"),
        more => format!("{name} {by} ({})", more.join(", ")),
    }
}

/// Why a condition is undecided, as part of a sentence.
pub(crate) fn gate_reason(of: &GateReason) -> String {
    match of {
        GateReason::OnlyDiffCompares => "only diff compares".into(),
        GateReason::Unproven(doubts) => {
            format!("the culprits are unknown: {}", doubts_text(doubts))
        }
        GateReason::EventsLost(lost) => format!("{lost} kernel events were lost"),
        GateReason::RecorderKilled => "the recorder was killed before it stored that".into(),
        GateReason::StallsUnrecorded(stalls) => format!("{stalls} stalls have no record"),
        GateReason::LostWithinStalls => "trace data was lost within stalls".into(),
        GateReason::Source { source, why } => missing(*source, why),
        GateReason::NobodyNamed => "no kernel events were recorded, so no culprit is known".into(),
        GateReason::NoProbeSpun(instead) => match instead {
            InsteadOfSpinning::Nothing => "no probe spun",
            InsteadOfSpinning::Lateness => "no probe spun: lateness is not time that was stolen",
            InsteadOfSpinning::Work => {
                "no probe spun (lost>... is the share for threads with work)"
            }
        }
        .into(),
        GateReason::NoProbeSlept => "no probe slept and woke".into(),
        GateReason::NoMessages => "no messages were passed".into(),
        GateReason::NoMessagesReceived => "no messages were received".into(),
        GateReason::NothingMeasured => "nothing was measured".into(),
        GateReason::NoWork => "no followed thread had work".into(),
        GateReason::NobodyFollowed => "no threads were followed (attach follows them)".into(),
        GateReason::ReasonUnknown(share) => format!(
            "another {:.4} % of the followed time was slept for an unknown reason",
            100.0 * share
        ),
        GateReason::FewAbove(of) => format!("fewer than ten {} lie above it", counted(*of)),
        GateReason::RestsOnFew { of, above, needed } => {
            let on = if *above < 0.95 {
                "less than one".to_owned()
            } else {
                format!("{above:.1}")
            };
            format!(
                "the estimate rests on {on} of the {needed} {} needed: measure longer",
                counted(*of)
            )
        }
        GateReason::GoesByProcess { thread, program } => format!(
            "{thread} is a thread of {program}, and threads are grouped by process: use culprit({program}), or \
             report --by thread"
        ),
        GateReason::HostNotRecorded => {
            "time that the host takes from a running thread is not recorded: only probes measure it"
                .into()
        }
        GateReason::HostMayHaveTaken(share) => format!(
            "no record shows who took another {:.4} %; the host may have taken part of it",
            100.0 * share
        ),
        GateReason::OwnerUnknown(share) => format!(
            "the owner of threads that took {:.4} % is not known",
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
                many => format!("{open} of {many} figures may be worse, and this one takes most"),
            };
            match help {
                MoreRuns::NotMeasured => format!("{what}: not every run has it"),
                MoreRuns::OneAfterTheOther => {
                    format!("{what}: the runs were recorded one after the other, not alternately")
                }
                MoreRuns::Some(1) => format!("{what}: 1 more run of each might decide"),
                MoreRuns::Some(more) => format!("{what}: {more} more runs of each might decide"),
                MoreRuns::Unknown => format!("{what}: no practical number of runs would decide"),
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
        GateSource::Events => "some kernel events were not available",
        GateSource::Symbols => "some names of kernel functions (symbols) were not available",
        GateSource::Smi => "firmware (smi) could not be identified",
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
fn gate_note(of: &GateNote) -> String {
    match of {
        GateNote::NoneSeen => "none was seen".into(),
        GateNote::Alike(names) => {
            format!("no culprit of this name was seen; {} was", names.join(", "))
        }
        GateNote::Others(names) => {
            format!(
                "no culprit of this name was seen; most time was taken by {}",
                names.join(", ")
            )
        }
        GateNote::Nobody => "no culprit of this name was seen, nor any other".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::compare::{FigureKind, FigureUnit, Interval, Scale};
    use jitterscope_model::Nanos;

    #[test]
    fn who_was_seen_is_reported_where_nobody_has_the_name() {
        let text = gate_note(&GateNote::Others(vec![
            "thread java".into(),
            "thread postgres".into(),
        ]));
        assert_eq!(
            text,
            "no culprit of this name was seen; most time was taken by thread java, thread postgres"
        );
        let text = gate_note(&GateNote::Alike(vec!["thread postgres".into()]));
        assert_eq!(
            text,
            "no culprit of this name was seen; thread postgres was"
        );
    }

    fn outcome(verdict: GateVerdict, value: Option<GateValue>, why: Option<GateReason>) -> String {
        gate_outcome(&GateResult {
            condition: String::new(),
            verdict,
            value,
            why,
            note: None,
        })
    }

    #[test]
    fn a_value_has_its_unit() {
        let all = [
            GateValue::Time(Nanos(1_500)),
            GateValue::Share(0.015),
            GateValue::PerSec(2.5),
            GateValue::NoChange,
        ];
        assert_eq!(
            all.map(|value| outcome(GateVerdict::Kept, Some(value), None)),
            [
                "1.50 us, kept",
                "1.5000 %, kept",
                "2.50/s, kept",
                "not worse, kept"
            ]
        );
    }

    #[test]
    fn a_change_has_its_interval_and_its_probability() {
        let seen = |probability| {
            let within = |level, low, high| Some(Interval { low, high, level });
            Some(GateValue::Change(SeenChange {
                of: Changed::Figure(FigureKind::Stolen),
                unit: FigureUnit::Fraction,
                scale: Scale::Ratio,
                by: Some(0.123),
                interval: within(0.95, 0.04, 0.21),
                probability: Some(probability),
                at_most: Some(0.19),
                margin: 0.1,
            }))
        };
        let why = GateReason::MayBeWorse {
            open: 1,
            all: 2,
            help: MoreRuns::Some(3),
        };
        assert_eq!(
            outcome(GateVerdict::Exceeded, seen(0.000_4), None),
            "stolen +12.3 % (95 % interval +4.0..+21 %, p < 0.001), worse, exceeded"
        );
        assert_eq!(
            outcome(GateVerdict::Undecided, seen(0.008), Some(why)),
            "stolen +12.3 % (95 % interval +4.0..+21 %, p = 0.008), at most +19.0 % (the margin is +10.0 %), cannot \
             be decided: 1 of 2 figures may be worse, and this one takes most: 3 more runs of each might decide"
        );
    }

    #[test]
    fn what_would_decide_is_reported() {
        let text = |open, all, help| gate_reason(&GateReason::MayBeWorse { open, all, help });
        assert_eq!(
            text(1, 1, MoreRuns::Unknown),
            "it may be worse: no practical number of runs would decide"
        );
        let few = |above| {
            gate_reason(&GateReason::RestsOnFew {
                of: Counted::Waits,
                above,
                needed: 10,
            })
        };
        let rest = "of the 10 waits needed: measure longer";
        assert_eq!(few(2.04), format!("the estimate rests on 2.0 {rest}"));
        assert_eq!(
            few(0.04),
            format!("the estimate rests on less than one {rest}")
        );
    }
}
