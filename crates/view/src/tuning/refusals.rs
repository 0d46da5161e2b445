//! Why a change was not made, or not undone, in words.

use jitterscope_tune::{Meaning, Outcome, Undoing};

/// Why a change was not made, without a full stop; empty where it was.
#[must_use]
pub fn refusal(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused { why, means, .. } => refused_with(why, *means),
        Outcome::Gone { why } => why.clone(),
        Outcome::Ignored { reads } => format!("taken without a word, but it reads {reads}"),
        Outcome::Applied { .. } | Outcome::Pending { .. } => String::new(),
    }
}

/// Why a step is not undone, without a full stop; empty where it is.
#[must_use]
pub fn not_undone(undoing: &Undoing) -> String {
    match undoing {
        Undoing::Drifted { now } => format!("somebody else has made it {now}"),
        Undoing::Forbidden { why } => why.clone(),
        Undoing::Failed { why, means } => refused_with(why, Some(*means)),
        Undoing::Restored
        | Undoing::WasOriginal
        | Undoing::Gone { .. }
        | Undoing::GoesWithItsCgroup
        | Undoing::UndoneByReboot
        | Undoing::KeptForeign { .. } => String::new(),
    }
}

/// What the system said, with what it means. Where there is no meaning, what was said tells all.
pub(super) fn refused_with(why: &str, means: Option<Meaning>) -> String {
    let meaning = match means {
        None => return why.to_owned(),
        Some(Meaning::MadeByOthers) => return format!("{why} is there already, made by somebody else"),
        Some(Meaning::MadeOtherwise) => return format!("the kernel made {why} of it"),
        Some(Meaning::KernelPlaces) => {
            "the kernel places this interrupt itself (the timer's, or those of a device's queues: see isolcpus-managed)"
        }
        Some(Meaning::BoundThread) => "it is bound to its CPU, or its cpuset does not allow these",
        Some(Meaning::DeadlineThread) => "a deadline thread needs its reserved CPUs",
        Some(Meaning::ValueNotTaken) => "the kernel does not take this value",
        Some(Meaning::InUse) => "somebody else is using it",
        Some(Meaning::NeedsRoot) => "it needs root, or the kernel forbids it even so",
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
    fn a_refusal_is_told_with_its_meaning_and_one_of_an_earlier_journal_as_it_stands() {
        let told =
            |why: &str, means| refusal(&Outcome::Refused { class: Refusal::Busy, why: why.into(), means });
        assert_eq!(
            told("busy (os error 16)", Some(Meaning::InUse)),
            "busy (os error 16): somebody else is using it"
        );
        assert_eq!(told("/c", Some(Meaning::MadeByOthers)), "/c is there already, made by somebody else");
        assert_eq!(told("busy: somebody else is using it", None), "busy: somebody else is using it");
    }
}
