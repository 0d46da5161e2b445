//! The whole sequence on the real machine: a competing thread and a device's interrupts disturb a CPU, a recording
//! names them, the isolation profile is applied, a second recording finds them gone, and a rollback restores their
//! affinities.

use crate::support;

use jitterscope_model::{CpuSet, CulpritKind, EventGrain, Nanos};
use jitterscope_platform::{CpuChoice, Machine};
use jitterscope_recording::{Extra, RecordSettings, RunSettings, WriterThread, record};
use jitterscope_source::Tracefs;
use jitterscope_store::RunReader;
use jitterscope_tune::{
    Effect, Goal, HostWriter, Interrupts, OnDrift, OnRefusal, Op, Profile, RunCulprits, Select,
    StateDir, apply, audit, catalogue, online_cpus, plan, rollback,
};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::who;

const COMPETITOR: &str = "js-competitor";

/// A spinning child with its own name, which ends with the test.
struct Competitor(Child);

impl Competitor {
    fn start(folder: &Path) -> Competitor {
        let shell = folder.join(COMPETITOR);
        if !shell.exists() {
            std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
        }
        Competitor(
            Command::new(shell)
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap(),
        )
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads bytes from the random number device, one interrupt each, until dropped.
struct Asking {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Asking {
    fn start() -> std::io::Result<Asking> {
        let mut device = File::open("/dev/hwrng")?;
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while !until.load(Ordering::Relaxed) && device.read(&mut bytes).is_ok() {
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Ok(Asking {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The interrupt that counts while the device is read: number and handler.
fn interrupt_of_the_device(machine: &Machine, all: &CpuSet) -> Option<(String, String)> {
    let look = || Interrupts::parse(&machine.read("/proc/interrupts").unwrap_or_default());
    let before = look();
    std::thread::sleep(Duration::from_millis(600));
    let rose = before.until(&look(), all).rose;
    // Virtio's random number device calls its only queue `input`; network queues are `input.N`.
    let row = rose.into_iter().find(|r| r.what.ends_with("-input"))?;
    let handler = row.what.split_whitespace().last()?.to_owned();
    Some((row.line, handler))
}

/// Restores an interrupt's affinity.
struct Affinity<'a> {
    machine: &'a Machine,
    path: String,
    original: String,
}

impl Drop for Affinity<'_> {
    fn drop(&mut self) {
        let _ = self.machine.write(&self.path, &self.original);
    }
}

struct Rollback<'a>(&'a Machine, &'a StateDir);

impl Drop for Rollback<'_> {
    fn drop(&mut self) {
        let _ = rollback(&mut HostWriter::new(self.0), self.1, &mut |_| {
            OnDrift::Restore
        });
    }
}

/// Records the CPUs and returns what stalled them.
fn measure(machine: &Machine, cpus: &CpuSet, runs: &Path, label: &str) -> RunCulprits {
    let settings = RecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 16 << 20,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: label.into(),
            runs_dir: runs.to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
        },
        cpus: CpuChoice {
            cpus: cpus.clone(),
            because: None,
        },
        wakeup: None,
        duration: Nanos(3_000_000_000),
        warmup: Nanos(700_000_000),
        threshold: Some(Nanos(1000)),
        interval: Nanos(100_000_000),
        fifo_priority: None,
        events: Some(EventGrain::All),
        graph: Vec::new(),
    };
    let outcome = record(
        machine,
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    RunCulprits::gather(run.manifest(), || run.attributions()).unwrap()
}

fn count(measured: &RunCulprits, kind: CulpritKind, name: &str) -> u64 {
    measured
        .culprits
        .iter()
        .filter(|c| c.subject.kind() == kind && c.subject.name() == name)
        .map(|c| c.count)
        .sum()
}

#[test]
fn isolation_removes_what_a_recording_named() {
    let _turn = jitterscope_testing::turn();
    let machine = Machine::host();
    if let Err(error) = Tracefs::open(&machine) {
        jitterscope_testing::skip(&format!("no kernel events here: {error}"));
        return;
    }
    let online = online_cpus(&machine).unwrap();
    let isolated: CpuSet = online.last().into_iter().collect();
    if online.len() < 2 {
        jitterscope_testing::skip("isolating a CPU needs a second one");
        return;
    }
    let goal = Goal::to_apply(&machine, isolated.clone()).unwrap();
    let dir = support::folder();
    let state = StateDir::at(&dir.path().join("state"));
    let _rollback = Rollback(&machine, &state);
    let competitors = [(); 3].map(|()| Competitor::start(dir.path()));
    let ours: Vec<i32> = competitors.iter().map(Competitor::pid).collect();

    // The interrupt source, sent to the measured CPU on purpose.
    let asking = Asking::start().ok();
    let device = asking
        .as_ref()
        .and_then(|_| interrupt_of_the_device(&machine, &online));
    let mut guard = None;
    if let Some((irq, handler)) = &device {
        let path = format!("/proc/irq/{irq}/smp_affinity_list");
        let original = machine.read(&path).unwrap();
        guard = Some(Affinity {
            machine: &machine,
            path: path.clone(),
            original,
        });
        machine.write(&path, &isolated.to_string()).unwrap();
        eprintln!("interrupt source: {handler} (irq {irq})");
    } else {
        eprintln!("no device here interrupts on demand: the competitor alone is measured");
    }

    let before = measure(&machine, &isolated, dir.path(), "BEFORE");
    let competed = count(&before, CulpritKind::Thread, COMPETITOR);
    assert!(
        competed > 10,
        "the competitor hardly ran: {:?}",
        before.culprits
    );
    let interrupted = |e: &RunCulprits| device.as_ref().map(|(_, h)| count(e, CulpritKind::Irq, h));
    assert!(
        interrupted(&before).is_none_or(|n| n > 10),
        "{:?}",
        before.culprits
    );

    // The audit ranks the knobs that answer it first.
    let ranked = audit(&machine, &goal, Some(&before));
    let rank = |id: &str| ranked.knobs.iter().position(|k| k.id == id).unwrap();
    let first = &ranked.knobs[0];
    assert!(
        first
            .win
            .as_ref()
            .is_some_and(|w| w.effect != Effect::Perhaps),
        "{first:?}"
    );
    assert!(rank("cpuset-part") < rank("vmstat") && rank("systemd-aff") < rank("ksm"));
    assert!(catalogue::find("irq-aff").is_some());

    let select = Select::Profile(Profile::Isolation);
    let mut plan = plan(&machine, &goal, &select, &[], false).unwrap();
    // Other users of the test machine are not disturbed.
    plan.changes.retain(|c| {
        c.knob != "systemd-aff" || matches!(c.op, Op::Thread { pid, .. } if ours.contains(&pid))
    });
    apply(
        &mut HostWriter::new(&machine),
        &state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();

    let after = measure(&machine, &isolated, dir.path(), "AFTER");
    eprintln!(
        "{COMPETITOR}: {competed} -> {}; interrupts: {:?} -> {:?}",
        count(&after, CulpritKind::Thread, COMPETITOR),
        interrupted(&before),
        interrupted(&after)
    );
    assert_eq!(
        count(&after, CulpritKind::Thread, COMPETITOR),
        0,
        "{:?}",
        after.culprits
    );
    assert!(
        interrupted(&after).is_none_or(|n| n == 0),
        "{:?}",
        after.culprits
    );

    let report = rollback(&mut HostWriter::new(&machine), &state, &mut |_| {
        OnDrift::Later
    })
    .unwrap();
    assert_eq!(report.unsettled().count(), 0, "{report:?}");
    if let Some(guard) = &guard {
        // The kernel moves an interrupt at its next occurrence; during that, the file briefly shows the old CPUs again.
        let since = Instant::now();
        loop {
            let reads = machine.read_trimmed(&guard.path).unwrap();
            if reads == isolated.to_string() {
                break;
            }
            assert!(
                since.elapsed() < Duration::from_secs(1),
                "it was {isolated} before and is {reads}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
