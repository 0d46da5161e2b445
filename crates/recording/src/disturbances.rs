//! Times at which the trace cannot be trusted because another process wrote to its controls.

use jitterscope_model::{TickRate, Ticks, Warning};
use jitterscope_source::Tampering;
use std::collections::BTreeSet;

/// Limit on the files that are named. There are about a hundred controls.
const MOST_FILES: usize = 32;

/// What all checks of the controls found.
#[derive(Debug, Default)]
pub(crate) struct Disturbances {
    from: Ticks,
    times: u64,
    first: Ticks,
    /// End of the last disturbance.
    last: Ticks,
    time: Ticks,
    files: BTreeSet<String>,
    repaired: bool,
}

impl Disturbances {
    /// Counts disturbances from here on.
    pub(crate) fn measure(&mut self, from: Ticks) {
        if self.last <= from {
            *self = Disturbances::default();
        }
        self.from = from;
    }

    /// Records a disturbance between two times.
    pub(crate) fn note(&mut self, (from, to): (Ticks, Ticks), tampering: Tampering) {
        let from = from.max(self.from);
        if to <= from {
            return;
        }
        if self.times == 0 {
            self.first = from;
        }
        self.times += 1;
        self.time = self.time + to.since(from);
        self.last = to;
        self.repaired = tampering.repaired;
        let room = MOST_FILES.saturating_sub(self.files.len());
        self.files.extend(tampering.files.into_iter().take(room));
    }

    /// The run's warning; `None` without a disturbance.
    pub(crate) fn warning(&self, rate: TickRate) -> Option<Warning> {
        (self.times > 0).then(|| Warning::TraceDisturbed {
            times: self.times,
            first_ns: rate.nanos(self.first.since(self.from)),
            time_ns: rate.nanos(self.time),
            files: self.files.iter().cloned().collect(),
            repaired: self.repaired,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Nanos;

    fn wrote(file: &str, repaired: bool) -> Tampering {
        Tampering {
            files: [file.to_owned()].into(),
            repaired,
        }
    }

    #[test]
    fn only_what_lies_in_the_measured_time_counts() {
        let rate = TickRate::NANOSECONDS;
        let mut all = Disturbances::default();
        all.note((Ticks(10), Ticks(20)), wrote("local/trace", true));
        all.measure(Ticks(100));
        assert_eq!(all.warning(rate), None, "it was over before");
        all.note((Ticks(90), Ticks(120)), wrote("local/tracing_on", true));
        all.note((Ticks(150), Ticks(160)), wrote("senders/set_event", false));
        // The measurement start is set again, as happens while `attach` waits for a thread.
        all.measure(Ticks(100));
        let expected = Warning::TraceDisturbed {
            times: 2,
            first_ns: Nanos(0),
            time_ns: Nanos(30),
            files: vec!["local/tracing_on".into(), "senders/set_event".into()],
            repaired: false,
        };
        assert_eq!(all.warning(rate), Some(expected));
    }

    #[test]
    fn so_many_files_are_named_and_no_more() {
        let mut all = Disturbances::default();
        for file in 0..1000u64 {
            all.note(
                (Ticks(file), Ticks(file + 1)),
                wrote(&file.to_string(), true),
            );
        }
        let Some(Warning::TraceDisturbed { times, files, .. }) = all.warning(TickRate::NANOSECONDS)
        else {
            panic!("it was disturbed")
        };
        assert_eq!((times, files.len()), (1000, MOST_FILES));
    }
}
