//! The cost of the sampler's outputs for the probe: samples a second, stolen time and stalls, with all outputs and with
//! the stored run alone, in many short alternating turns. Compares neighbouring turns and takes the median, because a
//! shared machine has bad moments; it also reports a confidence interval.

use jitterscope_export::{Destination, Pace};
use jitterscope_model::{CpuSet, Nanos, Ticks};
use jitterscope_platform::{CpuChoice, Machine, Topology, current_affinity, select_cpus};
use jitterscope_recording::{Extra, Output, RecordSettings, RunSettings, WriterThread, record};
use jitterscope_store::RunReader;
use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const PAIRS: usize = 40;
const TURN: Nanos = Nanos(250_000_000);
const INTERVAL: Nanos = Nanos(1_000_000);
const THRESHOLD: Nanos = Nanos(300);
const WARM_UP: Nanos = Nanos(20_000_000);

/// The results of one turn.
struct Turn {
    samples_per_second: f64,
    /// Relative to the time outside stalls: the work of the loop itself, independent of other threads.
    samples_per_own_second: f64,
    /// Percent of the time.
    stolen: f64,
    stalls_per_second: f64,
}

fn turn(cpus: &CpuSet, targets: &[Destination], runs: &Path) -> Result<Turn, Box<dyn Error>> {
    let settings = RecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 0,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: "bench".into(),
            runs_dir: runs.to_path_buf(),
            command_line: vec!["bench".into()],
            profile: None,
        },
        cpus: CpuChoice {
            cpus: cpus.clone(),
            because: None,
        },
        wakeup: None,
        duration: TURN,
        warmup: WARM_UP,
        threshold: Some(THRESHOLD),
        interval: INTERVAL,
        fifo_priority: None,
        events: None,
        graph: Vec::new(),
    };
    let open = |target: &Destination| {
        let own = target.clone();
        Output::new(target.to_string(), move || Ok(own.open(Pace::Live)?)).essential()
    };
    let extra = Extra {
        outputs: targets.iter().map(open).collect(),
        ..Extra::default()
    };
    let outcome = record(
        &Machine::host(),
        &settings,
        extra,
        &AtomicBool::new(false),
        &mut (),
    )?;
    if let Some(error) = outcome.outputs.into_iter().find_map(|output| output.error) {
        return Err(error.into());
    }
    let run = RunReader::open(&outcome.path)?;
    let (manifest, rate) = (run.manifest(), run.manifest().rate);
    let result = manifest.results.first().ok_or("no CPU was measured")?;
    if let Some(why) = &result.ended_early {
        return Err(format!("the measurement ended early: {why:?}").into());
    }
    let seconds = rate.nanos(result.end.since(result.start)).as_secs_f64();
    let own = rate
        .nanos(Ticks(result.sum_ticks - result.stalled_ticks))
        .as_secs_f64();
    Ok(Turn {
        samples_per_second: result.samples as f64 / seconds,
        samples_per_own_second: (result.samples - result.stalls) as f64 / own,
        stolen: result.stalled_ticks as f64 * 100.0 / result.sum_ticks as f64,
        stalls_per_second: result.stalls as f64 / seconds,
    })
}

fn targets(folder: &Path) -> Result<Vec<Destination>, Box<dyn Error>> {
    let folder = folder.display();
    let texts = [
        format!("csv://{folder}/stalls.csv"),
        format!("csv://{folder}/series.csv?rows=series"),
        format!("json://{folder}/run.jsonl"),
        format!("hlog://{folder}/run.hlog"),
        format!("hgrm://{folder}/run.hgrm"),
        // The discard port: no listener is needed.
        "influx://127.0.0.1:9".into(),
    ];
    Ok(texts
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?)
}

/// The median, and an interval that contains the true median in at least 99% of cases for any distribution: the order
/// statistics between which the number of heads of a fair coin, in as many throws, would lie.
fn median(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let middle = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
    // P(at most k heads), while it is under half a percent.
    let (mut term, mut below, mut k) = (0.5f64.powi(n as i32), 0.0, 0);
    while below + term <= 0.005 {
        below += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    // With k = 0 there are too few values.
    let (low, high) = if k == 0 {
        (f64::MIN, f64::MAX)
    } else {
        (values[k - 1], values[n - k])
    };
    json!({ "median": middle, "low": low, "high": high })
}

fn each(turns: &[Turn], what: impl Fn(&Turn) -> f64) -> Value {
    median(turns.iter().map(what).collect())
}

fn paired(with: &[Turn], bare: &[Turn], what: impl Fn(&Turn, &Turn) -> f64) -> Value {
    median(
        with.iter()
            .zip(bare)
            .map(|(with, bare)| what(with, bare))
            .collect(),
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    // Live tests take a CPU offline, so they and this benchmark take turns.
    let lock = File::create(std::env::temp_dir().join("jitterscope-live-tests.lock"))?;
    lock.lock()?;
    let (dir, runs) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let cpus = select_cpus(
        None,
        &Topology::read(&Machine::host()),
        &current_affinity()?,
    )?
    .cpus;
    let targets = targets(dir.path())?;
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // Each variant goes first in half of the pairs, in case the machine drifts.
        for outputs in [pair % 2 == 0, pair % 2 != 0] {
            if outputs {
                with.push(turn(&cpus, &targets, runs.path())?);
            } else {
                bare.push(turn(&cpus, &[], runs.path())?);
            }
        }
    }
    let ratio = |a: &Turn, b: &Turn| a.samples_per_second / b.samples_per_second;
    // Turns without outputs compared with each other: the machine's own variation.
    let alone = |what: &dyn Fn(&Turn, &Turn) -> f64| {
        median(
            bare.chunks_exact(2)
                .map(|two| what(&two[0], &two[1]))
                .collect(),
        )
    };
    println!(
        "{}",
        json!({
            "pairs": PAIRS,
            "outputs": targets.len(),
            "samples_ratio": paired(&with, &bare, ratio),
            "own_samples_ratio": paired(&with, &bare, |a, b| a.samples_per_own_second / b.samples_per_own_second),
            "bare_samples_ratio": alone(&ratio),
            "bare_more_stolen_percent": alone(&|a, b| a.stolen - b.stolen),
            "bare_more_stalls_per_second": alone(&|a, b| a.stalls_per_second - b.stalls_per_second),
            "stolen_percent": each(&with, |turn| turn.stolen),
            "bare_stolen_percent": each(&bare, |turn| turn.stolen),
            "more_stolen_percent": paired(&with, &bare, |a, b| a.stolen - b.stolen),
            "stalls_per_second": each(&with, |turn| turn.stalls_per_second),
            "bare_stalls_per_second": each(&bare, |turn| turn.stalls_per_second),
            "more_stalls_per_second": paired(&with, &bare, |a, b| a.stalls_per_second - b.stalls_per_second),
        })
    );
    Ok(())
}
