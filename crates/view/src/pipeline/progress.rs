//! perf-workshop's progress lines and file names.

use super::ancestor::name;
use jitterscope_model::{Nanos, PipelineRole};

/// A time as Java's `Date` writes it, in UTC: `Thu Sep 24 13:17:31 UTC 2015`.
fn date(realtime_ns: u64) -> String {
    written(realtime_ns, "%a %b %d %H:%M:%S UTC %Y")
}

/// A time in a file's name: `20150924-131731`.
#[must_use]
pub fn file_stamp(realtime_ns: u64) -> String {
    written(realtime_ns, "%Y%m%d-%H%M%S")
}

fn written(realtime_ns: u64, format: &str) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(
        |_| format!("{seconds} s"),
        |time| time.strftime(format).to_string(),
    )
}

/// The line before the threads start.
#[must_use]
pub fn starting(now_realtime_ns: u64) -> String {
    format!("Starting replay at {}", date(now_realtime_ns))
}

/// The line for a ready thread.
#[must_use]
pub fn thread_id(role: PipelineRole, tid: i32) -> String {
    format!("{} thread has pid: {tid}", name(role))
}

/// The line at the end of the warm-up.
#[must_use]
pub fn warm(now_realtime_ns: u64) -> String {
    format!("Warm-up complete at {}", date(now_realtime_ns))
}

/// The line before a pause of this length.
#[must_use]
pub fn pausing(time: Nanos) -> String {
    match (time.0 / 1_000_000_000, time.0 % 1_000_000_000) {
        (1, 0) => "Pausing for 1 second...".into(),
        (seconds, 0) => format!("Pausing for {seconds} seconds..."),
        _ => format!("Pausing for {time}..."),
    }
}

#[must_use]
pub fn executing(now_realtime_ns: u64) -> String {
    format!("Executing test at {}", date(now_realtime_ns))
}

/// The stem of a whole histogram's file: title, time and label.
#[must_use]
pub fn file_stem(title: &str, realtime_ns: u64, label: &str) -> String {
    let title: String = title
        .chars()
        .map(|c| if " =()".contains(c) { '_' } else { c })
        .collect();
    format!(
        "encoded-result-histogram-{title}-{}-LABEL_{label}",
        file_stamp(realtime_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_document_000() {
        let at = 1_443_100_651_123_456_789;
        assert_eq!(
            starting(at),
            "Starting replay at Thu Sep 24 13:17:31 UTC 2015"
        );
        assert_eq!(
            thread_id(PipelineRole::Accumulator, 11372),
            "Accumulator thread has pid: 11372"
        );
        assert_eq!(warm(at), "Warm-up complete at Thu Sep 24 13:17:31 UTC 2015");
        assert_eq!(pausing(Nanos(10_000_000_000)), "Pausing for 10 seconds...");
        assert_eq!(pausing(Nanos(1_000_000_000)), "Pausing for 1 second...");
        assert_eq!(pausing(Nanos(250_000_000)), "Pausing for 250 ms...");
        assert_eq!(
            file_stem("Accumulator Message Transit Latency (ns)", at, "BASELINE"),
            "encoded-result-histogram-Accumulator_Message_Transit_Latency__ns_-20150924-131731-LABEL_BASELINE"
        );
    }
}
