//! Measured claims: each a ratio within one run, or a count, never an absolute time.

mod attach;
mod attribute;
mod decode;
mod drain;
mod list;
mod memory;
mod observer;
mod periods;
mod pipeline;
mod probe;
mod prompt;
mod series;
mod threads;
mod tool;
mod turns;

use crate::consent::Consent;
use crate::packages::{self, BENCH};
use crate::shell;
use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::Value;

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The spin probe beside a bare loop
    Probe,
    /// The ring-buffer decoder
    Decode,
    /// Attribution beside decoding the same pages
    Attribute,
    /// Kernel events from the buffer to the store, and what they cost the helper (root and tracefs)
    Drain,
    /// Stolen time with tracing and without, in turns; what a record takes (root and tracefs)
    Observer,
    /// A pipe ping-pong and a Redis server, followed by `attach` and not (root and tracefs; Debian's linux-perf
    /// and redis-server)
    Attach,
    /// From the end of a recording to the prompt, and reports of a short and a long run (root and tracefs)
    Prompt,
    /// Threads that still wait when a recording of them ends: 1,000, 4,000 and 20,000
    Threads,
    /// Peak memory of a recorder, short and long
    Memory,
    /// The probe with all of the sampler's outputs on, beside the probe with none
    Series,
    /// The pipeline probe beside a bare ping and beside Java's Disruptor
    Pipeline,
    /// A list of stored runs, beside one of runs whose manifest is one file
    List,
    /// The search for periods in 3,000 runs of each process that has none
    Periods,
}

/// Measures, and says what it claims.
type Claims = fn() -> anyhow::Result<Vec<Claim>>;

/// All of them, in the order in which they are run; a new one is a line here, a variant above and a file.
const ALL: [(What, Claims); 13] = [
    (What::Probe, probe::claims),
    (What::Decode, decode::claims),
    (What::Attribute, attribute::claims),
    (What::Drain, drain::claims),
    (What::Observer, observer::claims),
    (What::Attach, attach::claims),
    (What::Prompt, prompt::claims),
    (What::Threads, threads::claims),
    (What::Memory, memory::claims),
    (What::Series, series::claims),
    (What::List, list::claims),
    (What::Periods, periods::claims),
    (What::Pipeline, pipeline::claims),
];

/// One claim and what was measured.
struct Claim {
    what: String,
    measured: String,
    target: String,
    verdict: Verdict,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    Missed,
    /// The machine alone differs from itself by more than the claim allows.
    Noise,
}

impl Verdict {
    fn of(holds: bool) -> Verdict {
        if holds { Verdict::Holds } else { Verdict::Missed }
    }
}

/// Runs the benches and prints each claim; fails when one does not hold.
///
/// What it needs of Debian is installed first, given `consent`; a row without it fails, and the others are run.
pub fn run(what: Option<What>, consent: Consent) -> anyhow::Result<()> {
    let mut claims = Vec::new();
    if matches!(what, None | Some(What::Attach))
        && let Err(missing) = packages::install(&BENCH, consent)
    {
        eprintln!("{missing}");
    }
    for (_, claims_of) in ALL.iter().filter(|(this, _)| what.is_none_or(|what| what == *this)) {
        claims.extend(claims_of()?);
    }
    println!("{:<44} {:>26} {:>18}", "claim", "measured", "target");
    for claim in &claims {
        let mark = match claim.verdict {
            Verdict::Holds => "",
            Verdict::Missed => "  MISSED",
            Verdict::Noise => "  UNDECIDED: too noisy a machine, run it again",
        };
        println!("{:<44} {:>26} {:>18}{mark}", claim.what, claim.measured, claim.target);
    }
    if claims.iter().any(|claim| claim.verdict == Verdict::Missed) {
        bail!("not every claim holds");
    }
    Ok(())
}

/// The last line of a bench's output that is JSON.
fn bench_json(package: &str, bench: &str) -> anyhow::Result<Value> {
    let text = shell::output("cargo", &["bench", "--quiet", "--locked", "-p", package, "--bench", bench])?;
    let line = text.lines().rev().find(|line| line.starts_with('{')).context("the bench printed no JSON")?;
    serde_json::from_str(line).context("the bench printed broken JSON")
}

fn number(json: &Value, field: &str) -> anyhow::Result<f64> {
    json[field].as_f64().with_context(|| format!("the bench's JSON has no number '{field}'"))
}
