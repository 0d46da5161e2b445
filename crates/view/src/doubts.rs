//! Words for a run's doubts.

use jitterscope_model::{Doubt, thousands};

/// Several doubts as part of a sentence: `a; b`.
#[must_use]
pub fn doubts_text(doubts: &[Doubt]) -> String {
    doubts.iter().map(doubt).collect::<Vec<_>>().join("; ")
}

/// One doubt as part of a sentence, with advice.
fn doubt(of: &Doubt) -> String {
    match of {
        Doubt::EventsOutsideStalls { events, inside } => {
            // Rounded down, so that a failing share never reads as 99 %.
            let tenths = u128::from(*inside) * 1000 / u128::from(*events).max(1);
            format!(
                "only {}.{} % of {} kernel events fell into stalls, and 99 % must (raise --threshold)",
                tenths / 10,
                tenths % 10,
                thousands(*events)
            )
        }
        Doubt::EventsLost { lost, events } => {
            let (lost, events) = (thousands(*lost), thousands(*events));
            format!("{lost} kernel events were lost, and {events} were not (raise --trace-buffer)")
        }
        Doubt::TraceDisturbed { first_ns, time_ns } => format!(
            "another process wrote to the trace controls {first_ns} after the start, so {time_ns} are not trusted"
        ),
        Doubt::EventsMissing { counted, recorded } => {
            let (counted, recorded) = (thousands(*counted), thousands(*recorded));
            format!("the kernel counted {counted} events of a kind, but {recorded} were recorded")
        }
        Doubt::StallsUnrecorded { unrecorded, stalls } => {
            let (unrecorded, stalls) = (thousands(*unrecorded), thousands(*stalls));
            format!("{unrecorded} of {stalls} stalls have no record (raise --threshold)")
        }
        Doubt::MessagesUnrecorded { unrecorded, slow } => {
            let (unrecorded, slow) = (thousands(*unrecorded), thousands(*slow));
            format!("{unrecorded} of {slow} slow messages have no row (raise --threshold)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_messages_without_rows_are_counted_beside_all() {
        let text = doubts_text(&[Doubt::MessagesUnrecorded {
            unrecorded: 13_526,
            slow: 281_044,
        }]);
        assert_eq!(
            text,
            "13,526 of 281,044 slow messages have no row (raise --threshold)"
        );
    }

    #[test]
    fn a_share_that_fails_never_reads_as_enough() {
        let text = doubts_text(&[
            Doubt::EventsOutsideStalls {
                events: 100_000,
                inside: 98_999,
            },
            Doubt::EventsLost {
                lost: 200,
                events: 5_138,
            },
        ]);
        assert!(
            text.starts_with("only 98.9 % of 100,000 kernel events fell"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "; 200 kernel events were lost, and 5,138 were not (raise --trace-buffer)"
            ),
            "{text}"
        );
    }
}
