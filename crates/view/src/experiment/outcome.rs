//! The outcome of an experiment.

use super::reasons::{kept_void_reason, left_out};
use crate::compare;
use crate::lines::counted;
use crate::report::Report;
use crate::style::Tone;
use jitterscope_analyze::compare::{Diff, Verdict};
use jitterscope_experiment::{Asked, Decision, Ended, Outcome, Verified};

/// Builds the report; `goes_on` says how a stopped experiment continues.
#[must_use]
pub fn outcome(of: &Outcome, goes_on: &str) -> Report {
    let mut report = of.diff.as_ref().map(compare::report).unwrap_or_default();
    report.heading("Experiment");
    report.sentence(None, ended(of, goes_on));
    let awaits = of.ended == Ended::AwaitsReboot;
    if awaits {
        // There is no comparison yet.
    } else if of.across_reboot {
        report.sentence(Tone::Warning, "The arms were measured one after the other, with a reboot or a change by hand in between. The difference includes drift and everything else that changed with it, so nothing has a verdict.");
    } else if !of.interleaved {
        report.sentence(Tone::Warning, "Not interleaved: undoing the change takes longer than --longest-wait, so all runs without it came first. The difference includes drift, so nothing has a verdict.");
    }
    if let Some(why) = left_out(of.left_out_runs) {
        report.sentence(None, format!("{why}."));
    }
    // Then the last void reason explains the end, and is not a run.
    let explains_the_end = usize::from(of.ended == Ended::Unseen);
    let void = of.void.len().saturating_sub(explains_the_end);
    let unit = if of.interleaved { "pair" } else { "run" };
    for why in &of.void[..void] {
        let text = format!("A {unit} was void: {}.", kept_void_reason(why));
        report.sentence(None, text);
    }
    for decision in &of.decisions {
        report.sentence(None, decided(decision, of.interleaved));
    }
    if !awaits {
        report.sentence(tone(of.verified), verified(of));
    }
    report
}

/// `8 pairs`, or `8 runs of each arm`.
fn made(of: usize, interleaved: bool) -> String {
    match interleaved {
        true => counted(of, "pair"),
        false => format!("{} of each arm", counted(of, "run")),
    }
}

fn ended(of: &Outcome, goes_on: &str) -> String {
    let pairs = made(of.pairs, of.interleaved);
    match of.ended {
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
            "The runs without the change are complete; those with it follow once it is made.".into()
        }
        Ended::Deadline => format!("{pairs}: the budget is used up."),
        Ended::Stopped => format!("{pairs}: stopped. {goes_on}"),
    }
}

fn decided(of: &Decision, interleaved: bool) -> String {
    let verdict = match of.verdict {
        Verdict::NotSeen => "not seen in either arm",
        other => compare::words::verdict(other),
    };
    let made = made(of.pairs, interleaved);
    format!("{}: {verdict}, after {made}.", of.what.title())
}

fn tone(of: Verified) -> Tone {
    match of {
        Verified::Yes => Tone::Good,
        Verified::No | Verified::Moved => Tone::Bad,
        Verified::CulpritsOnly | Verified::Undecided | Verified::NothingPredicted => Tone::Strong,
    }
}

fn verified(of: &Outcome) -> String {
    let total_decided = of
        .decisions
        .iter()
        .any(|decision| matches!(decision.what, Asked::Total(_)));
    match of.verified {
        Verified::Yes => {
            "Verified: the predicted culprits decreased beyond the margin, and the total with them."
        }
        Verified::CulpritsOnly => "The predicted culprits decreased; the total is undecided.",
        Verified::Moved if of.moved_to.is_empty() => {
            "Not verified: the predicted culprits decreased, and the total did not. Other culprits took over."
        }
        Verified::Moved => {
            return format!(
                "Not verified: the predicted culprits decreased, and others took over their time: {}.",
                of.moved_to.join(", ")
            );
        }
        Verified::No => {
            "Not verified: a predicted culprit did not decrease beyond the margin, or the total is worse."
        }
        Verified::Undecided if total_decided => {
            "Undecided: it is not known whether the predicted culprits decreased."
        }
        Verified::Undecided => "Undecided: neither verified nor refuted; the total is undecided.",
        // Unseen does not mean absent.
        Verified::NothingPredicted if !of.diff.as_ref().is_some_and(names_culprits) => {
            "It is not known whether a predicted culprit occurred, because a run names no culprits."
        }
        Verified::NothingPredicted if total_decided => {
            "No predicted culprit occurred: only the total decides."
        }
        Verified::NothingPredicted => "No predicted culprit occurred; the total is undecided.",
    }
    .into()
}

/// Whether all runs name culprits.
fn names_culprits(diff: &Diff) -> bool {
    diff.against
        .iter()
        .all(|against| against.culprits.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use jitterscope_experiment::{Arm, VoidReason};
    use jitterscope_model::{AnyVersion, Nanos};

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
            let text = outcome(&of, "It goes on.").terminal(Style::default());
            text.split_whitespace().collect::<Vec<_>>().join(" ")
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
            awaits.contains("those with it follow once it is made")
                && awaits.contains("it was not measured")
        );
        assert!(
            !awaits.contains("Undecided") && !awaits.contains("Not interleaved"),
            "{awaits}"
        );
    }
}
