//! The plan and the outcome of `experiment --auto`.

use super::minutes;
use super::reasons::{not_kept, not_tried, step_runs};
use crate::report::{Fact, Facts, Report};
use crate::style::Tone;
use jitterscope_experiment::{AutoPlan, NotTried, Outcome, Screened, Verified};
use jitterscope_model::{AnyVersion, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of `--auto`.
#[derive(Serialize, JsonSchema)]
pub struct Sifted<'s> {
    /// The outcome of each candidate. In JSON, view adds the lists with their words.
    #[serde(skip)]
    pub candidates: &'s [Screened],
    /// Knobs that need a reboot.
    pub needs_reboot: &'s [String],
    /// Knobs that were not tried, with the reason.
    #[serde(skip)]
    pub not_tried: &'s [(String, AnyVersion<NotTried>)],
    /// The confirmation of the kept knobs with fresh pairs.
    #[serde(skip)]
    pub confirmed: Option<&'s Outcome>,
    /// Why the experiment is incomplete; null if it is complete.
    pub unfinished: Option<&'s str>,
}

fn fact(name: &str, text: String) -> Fact {
    Fact {
        name: name.into(),
        tone: None,
        text,
    }
}

fn facts(report: &mut Report, shown: Vec<Fact>) {
    report.facts(Facts {
        shown,
        ..Facts::default()
    });
}

/// The outcome of the candidates, and the next steps.
#[must_use]
pub fn sifted(of: &Sifted<'_>) -> Report {
    let mut report = Report::default();
    report.heading("Candidates");
    let tried = of.candidates.iter().map(|candidate| {
        let [before, after] = candidate.events_per_sec;
        let end = match candidate.cause {
            None => "kept".to_owned(),
            Some(why) => format!("reverted: {}", not_kept(why)),
        };
        let text = format!("{before:.2}/s without, {after:.2}/s with all of them: {end}");
        fact(&candidate.knob, text)
    });
    facts(&mut report, tried.chain(untried(of.not_tried)).collect());
    if of.candidates.is_empty() && of.not_tried.is_empty() && of.unfinished.is_none() {
        report.sentence(
            None,
            "No knob that can be tried now affects a measured culprit.",
        );
    }
    if let Some(why) = of.unfinished {
        let text = format!("Not everything was done: {}.", why.trim_end_matches('.'));
        report.sentence(Tone::Warning, text);
    }
    report.heading("What to do");
    report.sentence(None, next(of));
    reboot(&mut report, of.needs_reboot);
    report
}

fn next(of: &Sifted<'_>) -> String {
    let kept: Vec<&str> = of
        .candidates
        .iter()
        .filter(|c| c.kept)
        .map(|c| c.knob.as_str())
        .collect();
    let kept = kept.join(",");
    match of.confirmed.map(|outcome| outcome.verified) {
        _ if kept.is_empty() => {
            "No knob was kept. The machine has its original settings.".to_owned()
        }
        Some(Verified::No | Verified::Moved) => format!(
            "The machine has its original settings; keep them. In fresh pairs {kept} did not have the effect of the first runs, or made the total worse."
        ),
        Some(Verified::Yes | Verified::CulpritsOnly) => format!(
            "The machine has its original settings. To apply the kept knobs: `jitterscope tune apply --only {kept}`. The pairs above show their combined effect."
        ),
        Some(Verified::Undecided | Verified::NothingPredicted) | None => format!(
            "The machine has its original settings. The kept knobs are not confirmed. To confirm them: `jitterscope experiment --knob {kept}`. To apply them anyway: `jitterscope tune apply --only {kept}`."
        ),
    }
}

/// The planned steps and their duration.
#[must_use]
pub fn auto_plan(of: &AutoPlan) -> Report {
    let mut report = Report::default();
    report.heading("Candidates");
    let candidates = of.candidates.iter().map(|candidate| {
        let undone = match candidate.undone_within_ns {
            Nanos::ZERO => "undone immediately".to_owned(),
            time => format!("undone within {}", minutes(time)),
        };
        let chosen = match candidate.chosen && of.ranked_by.is_some() {
            true => ", matches that run's culprits",
            false => "",
        };
        fact(&candidate.knob, format!("{undone}{chosen}"))
    });
    let all = candidates.chain(untried(&of.not_tried)).collect();
    facts(&mut report, all);
    if !of.candidates.iter().any(|candidate| candidate.chosen) {
        report.sentence(
            None,
            "None of them matches a known culprit. The runs below take place anyway: they may name one that a knob removes.",
        );
    }
    let among = "The experiment chooses among all of these with its own first runs.";
    let chosen = match &of.ranked_by {
        Some(run) => format!(
            "The steps below contain those that match the culprits of run {run}, the newest run of this probe here that names culprits. {among}"
        ),
        None => format!(
            "No stored run of this probe here names culprits. The steps below contain all of these. {among}"
        ),
    };
    report.sentence(None, chosen);
    report.heading("Steps");
    let steps = of.steps.iter().enumerate().map(|(at, step)| {
        let [first, last] = step.takes_ns.map(minutes);
        let what = step_runs(step.what);
        let text = match step.runs {
            [least, most] if least < most => {
                format!(
                    "{what}: {least} runs, {first}; up to {most}, {last}, if those do not decide"
                )
            }
            [runs, _] => format!("{what}: {runs} runs, {first}"),
        };
        fact(&(at + 1).to_string(), text)
    });
    facts(&mut report, steps.collect());
    let [first, last] = of.takes_ns.map(minutes);
    let fits = if of.fits_budget {
        "fits"
    } else {
        "does not fit"
    };
    let text = format!(
        "Total: {first} to the first look, {last} to the last. The first {fits} a budget of {}. Rejected knobs are undone one by one before the pairs, and all others at the end.",
        minutes(of.budget_ns)
    );
    report.sentence(None, text);
    reboot(&mut report, &of.needs_reboot);
    report
}

fn untried(all: &[(String, AnyVersion<NotTried>)]) -> impl Iterator<Item = Fact> {
    all.iter().map(|(knob, why)| {
        let text = format!("not tried: it is {}", not_tried(knob, why));
        fact(knob, text)
    })
}

fn reboot<S: AsRef<str>>(report: &mut Report, knobs: &[S]) {
    if !knobs.is_empty() {
        let all: Vec<&str> = knobs.iter().map(AsRef::as_ref).collect();
        let text = format!(
            "Only a reboot can try: {} (`jitterscope tune plan --only ID --persist`).",
            all.join(", ")
        );
        report.sentence(None, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    #[test]
    fn a_plan_without_a_candidate_says_why_runs_are_made() {
        let plan = AutoPlan {
            schema_version: 1,
            ranked_by: None,
            candidates: Vec::new(),
            needs_reboot: Vec::new(),
            not_tried: Vec::new(),
            steps: Vec::new(),
            takes_ns: [Nanos::ZERO; 2],
            budget_ns: Nanos(1),
            fits_budget: true,
        };
        let text = auto_plan(&plan).terminal(Style::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("take place anyway: they may name one that a knob removes"),
            "{text}"
        );
    }
}
