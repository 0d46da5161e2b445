//! How detailed a recording of kernel events is.

use crate::words::open_words;

open_words! {
    /// Which classes of kernel events a recording enables. Each record costs time on the CPU that writes it.
    EventGrain {
        /// All events that show which threads and interrupts had a CPU, and what they did with it.
        All = "all",
        /// Only events that show which threads and interrupts had a CPU: no timer functions, work items or called
        /// functions.
        Coarse = "coarse",
    }
}

impl Default for EventGrain {
    /// Older runs recorded this, before there was a choice.
    fn default() -> EventGrain {
        EventGrain::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProbeSettings, SourceProblem};
    use serde_json::json;

    #[test]
    fn older_runs_recorded_all_and_what_a_newer_version_chose_is_kept() {
        let mut probe = json!({"kind": "spin", "cpus": "1", "cpus_chosen_because": null, "duration_ns": 1,
            "warmup_ns": 0, "threshold_ns": 300, "interval_ns": 1, "fifo_priority": null});
        let read = |value: &serde_json::Value| {
            serde_json::from_value::<ProbeSettings>(value.clone()).unwrap()
        };
        assert_eq!(read(&probe).event_grain, EventGrain::All);
        for (word, grain) in [
            ("coarse", EventGrain::Coarse),
            ("all", EventGrain::All),
            ("dust", EventGrain::Other("dust".into())),
        ] {
            probe["event_grain"] = word.into();
            assert_eq!(read(&probe).event_grain, grain);
            assert_eq!(
                serde_json::to_value(read(&probe)).unwrap()["event_grain"],
                word
            );
            let problem = SourceProblem::EventsNotAsked { grain };
            let written = json!({"id": "events_not_asked", "grain": word});
            assert_eq!(serde_json::to_value(&problem).unwrap(), written);
            assert_eq!(
                serde_json::from_value::<SourceProblem>(written).unwrap(),
                problem
            );
        }
    }
}
