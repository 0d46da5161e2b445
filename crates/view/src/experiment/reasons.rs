//! Words for why runs and knobs were excluded, and why an experiment failed.

use crate::any_version::in_words;
use crate::doubts::doubts_text;
use crate::tuning::{not_undone, refusal, settles, skip_reason};
use jitterscope_experiment::{
    Arm, Difference, ExperimentError, NotKept, NotTried, StepRuns, Untried, VoidReason,
};
use jitterscope_model::AnyVersion;
use jitterscope_tune::InForce;

/// Why a pair or a run of a session does not count; another version may have written it.
pub(super) fn kept_void_reason(of: &AnyVersion<VoidReason>) -> String {
    in_words(of, void_reason, "something that this version does not know")
}

/// Why a pair or a run does not count, as part of a sentence.
#[must_use]
pub fn void_reason(of: &VoidReason) -> String {
    let which = |arm: &Arm| match arm {
        Arm::A => "without",
        Arm::B => "with",
    };
    match of {
        VoidReason::NotMeasured => "it was not measured".into(),
        VoidReason::CommandFailed { arm, status } => {
            format!("its COMMAND failed {} the change: {status}", which(arm))
        }
        VoidReason::NamesNobody { arm, doubts } => {
            let why = match &doubts[..] {
                [] => "no kernel events were recorded".to_owned(),
                doubts => doubts_text(doubts),
            };
            format!("its run {} the change names no culprits: {why}", which(arm))
        }
        VoidReason::NotBack { which } => {
            let which = which
                .as_ref()
                .map_or_else(String::new, |which| format!(" ({which})"));
            format!("the culprit{which} did not reappear without the change")
        }
        VoidReason::NotInForce { arm, within_ns } => {
            let what = match arm {
                Arm::A => "its undoing",
                Arm::B => "the change",
            };
            format!("{what} did not visibly take effect within {within_ns}")
        }
        VoidReason::TooFewBeforeReboot { made, wanted } => format!(
            "only {made} of {wanted} runs without the change were made before the reboot, and none can be made in \
             this boot"
        ),
    }
}

/// The number of runs before a restart that were excluded, and why, without a full stop; `None` for zero runs.
#[must_use]
pub fn left_out(runs: u64) -> Option<String> {
    let were = match runs {
        0 => return None,
        1 => "1 run was".to_owned(),
        many => format!("{many} runs were"),
    };
    Some(format!(
        "{were} made before the reboot and left out: a reboot changes more than the tested setting"
    ))
}

/// Why a candidate is rejected.
#[must_use]
pub fn not_kept(of: NotKept) -> &'static str {
    match of {
        NotKept::NothingThere => "none of its culprits occurred",
        NotKept::More => "its culprits increased",
        NotKept::NotBeyondChance => "its culprits did not fall by more than chance",
    }
}

/// Why a knob is not tried: the text after "it is".
#[must_use]
pub fn not_tried(knob: &str, of: &AnyVersion<NotTried>) -> String {
    let undone = || match InForce::of(knob) {
        Some(declared) => format!("undone {}", settles(&declared.rollback)),
        None => "undone at a time that this version does not know".to_owned(),
    };
    let words = |of: &NotTried| match of {
        NotTried::UndoneTooLate => undone(),
        NotTried::NoTimeLeft => format!("{}, for which the budget leaves no time", undone()),
    };
    in_words(
        of,
        words,
        "left out for a reason that this version does not know",
    )
}

/// The runs of a step.
#[must_use]
pub fn step_runs(of: StepRuns) -> &'static str {
    match of {
        StepRuns::Without => "without any of them",
        StepRuns::With => "with all of them",
        StepRuns::Pairs => "pairs with all kept knobs against none",
    }
}

/// The difference of two boots besides the tested change, as part of a sentence.
#[must_use]
pub fn difference(of: &Difference) -> String {
    let said = |text: &str| {
        if text.is_empty() {
            "nothing".to_owned()
        } else {
            format!("\"{text}\"")
        }
    };
    match of {
        Difference::Kernel { before, now } => format!("the kernel was {before} and is {now}"),
        Difference::Online { before, now } => format!("CPUs {before} were online and {now} are"),
        Difference::BootLine { before, now } => format!(
            "apart from the tested parameters, the kernel command line was {} and is {}",
            said(before),
            said(now)
        ),
    }
}

/// Why an experiment failed, in words.
#[must_use]
pub fn experiment_error(error: &ExperimentError) -> String {
    match error {
        ExperimentError::Untried { knob, why } => match why {
            Untried::Applied => format!(
                "{knob} is applied already: `jitterscope tune rollback --only {knob}` first, so that there is \
                 something to compare with"
            ),
            Untried::NoChange(None) => format!("{knob}: there is nothing to change"),
            Untried::NoChange(Some(why)) => format!("{knob}: {}", skip_reason(why)),
            Untried::NeedsNoReboot => {
                format!("{knob} needs no reboot: try it without --across-reboot")
            }
        },
        ExperimentError::Refused(of) => format!("{error}: {}", refusal(&of.outcome)),
        ExperimentError::NotUndone(of) => format!("{error}: {}", not_undone(&of.undoing)),
        ExperimentError::Left { first, left } => format!(
            "{}; undoing the change failed, too: {}",
            experiment_error(first),
            experiment_error(left)
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Doubt, Nanos};
    use jitterscope_tune::SkipReason;

    #[test]
    fn runs_that_were_left_out_are_counted() {
        assert_eq!(left_out(0), None);
        assert!(
            left_out(1)
                .unwrap()
                .starts_with("1 run was made before the reboot")
        );
        assert!(
            left_out(10)
                .unwrap()
                .starts_with("10 runs were made before the reboot")
        );
    }

    #[test]
    fn what_two_boots_differ_in_is_reported() {
        let line = |before: &str, now: &str| {
            difference(&Difference::BootLine {
                before: before.into(),
                now: now.into(),
            })
        };
        assert!(line("", "mitigations=off").ends_with("was nothing and is \"mitigations=off\""));
        let online = Difference::Online {
            before: "0-3".parse().unwrap(),
            now: "0-2".parse().unwrap(),
        };
        assert_eq!(difference(&online), "CPUs 0-3 were online and 0-2 are");
    }

    #[test]
    fn a_knob_that_cannot_be_tried_is_reported_with_its_reason() {
        let reported = |why| {
            experiment_error(&ExperimentError::Untried {
                knob: "vmstat".into(),
                why,
            })
        };
        assert!(
            reported(Untried::Applied).contains("`jitterscope tune rollback --only vmstat` first")
        );
        assert_eq!(
            reported(Untried::NoChange(Some(SkipReason::LeftOut))),
            "vmstat: left out on request"
        );
        assert_eq!(
            reported(Untried::NoChange(None)),
            "vmstat: there is nothing to change"
        );
    }

    #[test]
    fn a_knob_that_is_not_tried_is_reported_with_its_undoing() {
        let reported = |of: AnyVersion<NotTried>| not_tried("nohz-full", &of);
        assert_eq!(
            reported(NotTried::UndoneTooLate.into()),
            "undone at the next boot"
        );
        assert!(
            reported(NotTried::NoTimeLeft.into())
                .ends_with("boot, for which the budget leaves no time")
        );
    }

    #[test]
    fn why_a_pair_does_not_count_is_reported_with_its_arm() {
        let doubts = vec![Doubt::EventsLost {
            lost: 200,
            events: 5_138,
        }];
        let reported = void_reason(&VoidReason::NamesNobody {
            arm: Arm::B,
            doubts,
        });
        assert!(
            reported.starts_with("its run with the change names no culprits: 200 kernel events"),
            "{reported}"
        );
        let reported = void_reason(&VoidReason::NamesNobody {
            arm: Arm::A,
            doubts: Vec::new(),
        });
        assert!(
            reported
                .ends_with("without the change names no culprits: no kernel events were recorded")
        );
        let reported = void_reason(&VoidReason::NotInForce {
            arm: Arm::A,
            within_ns: Nanos(1_000),
        });
        assert_eq!(
            reported,
            "its undoing did not visibly take effect within 1.00 us"
        );
        let reported = |which| void_reason(&VoidReason::NotBack { which });
        assert_eq!(
            reported(None),
            "the culprit did not reappear without the change"
        );
        assert!(reported(Some("vmstat".into())).contains("culprit (vmstat) did"));
    }
}
