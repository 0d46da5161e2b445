//! The cost of taking in kernel events: `cargo bench -p jitterscope-recording --bench drain`. One CPU is measured while
//! an increasing number of threads sleep and wake on it. Each step reports the events a second and the helper's time
//! per event, from the kernel's buffer to the store. Prints one line of JSON. Needs root and tracefs.

use jitterscope_model::{CpuSet, EventGrain, Nanos};
use jitterscope_platform::{
    CpuChoice, Machine, Topology, confine_current_thread, current_affinity, select_cpus,
};
use jitterscope_recording::{Extra, RecordSettings, RunSettings, WriterThread, record};
use jitterscope_store::RunReader;
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sleeping and waking threads, per step.
const STEPS: [usize; 6] = [0, 1, 2, 4, 8, 16];
const TIME: Nanos = Nanos(2_000_000_000);
/// Sleep between two wake-ups.
const SLEEP: Duration = Duration::from_micros(20);

/// Threads that sleep and wake on a CPU until this is dropped.
struct Sleepers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Sleepers {
    fn start(count: usize, cpus: &CpuSet) -> Sleepers {
        let stop = Arc::new(AtomicBool::new(false));
        let sleeper = |_| {
            let (stop, cpus) = (Arc::clone(&stop), cpus.clone());
            std::thread::spawn(move || {
                if confine_current_thread(&cpus).is_ok() {
                    while !stop.load(Ordering::Relaxed) {
                        std::thread::sleep(SLEEP);
                    }
                }
            })
        };
        let threads = (0..count).map(sleeper).collect();
        Sleepers { stop, threads }
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It only sleeps.
            let _ = thread.join();
        }
    }
}

fn step(
    sleepers: usize,
    cpus: &CpuChoice,
    runs: &std::path::Path,
    writer: WriterThread,
) -> Result<Value, Box<dyn Error>> {
    let settings = RecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 8192,
            trace_limit_bytes: 64 << 20,
            asked: Vec::new(),
            label: "DRAIN".into(),
            runs_dir: runs.to_path_buf(),
            command_line: vec!["bench".into()],
            profile: None,
            tuning: None,
            writer,
        },
        cpus: cpus.clone(),
        wakeup: None,
        duration: TIME,
        warmup: Nanos(300_000_000),
        threshold: Some(Nanos(300)),
        interval: Nanos(1_000_000_000),
        fifo_priority: None,
        events: Some(EventGrain::All),
        graph: Vec::new(),
    };
    let _sleepers = Sleepers::start(sleepers, &cpus.cpus);
    let outcome = record(
        &Machine::host(),
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )?;
    let run = RunReader::open(&outcome.path)?;
    let manifest = run.manifest();
    if !manifest.attributed {
        return Err("kernel events are not available".into());
    }
    let lost: u64 = manifest.sources.iter().map(|source| source.lost).sum();
    let events = manifest.events_in_gaps.events;
    let stalls: u64 = manifest.results.iter().map(|result| result.stalls).sum();
    Ok(json!({
        "sleepers": sleepers,
        "events": events,
        "events_per_second": events as f64 / TIME.as_secs_f64(),
        "lost": lost,
        "stalls": stalls,
        "helper_ns": manifest.self_noise.helper_cpu_ns,
        "helper_cpus": manifest.self_noise.helper_cpus.len(),
        "writer_ns": outcome.writer.map(|of| of.cpu_time),
        "writer_waited_ns": outcome.writer.map(|of| of.waited),
        "trace_bytes": manifest.trace.bytes,
    }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::read(&Machine::host());
    let cpus = select_cpus(None, &topology, &current_affinity()?)?;
    let runs = tempfile::tempdir()?;
    let mut steps = Vec::new();
    for sleepers in STEPS {
        steps.push(step(sleepers, &cpus, runs.path(), WriterThread::default())?);
    }
    // Again with a writer thread, on any number of CPUs: one run shows the work of each of the two threads per event,
    // whether or not they have a CPU each.
    let mut apart = Vec::new();
    for sleepers in [0, STEPS[STEPS.len() - 1]] {
        apart.push(step(sleepers, &cpus, runs.path(), WriterThread::Own)?);
    }
    let number = |step: &Value, field: &str| step[field].as_f64().unwrap_or_default();
    // The cost of each further event while none is lost, compared with a recorder of a quiet CPU.
    let quiet = &steps[0];
    let most = steps
        .iter()
        .rfind(|step| step["lost"] == 0)
        .unwrap_or(quiet);
    let more = |field: &str| number(most, field) - number(quiet, field);
    let (idle, loaded) = (&apart[0], &apart[1]);
    let beyond = |field: &str| number(loaded, field) - number(idle, field);
    let of_both = beyond("helper_ns") / beyond("events").max(1.0);
    let of_writer = beyond("writer_ns") / beyond("events").max(1.0);
    let whole = steps
        .iter()
        .filter(|step| step["lost"] == 0)
        .map(|step| number(step, "events_per_second"));
    println!(
        "{}",
        json!({
            "steps": steps,
            "events_per_second_without_loss": whole.fold(0.0, f64::max),
            "helper_ns_per_event": more("helper_ns") / more("events").max(1.0),
            "helper_ns_per_stall": more("helper_ns") / more("stalls").max(1.0),
            "apart": apart,
            "drain_ns_per_event_apart": of_both - of_writer,
            "writer_ns_per_event_apart": of_writer,
        })
    );
    Ok(())
}
