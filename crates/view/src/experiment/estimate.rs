//! How long an experiment takes, and what it could find.

use super::minutes;
use crate::compare::words::supported_from;
use crate::lines::counted;
use crate::report::{Fact, Facts, Report};
use jitterscope_experiment::{Estimate, OverheadFrom};
use jitterscope_model::Nanos;

/// Builds the report; `change` names what is tried.
#[must_use]
pub fn estimate(of: &Estimate, change: &str) -> Report {
    let mut report = Report::default();
    report.sentence(None, format!("Experiment: {change}"));
    let facts = [
        Some(("time", time(of))),
        Some(("runs", runs(of))),
        waits(of).map(|text| ("waits", text)),
        Some(("finds", finds(of))),
        tails(of).map(|text| ("tails", text)),
    ];
    let fact = |(name, text): (&str, String)| Fact {
        name: name.into(),
        tone: None,
        text,
    };
    report.facts(Facts {
        shown: facts.into_iter().flatten().map(fact).collect(),
        ..Facts::default()
    });
    report
}

fn time(of: &Estimate) -> String {
    let takes = of.takes_ns.map(|takes| takes.map(minutes));
    let [first, last] = takes.map_or_else(Default::default, |takes| {
        takes.map(|time| format!(": {time}"))
    });
    let [few, most] = of.runs;
    if of.interleaved {
        format!(
            "{few} pairs of runs, each in random order{first}; up to {most} pairs if those do not decide{last}."
        )
    } else {
        format!(
            "not interleaved, because undoing the change takes too long: {few} runs without it, then {most} with it{first}."
        )
    }
}

fn runs(of: &Estimate) -> String {
    let Some(run) = of.run_ns else {
        return "their length is unknown: a run takes as long as the command, and no earlier run of it is stored. Make \
                one with `jitterscope attach -- COMMAND`, and ask again."
            .into();
    };
    let source = match of.overhead_from {
        OverheadFrom::EarlierRuns => "as in earlier experiments",
        OverheadFrom::TrialRun => "as a trial run just did",
        OverheadFrom::Assumption => {
            "an assumption, because no earlier experiment is stored and no trial run could be made"
        }
    };
    format!(
        "each measures for {run} and takes {} more ({source}).",
        of.overhead_ns
    )
}

/// The waiting times; `None` if there are none.
fn waits(of: &Estimate) -> Option<String> {
    // Rounded up to a second.
    let time = |time: Nanos| {
        let second = 1_000_000_000;
        minutes(Nanos(time.0.div_ceil(second).saturating_mul(second)))
    };
    let applied = |wait| {
        format!(
            "up to {} after the change until it takes effect",
            time(wait)
        )
    };
    let undone = |wait| {
        format!(
            "up to {} after each undoing until it takes effect",
            time(wait)
        )
    };
    match [of.apply_wait_ns, of.wait_ns] {
        [Nanos::ZERO, Nanos::ZERO] => None,
        [Nanos::ZERO, undo] => Some(format!("{}.", undone(undo))),
        [apply, Nanos::ZERO] => Some(format!("{}.", applied(apply))),
        [apply, undo] => Some(format!("{}, and {}.", applied(apply), undone(undo))),
    }
}

fn finds(of: &Estimate) -> String {
    if !of.interleaved {
        return "every difference is shown without a verdict, because it also contains what else changed with time."
            .into();
    }
    let scatter = format!("{:.0} %", of.scatter * 100.0);
    let scatter = match of.known_from {
        0 => format!(
            "if runs scatter by {scatter} (assumed: no earlier run of this kind and length is stored)"
        ),
        known => format!(
            "runs scatter by {scatter} ({} of this kind and length)",
            counted(known, "earlier run")
        ),
    };
    let Some(share) = of.detectable_fraction else {
        return format!("{scatter}: no effect on the total.");
    };
    let predicted = match of.predicts {
        true => " A predicted culprit that disappears is found with far fewer.",
        false => "",
    };
    format!(
        "{scatter}: a decrease of the total by {:.0} %, four times in five.{predicted}",
        share * 100.0
    )
}

/// The percentiles that the runs do not support; `None` without any.
fn tails(of: &Estimate) -> Option<String> {
    let run = of.run_ns.unwrap_or_default();
    let each = of.unsupported.iter();
    let all: Vec<String> = each
        .map(|of| supported_from(of.kind, of.supported_from_ns, run))
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "next to the maximum in runs of this length: {}.",
            all.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    #[test]
    fn predictions_and_waits_are_reported_where_there_are_any() {
        let of = |predicts, apply, undo| {
            let reported = Estimate {
                schema_version: 1,
                interleaved: true,
                runs: [8, 16],
                takes_ns: None,
                run_ns: None,
                overhead_ns: Nanos(1),
                overhead_from: OverheadFrom::TrialRun,
                apply_wait_ns: Nanos(apply),
                wait_ns: Nanos(undo),
                predicts,
                known_from: 0,
                scatter: 0.3,
                unsupported: Vec::new(),
                detectable_fraction: Some(0.2),
            };
            let text = estimate(&reported, "x").terminal(Style::default());
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(of(true, 0, 0).contains("A predicted culprit that disappears"));
        assert!(!of(false, 0, 0).contains("predicted") && !of(false, 0, 0).contains("waits"));
        let both = of(false, 1_500_000_000, 300_000_000_000);
        assert!(
            both.contains("up to 2 s after the change until it takes effect"),
            "{both}"
        );
        assert!(both.contains("up to 5 min after each undoing"), "{both}");
        let once = of(false, 10_000_000_000, 0);
        assert!(
            once.contains("up to 10 s after the change") && !once.contains("undoing"),
            "{once}"
        );
    }
}
