//! The words of `watch`.

use crate::lines::{Lines, short_cpus_text};
use crate::number::{bytes, span, utc};
use crate::style::{Style, tame};
use crate::text::headline::saved_by;
use crate::worst_case;
use jitterscope_analyze::{Exposed, WorstCase};
use jitterscope_model::{Nanos, SavedMoment};
use jitterscope_recording::watch::{HourSums, WatchStatus};

/// How many culprits of an hour are shown.
const CULPRITS: usize = 3;

/// That a moment is being saved.
#[must_use]
pub fn watch_moment(moment: &SavedMoment) -> String {
    let mut text = format!("{} UTC: {}", utc(moment.realtime_ns), saved_by(moment.by));
    if !moment.text.is_empty() {
        text.push_str(&format!(": {}", tame(&moment.text)));
    }
    text
}

/// The state of a running watch, for a terminal.
#[must_use]
pub fn watch_status(status: &WatchStatus, style: Style) -> String {
    let mut lines = Lines::new(style);
    let mut fact = |name: &str, value: String| lines.wrapped(&head(name), &value);
    fact(
        "watch",
        format!(
            "{}, {}, {}; process {}, since {} UTC",
            short_cpus_text(&status.cpus),
            status.probe,
            status.level,
            status.pid,
            utc(status.since_ns)
        ),
    );
    let history = &status.history;
    fact(
        "history",
        format!(
            "{} in {} sections, {} of {}",
            span(Nanos(history.reaches_ns)),
            history.sections,
            bytes(history.bytes),
            bytes(history.limit_bytes)
        ),
    );
    if history.dropped_for_room > 0 {
        fact(
            "",
            format!(
                "{} sections dropped because the disk was full",
                history.dropped_for_room
            ),
        );
    }
    let triggers = &status.triggers;
    fact(
        "triggers",
        format!(
            "{} saved, {} joined them, {} came too soon, {} beyond the daily cap, {} failed",
            triggers.taken.saturating_sub(triggers.failed),
            triggers.joined,
            triggers.too_soon,
            triggers.over_cap,
            triggers.failed
        ),
    );
    for of in status.lost.iter().filter(|of| of.records > 0) {
        fact("lost", format!("{} records of {}", of.records, of.source));
    }
    for condition in &status.undecided {
        fact("undecided", condition.clone());
    }
    for run in status.saved.iter().rev().take(3) {
        fact("saved", run.display().to_string());
    }
    if let Some(socket) = &status.socket {
        fact("socket", socket.display().to_string());
    }
    fact(
        "own cost",
        format!(
            "{} of CPU time without probes, {} of memory",
            span(Nanos(status.cpu_time_ns)),
            bytes(status.rss_bytes)
        ),
    );
    if let Some(trouble) = &status.trouble {
        fact("trouble", trouble.clone());
    }
    if let Some(upload) = &status.upload {
        let waiting = match upload.waiting_hours {
            0 => String::new(),
            hours => format!("; {hours} waiting"),
        };
        let dropped = match upload.dropped_hours {
            0 => String::new(),
            hours => format!("; {hours} dropped before they were sent"),
        };
        let (hours, runs) = (upload.sent_hours, upload.sent_runs);
        fact(
            "uploads",
            format!("{hours} hours, {runs} saved runs sent{waiting}{dropped}"),
        );
        if let Some(problem) = &upload.problem {
            fact("", problem.text.clone());
        }
    }
    for hour in &status.hours {
        fact("hour", hour_line(hour, status));
    }
    lines.into_text()
}

/// A running watch that does not answer, and why; `cpu` is its first one, if known.
#[must_use]
pub fn silent_watch(cpu: Option<u32>, why: &str, style: Style) -> String {
    let mut lines = Lines::new(style);
    let cpu = cpu.map_or_else(String::new, |cpu| format!("CPU {cpu} "));
    lines.wrapped(&head("watch"), &format!("{cpu}does not answer: {why}"));
    lines.into_text()
}

/// The name before a fact.
fn head(name: &str) -> String {
    format!("{name:<10}")
}

/// An hour's sums in a line.
fn hour_line(hour: &HourSums, status: &WatchStatus) -> String {
    let mut text = format!(
        "{} UTC  {} in {} stalls",
        utc(hour.hour.saturating_mul(3_600_000_000_000)),
        span(Nanos(hour.stalled_ns)),
        hour.stalls
    );
    for culprit in hour.culprits.iter().take(CULPRITS) {
        text.push_str(&format!(
            "; {} {} {}",
            culprit.kind,
            culprit.name,
            span(Nanos(culprit.time_ns))
        ));
    }
    // A lost record may hide a longer stall.
    let is_complete = status.lost.iter().all(|of| of.records == 0);
    if hour.longest_ns > 0 && is_complete {
        let [longest, measured] = [hour.longest_ns, hour.measured_ns].map(Nanos);
        let cpus = status.cpus.len();
        let worst = WorstCase::new(longest, Exposed::Cpus, cpus, measured);
        let none = worst_case::none_above(&worst, &longest.to_string());
        text.extend(none.map(|none| format!("; {none}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{UploadProblem, UploadStatus};
    use jitterscope_model::{CpuId, CpuSet};
    use jitterscope_recording::watch::{HistoryStatus, HourCulprit, LostRecords, TriggerCounts};
    use std::path::PathBuf;
    use unicode_width::UnicodeWidthStr;

    /// A watch in which every value is as long as it gets.
    fn long() -> WatchStatus {
        let words = |what: &str| format!("{what} ").repeat(30);
        let path = || PathBuf::from("/var/lib/jitterscope/runs").join("r".repeat(40));
        WatchStatus {
            pid: u32::MAX,
            cpus: (0..512).step_by(2).map(CpuId).collect::<CpuSet>(),
            probe: "pipeline".into(),
            level: "attributed".into(),
            since_ns: u64::MAX,
            runs: path(),
            socket: Some(path()),
            history: HistoryStatus {
                sections: u64::MAX,
                reaches_ns: u64::MAX,
                bytes: u64::MAX,
                limit_bytes: u64::MAX,
                dropped_for_room: u64::MAX,
            },
            triggers: TriggerCounts {
                taken: u64::MAX,
                joined: u64::MAX,
                too_soon: u64::MAX,
                over_cap: u64::MAX,
                failed: u64::MAX / 2,
            },
            saved_runs: u64::MAX,
            lost: vec![LostRecords {
                source: words("senders"),
                records: u64::MAX,
            }],
            undecided: vec![words("max>200us")],
            saved: vec![path()],
            cpu_time_ns: u64::MAX,
            rss_bytes: u64::MAX,
            trouble: Some(words("no space left on device")),
            upload: Some(UploadStatus {
                sent_hours: 3,
                waiting_hours: 2,
                problem: Some(UploadProblem {
                    kind: "full".into(),
                    text: "no room".into(),
                }),
                ..UploadStatus::default()
            }),
            hours: vec![HourSums {
                hour: 490_000,
                stalled_ns: u64::MAX,
                stalls: u64::MAX,
                longest_ns: u64::MAX,
                measured_ns: u64::MAX,
                culprits: vec![
                    HourCulprit {
                        kind: "hrtimer".into(),
                        name: "a_function_with_a_rather_long_name".into(),
                        time_ns: u64::MAX,
                    };
                    CULPRITS
                ],
            }],
        }
    }

    #[test]
    fn every_line_of_a_status_fits_whatever_its_values() {
        let mut text = watch_status(&long(), Style::default());
        text.push_str(&silent_watch(
            Some(u32::MAX),
            &"no answer ".repeat(30),
            Style::default(),
        ));
        for line in text.lines() {
            assert!(line.width() <= 80, "{} columns: {line}", line.width());
        }
        for name in [
            "watch",
            "history",
            "triggers",
            "lost",
            "undecided",
            "saved",
            "socket",
            "own cost",
            "trouble",
            "uploads",
            "hour",
        ] {
            let begins = |line: &str| line.starts_with(&head(name));
            assert!(text.lines().any(begins), "no {name} in\n{text}");
        }
        // What is continued stands below the values.
        assert!(text.contains("\n          "), "{text}");
    }

    #[test]
    fn a_path_to_copy_stays_whole_and_a_name_cannot_move_the_cursor() {
        let mut status = long();
        let run = format!("/{}", "r".repeat(100));
        status.saved = vec![run.clone().into()];
        status.hours[0].culprits[0].name = "\u{1b}[2J".into();
        let text = watch_status(&status, Style::default());
        assert!(text.lines().any(|line| line.ends_with(&run)), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
