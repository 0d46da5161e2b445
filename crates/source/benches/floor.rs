//! The cost of enabled tracepoints on a CPU that is not recorded: `cargo bench -p jitterscope-source --bench floor`.
//! Two threads pass a byte back and forth on one CPU. The arms alternate: no events; each class of events enabled, with
//! only *another* CPU recorded; all classes, with only another CPU recorded; all classes, with this CPU recorded; and
//! the same plus the scheduler's charges, as in `attach`.
//! Prints one line of JSON: nanoseconds per pass, and the number of records of each class per pass. Needs root and
//! tracefs.

use jitterscope_model::CpuSet;
use jitterscope_platform::{
    Machine, OwnerLock, TaskStat, confine_current_thread, current_affinity,
};
use jitterscope_source::Tracefs;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Turns of each arm; the first one is the warm-up.
const TURNS: usize = 8;
/// Passes per turn.
const PASSES: u32 = 60_000;

/// The events of recordings, by class: folders, and single events.
const CLASSES: [(&str, &[&str]); 9] = [
    ("switches", &["sched/sched_switch"]),
    ("wake-ups", &["sched/sched_waking"]),
    ("migrations", &["sched/sched_migrate_task"]),
    ("softirqs", &["irq/softirq_entry", "irq/softirq_exit"]),
    (
        "interrupts",
        &[
            "irq/irq_handler_entry",
            "irq/irq_handler_exit",
            "irq_vectors",
        ],
    ),
    (
        "timers",
        &[
            "timer/timer_expire_entry",
            "timer/timer_expire_exit",
            "timer/hrtimer_expire_entry",
            "timer/hrtimer_expire_exit",
            "timer/tick_stop",
        ],
    ),
    ("work items", &["workqueue"]),
    ("calls", &["csd", "ipi", "tlb"]),
    ("faults", &["exceptions", "power/cpu_idle"]),
];

/// The additional event of `attach`, and its filter: a smaller charge is useless, and its record is dropped after it is
/// built.
const CHARGES: (&str, &str) = ("sched/sched_stat_runtime", "runtime >= 10000");

/// A tracing instance, which is removed at the end. If this process is killed, the next recording removes it.
struct Instance {
    path: PathBuf,
    _lock: OwnerLock,
    _tracefs: Tracefs,
}

impl Instance {
    fn make(machine: &Machine) -> Result<Instance, Box<dyn Error>> {
        let tracefs = Tracefs::open(machine)?;
        let start = TaskStat::of(machine, "self")
            .and_then(|stat| stat.start_time())
            .ok_or("no start time")?;
        let name = format!("jitterscope-{}-{start}-floor", std::process::id());
        let path = machine.path(format!("{}/instances/{name}", tracefs.root()));
        fs::create_dir(&path)?;
        let lock = OwnerLock::take(&path).inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        Ok(Instance {
            path,
            _lock: lock,
            _tracefs: tracefs,
        })
    }

    fn write(&self, file: &str, value: &str) -> std::io::Result<()> {
        fs::write(self.path.join(file), value)
    }

    /// Switches events on or off; skips those that this kernel does not have. Returns how many it has.
    fn set(&self, events: &[&str], on: bool) -> usize {
        let file = |event: &&&str| format!("events/{event}/enable");
        events
            .iter()
            .filter(|event| self.write(&file(event), if on { "1" } else { "0" }).is_ok())
            .count()
    }

    /// The number of records of a CPU so far.
    fn records(&self, cpu: u32) -> u64 {
        let text = fs::read_to_string(self.path.join(format!("per_cpu/cpu{cpu}/stats")))
            .unwrap_or_default();
        let of = |name: &str| -> u64 {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|number| number.trim().parse().ok())
                .unwrap_or(0)
        };
        of("entries") + of("overrun")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        for _ in 0..20 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        eprintln!(
            "{} cannot be removed; the next recording does",
            self.path.display()
        );
    }
}

fn pass(mut from: PipeReader, mut to: PipeWriter, passes: u32) -> std::io::Result<()> {
    let mut byte = [0];
    for _ in 0..passes {
        from.read_exact(&mut byte)?;
        to.write_all(&byte)?;
    }
    Ok(())
}

/// Nanoseconds per pass on the CPU that both threads are confined to.
fn time() -> Result<f64, Box<dyn Error>> {
    let ((there, mut to_there), (back, to_back)) = (pipe()?, pipe()?);
    to_there.write_all(b"x")?;
    // Keeps the pipe open, because no thread reads the last byte.
    let end = there.try_clone()?;
    let began = Instant::now();
    let other = std::thread::spawn(move || pass(there, to_back, PASSES));
    pass(back, to_there, PASSES)?;
    let took = began.elapsed();
    other.join().map_err(|_| "the other thread panicked")??;
    drop(end);
    Ok(took.as_nanos() as f64 / f64::from(2 * PASSES))
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One setup to measure.
struct Arm {
    name: &'static str,
    events: Vec<&'static str>,
    /// Whether this CPU is recorded, rather than another one.
    here: bool,
    ns: Vec<f64>,
    records: u64,
}

impl Arm {
    fn turn(
        &mut self,
        instance: &Instance,
        (cpu, other): (u32, u32),
    ) -> Result<(), Box<dyn Error>> {
        let recorded: CpuSet = [jitterscope_model::CpuId(if self.here {
            cpu
        } else {
            other
        })]
        .into_iter()
        .collect();
        instance.write("tracing_cpumask", &recorded.to_mask())?;
        if instance.set(&self.events, true) == 0 && !self.events.is_empty() {
            return Ok(());
        }
        let before = instance.records(cpu);
        let ns = time();
        self.records = instance.records(cpu) - before;
        instance.set(&self.events, false);
        self.ns.push(ns?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let allowed: Vec<u32> = current_affinity()?.iter().map(|cpu| cpu.0).collect();
    let &[cpu, .., other] = &allowed[..] else {
        return Err("two CPUs are needed".into());
    };
    confine_current_thread(&[jitterscope_model::CpuId(cpu)].into_iter().collect())?;
    let instance = Instance::make(&Machine::host())?;
    instance
        .write("trace_clock", "x86-tsc")
        .or_else(|_| instance.write("trace_clock", "mono_raw"))?;
    let all: Vec<&str> = CLASSES
        .iter()
        .flat_map(|(_, events)| *events)
        .copied()
        .collect();
    // Without charges in the kernel, this arm equals the previous one.
    let _ = instance.write(&format!("events/{}/filter", CHARGES.0), CHARGES.1);
    let charged: Vec<&str> = all.iter().copied().chain([CHARGES.0]).collect();
    let arm = |name, events: &[&'static str], here| Arm {
        name,
        events: events.to_vec(),
        here,
        ns: vec![],
        records: 0,
    };
    let mut arms = vec![arm("nothing", &[], false)];
    arms.extend(
        CLASSES
            .iter()
            .map(|(name, events)| arm(name, events, false)),
    );
    arms.extend([
        arm("all", &all, false),
        arm("all, recorded", &all, true),
        arm("all and charges", &charged, true),
    ]);
    // Counts the records of each class per pass, with this CPU recorded.
    let mut counts = Vec::new();
    for (name, events) in CLASSES {
        let mut one = arm(name, events, true);
        one.turn(&instance, (cpu, other))?;
        counts.push(one.records as f64 / f64::from(2 * PASSES));
    }
    for turn in 0..TURNS {
        // The order rotates, so that a drift of the machine favours no arm.
        let several = arms.len();
        for n in 0..several {
            arms[(turn + n) % several].turn(&instance, (cpu, other))?;
        }
    }
    let rows: Vec<Value> = arms
        .iter()
        .map(|arm| {
            let paired = arms[0].ns.iter().zip(&arm.ns).skip(1);
            let ratios: Vec<f64> = paired.clone().map(|(bare, with)| with / bare).collect();
            let more: Vec<f64> = paired.map(|(bare, with)| with - bare).collect();
            let count = CLASSES
                .iter()
                .position(|(name, _)| *name == arm.name)
                .map(|at| counts[at]);
            let known = !ratios.is_empty();
            json!({
                "events": arm.name,
                "ns": known.then(|| median(&arm.ns[1..])),
                "more_ns": known.then(|| median(&more)),
                "ratio": known.then(|| median(&ratios)),
                "least": ratios.iter().copied().reduce(f64::min),
                "most": ratios.iter().copied().reduce(f64::max),
                "per_pass": count,
            })
        })
        .collect();
    let bare = &arms[0].ns[1..];
    let noise: Vec<f64> = bare
        .windows(2)
        .map(|pair| (pair[1] / pair[0]).max(pair[0] / pair[1]))
        .collect();
    println!(
        "{}",
        json!({ "turns": TURNS - 1, "passes": 2 * PASSES, "rows": rows, "noise": median(&noise) })
    );
    Ok(())
}
