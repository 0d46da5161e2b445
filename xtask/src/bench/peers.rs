//! The probes compared with Debian's rt-tests on the same CPU, in alternating turns: how often oslat's loop reads the
//! clock, and how late cyclictest's thread wakes.

use super::claim::Claim;
use super::number;
use super::tool::{Runs, highest_cpu};
use super::turns::{judged, median, noise, ratios, timed};
use crate::{packages, shell};
use anyhow::Context;

/// Turns of each variant, including one warm-up.
const TURNS: usize = 6;
/// Minimum ratio of our reads to oslat's in the same time.
const LEAST_READS: f64 = 1.0;
/// Maximum ratio of our mean lateness to cyclictest's.
const MOST_LATE: f64 = 1.1;

pub(super) fn claims(reads_per_second: f64) -> anyhow::Result<Vec<Claim>> {
    let (reads, late) = ("samples/s to oslat's", "mean lateness to cyclictest's");
    if let [package, ..] = packages::missing(&packages::BENCH_PROBE)[..] {
        let why = format!("{package} is not installed (--yes installs it)");
        return Ok(vec![
            Claim::skipped(reads, format!(">= {LEAST_READS}"), why.clone()),
            Claim::skipped(late, format!("<= {MOST_LATE}"), why),
        ]);
    }
    let runs = Runs::new("bench-peers")?;
    let cpu = highest_cpu()?.to_string();
    let (mut oslats, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let (_, took) = timed(|| {
        for turn in 0..TURNS {
            let oslat = oslat(&cpu)?;
            let pair = if turn % 2 == 0 {
                let own = wakeup(&runs, &cpu)?;
                (own, cyclictest(&cpu)?)
            } else {
                let other = cyclictest(&cpu)?;
                (wakeup(&runs, &cpu)?, other)
            };
            if turn > 0 {
                oslats.push(oslat);
                ours.push(pair.0);
                theirs.push(pair.1);
            }
        }
        Ok(())
    })?;
    let oslat = median(oslats);
    println!(
        "oslat reads the clock {:.1} M times a second, the probe {:.1} M; a wake-up is {:.1} us late for the probe, {:.1} \
         us for cyclictest",
        oslat / 1e6,
        reads_per_second / 1e6,
        median(ours.clone()) / 1e3,
        median(theirs.clone()) / 1e3
    );
    let wakes = Claim::at_most(late, median(ratios(&ours, &theirs)), MOST_LATE);
    let holds = wakes.verdict == super::claim::Verdict::Holds;
    let verdict = judged(holds, MOST_LATE - 1.0, noise(&theirs), (TURNS - 1, took));
    Ok(vec![
        Claim::at_least(reads, reads_per_second / oslat, LEAST_READS),
        Claim { verdict, ..wakes },
    ])
}

/// Reads a second of oslat's loop, from its complete histogram.
fn oslat(cpu: &str) -> anyhow::Result<f64> {
    let text = shell::output("oslat", &["--cpu-list", cpu, "--duration", "1s"])?;
    reads_of(&text).with_context(|| format!("oslat printed {text:?}"))
}

fn reads_of(text: &str) -> Option<f64> {
    let mut reads = 0.0;
    let mut seconds = None;
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or_default();
        let first: Option<f64> = value
            .split_whitespace()
            .next()
            .and_then(|number| number.parse().ok());
        let name = name.trim();
        if name.ends_with("(us)") && name.starts_with(|first: char| first.is_ascii_digit()) {
            reads += first?;
        } else if name == "Duration" {
            seconds = first;
        }
    }
    seconds
        .filter(|seconds| *seconds > 0.0 && reads > 0.0)
        .map(|seconds| reads / seconds)
}

/// Mean lateness of cyclictest's thread, nanoseconds.
fn cyclictest(cpu: &str) -> anyhow::Result<f64> {
    let affinity = format!("-a{cpu}");
    let args = [
        "-t1", &affinity, "-p2", "-i", "1000", "-l", "2000", "-q", "-N", "--laptop",
    ];
    let text = shell::output("cyclictest", &args)?;
    mean_of(&text).with_context(|| format!("cyclictest printed {text:?}"))
}

fn mean_of(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("T:"))?;
    line.split_once("Avg:")?
        .1
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Mean lateness of our probe.
fn wakeup(runs: &Runs, cpu: &str) -> anyhow::Result<f64> {
    let report = runs.record(&[
        "wakeup",
        "-d",
        "2s",
        "--period",
        "1ms",
        "--priority",
        "2",
        "--no-trace",
        "--cpus",
        cpu,
    ])?;
    number(&report["wakeup"]["total"], "mean_ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_they_print_is_read() {
        let oslat = "    001 (us):\t 30 \n    032 (us):\t 10 (including overflows)\n     Minimum:\t 1 (us)\n    \
                     Duration:\t 2.000 (sec)\n";
        assert_eq!(reads_of(oslat), Some(20.0));
        assert_eq!(
            reads_of("    001 (us):\t 30 \n"),
            None,
            "of what time is not said"
        );
        assert_eq!(reads_of(""), None);
        let cyclictest = "# x\nT: 0 ( 9665) P: 2 I:1000 C:   1000 Min:  15353 Act:   33430 Avg:   30069 Max:  802267\n";
        assert_eq!(mean_of(cyclictest), Some(30069.0));
        assert_eq!(mean_of("T: 0"), None);
    }
}
