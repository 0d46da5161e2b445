//! What charts call what they show.

use crate::drawn::Drawn;
use crate::number::{count, span, utc};
use crate::style::{fit, tame};
use crate::words;
use jitterscope_analyze::picture::{CurveOf, Lane};
use jitterscope_model::Subject;

/// A culprit's kind, name and class, cut to so many columns.
pub(crate) fn culprit(subject: &Subject, width: usize) -> String {
    fit(&words::kind_and_name(subject), width)
}

/// `1 stall`, `1,234 stalls`.
pub(super) fn stalls(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "stall" } else { "stalls" })
}

/// Which lane of a timeline it is.
pub(crate) fn lane(lane: &Lane) -> String {
    match lane {
        Lane::Cpu(cpu) => format!("CPU {cpu}"),
        Lane::Thread { tid, name } => format!("{} {tid}", tame(name)),
        Lane::Others => "other threads".into(),
    }
}

/// What a distribution is called in a key.
pub(crate) fn curve(of: CurveOf) -> String {
    match of {
        CurveOf::Deltas => "all CPUs".into(),
        CurveOf::DeltasOf(cpu) => format!("CPU {cpu}"),
        CurveOf::Lateness => "lateness, each wake-up as it was".into(),
        CurveOf::LatenessCorrected => "corrected for deadlines slept through".into(),
        CurveOf::Transit(role) => format!("{role}, queue transit"),
        CurveOf::FromIntended(role) => format!("{role}, from the intended time"),
        CurveOf::Inter(role) => format!("{role}, between messages"),
        CurveOf::Stalls => "stalls".into(),
    }
}

/// What it measures, by which those of one run stand in one chart.
pub(crate) fn measured(of: CurveOf) -> &'static str {
    match of {
        CurveOf::Deltas | CurveOf::DeltasOf(_) => "the time between clock reads",
        CurveOf::Lateness | CurveOf::LatenessCorrected => "the lateness of wake-ups",
        CurveOf::Transit(_) | CurveOf::FromIntended(_) => "the messages' latency",
        CurveOf::Inter(_) => "the time between messages",
        CurveOf::Stalls => "the lengths of stalls",
    }
}

/// What exactly it measures: runs are compared in what both measured.
pub(crate) fn compared(of: CurveOf) -> &'static str {
    match of {
        CurveOf::Transit(_) => "the messages' time in the queue",
        CurveOf::FromIntended(_) => "the messages' latency from the intended time",
        of => measured(of),
    }
}

/// What runs beside one another are called: by their labels, and by their ids too where those are alike.
pub(super) fn labels(runs: &[&Drawn]) -> Vec<String> {
    let short = |run: &Drawn| fit(&run.summary.run.label, 32);
    let all: Vec<String> = runs.iter().map(|run| short(run)).collect();
    let of = |(at, run): (usize, &&Drawn)| match all.iter().filter(|label| **label == all[at]).count() {
        1 => all[at].clone(),
        _ => format!("{} {}", all[at], tame(&run.summary.run.id)),
    };
    runs.iter().enumerate().map(of).collect()
}

/// Whether it is among the percentiles; the time between messages has histograms.
pub(super) fn is_shown(of: CurveOf) -> bool {
    !matches!(of, CurveOf::Inter(_))
}

/// What was stolen from whom.
pub(crate) fn stolen_by(run: &Drawn) -> &'static str {
    let summary = &run.summary;
    match (&summary.wakeup, &summary.pipeline) {
        (Some(_), _) => "Lateness by culprit",
        (_, Some(_)) => "Slow messages' time by culprit",
        _ if summary.probe.cpus.is_empty() => "Lost time by culprit",
        _ => "Stolen time by culprit",
    }
}

/// Which run, beneath the title of a chart that names culprits.
pub(super) fn subtitle_of_culprits(run: &Drawn) -> String {
    let said = match run.summary.trust.doubts.is_empty() {
        true => "",
        false => "UNPROVEN CULPRITS (the report says why): ",
    };
    format!("{said}{}", subtitle(&[run]))
}

/// A pipeline's slow messages, where more were than could be recorded one by one.
pub(crate) fn slow_messages(run: &Drawn) -> Option<u64> {
    let consumers = &run.summary.pipeline.as_ref()?.consumers;
    let slow = consumers.iter().map(|consumer| consumer.slow).fold(0, u64::saturating_add);
    (slow > run.picture.stalls_read).then_some(slow)
}

/// Which runs, beneath a title.
pub(super) fn subtitle(runs: &[&Drawn]) -> String {
    match runs {
        [run] => {
            let facts = &run.summary.run;
            let kind = tame(&run.summary.probe.kind);
            let stalls = match slow_messages(run) {
                Some(slow) => format!(
                    "{} of {} slow messages (the rest were only counted)",
                    count(run.picture.stalls_read),
                    count(slow)
                ),
                None => self::stalls(run.picture.stalls_read),
            };
            format!(
                "{} {}, {kind}, {}, {} from {}, {} UTC",
                fit(&facts.label, 32),
                tame(&facts.id),
                span(facts.duration_ns),
                stalls,
                run.summary.probe.threshold_ns,
                utc(facts.started_realtime_ns),
            )
        }
        runs => runs
            .iter()
            .map(|run| format!("{} {}", fit(&run.summary.run.label, 32), tame(&run.summary.run.id)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
