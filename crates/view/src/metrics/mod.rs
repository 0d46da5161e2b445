//! The metrics of a watch.

mod text;

pub use text::MetricsForm;

use jitterscope_recording::watch::{BOUNDS, Totals, WatchStatus};
use text::{MetricsText, Seconds, Type};

const INFO: &str = "jitterscope_watch";
const LEVEL: &str = "jitterscope_watch_level";
const START: &str = "jitterscope_watch_start_time_seconds";
const CPUS: &str = "jitterscope_watched_cpus";
const STALLS: &str = "jitterscope_stall_duration_seconds";
const STOLEN: &str = "jitterscope_stolen_seconds";
const THROTTLED: &str = "jitterscope_throttled_seconds";
const LOST: &str = "jitterscope_lost_records";
const TRIGGERS: &str = "jitterscope_triggers";
const SAVED: &str = "jitterscope_saved_runs";
const FAILED: &str = "jitterscope_failed_saves";
const HISTORY: &str = "jitterscope_history_seconds";
const HISTORY_BYTES: &str = "jitterscope_history_bytes";
const HISTORY_LIMIT: &str = "jitterscope_history_limit_bytes";
const DROPPED: &str = "jitterscope_history_dropped_sections";
const CPU_TIME: &str = "jitterscope_own_cpu_seconds";
const UPLOADED: &str = "jitterscope_uploaded_hours";
const UPLOADED_RUNS: &str = "jitterscope_uploaded_runs";
const UPLOADED_BYTES: &str = "jitterscope_uploaded_bytes";
const WAITING: &str = "jitterscope_upload_waiting_hours";
const UPLOAD_DROPPED: &str = "jitterscope_upload_dropped_hours";
const UPLOAD_FAILED: &str = "jitterscope_upload_failed_turns";
const UPLOAD_PROBLEM: &str = "jitterscope_upload_problem";
const AHEAD: &str = "jitterscope_upload_clock_ahead_seconds";
const MEMORY: &str = "jitterscope_own_memory_bytes";

/// The metrics of a watch in a form: text, or for [`MetricsForm::Protobuf`] bytes. Every row has the CPUs of the watch as a label, so that several watches of a
/// machine can be read from one folder.
#[must_use]
pub fn metrics(status: &WatchStatus, totals: &Totals, form: MetricsForm) -> Vec<u8> {
    let cpus = status.cpus.to_string();
    let common = [("cpus", cpus.as_str())];
    let mut text = MetricsText::new(form, &common);
    of_watch(&mut text, status);
    of_stalls(&mut text, totals);
    of_losses(&mut text, status);
    of_triggers(&mut text, status);
    of_history(&mut text, status);
    of_cost(&mut text, status);
    of_uploads(&mut text, status);
    text.end()
}

fn of_watch(text: &mut MetricsText<'_>, status: &WatchStatus) {
    text.family(INFO, Type::Info, "", "What watches these CPUs, and how.");
    let version = env!("CARGO_PKG_VERSION");
    text.row(&[("probe", &status.probe), ("version", version)], 1);
    let help =
        "Whether the watch looks this deep: attributed, every stall is split among its culprits.";
    text.family(LEVEL, Type::Gauge, "", help);
    text.row(&[("level", &status.level)], 1);
    let help = "When the watch began, seconds since the epoch.";
    text.family(START, Type::Gauge, "seconds", help);
    text.row(&[], Seconds(status.since_ns));
    text.family(CPUS, Type::Gauge, "", "How many CPUs are watched.");
    text.row(&[], status.cpus.len());
}

fn of_stalls(text: &mut MetricsText<'_>, totals: &Totals) {
    let help = "The lengths of stalls, from the threshold of the watch on.";
    text.family(STALLS, Type::Histogram, "seconds", help);
    let sum = Seconds(totals.stalled_ns);
    text.histogram(&BOUNDS, &totals.lengths, &totals.buckets, sum);
    let help = "Time that culprits took from the watched CPUs. The row 'other' of a kind has culprits without a row.";
    text.family(STOLEN, Type::Counter, "seconds", help);
    for ((kind, culprit), time) in totals.culprits() {
        text.row(&[("kind", kind), ("culprit", culprit)], Seconds(time));
    }
    let help = "Time that the CPU quota of a control group took from it, over all of its CPUs.";
    text.family(THROTTLED, Type::Counter, "seconds", help);
    for (cgroup, time) in totals.throttled() {
        text.row(&[("cgroup", cgroup)], Seconds(time));
    }
}

fn of_losses(text: &mut MetricsText<'_>, status: &WatchStatus) {
    let help = "Records that a source of kernel records lost. Stalls near them have no verdict.";
    text.family(LOST, Type::Counter, "", help);
    for of in &status.lost {
        text.row(&[("source", &of.source)], of.records);
    }
}

fn of_triggers(text: &mut MetricsText<'_>, status: &WatchStatus) {
    let triggers = &status.triggers;
    let help = "Triggers by outcome: taken, joined (a save was under way), too_soon and over_cap (suppressed).";
    text.family(TRIGGERS, Type::Counter, "", help);
    for (outcome, count) in [
        ("taken", triggers.taken),
        ("joined", triggers.joined),
        ("too_soon", triggers.too_soon),
        ("over_cap", triggers.over_cap),
    ] {
        text.row(&[("outcome", outcome)], count);
    }
    text.family(SAVED, Type::Counter, "", "Runs saved.");
    text.row(&[], status.saved_runs);
    let help = "Moments that could not be saved.";
    text.family(FAILED, Type::Counter, "", help);
    text.row(&[], triggers.failed);
}

fn of_history(text: &mut MetricsText<'_>, status: &WatchStatus) {
    let history = &status.history;
    let help = "How far the history reaches back.";
    text.family(HISTORY, Type::Gauge, "seconds", help);
    text.row(&[], Seconds(history.reaches_ns));
    text.family(HISTORY_BYTES, Type::Gauge, "bytes", "Size of the history.");
    text.row(&[], history.bytes);
    let help = "How large the history may become.";
    text.family(HISTORY_LIMIT, Type::Gauge, "bytes", help);
    text.row(&[], history.limit_bytes);
    let help = "Sections of the history dropped because the disk was nearly full.";
    text.family(DROPPED, Type::Counter, "", help);
    text.row(&[], history.dropped_for_room);
}

fn of_uploads(text: &mut MetricsText<'_>, status: &WatchStatus) {
    let Some(upload) = &status.upload else {
        return;
    };
    for (name, help, count) in [
        (
            UPLOADED,
            "Hourly sums sent to the object store.",
            upload.sent_hours,
        ),
        (
            UPLOADED_RUNS,
            "Saved runs sent to the object store.",
            upload.sent_runs,
        ),
        (
            UPLOAD_DROPPED,
            "Hourly sums that made room for newer ones before they were sent.",
            upload.dropped_hours,
        ),
        (
            UPLOAD_FAILED,
            "Tries to send that ended with a problem.",
            upload.problems,
        ),
    ] {
        text.family(name, Type::Counter, "", help);
        text.row(&[], count);
    }
    text.family(
        UPLOADED_BYTES,
        Type::Counter,
        "bytes",
        "Bytes sent to the object store.",
    );
    text.row(&[], upload.sent_bytes);
    let help = "Hourly sums that are complete and not sent.";
    text.family(WAITING, Type::Gauge, "", help);
    text.row(&[], upload.waiting_hours);
    if let Some(problem) = &upload.problem {
        let help = "1 while the last try ended with a problem of this kind.";
        text.family(UPLOAD_PROBLEM, Type::Gauge, "", help);
        text.row(&[("problem", &problem.kind)], 1);
    }
    if let Some(ahead) = upload.clock_ahead_s {
        let help = "By how much this machine's clock is ahead of the object store's.";
        text.family(AHEAD, Type::Gauge, "seconds", help);
        text.row(&[], ahead);
    }
}

fn of_cost(text: &mut MetricsText<'_>, status: &WatchStatus) {
    let help = "CPU time of the watch without its probes.";
    text.family(CPU_TIME, Type::Counter, "seconds", help);
    text.row(&[], Seconds(status.cpu_time_ns));
    text.family(MEMORY, Type::Gauge, "bytes", "Memory of the watch.");
    text.row(&[], status.rss_bytes);
}
