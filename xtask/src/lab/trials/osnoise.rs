//! Compares with the kernel's own noise tracer: it runs a measuring thread, and `attach` follows that thread. Both must
//! agree: each interruption in the tracer's raw records is in our report, and each thread in our report is in the
//! tracer's.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, Steps};
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;

/// Interruptions from this length (ns) on must be in both. Our threshold is a quarter of it, and the two tools place
/// the ends of an interruption some microseconds apart.
pub(super) const SEEN_FROM: u64 = 20_000;

/// The tracer's records use the same clock as ours. Its thread is followed while it measures.
const SCRIPT: &str = r#"
judge=/sys/kernel/tracing/instances/judge
mkdir $judge
echo mono_raw >$judge/trace_clock
echo 20000 >$judge/buffer_size_kb
echo 1 >/sys/kernel/tracing/osnoise/cpus
for event in irq_noise softirq_noise thread_noise nmi_noise sample_threshold; do
    echo 1 >$judge/events/osnoise/$event/enable
done
echo 20 >/sys/kernel/tracing/tracing_thresh
echo osnoise >$judge/current_tracer
step attach jitterscope attach --comm osnoise/1 -d 4s --threshold 5us -q --json
echo 0 >$judge/tracing_on
cat $judge/trace >/out/judge
echo nop >$judge/current_tracer
rmdir $judge
step export jitterscope export latest --to csv:///out/stalls.csv
"#;

/// What took the thread's CPU, and its start and end in nanoseconds of `CLOCK_MONOTONIC_RAW`.
pub(super) struct Taken {
    /// `irq_noise`, or the kind of our culprit.
    pub(super) class: String,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The culprit's time, which may be less than the whole.
    pub(super) length: u64,
}

pub fn judge(finding: &mut Finding) -> anyhow::Result<()> {
    let steps = steps::run(finding, "guest", &Guest::new(Kernel::Rt), SCRIPT)?;
    steps.ended(finding, &[("attach", 0), ("export", 0)]);
    let report = steps.json("attach")?;
    let (from, until) = followed(&report)?;
    let ours = ours(&steps)?;
    // An interruption at either end of the measurement is reported by only one of them.
    let within = |taken: &&Taken| taken.start > from + 5_000_000 && taken.end + 5_000_000 < until;
    let theirs: Vec<Taken> = steps.file("judge").lines().filter_map(record).collect();
    let mut classes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for record in theirs
        .iter()
        .filter(within)
        .filter(|record| record.length >= SEEN_FROM)
    {
        let found = ours
            .iter()
            .any(|stall| overlap(stall, record) && answers(&record.class, &stall.class));
        let class = classes.entry(&record.class).or_default();
        class.0 += 1;
        class.1 += usize::from(found);
    }
    let total: usize = classes.values().map(|(all, _)| all).sum();
    finding.check(
        total >= 20,
        format!("the tracer has {total} records to judge by"),
    );
    for (class, (all, found)) in &classes {
        finding.check(
            agrees(*all, *found),
            format!("{class}: {found} of {all} of the tracer's are ours, too"),
        );
    }
    let mut threads = (0, 0);
    for stall in ours
        .iter()
        .filter(within)
        .filter(|stall| stall.class == "thread" && stall.length >= SEEN_FROM)
    {
        threads.0 += 1;
        let noise = |record: &Taken| record.class == "thread_noise" && overlap(stall, record);
        threads.1 += usize::from(theirs.iter().any(noise));
    }
    let message = format!(
        "threads: {} of {} of ours are the tracer's, too",
        threads.1, threads.0
    );
    finding.check(threads.0 > 0 && agrees(threads.0, threads.1), message);
    Ok(())
}

/// The start and end of following the first thread.
pub(super) fn followed(report: &Value) -> anyhow::Result<(u64, u64)> {
    let thread = report["threads"]
        .as_array()
        .and_then(|threads| threads.first())
        .context("no thread was followed")?;
    let (from, until) = (
        thread["from_ticks"].as_u64(),
        thread["until_ticks"].as_u64(),
    );
    Ok((
        from.context("no from_ticks")?,
        until.context("no until_ticks")?,
    ))
}

/// Within 5% or 5.
pub(super) fn agrees(all: usize, found: usize) -> bool {
    all - found <= 5.max(all / 20)
}

pub(super) fn overlap(a: &Taken, b: &Taken) -> bool {
    a.start < b.end && b.start < a.end
}

/// Whether one of our culprits matches the tracer's class. For a thread that runs softirqs or timers for other threads,
/// we name what it ran.
fn answers(class: &str, kind: &str) -> bool {
    match class {
        "irq_noise" => ["timer", "irq", "ipi", "vector"].contains(&kind),
        "softirq_noise" => ["softirq", "timer"].contains(&kind),
        "nmi_noise" => kind == "nmi",
        "sample_threshold" => true,
        _ => ["thread", "kworker", "softirq", "timer", "switch"].contains(&kind),
    }
}

/// Parses a line such as `osnoise/1-129 [001] d.h.. 20.593701: irq_noise: local_timer:236 start 20.59 duration 31207
/// ns`. The stamp is that of its end; `start` is in another clock. A sample without interference was taken by the host.
fn record(line: &str) -> Option<Taken> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| word.ends_with("_noise:") || *word == "sample_threshold:")?;
    let class = words[at].trim_end_matches(':').to_owned();
    let end = stamp(words.get(at.checked_sub(1)?)?)?;
    let number = |name: &str| {
        words
            .iter()
            .position(|word| *word == name)
            .and_then(|at| words.get(at + 1)?.parse().ok())
    };
    if number("interference") == Some(0) {
        return None;
    }
    let length: u64 = number("duration")?;
    Some(Taken {
        class,
        start: end.saturating_sub(length),
        end,
        length,
    })
}

/// Parses a time such as `20.593701:` to nanoseconds.
pub(super) fn stamp(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.trim_end_matches(':').split_once('.')?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction)
}

/// The rows of our stalls: one for each culprit.
pub(super) fn ours(steps: &Steps) -> anyhow::Result<Vec<Taken>> {
    let text = steps.file("stalls.csv");
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .context("nothing was exported")?
        .split(',')
        .collect();
    let column = |name: &str| {
        names
            .iter()
            .position(|column| *column == name)
            .with_context(|| format!("no column {name}"))
    };
    let (start, end) = (column("start_ticks")?, column("end_ticks")?);
    let (kind, length) = (column("culprit_kind")?, column("culprit_ns")?);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        let class = (*fields.get(kind)?).to_owned();
        Some(Taken {
            class,
            start: number(start)?,
            end: number(end)?,
            length: number(length)?,
        })
    };
    Ok(lines.filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tracers_lines_are_read() {
        let line = "  osnoise/1-129  [001] d.h1...  20.593701: irq_noise: local_timer:236 start 19.5 duration 31207 ns";
        let record = record(line).unwrap();
        assert_eq!(
            (record.class.as_str(), record.length),
            ("irq_noise", 31_207)
        );
        assert_eq!((record.start, record.end), (20_593_669_793, 20_593_701_000));
        let by_host = "osnoise/1-129 [001] ...... 21.000001: sample_threshold: start 20.9 duration 90000 ns interference 0";
        assert!(super::record(by_host).is_none());
        assert!(super::record("# tracer: osnoise").is_none());
    }
}
