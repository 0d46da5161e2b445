//! What the sampler's outputs cost the probe: samples a second and stolen time with all of them on and
//! with none, turn by turn in one run. The medians are compared, for a shared machine has bad moments.

use hdrhistogram::Histogram;
use jitterscope_export::{Exporter, Pace, RunFacts, Target};
use jitterscope_model::{Attribution, CpuSet, IntervalRow, Nanos, Stall};
use jitterscope_platform::{Machine, Topology, current_affinity, select_cpus};
use jitterscope_record::{Live, LiveSettings, Receiver};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const TURNS: usize = 7;
const TURN: Nanos = Nanos(1_000_000_000);
const INTERVAL: Nanos = Nanos(1_000_000);
const THRESHOLD: Nanos = Nanos(300);

struct Tee(Vec<Box<dyn Exporter>>);

impl Receiver for Tee {
    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        for sink in &mut self.0 {
            sink.stall(stall, attribution).expect("the output takes it");
        }
    }

    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) {
        for sink in &mut self.0 {
            sink.interval(row, lengths).expect("the output takes it");
        }
    }

    fn tick(&mut self) {
        for sink in &mut self.0 {
            sink.tick().expect("the output takes it");
        }
    }
}

/// Samples a second and the share of stolen time.
fn turn(cpus: &CpuSet, targets: &[Target]) -> (f64, f64) {
    let settings = LiveSettings { cpus: cpus.clone(), duration: TURN, interval: INTERVAL, attribute: false };
    let live = Live::prepare(&Machine::host(), settings).expect("a clock");
    let rate = live.rate();
    let facts = RunFacts {
        id: String::new(),
        label: "bench".into(),
        hostname: "bench".into(),
        probe: "spin".into(),
        cpus: cpus.clone(),
        threshold: THRESHOLD,
        interval: INTERVAL,
        rate,
        clock: live.read_clocks(),
    };
    let mut sinks: Vec<Box<dyn Exporter>> =
        targets.iter().map(|target| target.open(Pace::Live).expect("an output")).collect();
    for sink in &mut sinks {
        sink.begin(&facts).expect("an output");
    }
    let mut tee = Tee(sinks);
    let measured = live.measure(rate.ticks(THRESHOLD), &AtomicBool::new(false), &mut tee).expect("a probe");
    for sink in tee.0 {
        sink.finish(&measured.results).expect("the output ends");
    }
    let result = &measured.results[0];
    let seconds = rate.nanos(result.end.since(result.start)).as_secs_f64();
    (result.samples as f64 / seconds, result.stalled_ticks as f64 / result.sum_ticks as f64)
}

fn targets(folder: &Path) -> Vec<Target> {
    let folder = folder.display();
    [
        format!("csv://{folder}/stalls.csv"),
        format!("csv://{folder}/series.csv?rows=series"),
        format!("json://{folder}/run.jsonl"),
        format!("hlog://{folder}/run.hlog"),
        format!("hgrm://{folder}/run.hgrm"),
        // The discard port: nobody need listen.
        "influx://127.0.0.1:9".into(),
    ]
    .iter()
    .map(|text| text.parse().expect("a target"))
    .collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let topology = Topology::read(&Machine::host());
    let allowed = current_affinity().expect("an affinity mask");
    let cpus = select_cpus(None, &topology, &allowed).expect("a CPU").cpus;
    let targets = targets(dir.path());
    let (mut ratios, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (bare_rate, bare_stolen) = turn(&cpus, &[]);
        let (rate, stolen) = turn(&cpus, &targets);
        ratios.push(rate / bare_rate);
        with.push(stolen);
        without.push(bare_stolen);
    }
    let bare = median(&mut without);
    // How far the turns without outputs lie apart: less cannot be told from chance.
    let spread = without[TURNS - 1] - without[0];
    println!(
        "{}",
        serde_json::json!({
            "outputs": targets.len(),
            "samples_ratio": median(&mut ratios),
            "stolen_share": median(&mut with),
            "bare_stolen_share": bare,
            "bare_stolen_spread": spread,
        })
    );
}
