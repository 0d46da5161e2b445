//! Compares with the kernel's own wake-up tracer: it runs a thread that wakes every millisecond, and `attach` follows
//! that thread.
//!
//! The time from the thread's timer to its running, minus the lateness of the timer itself, is a wait in our report,
//! which begins with that timer; and `record wakeup` on the same CPU names that thread. The tracer reads the clock some
//! time after its thread starts to run. The time between the switch to the thread and that read, in an emulator
//! sometimes longer than the wait itself, is not part of the wait, and is subtracted with the tracer's own switches.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::osnoise::{SEEN_FROM, Taken, agrees, followed, ours, overlap, stamp};
use super::steps::{self, culprits, stalls_of};
use std::collections::BTreeMap;

/// The tracer's records use the same clock as ours.
const SCRIPT: &str = r#"
judge=/sys/kernel/tracing/instances/judge
mkdir $judge
echo mono_raw >$judge/trace_clock
echo 20000 >$judge/buffer_size_kb
echo 1 >/sys/kernel/tracing/osnoise/cpus
echo 'next_comm ~ "timerlat/*"' >$judge/events/sched/sched_switch/filter
echo 1 >$judge/events/sched/sched_switch/enable
echo timerlat >$judge/current_tracer
step attach jitterscope attach --comm timerlat/1 -d 4s --threshold 5us -q --json
echo 0 >$judge/tracing_on
cat $judge/trace >/out/judge
step export jitterscope export latest --to csv:///out/stalls.csv
echo 1 >$judge/tracing_on
step wakeup jitterscope record wakeup --cpus 1 -d 2s -q --json
echo nop >$judge/current_tracer
echo 0 >$judge/events/sched/sched_switch/enable
rmdir $judge
"#;

pub fn judge(finding: &mut Finding) -> anyhow::Result<()> {
    let steps = steps::run(finding, "guest", &Guest::new(Kernel::Rt), SCRIPT)?;
    steps.ended(finding, &[("attach", 0), ("export", 0), ("wakeup", 0)]);
    let (from, until) = followed(&steps.json("attach")?)?;
    let within = |taken: &&Taken| taken.start > from + 5_000_000 && taken.end + 5_000_000 < until;
    let (theirs, ours) = (waits(&steps.file("judge")), ours(&steps)?);
    let (mut all, mut found) = (0, 0);
    for wait in theirs
        .iter()
        .filter(within)
        .filter(|wait| wait.length >= SEEN_FROM)
    {
        all += 1;
        let same =
            |stall: &Taken| overlap(stall, wait) && (stall.end - stall.start) * 2 >= wait.length;
        found += usize::from(ours.iter().any(same));
    }
    finding.check(
        all >= 20,
        format!("the tracer has {all} wake-ups to judge by"),
    );
    finding.check(
        agrees(all, found),
        format!("{found} of {all} of the tracer's waits are ours, too"),
    );
    // The tracer's own timer wakes the thread, which delays other wake-ups on its CPU.
    for (step, kind, name) in [
        ("attach", "timer", "timerlat_irq"),
        ("wakeup", "thread", "timerlat/1"),
    ] {
        let report = steps.json(step)?;
        let (count, among) = (stalls_of(&report, kind, name), culprits(&report));
        finding.check(
            count > 0,
            format!("{step} names {kind} {name} ({count}) among {among:?}"),
        );
    }
    Ok(())
}

/// For each wake-up, the time from the timer interrupt's check of its lateness to the switch to the thread; or to the
/// thread's own clock read, if there was no switch.
fn waits(text: &str) -> Vec<Taken> {
    let mut late = BTreeMap::new();
    let mut waits = Vec::new();
    let mut ran = None;
    for line in text.lines() {
        if let Some(at) = switch(line) {
            ran.get_or_insert(at);
        }
        let Some((number, context, latency, end)) = record(line) else {
            continue;
        };
        match context {
            "irq" => {
                late.insert(number, latency);
                ran = None;
            }
            "thread" => {
                let Some(length) = late
                    .remove(&number)
                    .and_then(|late| latency.checked_sub(late))
                else {
                    continue;
                };
                let start = end.saturating_sub(length);
                let end = ran.map_or(end, |ran| ran.clamp(start, end));
                waits.push(Taken {
                    class: context.to_owned(),
                    start,
                    end,
                    length: end - start,
                });
            }
            _ => {}
        }
    }
    waits
}

/// Parses a line such as `timerlat/1-129 [001] ....... 54.029339: #1 context thread timer_latency 11700 ns`: the
/// wake-up's number, the context, the nanoseconds since the timer was due, and the time of the line.
fn record(line: &str) -> Option<(u64, &str, u64, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "context")?;
    let number = words
        .get(at.checked_sub(1)?)?
        .strip_prefix('#')?
        .parse()
        .ok()?;
    let end = stamp(words.get(at.checked_sub(2)?)?)?;
    let latency = words.iter().position(|word| *word == "timer_latency")?;
    Some((
        number,
        words.get(at + 1)?,
        words.get(latency + 1)?.parse().ok()?,
        end,
    ))
}

/// The time of the switch to the thread, from a line such as `<idle>-0 [001] d..2. 54.029330: sched_switch:
/// prev_comm=... ==> next_comm=timerlat/1 next_pid=867 next_prio=4`. The event's filter excludes other threads.
fn switch(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "sched_switch:")?;
    stamp(words.get(at.checked_sub(1)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_what_the_thread_took_beyond_its_timer() {
        let text = "\
#                                _-----=> irqs-off
          <idle>-0     [001] d.h1...    54.029328: #1     context    irq timer_latency       932 ns
      timerlat/1-867   [001] .......    54.029339: #1     context thread timer_latency     11700 ns
      timerlat/1-867   [001] .......    54.030339: #2     context thread timer_latency      9000 ns
";
        let found = waits(text);
        assert_eq!(found.len(), 1, "the second has no timer");
        let switched = text.replace(
            "      timerlat/1-867   [001] .......    54.029339: #1",
            "          <idle>-0     [001] d..2...    54.029330: sched_switch: prev_comm=swapper/1 ==> next_comm=timerlat/1\n      timerlat/1-867   [001] .......    54.029339: #1",
        );
        let less = &waits(&switched)[0];
        assert_eq!(
            (less.start, less.end),
            (found[0].start, 54_029_330_000),
            "what follows is no wait"
        );
        assert_eq!((found[0].length, found[0].end), (10_768, 54_029_339_000));
        assert_eq!(found[0].start, found[0].end - 10_768);
    }
}
