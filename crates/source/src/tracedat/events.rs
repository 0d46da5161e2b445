//! Which events of a file we read, and which of ours it lacks.

use crate::tracefs::{Missing, is_recorded, missing_in};
use jitterscope_model::{SourceProblem, SourceReport, SourceStatus};

/// Whether a recording of our own has this event.
pub(crate) fn is_read(system: &str, event: &str) -> bool {
    is_recorded(system, event)
}

/// The reports of the two sides of a file, `file` and `senders`: which events have no record in it. `seen` says whether
/// a `system:event` has one.
#[must_use]
pub fn missing(seen: impl Fn(&str) -> bool) -> [SourceReport; 2] {
    let [local, senders] = missing_in(seen);
    [report("file", local), report("senders", senders)]
}

fn report(name: &str, missing: Missing) -> SourceReport {
    if missing.events.is_empty() {
        return SourceReport::available(name);
    }
    SourceReport {
        problems: vec![SourceProblem::NotInFile {
            events: missing.events,
        }],
        losses: missing.losses.into_iter().collect(),
        ..SourceReport::of_status(name, SourceStatus::Degraded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::SourceLoss;

    #[test]
    fn a_file_of_switches_alone_lacks_the_rest_by_name() {
        let [file, senders] = missing(|event| event == "sched:sched_switch");
        let [SourceProblem::NotInFile { events }] = &file.problems[..] else {
            panic!("{file:?}");
        };
        assert!(
            events.contains(&"irq:softirq_entry".to_owned()),
            "{events:?}"
        );
        assert!(events.contains(&"irq_vectors:*".to_owned()), "{events:?}");
        assert!(
            !events.contains(&"sched:sched_switch".to_owned()),
            "{events:?}"
        );
        assert!(
            file.losses.contains(&SourceLoss::Softirqs)
                && !file.losses.contains(&SourceLoss::Switches)
        );
        assert!(senders.losses.contains(&SourceLoss::Wakers));
        let [file, senders] = missing(|_| true);
        assert_eq!(
            (file.status, senders.status),
            (SourceStatus::Available, SourceStatus::Available)
        );
    }

    #[test]
    fn events_of_interrupt_vectors_are_read_whatever_their_name() {
        assert!(is_read("irq_vectors", "local_timer_entry") && is_read("sched", "sched_switch"));
        assert!(!is_read("irq_vectors", "vector_alloc") && !is_read("kvm", "sched_switch"));
    }
}
