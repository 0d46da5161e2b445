//! The words of `watch`.

use crate::number::{bytes, span, utc};
use crate::style::tame;
use crate::text::headline::saved_by;
use crate::worst_case;
use jitterscope_analyze::{Exposed, WorstCase};
use jitterscope_model::{Nanos, SavedMoment};
use jitterscope_recording::watch::{HourSums, WatchStatus};
use std::fmt::Write;

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
pub fn watch_status(status: &WatchStatus) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<10}{value}");
    };
    fact(
        "watch",
        format!(
            "CPU {}, {}, {}; process {}, since {} UTC",
            status.cpus,
            tame(&status.probe),
            tame(&status.level),
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
        fact(
            "lost",
            format!("{} records of {}", of.records, tame(&of.source)),
        );
    }
    for condition in &status.undecided {
        fact("undecided", tame(condition));
    }
    for run in status.saved.iter().rev().take(3) {
        fact("saved", tame(&run.display().to_string()));
    }
    if let Some(socket) = &status.socket {
        fact("socket", tame(&socket.display().to_string()));
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
        fact("trouble", tame(trouble));
    }
    for hour in &status.hours {
        fact("hour", hour_line(hour, status));
    }
    text
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
            tame(&culprit.kind),
            tame(&culprit.name),
            span(Nanos(culprit.time_ns))
        ));
    }
    if hour.longest_ns > 0 {
        let [longest, measured] = [hour.longest_ns, hour.measured_ns].map(Nanos);
        let cpus = status.cpus.len();
        let worst = WorstCase::new(longest, Exposed::Cpus, cpus, measured);
        let none = worst_case::none_above(&worst, &longest.to_string());
        text.extend(none.map(|none| format!("; {none}")));
    }
    text
}
