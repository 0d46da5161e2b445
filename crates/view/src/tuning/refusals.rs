//! Words for why a change was not made, or not undone.

use crate::any_version::{UNKNOWN, in_words};
use jitterscope_tune::{Forbidden, GoneBecause, Meaning, Outcome, Undoing, ValueFlaw};

/// Why a change was not made, without a full stop; empty if it was made.
#[must_use]
pub fn refusal(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused { why, means, .. } => refused_with(why, *means),
        Outcome::Gone { cause } => in_words(cause, gone, UNKNOWN),
        Outcome::Forbidden { cause } => in_words(cause, forbidden, UNKNOWN),
        Outcome::Ignored { reads } => {
            format!("the write succeeded, but the file still reads {reads}")
        }
        Outcome::Applied { .. } | Outcome::Pending { .. } => String::new(),
    }
}

/// Why an object is gone, without a full stop.
pub(crate) fn gone(of: &GoneBecause) -> String {
    match of {
        GoneBecause::EndedUnmoved => "it ended before it could be moved".into(),
        GoneBecause::ThreadEnded => "the thread has ended".into(),
        GoneBecause::NoFile { path } => format!("{path} is no longer there"),
        GoneBecause::Unreadable { path, system } => format!("{path} cannot be read: {system}"),
    }
}

/// Why a step is neither made nor undone, without a full stop.
pub(crate) fn forbidden(of: &Forbidden) -> String {
    match of {
        Forbidden::UnknownKnob { knob } => format!(
            "this version has no knob '{knob}': if a newer one wrote the journal, use that to roll back"
        ),
        Forbidden::NotItsChange { knob } => {
            format!(
                "the knob '{knob}' makes no such change: another program may have edited the journal, so check it"
            )
        }
        Forbidden::LeadsAway { to, root } => {
            format!(
                "it leads to {to}, outside {root}, where jitterscope changes nothing: check who created the link"
            )
        }
        Forbidden::Lost { system } => format!("its target cannot be resolved: {system}"),
        Forbidden::Value { flaw } => {
            let flaw = match flaw {
                ValueFlaw::OwnersRights => "a file that runs with its owner's rights",
                ValueFlaw::NoCpus => "an empty set of CPUs",
                ValueFlaw::TooLong => "it is too long",
                ValueFlaw::NulByte => "it has a NUL byte",
            };
            format!("{flaw}: jitterscope never writes such a value")
        }
    }
}

/// Why a step is not undone, or there is nothing to undo, without a full stop; empty if there is no problem.
#[must_use]
pub fn not_undone(undoing: &Undoing) -> String {
    match undoing {
        Undoing::Drifted { now } => format!("another program changed it to {now}"),
        Undoing::Forbidden { cause } => forbidden(cause),
        Undoing::Failed { why, means } => refused_with(why, Some(*means)),
        Undoing::Gone { cause } => gone(cause),
        Undoing::Restored
        | Undoing::WasOriginal
        | Undoing::GoesWithItsCgroup
        | Undoing::UndoneByReboot
        | Undoing::KeptForeign { .. } => String::new(),
    }
}

/// The system's message with its meaning; only the message if the meaning is unknown.
pub(super) fn refused_with(why: &str, means: Option<Meaning>) -> String {
    let meaning = match means {
        None => return why.to_owned(),
        Some(Meaning::MadeByOthers) => {
            return format!("{why} already exists, created by another program");
        }
        Some(Meaning::MadeOtherwise) => return format!("the kernel changed it to {why}"),
        Some(Meaning::KernelPlaces) => {
            "the kernel places this interrupt itself (a timer or a device queue: see isolcpus-managed)"
        }
        Some(Meaning::BoundThread) => "it is bound to its CPU, or its cpuset does not allow these",
        Some(Meaning::DeadlineThread) => "a deadline thread needs its reserved CPUs",
        Some(Meaning::ValueNotTaken) => "the kernel rejects this value",
        Some(Meaning::InUse) => "in use by another program",
        Some(Meaning::NeedsRoot) => "it needs root, or the kernel forbids it even to root",
        Some(Meaning::ReadOnly) => "the file system is read-only",
        Some(Meaning::SystemTells | Meaning::Unknown) => "see the system's message",
    };
    format!("{why}: {meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_tune::Refusal;

    #[test]
    fn what_is_gone_or_not_a_knobs_change_says_why() {
        let gone = |cause| refusal(&Outcome::Gone { cause });
        assert_eq!(
            gone(GoneBecause::EndedUnmoved.into()),
            "it ended before it could be moved"
        );
        let flaw = Forbidden::Value {
            flaw: ValueFlaw::NulByte,
        };
        let no_value = "it has a NUL byte: jitterscope never writes such a value";
        assert_eq!(
            refusal(&Outcome::Forbidden {
                cause: flaw.clone().into()
            }),
            no_value
        );
        assert_eq!(not_undone(&Undoing::Forbidden { cause: flaw }), no_value);
        let path = "/proc/x".to_owned();
        assert_eq!(
            not_undone(&Undoing::Gone {
                cause: GoneBecause::NoFile { path }
            }),
            "/proc/x is no longer there"
        );
    }

    #[test]
    fn a_refusal_states_its_meaning_and_an_old_one_its_own_words() {
        let reported = |why: &str, means| {
            refusal(&Outcome::Refused {
                class: Refusal::Busy,
                why: why.into(),
                means,
            })
        };
        assert_eq!(
            reported("busy (os error 16)", Some(Meaning::InUse)),
            "busy (os error 16): in use by another program"
        );
        assert_eq!(
            reported("/c", Some(Meaning::MadeByOthers)),
            "/c already exists, created by another program"
        );
        assert_eq!(
            reported("busy: somebody else is using it", None),
            "busy: somebody else is using it"
        );
    }
}
