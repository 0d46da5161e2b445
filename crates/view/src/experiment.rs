//! What an experiment will take, and what it came to, in words.

use crate::compare::render;
use crate::lines::{Lines, counted};
use crate::style::Style;
use jitterscope_analyze::compare::{Diff, Verdict};
use jitterscope_experiment::{Ended, Estimate, Outcome, Screened, Verified};
use jitterscope_model::Nanos;
use std::time::Duration;

/// A time in minutes.
fn minutes(time: Nanos) -> String {
    match time.0 / 1_000_000_000 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// A time that is left, in minutes where it is more than two: seconds of an hour would only flicker.
#[must_use]
pub fn time_left(time: Duration) -> String {
    minutes(Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// What it will take and could find.
#[must_use]
pub fn estimate(of: &Estimate, change: &str, style: Style) -> String {
    let mut text = Lines::new(style);
    text.wrapped("", &format!("Experiment: {change}"));
    let [first, last] = of.takes_ns.map(minutes);
    let how = if of.interleaved {
        format!(
            "{} pairs of runs, in an order drawn by lot: {first}; up to {} pairs if that is undecided: {last}.",
            of.runs[0], of.runs[1]
        )
    } else {
        format!(
            "not interleaved, for its undoing takes too long: {} runs without it, then {} with it: {first}.",
            of.runs[0], of.runs[1]
        )
    };
    text.wrapped("  time    ", &how);
    if of.wait_ns > Nanos::ZERO {
        text.wrapped(
            "  waits   ",
            &format!(
                "up to {} each time that it is undone, until what was there before is in force again.",
                minutes(of.wait_ns)
            ),
        );
    }
    let scatter = if of.known_from > 0 {
        format!(
            "{} of this kind scatter by {:.0} %",
            counted(of.known_from, "earlier run"),
            of.scatter * 100.0
        )
    } else {
        format!("no earlier runs of this kind are known; if they scatter by {:.0} %", of.scatter * 100.0)
    };
    let found = match of.detectable_fraction {
        Some(share) => format!(
            "{scatter}: a fall of the total by {:.0} % would be found four times in five. A predicted culprit that goes away is found with far less.",
            share * 100.0
        ),
        None => format!("{scatter}: no effect on the total could be found."),
    };
    text.wrapped("  finds   ", &found);
    text.into_text()
}

/// Whether all runs name who stole.
fn names_culprits(diff: &Diff) -> bool {
    diff.against.iter().all(|against| against.culprits.is_some())
}

/// What it came to.
#[must_use]
pub fn outcome(of: &Outcome, style: Style) -> String {
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
        Ended::Futile => format!("{pairs}: given up, for more would hardly decide."),
        Ended::Void => format!("{pairs}: given up, for too many pairs were void."),
        Ended::Deadline => format!("{pairs}: the budget is used up."),
        Ended::Stopped => format!("{pairs}: stopped. The same command with --resume goes on."),
    });
    if !of.interleaved {
        say("Not interleaved: the undoing of the change takes longer than --longest-wait, so all runs without it came first. What drifted meanwhile is in the difference.".into());
    }
    if let Some(why) = &of.left_out {
        say(format!("{why}."));
    }
    for why in &of.void {
        say(format!("A {} was void: {why}.", if of.interleaved { "pair" } else { "run" }));
    }
    for decision in &of.decisions {
        let verdict = match decision.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotSeen => "not seen in either arm",
        };
        say(format!("{}: {verdict}, after {}.", decision.what, counted(decision.pairs, "pair")));
    }
    say(match of.verified {
        Verified::Yes => "Verified: the predicted culprits fell, and the total is not worse.".into(),
        Verified::CulpritsOnly => "The predicted culprits fell; total undecided.".into(),
        Verified::No => "Not verified: a predicted culprit did not fall, or the total is worse.".into(),
        Verified::Undecided => "Undecided: neither verified nor refuted; total undecided.".into(),
        // Not seen is not the same as not there.
        Verified::NothingPredicted if !of.diff.as_ref().is_some_and(names_culprits) => {
            "Whether a predicted culprit was there cannot be told, for a run names nobody.".into()
        }
        Verified::NothingPredicted => match of.decisions.iter().find(|d| d.what == "total") {
            Some(_) => "No culprit was predicted that was there: the total alone speaks.".into(),
            None => "No culprit was predicted that was there; total undecided.".into(),
        },
    });
    text.into_text()
}

/// What became of the candidates, and what to do.
#[must_use]
pub fn sifted(
    candidates: &[Screened],
    needs_reboot: &[&str],
    not_tried: &[(String, String)],
    style: Style,
) -> String {
    let mut text = Lines::new(style);
    text.push_str("\nCANDIDATES\n");
    for of in candidates {
        let [before, after] = of.events_per_sec;
        let end = match &of.why {
            None => "kept".to_owned(),
            Some(why) => format!("reverted: {why}"),
        };
        let first = format!("  {:<16}", of.knob);
        text.wrapped(&first, &format!("{before:.2}/s without, {after:.2}/s with all of them: {end}"));
    }
    for (knob, why) in not_tried {
        text.wrapped(&format!("  {knob:<16}"), &format!("not tried: it is {why}"));
    }
    if candidates.is_empty() && not_tried.is_empty() {
        text.push_str("Nothing that was measured is answered by a knob that can be tried now.\n");
    }
    text.push_str("\nWHAT TO DO\n");
    let kept: Vec<&str> = candidates.iter().filter(|c| c.kept).map(|c| c.knob.as_str()).collect();
    if kept.is_empty() {
        text.push_str("Nothing was kept. The machine is as it was found.\n");
    } else {
        let words = format!(
            "The machine is as it was found. To apply what was kept: jitterscope tune apply --only {}. What it is worth is what the pairs above say of all of them together.",
            kept.join(",")
        );
        text.wrapped("", &words);
    }
    if !needs_reboot.is_empty() {
        text.wrapped(
            "",
            &format!(
                "Only a reboot can try: {} (jitterscope tune plan --only ID --persist).",
                needs_reboot.join(", ")
            ),
        );
    }
    text.into_text()
}
