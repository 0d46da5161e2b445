//! Measured claims. Each is a ratio within one run, or a count, never an absolute time.

mod attach;
mod attribute;
mod claim;
mod decode;
mod drain;
mod floor;
mod load;
mod memory;
mod observer;
mod peers;
mod periods;
mod pipeline;
mod probe;
mod report;
mod senders;
mod series;
mod table;
mod threads;
mod tool;
mod turns;

use crate::consent::Consent;
use crate::packages::{self, BENCH, BENCH_PROBE};
use crate::{program, shell};
use anyhow::{Context, bail};
use claim::Claim;
use clap::ValueEnum;
use serde_json::Value;
use std::time::Instant;
use table::Ended;
pub use threads::crowd;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The probes beside a bare loop, and beside oslat and cyclictest (Debian's rt-tests)
    Probe,
    /// The ring-buffer decoder
    Decode,
    /// Attribution beside decoding the same pages
    Attribute,
    /// Kernel events from the buffer to the store, and what they cost the helper (root and tracefs)
    Drain,
    /// What tracepoints that are on cost a CPU of which nothing is recorded, by class (root and tracefs)
    Floor,
    /// Of how many stalls by a woken thread the waker is known, however often it is woken (root and tracefs)
    Senders,
    /// Stolen time with tracing and without, in turns, and the speed of another CPU meanwhile (root and tracefs)
    Observer,
    /// A pipe ping-pong and a Redis server, followed by `attach` and not (root and tracefs; Debian's linux-perf
    /// and redis-server)
    Attach,
    /// `attach` to 1,000, 4,000 and 20,000 threads, and the end of those that still wait (root and tracefs)
    Threads,
    /// A recording of a second, the end of a long one, and reports of both (root and tracefs)
    Report,
    /// Peak memory of a recorder, short and long, and of an hour that is made up (root and tracefs)
    Memory,
    /// The probe with all of the sampler's outputs on, beside the probe with none
    Series,
    /// The search for periods in 3,000 runs of each process that has none
    Periods,
    /// The pipeline probe with kernel events and without, beside a bare ping and Java's Disruptor
    Pipeline,
}

/// Measures and returns the claims.
type Claims = fn() -> anyhow::Result<Vec<Claim>>;

/// All of them in execution order; a new one is a line here, a variant above and a file.
const ALL: [(What, Claims); 14] = [
    (What::Probe, probe::claims),
    (What::Decode, decode::claims),
    (What::Attribute, attribute::claims),
    (What::Drain, drain::claims),
    (What::Floor, floor::claims),
    (What::Senders, senders::claims),
    (What::Observer, observer::claims),
    (What::Attach, attach::claims),
    (What::Threads, threads::claims),
    (What::Report, report::claims),
    (What::Memory, memory::claims),
    (What::Series, series::claims),
    (What::Periods, periods::claims),
    (What::Pipeline, pipeline::claims),
];

impl What {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Runs the benches and prints all claims in one table; fails if one does not hold or cannot be measured.
///
/// First installs the required Debian packages, given `consent`. The table also shows a failed row, and the others
/// still run.
pub fn run(what: Option<What>, consent: Consent) -> anyhow::Result<()> {
    for (row, wanted) in [(What::Attach, &BENCH[..]), (What::Probe, &BENCH_PROBE)] {
        if what.is_none_or(|what| what == row)
            && let Err(missing) = packages::install(wanted, consent)
        {
            eprintln!("{missing}");
        }
    }
    let mut rows = Vec::new();
    for (this, claims_of) in ALL
        .iter()
        .filter(|(this, _)| what.is_none_or(|what| what == *this))
    {
        let (row, began) = (this.name(), Instant::now());
        eprintln!("== {row}");
        let claims = claims_of().map_err(|error| format!("{error:#}"));
        if let Err(why) = &claims {
            eprintln!("{row} failed: {why}");
        }
        eprintln!("== {row}: {:.0} s", began.elapsed().as_secs_f64());
        rows.push(Ended { row, claims });
    }
    print!("\n{}", table::table(&rows));
    match rows.iter().filter(|row| row.is_missed()).count() {
        0 => Ok(()),
        missed => bail!("not every claim holds in {missed} of {} rows", rows.len()),
    }
}

/// The last JSON line of a bench's output.
pub fn bench_json(package: &str, bench: &str, arguments: &[&str]) -> anyhow::Result<Value> {
    let profile = ["bench", "--quiet", "--profile", program::SHIPPED];
    let cargo = [
        &profile[..],
        &["--locked", "-p", package, "--bench", bench, "--"],
    ]
    .concat();
    let text = shell::output("cargo", &[&cargo[..], arguments].concat())?;
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .context("the bench printed no JSON")?;
    serde_json::from_str(line).context("the bench printed broken JSON")
}

fn number(json: &Value, field: &str) -> anyhow::Result<f64> {
    json[field]
        .as_f64()
        .with_context(|| format!("the bench's JSON has no number '{field}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_can_be_named_is_run() {
        let all: Vec<What> = ALL.iter().map(|(what, _)| *what).collect();
        for what in What::value_variants() {
            assert_eq!(all.iter().filter(|one| *one == what).count(), 1, "{what:?}");
        }
    }
}
