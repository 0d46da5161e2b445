//! Another process writes to the controls of our trace while its thread takes the CPU: the trace of that time is not
//! trusted, and after the repair it is trusted again. Records live, so it needs root and tracefs; without them the
//! tests are skipped.

use crate::replay::{Busy, Rows, assert_same, can_trace, piped, replayed, settings, stored};
use jitterscope_model::{
    Attribution, CpuId, CulpritKind, Doubt, EventGrain, Nanos, RunManifest, Stall, Ticks, Verdict,
    Warning,
};
use jitterscope_platform::Machine;
use jitterscope_platform::{name_current_thread, pin_current_thread};
use jitterscope_recording::pipeline::{PipelineLength, PipelineRecordSettings, record_pipeline};
use jitterscope_recording::{
    AttachSettings, Extra, Followed, Observer, Outcome, Owners, PassiveRecordSettings,
    RecordSettings, WakeupChoice, attach, record, record_passive,
};
use jitterscope_store::RunReader;
use jitterscope_testing::{Tamper, is_root, recording_instances_of, turn};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// The delay of the tampering after both instances record, or after the measurement began.
const AFTER: Duration = Duration::from_millis(700);

/// A thread that takes turns of 3 ms on a CPU, and ends when dropped.
struct Thief(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Thief {
    const NAME: &str = "js-thief";

    fn on(cpu: CpuId) -> Thief {
        let stop = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&stop);
        let thread = spawn(move || {
            name_current_thread(Thief::NAME);
            pin_current_thread(cpu).unwrap();
            while !its.load(Ordering::Relaxed) {
                let begun = std::time::Instant::now();
                while begun.elapsed() < Duration::from_millis(3) {
                    std::hint::spin_loop();
                }
                sleep(Duration::from_millis(3));
            }
        });
        Thief(stop, Some(thread))
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(JoinHandle::join);
    }
}

/// Tampers with all instances of this process, `AFTER` after they began to record.
fn tampering(how: Tamper) -> JoinHandle<()> {
    spawn(move || {
        let instances = recording_instances_of(std::process::id(), 2).unwrap();
        sleep(AFTER);
        for instance in &instances {
            how.on(instance).unwrap();
        }
    })
}

/// Says when the measurement begins: on a busy machine, long after the instances record.
struct Begins(Sender<()>);

impl Observer for Begins {
    fn measuring(&mut self, _: Nanos) {
        let _ = self.0.send(());
    }
}

/// As [`tampering`], `AFTER` after the measurement began.
fn tampering_with_measurement(how: Tamper) -> (Begins, JoinHandle<()>) {
    let (begins, begun) = channel();
    let thread = spawn(move || {
        begun.recv().unwrap();
        tampering(how).join().unwrap();
    });
    (Begins(begins), thread)
}

fn is_withheld(attribution: &Attribution) -> bool {
    let withheld = |part: &jitterscope_model::Part| {
        part.culprit.subject.as_verdict() == Some(Verdict::TraceDisturbed)
    };
    attribution.parts.iter().any(withheld)
}

/// What a run reports about the disturbance: files, time of detection, and how long the trace is not trusted.
fn reported(manifest: &RunManifest) -> (&[String], Nanos, Nanos) {
    let mut warnings = manifest.warnings.iter();
    let found = warnings.find_map(|warning| match warning {
        Warning::TraceDisturbed {
            first_ns,
            time_ns,
            files,
            repaired,
            ..
        } => {
            assert!(repaired, "{warning:?}");
            Some((&files[..], *first_ns, *time_ns))
        }
        _ => None,
    });
    let (files, first, time) = found.unwrap_or_else(|| panic!("{:?}", manifest.warnings));
    let doubts = manifest.doubts();
    let doubt = Doubt::TraceDisturbed {
        first_ns: first,
        time_ns: time,
    };
    assert!(doubts.contains(&doubt), "{doubts:?}");
    let missing = |doubt: &Doubt| matches!(doubt, Doubt::EventsMissing { .. });
    assert!(!doubts.iter().any(missing), "{doubts:?}");
    (files, first, time)
}

fn assert_replays(run: &RunReader) -> Rows {
    let live = stored(run);
    assert_same(&live, &replayed(run).0);
    live
}

fn by_thief(attribution: &Attribution) -> Nanos {
    let parts = attribution.parts.iter();
    let is_his = |part: &&jitterscope_model::Part| {
        part.culprit.kind() == CulpritKind::Thread && &*part.culprit.subject.name() == Thief::NAME
    };
    parts.filter(is_his).map(|part| part.net).sum()
}

/// Shares of the stalled time between two times: attributed to the thief, and long but unexplained.
fn shares(run: &RunReader, rows: &Rows, (from, to): (Ticks, Ticks)) -> (f64, f64) {
    let rate = run.manifest().rate;
    let mut sums = [Nanos::ZERO; 3];
    let within = |stall: &Stall| from <= stall.start && stall.end <= to;
    for (stall, attribution) in rows.iter().filter(|(stall, _)| within(stall)) {
        let attribution = attribution.as_ref().unwrap();
        sums[0] += rate.nanos(stall.length());
        sums[1] += by_thief(attribution);
        let unseen = |part: &&jitterscope_model::Part| {
            part.culprit.subject.as_verdict() == Some(Verdict::NoEventInVm)
        };
        let parts = attribution.parts.iter().filter(unseen);
        sums[2] += parts.map(|part| part.net).sum();
    }
    let share = |part: Nanos| part.0 as f64 / sums[0].0.max(1) as f64;
    (share(sums[1]), share(sums[2]))
}

fn probed(runs: &Path) -> RecordSettings {
    RecordSettings {
        duration: Nanos(1_800_000_000),
        warmup: Nanos(100_000_000),
        ..settings(runs)
    }
}

fn probe(settings: &RecordSettings) -> Outcome {
    let stop = AtomicBool::new(false);
    record(&Machine::host(), settings, Extra::default(), &stop, &mut ()).unwrap()
}

#[test]
fn whatever_is_done_to_the_trace_of_a_probe_withholds_verdicts() {
    let _turn = turn();
    if !is_root() || !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = probed(dir.path());
    let cpu = settings.cpus.cpus.first().unwrap();
    for how in Tamper::ALL {
        let _thief = Thief::on(cpu);
        let (mut begins, tampering) = tampering_with_measurement(how);
        let stop = AtomicBool::new(false);
        let extra = Extra::default();
        let outcome = record(&Machine::host(), &settings, extra, &stop, &mut begins).unwrap();
        tampering.join().unwrap();
        let run = RunReader::open(&outcome.path).unwrap();
        let manifest = run.manifest();
        let (files, first, time) = reported(manifest);
        let named = |role: &str| files.contains(&format!("{role}/{}", how.file()));
        assert!(named("local") && named("senders"), "{how:?}: {files:?}");
        let live = assert_replays(&run);
        let (rate, start) = (manifest.rate, manifest.results[0].start);
        let from = start + rate.ticks(first);
        // Measured from the start of the probe, which is somewhat later than that of the trace.
        let until = from + rate.ticks(time);
        let withheld: Vec<_> = live
            .iter()
            .filter(|(_, attribution)| attribution.as_ref().is_some_and(is_withheld))
            .collect();
        assert!(!withheld.is_empty(), "{how:?}: {first} for {time}");
        for (stall, attribution) in &withheld {
            let attribution = attribution.as_ref().unwrap();
            assert_eq!(attribution.parts.len(), 1, "{attribution:?}");
            assert_eq!(attribution.total(), rate.nanos(stall.length()));
        }
        let last = withheld.last().unwrap().0.end;
        let before = shares(&run, &live, (start, withheld[0].0.start));
        let after = shares(&run, &live, (last, Ticks(u64::MAX)));
        eprintln!(
            "{how:?}: noticed after {first}, {time} not trusted, {} of {} stalls; the thief before and after: {before:?} \
             {after:?}",
            withheld.len(),
            live.len()
        );
        assert!(last <= until + rate.ticks(Nanos(100_000_000)), "{how:?}");
        // Its share of the CPU depends on other threads, but it is always named.
        assert!(before.0 > 0.02 && after.0 > before.0 / 4.0, "{how:?}");
        assert!(before.1 < 0.3 && after.1 < 0.3, "{how:?}");
    }
}

/// Covers a process that undoes its write before our next check, and one that repeats it.
#[test]
fn what_is_put_back_at_once_and_what_is_done_again_is_noticed() {
    let _turn = turn();
    if !is_root() || !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = probed(dir.path());
    let over = Arc::new(AtomicBool::new(false));
    let its = Arc::clone(&over);
    let again = spawn(move || {
        let instances = recording_instances_of(std::process::id(), 2).unwrap();
        sleep(AFTER);
        while !its.load(Ordering::Relaxed) {
            for (how, value) in [(Tamper::Off, "0"), (Tamper::Off, "1")] {
                let file = instances[0].join(how.file());
                // At the end they no longer exist.
                let _ = std::fs::write(file, value);
                sleep(Duration::from_millis(3));
            }
        }
    });
    let outcome = probe(&settings);
    over.store(true, Ordering::Relaxed);
    again.join().unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    assert_replays(&run);
    let manifest = run.manifest();
    let disturbed = manifest.warnings.iter().find_map(|warning| match warning {
        Warning::TraceDisturbed { times, time_ns, .. } => Some((*times, *time_ns)),
        _ => None,
    });
    let (times, time) = disturbed.unwrap();
    let measured = manifest.duration();
    eprintln!("noticed {times} times, {time} of {measured}");
    assert!(times > 5 && time > Nanos(measured.0 / 4), "{times} {time}");
}

/// Records are also lost to a process that reads the trace: it takes them from us.
#[test]
fn records_that_somebody_else_reads_are_missed() {
    let _turn = turn();
    if !is_root() || !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = probed(dir.path());
    let _thief = Thief::on(settings.cpus.cpus.first().unwrap());
    let reading = spawn(|| {
        let instances = recording_instances_of(std::process::id(), 2).unwrap();
        let is_local = |path: &&std::path::PathBuf| path.to_string_lossy().ends_with("-local");
        let pipe = instances.iter().find(is_local).unwrap().join("trace_pipe");
        // A reader stops when recording is switched off, as it is briefly before the measurement.
        sleep(AFTER / 2);
        let mut cat = std::process::Command::new("cat")
            .arg(pipe)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(1200));
        cat.kill().unwrap();
        cat.wait().unwrap();
    });
    let outcome = probe(&settings);
    reading.join().unwrap();
    let doubts = outcome.manifest.doubts();
    let missing = |doubt: &Doubt| matches!(doubt, Doubt::EventsMissing { .. });
    let warnings = &outcome.manifest.warnings;
    assert!(doubts.iter().any(missing), "{doubts:?} {warnings:?}");
    assert!(doubts.iter().any(Doubt::is_of_all));
}

struct Kinds {
    spin: RecordSettings,
    wakeup: RecordSettings,
    followed: AttachSettings,
    watched: PassiveRecordSettings,
    messages: PipelineRecordSettings,
}

impl Kinds {
    const ALL: [&str; 5] = ["spin", "wakeup", "attach", "passive", "pipeline"];

    fn lasting(runs: &Path, duration: Nanos) -> Kinds {
        let spin = RecordSettings {
            duration,
            ..probed(runs)
        };
        Kinds {
            wakeup: RecordSettings {
                wakeup: Some(WakeupChoice {
                    period: Nanos(500_000),
                    hold_latency: false,
                    idle_control: None,
                }),
                threshold: Some(Nanos(20_000)),
                ..spin.clone()
            },
            followed: AttachSettings {
                stacks: true,
                run: spin.run.clone(),
                followed: Followed::Process(std::process::id().cast_signed()),
                wait: false,
                children: false,
                duration: Some(duration),
                threshold: Nanos(2_000),
                most_threads: None,
            },
            watched: PassiveRecordSettings {
                run: spin.run.clone(),
                cpus: spin.cpus.clone(),
                owners: Owners::Named(Thief::NAME.into()),
                duration,
                look: Nanos(100_000_000),
                threshold: Nanos::ZERO,
                interval: Nanos(100_000_000),
                events: EventGrain::All,
            },
            messages: PipelineRecordSettings {
                length: PipelineLength::Time(duration),
                ..piped(runs)
            },
            spin,
        }
    }

    fn record(&self, kind: &str, observer: &mut dyn Observer) -> Outcome {
        let (machine, stop) = (Machine::host(), AtomicBool::new(false));
        let none = Vec::new;
        let probe = |settings, observer: &mut dyn Observer| {
            record(&machine, settings, Extra::default(), &stop, observer).unwrap()
        };
        match kind {
            "spin" => probe(&self.spin, observer),
            "wakeup" => probe(&self.wakeup, observer),
            "attach" => attach(&machine, &self.followed, none(), &stop, observer).unwrap(),
            "passive" => record_passive(&machine, &self.watched, none(), &stop, observer).unwrap(),
            _ => record_pipeline(&machine, &self.messages, none(), &stop, observer).unwrap(),
        }
    }
}

#[test]
fn every_kind_of_recording_notices_it() {
    let _turn = turn();
    if !is_root() || !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let kinds = Kinds::lasting(dir.path(), Nanos(1_800_000_000));
    let _thief = Thief::on(kinds.spin.cpus.cpus.first().unwrap());
    for how in [Tamper::NoEvents, Tamper::Clock] {
        for kind in Kinds::ALL {
            // The instances of some kinds record long before the measurement, which alone is reported.
            let (mut begins, tampering) = tampering_with_measurement(how);
            let made = kinds.record(kind, &mut begins);
            tampering.join().unwrap();
            let run = RunReader::open(&made.path).unwrap();
            let (files, first, time) = reported(run.manifest());
            let live = assert_replays(&run);
            let rows = live.len();
            eprintln!("{kind}: {how:?} noticed after {first}, {time}, {rows} rows");
            let local = format!("local/{}", how.file());
            assert!(files.contains(&local), "{kind}: {files:?}");
        }
    }
}

/// On a machine of any load, everything that the kernel counts is recorded, except what happens during the read.
#[test]
fn runs_that_nobody_disturbs_raise_no_false_alarm() {
    let _turn = turn();
    if !is_root() || !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let kinds = Kinds::lasting(dir.path(), Nanos(400_000_000));
    for load in ["quiet", "loaded"] {
        let cpu = kinds.spin.cpus.cpus.first().unwrap();
        let busy = (load == "loaded").then(|| (Thief::on(cpu), Busy::start()));
        for run in 0..20 {
            let kind = Kinds::ALL[run % Kinds::ALL.len()];
            let manifest = kinds.record(kind, &mut ()).manifest;
            let is_alarm = |warning: &&Warning| {
                matches!(
                    warning,
                    Warning::TraceDisturbed { .. } | Warning::EventsMissing { .. }
                )
            };
            let alarm = manifest.warnings.iter().find(is_alarm);
            assert_eq!(alarm, None, "{load} {kind}");
        }
        drop(busy);
    }
}
