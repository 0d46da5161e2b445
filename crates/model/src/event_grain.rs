//! How much of what the kernel does is recorded.

use crate::words::open_words;

open_words! {
    /// Which classes of kernel events a recording asks for. Each record takes time from the CPU that it is made on.
    EventGrain {
        /// All that name who had a CPU, and what they did with it.
        All = "all",
        /// Those that tell who had a CPU and by which interrupt: no timer functions, work items or called functions.
        Coarse = "coarse",
    }
}

impl Default for EventGrain {
    /// What runs recorded before there was a choice.
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
