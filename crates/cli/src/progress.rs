//! One line on stderr while a recording runs, for people only.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jitterscope_model::{CpuSet, Nanos};
use jitterscope_record::{Observer, Progress};
use std::time::{Duration, Instant};

/// How often the line changes.
const EVERY: Duration = Duration::from_millis(250);

/// Shows time left, stalls so far and the worst. It is drawn from the recording's own thread, which
/// keeps off the measured CPUs, and never from a ticker of its own.
pub struct ProgressLine {
    bar: ProgressBar,
    last: Option<Instant>,
    prefix: String,
}

impl ProgressLine {
    /// A line if somebody watches, nothing otherwise.
    pub fn new(quiet: bool) -> ProgressLine {
        let bar = if quiet || !output::someone_watches() {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
        };
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        ProgressLine { bar, last: None, prefix: String::new() }
    }

    /// Wipes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for ProgressLine {
    fn starting(&mut self, measured: &CpuSet, _helpers: &CpuSet) {
        self.prefix = format!("measuring CPU {measured}");
        self.bar.set_message(format!("{}: warming up", self.prefix));
        self.bar.tick();
    }

    fn progress(&mut self, progress: &Progress) {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let whole = |time: Nanos| {
            humantime::format_duration(Duration::from_secs(time.0.div_ceil(1_000_000_000))).to_string()
        };
        let when = match progress.total {
            Nanos::ZERO => format!("{} so far", whole(progress.elapsed)),
            total => format!("{} left", whole(total.saturating_sub(progress.elapsed))),
        };
        self.bar.set_message(format!(
            "{}: {when}, {} stalls, worst {} (Ctrl-C ends early and keeps it)",
            self.prefix, progress.stalls, progress.worst,
        ));
        self.bar.tick();
    }
}
