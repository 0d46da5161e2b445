//! Words for an experiment's estimate and outcome.

mod json;
mod reasons;

pub use json::{OutcomeWithWords, auto_plan_json, outcome_json, sifted_json};
pub use reasons::{difference, experiment_error, void_reason};

use crate::compare::render;
use crate::compare::words::supported_from;
use crate::lines::{Lines, counted};
use crate::style::Style;
use jitterscope_analyze::compare::{Diff, Verdict};
use jitterscope_experiment::{
    Asked, AutoPlan, Ended, Estimate, NotTried, Outcome, Screened, Verified,
};
use jitterscope_model::{AnyVersion, Nanos};
use reasons::{kept_void_reason, left_out, not_kept, not_tried, step_runs};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// A time in minutes.
fn minutes(time: Nanos) -> String {
    match time.0 / 1_000_000_000 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// A remaining time, in minutes above two: seconds would only flicker.
#[must_use]
pub fn time_left(time: Duration) -> String {
    minutes(Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// The duration of an experiment, and what it could detect.
#[must_use]
pub fn estimate(of: &Estimate, change: &str, style: Style) -> String {
    let mut text = Lines::new(style);
    text.wrapped("", &format!("Experiment: {change}"));
    let times = of.takes_ns.map(|times| times.map(minutes));
    let [first, last] = times.map_or_else(Default::default, |times| {
        times.map(|time| format!(": {time}"))
    });
    let how = if of.interleaved {
        format!(
            "{} pairs of runs, each in random order{first}; up to {} pairs if that is undecided{last}.",
            of.runs[0], of.runs[1]
        )
    } else {
        format!(
            "not interleaved, for its undoing takes too long: {} runs without it, then {} with it{first}.",
            of.runs[0], of.runs[1]
        )
    };
    text.wrapped("  time    ", &how);
    let each = match of.run_ns {
        Some(run) => {
            let as_known = match of.around_is_known {
                true => "as runs of earlier experiments did",
                false => "as is assumed: no earlier experiment tells",
            };
            let around = of.around_ns;
            format!("each run measures for {run}, and takes {around} more, {as_known}.")
        }
        None => "how long that takes is not known, for each run lasts as long as the command does, and no earlier run \
                 of it is stored: make one with `jitterscope attach -- COMMAND` and ask again."
            .into(),
    };
    text.wrapped("  runs    ", &each);
    if let Some(waits) = waits(of) {
        text.wrapped("  waits   ", &waits);
    }
    let scatter = if of.known_from > 0 {
        format!(
            "{} of this kind, length and setting scatter by {:.0} %",
            counted(of.known_from, "earlier run"),
            of.scatter * 100.0
        )
    } else {
        format!(
            "no earlier runs of this kind, length and setting tell how they scatter; if by {:.0} %, as is assumed",
            of.scatter * 100.0
        )
    };
    let found = match of.detectable_fraction {
        _ if !of.interleaved => "every difference is shown without a verdict, for runs that follow one another cannot tell \
                                 the change from the time."
            .into(),
        Some(share) => format!(
            "{scatter}: a fall of the total by {:.0} % would be found four times in five.{}",
            share * 100.0,
            if of.predicts {
                " A predicted culprit that goes away is found with far less."
            } else {
                ""
            }
        ),
        None => format!("{scatter}: no effect on the total could be found."),
    };
    text.wrapped("  finds   ", &found);
    let run = of.run_ns.unwrap_or_default();
    let tails: Vec<String> = of
        .unsupported
        .iter()
        .map(|of| supported_from(of.kind, of.supported_from_ns, run))
        .collect();
    if !tails.is_empty() {
        let words = format!(
            "next to the maximum in runs of this length: {}.",
            tails.join("; ")
        );
        text.wrapped("  tails   ", &words);
    }
    text.into_text()
}

/// The waiting times; `None` if there are none.
fn waits(of: &Estimate) -> Option<String> {
    // Rounded up to a second.
    let time = |time: Nanos| {
        minutes(Nanos(
            time.0.div_ceil(1_000_000_000).saturating_mul(1_000_000_000),
        ))
    };
    let undone = "until what was there before is in force again.";
    match [of.apply_wait_ns, of.wait_ns] {
        [Nanos::ZERO, Nanos::ZERO] => None,
        [Nanos::ZERO, undo] => Some(format!(
            "up to {} each time that it is undone, {undone}",
            time(undo)
        )),
        [apply, Nanos::ZERO] => Some(format!(
            "up to {} each time that it is made, until it is in force.",
            time(apply)
        )),
        [apply, undo] => Some(format!(
            "up to {} each time that it is made, until it is in force, and up to {} each time that it is undone, \
             {undone}",
            time(apply),
            time(undo)
        )),
    }
}

/// Whether all runs name culprits.
fn names_culprits(diff: &Diff) -> bool {
    diff.against
        .iter()
        .all(|against| against.culprits.is_some())
}

/// The outcome; `goes_on` says how a stopped experiment continues.
#[must_use]
pub fn outcome(of: &Outcome, goes_on: &str, style: Style) -> String {
    let mut text = Lines::new(style);
    if let Some(diff) = &of.diff {
        text.push_str(&render(diff, style));
    }
    text.push_str("\nEXPERIMENT\n");
    let mut say = |words: String| {
        text.wrapped("", &words);
    };
    let pairs = if of.interleaved {
        counted(of.pairs, "pair")
    } else {
        format!("{} of each arm", counted(of.pairs, "run"))
    };
    say(match of.ended {
        Ended::Decided => format!("{pairs}: decided."),
        Ended::LastLook => format!("{pairs}: the last look."),
        Ended::Futile => format!("{pairs}: ended early, because more pairs would hardly decide."),
        Ended::Void if of.interleaved => {
            format!("{pairs}: ended early, because too many pairs were void.")
        }
        Ended::Void => format!("{pairs}: ended early, because too many runs were void."),
        Ended::Unseen => {
            let why = of.void.last().map_or_else(
                || "the change did not visibly take effect".into(),
                kept_void_reason,
            );
            format!(
                "Ended early, because {why}: no run with the change was possible. The existing runs are kept. {goes_on}"
            )
        }
        Ended::AwaitsReboot => {
            "The runs without the change are complete; the runs with it follow after a reboot."
                .into()
        }
        Ended::Deadline => format!("{pairs}: the budget is used up."),
        Ended::Stopped => format!("{pairs}: stopped. {goes_on}"),
    });
    let awaits = of.ended == Ended::AwaitsReboot;
    if awaits {
        // There is no comparison yet.
    } else if of.across_reboot {
        say("A reboot separates the arms: the difference includes everything else that the reboot changed, and drift, so nothing has a verdict.".into());
    } else if !of.interleaved {
        say("Not interleaved: undoing the change takes longer than --longest-wait, so all runs without it came first. The difference includes drift, so nothing has a verdict.".into());
    }
    if let Some(why) = left_out(of.left_out_runs) {
        say(format!("{why}."));
    }
    // Then the last void reason explains the end, and is not a run.
    let void = if of.ended == Ended::Unseen {
        of.void.len().saturating_sub(1)
    } else {
        of.void.len()
    };
    for why in &of.void[..void] {
        say(format!(
            "A {} was void: {}.",
            if of.interleaved { "pair" } else { "run" },
            kept_void_reason(why)
        ));
    }
    for decision in &of.decisions {
        let verdict = match decision.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotSeen => "not seen in either arm",
        };
        let made = counted(decision.pairs, "pair");
        let made = if of.interleaved {
            made
        } else {
            format!("{} of each arm", counted(decision.pairs, "run"))
        };
        say(format!(
            "{}: {verdict}, after {made}.",
            decision.what.title()
        ));
    }
    if awaits {
        return text.into_text();
    }
    let total_decided = of
        .decisions
        .iter()
        .any(|decision| matches!(decision.what, Asked::Total(_)));
    say(match of.verified {
        Verified::Yes => {
            "Verified: the predicted culprits fell beyond the margin, and the total fell with them.".into()
        }
        Verified::CulpritsOnly => "The predicted culprits fell; total undecided.".into(),
        Verified::Moved if of.moved_to.is_empty() => {
            "Not verified: moved to other culprits. The predicted culprits fell, and the total did not fall with them."
                .into()
        }
        Verified::Moved => format!(
            "Not verified: moved to {}. The predicted culprits fell, and others took over their time.",
            of.moved_to.join(", ")
        ),
        Verified::No => {
            "Not verified: a predicted culprit did not fall beyond the margin, or the total is worse.".into()
        }
        Verified::Undecided if total_decided => {
            "Undecided: it is not known whether the predicted culprits fell.".into()
        }
        Verified::Undecided => "Undecided: neither verified nor refuted; total undecided.".into(),
        // Unseen does not mean absent.
        Verified::NothingPredicted if !of.diff.as_ref().is_some_and(names_culprits) => {
            "It is not known whether a predicted culprit occurred, because a run names no culprits.".into()
        }
        Verified::NothingPredicted if total_decided => {
            "No predicted culprit occurred: only the total decides.".into()
        }
        Verified::NothingPredicted => {
            "No predicted culprit occurred; total undecided.".into()
        }
    });
    text.into_text()
}

/// The outcome of `--auto`.
#[derive(Serialize, JsonSchema)]
pub struct Sifted<'s> {
    /// The outcome of each candidate.
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

/// The outcome of the candidates, and the next steps.
#[must_use]
pub fn sifted(of: &Sifted<'_>, style: Style) -> String {
    let mut text = Lines::new(style);
    text.push_str("\nCANDIDATES\n");
    for candidate in of.candidates {
        let [before, after] = candidate.events_per_sec;
        let end = match candidate.cause {
            None => "kept".to_owned(),
            Some(why) => format!("reverted: {}", not_kept(why)),
        };
        let first = format!("  {:<16}", candidate.knob);
        text.wrapped(
            &first,
            &format!("{before:.2}/s without, {after:.2}/s with all of them: {end}"),
        );
    }
    tell_untried(&mut text, of.not_tried);
    if of.candidates.is_empty() && of.not_tried.is_empty() && of.unfinished.is_none() {
        text.push_str("Nothing that was measured is answered by a knob that can be tried now.\n");
    }
    if let Some(why) = of.unfinished {
        text.wrapped(
            "",
            &format!("Not all was done: {}.", why.trim_end_matches('.')),
        );
    }
    text.push_str("\nWHAT TO DO\n");
    let kept: Vec<&str> = of
        .candidates
        .iter()
        .filter(|c| c.kept)
        .map(|c| c.knob.as_str())
        .collect();
    let kept = kept.join(",");
    let words = match of.confirmed.map(|outcome| outcome.verified) {
        _ if kept.is_empty() => {
            "Nothing was kept. The machine has its original settings.".to_owned()
        }
        Some(Verified::No | Verified::Moved) => format!(
            "The machine has its original settings; keep them. In fresh pairs {kept} did not have the effect of the first runs, or made the total worse."
        ),
        Some(Verified::Yes | Verified::CulpritsOnly) => format!(
            "The machine has its original settings. To apply the kept knobs: jitterscope tune apply --only {kept}. The pairs above show their combined effect."
        ),
        Some(Verified::Undecided | Verified::NothingPredicted) | None => format!(
            "The machine has its original settings. The kept knobs are not confirmed. To apply them anyway: jitterscope tune apply --only {kept}; to confirm them first: jitterscope experiment --knob {kept}."
        ),
    };
    text.wrapped("", &words);
    reboot(&mut text, of.needs_reboot);
    text.into_text()
}

/// The planned steps and their duration.
#[must_use]
pub fn auto_plan(of: &AutoPlan, style: Style) -> String {
    let mut text = Lines::new(style);
    text.push_str("CANDIDATES\n");
    for candidate in &of.candidates {
        let undone = match candidate.undone_within_ns {
            Nanos::ZERO => "undone immediately".to_owned(),
            time => format!("undone within {}", minutes(time)),
        };
        let chosen = match candidate.chosen && of.ranked_by.is_some() {
            true => ", matches that run's culprits",
            false => "",
        };
        let words = format!("{undone}{chosen}");
        text.wrapped(&format!("  {:<16}", candidate.knob), &words);
    }
    tell_untried(&mut text, &of.not_tried);
    if !of.candidates.iter().any(|candidate| candidate.chosen) {
        text.wrapped(
            "",
            "None of them matches a known culprit. The runs below take place anyway: they may name one \
             that a knob removes.",
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
    text.wrapped("", &chosen);
    text.push_str("\nSTEPS\n");
    for step in &of.steps {
        let [first, last] = step.takes_ns.map(minutes);
        let what = step_runs(step.what);
        let words = match step.runs {
            [least, most] if least < most => {
                format!("{what}: {least} runs, {first}; up to {most}, {last}, if that is undecided")
            }
            [runs, _] => format!("{what}: {runs} runs, {first}"),
        };
        text.wrapped("  ", &words);
    }
    let [first, last] = of.takes_ns.map(minutes);
    let fits = if of.fits_budget {
        "fits"
    } else {
        "does not fit"
    };
    let words = format!(
        "Total: {first} to the first look, {last} to the last. The first {fits} a budget of {}. Rejected knobs are undone one by one before the pairs, and all others at the end.",
        minutes(of.budget_ns)
    );
    text.wrapped("", &words);
    reboot(&mut text, &of.needs_reboot);
    text.into_text()
}

fn tell_untried(text: &mut Lines, all: &[(String, AnyVersion<NotTried>)]) {
    for (knob, why) in all {
        text.wrapped(
            &format!("  {knob:<16}"),
            &format!("not tried: it is {}", not_tried(knob, why)),
        );
    }
}

fn reboot<S: AsRef<str>>(text: &mut Lines, knobs: &[S]) {
    if !knobs.is_empty() {
        let all = knobs
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<&str>>()
            .join(", ");
        text.wrapped(
            "",
            &format!("Only a reboot can try: {all} (jitterscope tune plan --only ID --persist)."),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_experiment::{Arm, VoidReason};

    fn one_line(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_predicted_and_waited_for_is_reported_where_there_is_any() {
        let of = |predicts, apply, undo| {
            let reported = Estimate {
                schema_version: 1,
                interleaved: true,
                runs: [8, 16],
                takes_ns: None,
                run_ns: None,
                around_ns: Nanos(1),
                around_is_known: false,
                apply_wait_ns: Nanos(apply),
                wait_ns: Nanos(undo),
                predicts,
                known_from: 0,
                scatter: 0.3,
                unsupported: Vec::new(),
                detectable_fraction: Some(0.2),
            };
            one_line(&estimate(&reported, "x", Style::default()))
        };
        assert!(of(true, 0, 0).contains("A predicted culprit that goes away"));
        assert!(!of(false, 0, 0).contains("predicted") && !of(false, 0, 0).contains("waits"));
        let both = of(false, 1_500_000_000, 300_000_000_000);
        assert!(
            both.contains("up to 2 s each time that it is made, until it is in force"),
            "{both}"
        );
        assert!(
            both.contains("up to 5 min each time that it is undone"),
            "{both}"
        );
        let once = of(false, 10_000_000_000, 0);
        assert!(
            once.contains("up to 10 s each time that it is made") && !once.contains("undone"),
            "{once}"
        );
    }

    #[test]
    fn a_change_that_was_not_seen_is_reported_by_itself() {
        let reported = |ended, void: &[VoidReason]| {
            let of = Outcome {
                schema_version: 1,
                ended,
                pairs: 0,
                void: void.iter().cloned().map(AnyVersion::from).collect(),
                left_out_runs: 0,
                interleaved: false,
                across_reboot: false,
                decisions: Vec::new(),
                verified: Verified::Undecided,
                moved_to: Vec::new(),
                diff: None,
            };
            one_line(&outcome(&of, "It goes on.", Style::default()))
        };
        let not_seen = VoidReason::NotInForce {
            arm: Arm::B,
            within_ns: Nanos(180_000_000_000),
        };
        let unseen = reported(Ended::Unseen, &[VoidReason::NotMeasured, not_seen]);
        assert!(
            unseen.contains("Ended early, because the change did not visibly take effect within"),
            "{unseen}"
        );
        assert!(
            unseen.contains("A run was void: it was not measured."),
            "{unseen}"
        );
        assert!(
            !unseen.contains("too many") && !unseen.contains("void: the change"),
            "{unseen}"
        );
        assert!(
            reported(Ended::Void, &[VoidReason::NotMeasured]).contains("too many runs were void")
        );
        let awaits = reported(Ended::AwaitsReboot, &[VoidReason::NotMeasured]);
        assert!(
            awaits.contains("the runs with it follow after a reboot")
                && awaits.contains("it was not measured")
        );
        assert!(
            !awaits.contains("Undecided") && !awaits.contains("Not interleaved"),
            "{awaits}"
        );
    }

    #[test]
    fn why_runs_are_made_where_nothing_could_be_tried_is_reported() {
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
        let reported = one_line(&auto_plan(&plan, Style::default()));
        assert!(
            reported.contains("take place anyway: they may name one that a knob removes"),
            "{reported}"
        );
    }
}
