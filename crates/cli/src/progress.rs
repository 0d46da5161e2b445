//! One line on stderr during a recording, only for people.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jitterscope_model::{ClockKind, CpuSet, Nanos, PipelineRole, ProbeKind, SinkError, visible};
use jitterscope_platform::clock;
use jitterscope_recording::{Observer, Progress, Step};
use jitterscope_view::pipeline::progress as lines;
use std::path::Path;
use std::time::{Duration, Instant};

/// The possible actions, in several lengths.
const HINTS: [&str; 3] = [
    " (Ctrl-C ends early and keeps it)",
    " (Ctrl-C keeps it)",
    "",
];

/// The update interval of the line.
const EVERY: Duration = Duration::from_millis(250);

/// Shows the time left, the stalls so far (by their name in such a recording) and the worst. The recording's own thread
/// draws it, which keeps off the measured CPUs; there is no ticker thread.
pub struct ProgressLine {
    bar: ProgressBar,
    last: Option<Instant>,
    prefix: String,
    stalls: &'static str,
    quiet: bool,
    /// The possible actions, in several lengths.
    hints: &'static [&'static str],
    /// Whether recorded time passes, and not real time.
    of_file: bool,
}

impl ProgressLine {
    /// A line on a terminal, nothing otherwise.
    pub fn new(quiet: bool, probe: ProbeKind) -> ProgressLine {
        let bar = if quiet || !output::someone_watches() {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
        };
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        let stalls = match probe {
            ProbeKind::Spin => "stalls",
            ProbeKind::Wakeup => "late wake-ups",
            ProbeKind::Pipeline => "slow messages",
            ProbeKind::Attach => "waits",
            ProbeKind::Passive => "interruptions",
        };
        ProgressLine {
            bar,
            last: None,
            prefix: String::new(),
            stalls,
            quiet,
            hints: &HINTS,
            of_file: false,
        }
    }

    /// A line for reading a file. An interrupted import keeps nothing.
    pub fn importing(quiet: bool, probe: ProbeKind, file: &Path) -> ProgressLine {
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        ProgressLine {
            prefix: format!("reading {}", visible(&file)),
            hints: &[" (Ctrl-C ends it)", ""],
            of_file: true,
            ..ProgressLine::new(quiet, probe)
        }
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A text with the first of its possible ASCII ends that fits into `columns`.
fn longest_that_fits(text: &str, ends: &[&str], columns: usize) -> String {
    let end = ends.iter().find(|end| text.len() + end.len() <= columns);
    format!("{text}{}", end.unwrap_or(&""))
}

impl Observer for ProgressLine {
    fn starting(&mut self, measured: &CpuSet, _helpers: &CpuSet) {
        self.prefix = format!("measuring CPU {measured}");
        self.bar.set_message(format!("{}: warming up", self.prefix));
        self.bar.tick();
    }

    fn awaiting(&mut self, name: &str) {
        let text = format!("waiting for a thread called '{name}' (Ctrl-C ends it)");
        self.bar.set_message(visible(&text).into_owned());
        self.bar.tick();
    }

    fn progress(&mut self, progress: &Progress) {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let whole = |time: Nanos| {
            humantime::format_duration(Duration::from_secs(time.0.div_ceil(1_000_000_000)))
                .to_string()
        };
        let when = match progress.total {
            total if self.of_file => format!("{} of {total}", progress.elapsed),
            Nanos::ZERO => format!("{} so far", whole(progress.elapsed)),
            total => format!("{} left", whole(total.saturating_sub(progress.elapsed))),
        };
        let found = format!(
            "{}: {when}, {} {}, worst {}",
            self.prefix, progress.stalls, self.stalls, progress.worst
        );
        self.bar
            .set_message(longest_that_fits(&found, self.hints, output::talk_width()));
        self.bar.tick();
    }

    /// perf-workshop's lines, on any output.
    fn step(&mut self, step: Step<'_>) {
        if self.quiet {
            return;
        }
        let now = clock::read_all(ClockKind::MonotonicRaw).realtime_ns;
        self.bar.suspend(|| match step {
            Step::Starting => output::talk(lines::starting(now)),
            Step::Threads(threads) => {
                // The producers last, as the ancestor's script expects them.
                let (producers, consumers): (Vec<_>, Vec<_>) = threads
                    .iter()
                    .copied()
                    .partition(|(role, _)| *role == PipelineRole::Producer);
                for (role, thread) in consumers.into_iter().chain(producers) {
                    output::talk(lines::thread_id(role, thread.tid));
                }
            }
            Step::WarmUpComplete => output::talk(lines::warm(now)),
            Step::Pausing(time) => output::talk(lines::pausing(time)),
            Step::Executing => output::talk(lines::executing(now)),
        });
        if step == Step::Executing {
            self.prefix = "measuring the pipeline".into();
        }
    }

    fn output_failed(&mut self, output: &str, why: &SinkError) {
        self.bar
            .suspend(|| output::talk(format_args!("{output} takes no more rows: {why}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_less_before_it_is_cut() {
        let measured = "measuring CPU 0-127: 59m 59s left, 1234567 stalls, worst 12.3 ms";
        assert_eq!(
            longest_that_fits(measured, &HINTS, 120),
            format!("{measured}{}", HINTS[0])
        );
        assert_eq!(
            longest_that_fits(measured, &HINTS, 85),
            format!("{measured}{}", HINTS[1])
        );
        assert_eq!(longest_that_fits(measured, &HINTS, 80), measured);
    }
}
