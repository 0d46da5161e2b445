//! Measured claims: each a ratio within one run, or a count, never an absolute time.

mod pipeline;

use crate::shell;
use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::Value;

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The spin probe beside a bare loop, and its memory over time
    Probe,
    /// The ring-buffer decoder
    Decode,
    /// Attribution beside decoding the same pages
    Attribute,
    /// Kernel events from the buffer to the store, and what they cost the helper (root and tracefs)
    Drain,
    /// The probe with all of the sampler's outputs on, beside the probe with none
    Series,
    /// The pipeline probe beside a bare ping and beside Java's Disruptor
    Pipeline,
    /// A list of stored runs, beside one of runs whose manifest is one file
    List,
}

/// Decoding with attribution takes at most so many times what decoding alone takes.
const MOST_ATTRIBUTION: f64 = 12.0;
/// Allocations of attribution an event.
const MOST_ALLOCATIONS: f64 = 1.5;
/// Events a second that one CPU's drain must take in without a loss.
const LEAST_DRAINED: f64 = 50_000.0;

/// One claim and what was measured.
struct Claim {
    what: String,
    measured: String,
    target: String,
    verdict: Verdict,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
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
pub fn run(what: Option<What>) -> anyhow::Result<()> {
    let mut claims = Vec::new();
    if what.is_none_or(|w| w == What::Probe) {
        claims.extend(probe()?);
    }
    if what.is_none_or(|w| w == What::Decode) {
        claims.extend(decode()?);
    }
    if what.is_none_or(|w| w == What::Attribute) {
        claims.extend(attribute()?);
    }
    if what.is_none_or(|w| w == What::Drain) {
        claims.extend(drain()?);
    }
    if what.is_none_or(|w| w == What::Series) {
        claims.extend(series()?);
    }
    if what.is_none_or(|w| w == What::List) {
        claims.extend(list()?);
    }
    if what.is_none_or(|w| w == What::Pipeline) {
        claims.extend(pipeline::claims()?);
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

fn probe() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-probe", "spin")?;
    let (rate, bare) = (number(&json, "samples_per_sec")?, number(&json, "bare_samples_per_sec")?);
    let ratio = number(&json, "samples_ratio")?;
    let coverage = number(&json, "coverage")?;
    let (floor, bare_floor) = (number(&json, "floor_ticks")?, number(&json, "bare_floor_ticks")?);
    let mut claims = vec![
        Claim {
            what: "coverage of wall time".into(),
            measured: format!("{:.4} %", coverage * 100.0),
            target: ">= 99.99 %".into(),
            verdict: Verdict::of(coverage >= 0.9999),
        },
        Claim {
            what: format!("samples/s, {:.1} M to {:.1} M of a bare loop", rate / 1e6, bare / 1e6),
            measured: format!("{ratio:.3}"),
            target: ">= 0.9".into(),
            verdict: Verdict::of(ratio >= 0.9),
        },
        Claim {
            what: format!("floor in ticks, bare loop {bare_floor}"),
            measured: format!("{floor}"),
            target: format!("<= {}", bare_floor + 2.0),
            verdict: Verdict::of(floor <= bare_floor + 2.0),
        },
    ];
    claims.extend(memory()?);
    Ok(claims)
}

/// Peak resident memory of a whole recorder of one CPU, short and long.
fn memory() -> anyhow::Result<Vec<Claim>> {
    shell::run("cargo", &["build", "--quiet", "--release", "--locked", "-p", "jitterscope"])?;
    let runs = shell::root().join("target/bench-runs");
    let mut claims = Vec::new();
    let mut peaks = Vec::new();
    for duration in ["5s", "40s"] {
        let runs = runs.to_string_lossy();
        let program = shell::root().join("target/release/jitterscope");
        let args = ["record", "--quiet", "--json", "--runs", &runs, "--duration", duration];
        let json: Value = serde_json::from_str(&shell::output(&program.to_string_lossy(), &args)?)?;
        let path = json["run"]["path"].as_str().context("the report names no run")?;
        let manifest = std::fs::read_to_string(std::path::Path::new(path).join("details.json"))?;
        let manifest: Value = serde_json::from_str(&manifest)?;
        let peak = number(&manifest["self_noise"], "peak_rss_bytes")? / f64::from(1 << 20);
        peaks.push(peak);
        claims.push(Claim {
            what: format!("peak memory of the recorder, one CPU, {duration}"),
            measured: format!("{peak:.1} MiB"),
            target: "< 16 MiB".into(),
            verdict: Verdict::of(peak < 16.0),
        });
    }
    std::fs::remove_dir_all(&runs).context("the bench's runs cannot be removed")?;
    Ok(claims)
}

fn decode() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-trace", "decode")?;
    let rate = number(&json, "events_per_second")?;
    Ok(vec![Claim {
        what: "events decoded a second on one core".into(),
        measured: format!("{:.1} M", rate / 1e6),
        target: ">= 5 M".into(),
        verdict: Verdict::of(rate >= 5e6),
    }])
}

fn list() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-store", "list")?;
    let of = |field: &str| number(&json, field);
    println!(
        "listing {:.0} runs: {:.4} ms a run of {:.0} bytes whole, {:.4} ms by its head of {:.0} bytes",
        of("runs")?,
        of("whole_ms_per_run")?,
        of("manifest_bytes")?,
        of("head_ms_per_run")?,
        of("head_bytes")?,
    );
    let ratio = of("ratio")?;
    Ok(vec![Claim {
        what: "a run in a list, whole to head".into(),
        measured: format!("{ratio:.1}"),
        target: ">= 10".into(),
        verdict: Verdict::of(ratio >= 10.0),
    }])
}

fn attribute() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-record", "attribute")?;
    let of = |field: &str| number(&json, field);
    println!(
        "attribution of {} stalls of {} events: {:.0} ns an event beside {:.0} of decoding, {:.0} ns and {:.1} \
         allocations a stall",
        of("stalls")?,
        of("events")?,
        of("attribute_ns_per_event")?,
        of("decode_ns_per_event")?,
        of("attribute_ns_per_stall")?,
        of("allocations_per_stall")?,
    );
    let (ratio, allocations) = (of("ratio")?, of("allocations_per_event")?);
    Ok(vec![
        Claim {
            what: "decoding and attribution to decoding alone".into(),
            measured: format!("{ratio:.2}"),
            target: format!("<= {MOST_ATTRIBUTION}"),
            verdict: Verdict::of(ratio <= MOST_ATTRIBUTION),
        },
        Claim {
            what: "allocations of attribution an event".into(),
            measured: format!("{allocations:.2}"),
            target: format!("<= {MOST_ALLOCATIONS}"),
            verdict: Verdict::of(allocations <= MOST_ALLOCATIONS),
        },
    ])
}

fn drain() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-record", "drain")?;
    println!(
        "{:>9} {:>14} {:>10} {:>12} {:>16}",
        "sleepers", "events/s", "lost", "stalls", "helper ns/event"
    );
    for step in json["steps"].as_array().context("the bench's JSON has no steps")? {
        let of = |field: &str| number(step, field);
        let each = of("helper_ns")? / of("events")?.max(1.0);
        let (sleepers, rate, lost) = (of("sleepers")?, of("events_per_second")?, of("lost")?);
        println!("{sleepers:>9} {rate:>14.0} {lost:>10} {:>12} {each:>16.0}", of("stalls")?);
    }
    let (rate, cost) =
        (number(&json, "events_per_second_without_loss")?, number(&json, "helper_ns_per_event")?);
    println!(
        "each event above those of a quiet CPU costs the helper {cost:.0} ns, its stall and its row included"
    );
    Ok(vec![Claim {
        what: "events a second of one CPU without a loss".into(),
        measured: format!("{:.0} k", rate / 1e3),
        target: format!(">= {:.0} k", LEAST_DRAINED / 1e3),
        verdict: Verdict::of(rate >= LEAST_DRAINED),
    }])
}

fn series() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-record", "series")?;
    let of = |field: &str| Measured::read(&json, field);
    let (outputs, pairs) = (number(&json, "outputs")?, number(&json, "pairs")?);
    println!("{pairs:.0} turns with {outputs:.0} outputs, each beside one with none: median [99 % interval]");
    println!("{:<16} {:>30} {:>30} {:>30}", "", "with outputs", "with none", "difference");
    for (what, field) in [("stolen, %", "stolen_percent"), ("stalls a second", "stalls_per_second")] {
        let cells = ["", "bare_", "more_"].map(|prefix| of(&format!("{prefix}{field}")));
        let [with, bare, more] = cells;
        println!("{what:<16} {:>30} {:>30} {:>30}", with?.text(), bare?.text(), more?.text());
    }
    let noise = of("bare_samples_ratio")?;
    println!("turns with none, one to the next (noise): samples/s {}", noise.text());
    for (what, field) in [("stolen, %", "stolen_percent"), ("stalls a second", "stalls_per_second")] {
        println!("{:>51} {}", what, of(&format!("bare_more_{field}"))?.text());
    }
    println!();
    let at_least = |what: &str, field: &str| {
        let ratio = of(field)?;
        Ok::<_, anyhow::Error>(Claim {
            what: what.into(),
            measured: ratio.text(),
            target: ">= 0.97".into(),
            // A machine whose turns differ more than that among themselves cannot show a loss.
            verdict: match ratio.median >= 0.97 {
                true => Verdict::Holds,
                false if ratio.high >= 0.97 && noise.low < 0.97 => Verdict::Noise,
                false => Verdict::Missed,
            },
        })
    };
    let no_more = |what: &str, field: &str| {
        let (more, noise) = (of(field)?, of(&format!("bare_{field}"))?);
        Ok::<_, anyhow::Error>(Claim {
            what: what.into(),
            measured: more.text(),
            target: "0 in the interval".into(),
            // Where others want the CPU too, the work of the outputs drives some of theirs over here.
            verdict: match more.low <= 0.0 {
                true => Verdict::Holds,
                false if more.median <= noise.high => Verdict::Noise,
                false => Verdict::Missed,
            },
        })
    };
    Ok(vec![
        at_least("samples/s with outputs to none", "samples_ratio")?,
        at_least("the same outside stalls", "own_samples_ratio")?,
        no_more("more stolen with outputs, %", "more_stolen_percent")?,
        no_more("more stalls a second with outputs", "more_stalls_per_second")?,
    ])
}

/// A median and where the true one surely lies.
struct Measured {
    median: f64,
    low: f64,
    high: f64,
}

impl Measured {
    fn read(json: &Value, field: &str) -> anyhow::Result<Measured> {
        let json = json.get(field).with_context(|| format!("the bench's JSON has no '{field}'"))?;
        Ok(Measured {
            median: number(json, "median")?,
            low: number(json, "low")?,
            high: number(json, "high")?,
        })
    }

    fn text(&self) -> String {
        format!("{:.3} [{:.3}, {:.3}]", self.median, self.low, self.high)
    }
}
