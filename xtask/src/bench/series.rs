//! The probe with all outputs of the sampler, compared with the probe without.

use super::claim::{Claim, Verdict};
use super::turns::timed;
use super::{bench_json, number};
use anyhow::Context;
use serde_json::Value;
use std::time::Duration;

/// Minimum ratio of reads a second with outputs to those without.
const LEAST: f64 = 0.97;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let (json, took) = timed(|| bench_json("jitterscope-recording", "series", &[]))?;
    let of = |field: &str| Measured::read(&json, field);
    let (outputs, pairs) = (number(&json, "outputs")?, number(&json, "pairs")?);
    println!(
        "{pairs:.0} turns with {outputs:.0} outputs, each beside one with none: median [99 % interval]"
    );
    println!(
        "{:<16} {:>30} {:>30} {:>30}",
        "", "with outputs", "with none", "difference"
    );
    for (what, field) in [
        ("stolen, %", "stolen_percent"),
        ("stalls a second", "stalls_per_second"),
    ] {
        let cells = ["", "bare_", "more_"].map(|prefix| of(&format!("{prefix}{field}")));
        let [with, bare, more] = cells;
        println!(
            "{what:<16} {:>30} {:>30} {:>30}",
            with?.text(),
            bare?.text(),
            more?.text()
        );
    }
    let noise = of("bare_samples_ratio")?;
    println!(
        "turns with none, one to the next (noise): samples/s {}",
        noise.text()
    );
    for (what, field) in [
        ("stolen, %", "stolen_percent"),
        ("stalls a second", "stalls_per_second"),
    ] {
        println!("{:>51} {}", what, of(&format!("bare_more_{field}"))?.text());
    }
    println!();
    let at_least = |what: &str, field: &str| {
        let ratio = of(field)?;
        Ok::<_, anyhow::Error>(Claim {
            what: what.into(),
            measured: ratio.text(),
            target: format!(">= {LEAST}"),
            // If the machine's own turns vary more than that, they cannot show a loss.
            verdict: match ratio.median >= LEAST {
                true => Verdict::Holds,
                false if ratio.high >= LEAST && noise.low < LEAST => ratio.hides(1.0 - LEAST, took),
                false => Verdict::Missed,
            },
        })
    };
    let no_more = |what: &str, field: &str| {
        let (more, noise) = (of(field)?, of(&format!("bare_{field}"))?);
        Ok::<_, anyhow::Error>(Claim {
            what: what.into(),
            measured: more.text(),
            target: "0 within".into(),
            // If other threads need CPU time, the work of the outputs displaces some of theirs to this CPU.
            verdict: match more.low <= 0.0 {
                true => Verdict::Holds,
                false if more.median <= noise.high => more.hides(more.median, took),
                false => Verdict::Missed,
            },
        })
    };
    Ok(vec![
        at_least("samples/s with outputs to none", "samples_ratio")?,
        at_least("the same outside stalls", "own_samples_ratio")?,
        no_more("more stolen with outputs, %", "more_stolen_percent")?,
        no_more(
            "more stalls a second with outputs",
            "more_stalls_per_second",
        )?,
    ])
}

/// A median with its confidence interval.
struct Measured {
    median: f64,
    low: f64,
    high: f64,
}

impl Measured {
    fn read(json: &Value, field: &str) -> anyhow::Result<Measured> {
        let json = json
            .get(field)
            .with_context(|| format!("the bench's JSON has no '{field}'"))?;
        Ok(Measured {
            median: number(json, "median")?,
            low: number(json, "low")?,
            high: number(json, "high")?,
        })
    }

    /// The noise hides `effect`: estimates the time until the interval is no wider than that. Its width falls with the
    /// root of the number of turns.
    fn hides(&self, effect: f64, took: Duration) -> Verdict {
        let more = ((self.high - self.low) / effect.abs()).powi(2).max(1.0);
        let for_about = Duration::try_from_secs_f64(took.as_secs_f64() * more);
        Verdict::Noise {
            for_about: for_about.unwrap_or(Duration::MAX),
        }
    }

    fn text(&self) -> String {
        format!("{:.3} [{:.3}, {:.3}]", self.median, self.low, self.high)
    }
}
