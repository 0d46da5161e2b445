//! `/proc/schedstat`: how long threads waited for a CPU while others ran on it.

use super::CounterRow;
use jitterscope_model::CpuId;

/// Versions whose per-CPU line is known to have this layout (Documentation/scheduler/sched-stats).
const KNOWN: std::ops::RangeInclusive<u64> = 12..=17;

/// Used columns of a CPU's line, counted after the CPU, with their names and descriptions.
const COLUMNS: [(usize, &str, &str); 5] = [
    (2, "schedule_calls", "calls of schedule()"),
    (4, "wakeups", "threads woken"),
    (6, "run_time_ns", "nanoseconds that threads ran"),
    (7, "run_delay_ns", "nanoseconds that threads waited to run"),
    (8, "timeslices", "times that a thread was given the CPU"),
];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedstatError {
    /// The format version is unknown.
    #[error(
        "/proc/schedstat has the version '{0}', which this release does not know (it knows 12 to 17)"
    )]
    Version(String),
}

/// Parses the per-CPU lines.
///
/// # Errors
/// The version is unknown: its columns may mean something else.
pub fn parse_schedstat(text: &str) -> Result<Vec<CounterRow>, SchedstatError> {
    let first = text.lines().next().unwrap_or_default().trim();
    let version = first
        .strip_prefix("version ")
        .and_then(|v| v.trim().parse().ok());
    if !version.is_some_and(|version| KNOWN.contains(&version)) {
        let shown = first.strip_prefix("version").unwrap_or(first).trim();
        return Err(SchedstatError::Version(shown.chars().take(40).collect()));
    }
    let mut rows: Vec<CounterRow> = COLUMNS
        .iter()
        .map(|(_, name, what)| CounterRow {
            name: (*name).into(),
            description: (*what).into(),
            values: Vec::new(),
        })
        .collect();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let cpu = words
            .next()
            .and_then(|word| word.strip_prefix("cpu"))
            .and_then(|n| n.parse().ok());
        let Some(cpu) = cpu else { continue };
        let numbers: Vec<Option<u64>> = words.take(9).map(|word| word.parse().ok()).collect();
        for (row, (column, ..)) in rows.iter_mut().zip(COLUMNS) {
            if let Some(Some(value)) = numbers.get(column) {
                row.values.push((CpuId(cpu), *value));
            }
        }
    }
    rows.retain(|row| !row.values.is_empty());
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delays_are_read_from_known_versions_only() {
        let text = "version 17\ntimestamp 4295\ncpu0 0 0 11 2 13 4 5000 6000 77\ndomain0 MC 3 0 0\ncpu1 0 0 1\n";
        let rows = parse_schedstat(text).unwrap();
        let delay = rows
            .iter()
            .find(|row| &*row.name == "run_delay_ns")
            .unwrap();
        assert_eq!(delay.values, [(CpuId(0), 6000)]);
        let calls = rows
            .iter()
            .find(|row| &*row.name == "schedule_calls")
            .unwrap();
        assert_eq!(calls.values, [(CpuId(0), 11), (CpuId(1), 1)]);
        assert_eq!(
            parse_schedstat("version 99\n"),
            Err(SchedstatError::Version("99".into()))
        );
        assert!(parse_schedstat("").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(version 1[0-9]\n)?(cpu[0-9]{0,12}|[0-9]{0,22}| |\n|\\PC){0,80}") {
            let _ = parse_schedstat(&text);
        }
    }
}
