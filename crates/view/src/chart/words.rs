//! The names that charts use.

use crate::drawn::Drawn;
use crate::number::{count, span, utc};
use crate::style::{fit, tame};
use crate::timeline::{Noun, StallKind};
use crate::words;
use jitterscope_analyze::picture::{CurveOf, DrawnCulprit, Lane};
use std::collections::HashMap;

/// The name of each of the run's culprits, cut to `width` columns.
pub(crate) fn culprits(run: &Drawn, width: usize) -> Vec<String> {
    let named = |of: &DrawnCulprit| {
        (
            words::kind_and_name(&of.subject),
            words::detail(&of.subject, of.threads),
        )
    };
    let named = run.picture.culprits.iter().map(named).collect();
    told_apart(named)
        .iter()
        .map(|name| fit(name, width))
        .collect()
}

/// Names, with details where several are equal: equal names would be one entry of the key.
pub(super) fn told_apart(named: Vec<(String, String)>) -> Vec<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    for (name, _) in &named {
        *times.entry(name.clone()).or_default() += 1;
    }
    let shown = |(name, detail): (String, String)| match times.get(&name) {
        Some(2..) if !detail.is_empty() => format!("{name} ({detail})"),
        _ => name,
    };
    named.into_iter().map(shown).collect()
}

/// The noun for the run's stalls.
pub(crate) fn noun(run: &Drawn) -> Noun {
    StallKind::of_probe(&run.summary.probe.kind).noun()
}

/// The name of a timeline's lane.
pub(crate) fn lane(lane: &Lane) -> String {
    match lane {
        Lane::Cpu(cpu) => format!("CPU {cpu}"),
        Lane::Thread { tid, name } => format!("{} {tid}", tame(name)),
        Lane::Others => "other threads".into(),
    }
}

/// The name of a distribution in a key.
pub(crate) fn curve(run: &Drawn, of: CurveOf) -> String {
    match of {
        CurveOf::Waits => "all CPUs".into(),
        CurveOf::WaitsOf(cpu) => format!("CPU {cpu}"),
        CurveOf::Lateness => "lateness, each wake-up as it was".into(),
        CurveOf::LatenessCorrected => "corrected for deadlines slept through".into(),
        CurveOf::Transit(role) => format!("{role}, queue transit"),
        CurveOf::FromIntended(role) => format!("{role}, from the intended time"),
        CurveOf::Inter(role) => format!("{role}, between messages"),
        CurveOf::Stalls => noun(run).many.into(),
    }
}

/// The measured quantity: the curves of one run with the same quantity share a chart.
pub(crate) fn measured(of: CurveOf) -> &'static str {
    match of {
        CurveOf::Waits | CurveOf::WaitsOf(_) => "how long a random moment waits",
        CurveOf::Lateness | CurveOf::LatenessCorrected => "the lateness of wake-ups",
        CurveOf::Transit(_) | CurveOf::FromIntended(_) => "the messages' latency",
        CurveOf::Inter(_) => "the time between messages",
        CurveOf::Stalls => "the lengths of stalls",
    }
}

/// The quantity in words, for one run.
pub(crate) fn measured_of(run: &Drawn, of: CurveOf) -> String {
    match of {
        CurveOf::Stalls => format!("the lengths of {}", noun(run).many),
        of => measured(of).into(),
    }
}

/// The exact quantity: runs are compared in what both measured.
pub(crate) fn compared(of: CurveOf) -> &'static str {
    match of {
        CurveOf::Transit(_) => "the messages' time in the queue",
        CurveOf::FromIntended(_) => "the messages' latency from the intended time",
        of => measured(of),
    }
}

/// The names of runs side by side: labels, with ids if labels are equal.
pub(super) fn labels(runs: &[&Drawn]) -> Vec<String> {
    let short = |run: &Drawn| fit(&run.summary.run.label, 32);
    let all: Vec<String> = runs.iter().map(|run| short(run)).collect();
    let of =
        |(at, run): (usize, &&Drawn)| match all.iter().filter(|label| **label == all[at]).count() {
            1 => all[at].clone(),
            _ => format!("{} {}", all[at], tame(&run.summary.run.id)),
        };
    runs.iter().enumerate().map(of).collect()
}

/// Whether the percentile chart shows it; the time between messages has histograms.
pub(super) fn is_shown(of: CurveOf) -> bool {
    !matches!(of, CurveOf::Inter(_))
}

/// What was stolen, and from what.
pub(crate) fn stolen_by(run: &Drawn) -> &'static str {
    let summary = &run.summary;
    match (&summary.wakeup, &summary.pipeline) {
        (Some(_), _) => "Lateness by culprit",
        (_, Some(_)) => "Slow messages' time by culprit",
        _ if summary.probe.cpus.is_empty() => "Lost time by culprit",
        _ => "Stolen time by culprit",
    }
}

/// The whole of a culprit's share, for runs side by side.
pub(crate) fn shares_of(run: &Drawn) -> &'static str {
    if run.summary.pipeline.is_some() {
        "the slow messages' time"
    } else {
        "the time that was measured"
    }
}

/// The subtitle of a chart of culprits. If `narrow`, the surroundings name the run, and there is no room for it.
pub(super) fn subtitle_of_culprits(run: &Drawn, narrow: bool) -> String {
    let said = match (run.summary.withheld().is_empty(), narrow) {
        (true, _) => "",
        (false, true) => "UNPROVEN CULPRITS: ",
        (false, false) => "UNPROVEN CULPRITS (the report says why): ",
    };
    format!(
        "{said}{}",
        if narrow {
            measured_in(run, "")
        } else {
            subtitle(&[run])
        }
    )
}

/// The subtitle of a chart of messages; `narrow` as above.
pub(super) fn subtitle_of_messages(run: &Drawn, narrow: bool) -> String {
    if narrow {
        measured_in(run, "")
    } else {
        subtitle(&[run])
    }
}

/// The measurement and its number of stalls. `counted`: the text for slow messages without a row.
fn measured_in(run: &Drawn, counted: &str) -> String {
    let facts = &run.summary.run;
    let kind = words::probe(&run.summary.probe.kind);
    let stalls = match slow_messages(run) {
        Some(slow) => format!(
            "{} of {} slow messages{counted}",
            count(run.picture.stalls_read),
            count(slow)
        ),
        None => noun(run).counted(run.picture.stalls_read),
    };
    format!(
        "{kind}, {}, {stalls} from {}",
        span(facts.duration_ns),
        run.summary.probe.threshold_ns
    )
}

/// The number of a pipeline's slow messages, if not all have a row.
pub(crate) fn slow_messages(run: &Drawn) -> Option<u64> {
    let consumers = &run.summary.pipeline.as_ref()?.consumers;
    let slow = consumers
        .iter()
        .map(|consumer| consumer.slow)
        .fold(0, u64::saturating_add);
    (slow > run.picture.stalls_read).then_some(slow)
}

/// The subtitle that names the runs.
pub(super) fn subtitle(runs: &[&Drawn]) -> String {
    match runs {
        [run] => {
            let facts = &run.summary.run;
            format!(
                "{} {}, {}, {} UTC",
                fit(&facts.label, 32),
                tame(&facts.id),
                measured_in(run, " (the rest were only counted)"),
                utc(facts.started_realtime_ns),
            )
        }
        runs => runs
            .iter()
            .map(|run| {
                format!(
                    "{} {}",
                    fit(&run.summary.run.label, 32),
                    tame(&run.summary.run.id)
                )
            })
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_one_name_are_told_apart_and_others_are_as_they_were() {
        let named = [
            ("thread a", "nice -10"),
            ("thread b", "pid 3"),
            ("thread a", "pid 1"),
            ("thread a", ""),
        ];
        let named = named
            .map(|(name, detail)| (name.to_owned(), detail.to_owned()))
            .to_vec();
        let wanted = [
            "thread a (nice -10)",
            "thread b",
            "thread a (pid 1)",
            "thread a",
        ];
        assert_eq!(told_apart(named), wanted);
    }
}
