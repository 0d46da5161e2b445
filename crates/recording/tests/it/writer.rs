//! Every kind of recording with a writer thread, on the CPUs that the tests have. Records live: tests that need kernel
//! events are skipped without them.

use jitterscope_model::{
    CpuSet, Delivery, EventGrain, JournalWriting, Nanos, PipelinePacing, PipelineVia, Row,
    RunFacts, RunManifest, Sink, SinkError, Warning,
};
use jitterscope_platform::{
    CpuChoice, Machine, Topology, current_affinity, current_tid, select_cpus,
};
use jitterscope_recording::pipeline::{
    InputChoice, PipelineLength, PipelineRecordSettings, Places, record_pipeline,
};
use jitterscope_recording::{
    AttachSettings, Extra, Followed, Observer, Outcome, Output, Owners, PassiveRecordSettings,
    Progress, RecordError, RecordSettings, RunSettings, WriterThread, attach, record,
    record_passive, replay,
};
use jitterscope_source::Tracefs;
use jitterscope_store::RunReader;
use jitterscope_testing::{Tmpfs, is_root, turn};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn can_trace() -> bool {
    let can = Tracefs::open(&Machine::host())
        .map_err(|error| jitterscope_testing::skip(&format!("no kernel events: {error}")));
    can.is_ok()
}

fn measured() -> CpuChoice {
    select_cpus(
        None,
        &Topology::read(&Machine::host()),
        &current_affinity().unwrap(),
    )
    .unwrap()
}

fn run_settings(runs: &Path, writer: WriterThread) -> RunSettings {
    RunSettings {
        clock: None,
        trace_buffer_kib: 4096,
        trace_limit_bytes: 64 << 20,
        asked: Vec::new(),
        tuning: None,
        writer,
        label: "WRITER".into(),
        runs_dir: runs.to_path_buf(),
        command_line: vec!["test".into()],
        profile: None,
    }
}

fn probing(runs: &Path, writer: WriterThread) -> RecordSettings {
    RecordSettings {
        run: run_settings(runs, writer),
        cpus: measured(),
        wakeup: None,
        duration: Nanos(700_000_000),
        warmup: Nanos(100_000_000),
        threshold: Some(Nanos(1_000)),
        interval: Nanos(100_000_000),
        fifo_priority: None,
        events: Some(EventGrain::All),
        graph: Vec::new(),
    }
}

/// Nice value, real-time priority and scheduling class of the calling thread (proc_pid_stat(5)).
fn scheduled() -> String {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 1..]
        .split_whitespace()
        .collect();
    // The first entry of `fields` is field 3.
    [19, 40, 41].map(|number| fields[number - 3]).join(" ")
}

/// The calling thread, its affinity and scheduling, and the rows that it is given.
#[derive(Default)]
struct Caller {
    threads: BTreeSet<(i32, String)>,
    may_run_on: Option<CpuSet>,
    scheduled: String,
    stalls: u64,
    wholes: u64,
    turns: u64,
    ticks: u64,
    ends: u64,
}

impl Sink for Caller {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Stall(..) => self.stalls += 1,
                Row::Whole(..) => self.wholes += 1,
                Row::Turn(_) => self.turns += 1,
                Row::Interval(..) | Row::Page(_) | Row::Context(_) => {}
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        self.threads.insert((current_tid(), name));
        self.may_run_on = current_affinity().ok();
        self.scheduled = scheduled();
        self.ticks += 1;
        Ok(self.stalls)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        self.ends += 1;
        Ok(Delivery::of(self.stalls))
    }
}

/// Checks every recording with a writer thread.
fn assert_taken_apart(outcome: &Outcome, caller: &Caller) -> RunReader {
    let run = RunReader::open(&outcome.path).unwrap();
    let manifest = run.manifest();
    assert_eq!(manifest, &outcome.manifest);
    let used = outcome.writer.expect("a thread of its own took the rows");
    assert!(
        used.cpu_time > Nanos::ZERO && manifest.self_noise.helper_cpu_ns > used.cpu_time,
        "{used:?}"
    );
    if let Some(events) = &manifest.self_noise.events {
        assert!(events.helper_ns > used.cpu_time, "{events:?} of {used:?}");
    }
    let threads: Vec<&str> = caller.threads.iter().map(|(_, name)| &**name).collect();
    assert_eq!(threads, ["js-writer"]);
    assert!(caller.threads.iter().all(|(tid, _)| *tid != current_tid()));
    assert_eq!(caller.scheduled, scheduled(), "as the thread that drains");
    let helpers = &manifest.self_noise.helper_cpus;
    if !helpers.is_empty() {
        assert_eq!(
            caller.may_run_on.as_ref(),
            Some(helpers),
            "it keeps to the CPUs that are not measured"
        );
    }
    assert_eq!(run.stalls().unwrap().count() as u64, caller.stalls);
    assert!(caller.ticks > 0 && caller.ends == 1);
    assert_eq!(outcome.outputs[0].delivery, Delivery::of(caller.stalls));
    run
}

#[test]
fn probes_are_recorded_and_replay_alike() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut caller = Caller::default();
    let settings = probing(dir.path(), WriterThread::Own);
    let extra = Extra {
        outputs: vec![Output::to("caller", &mut caller)],
        ..Extra::default()
    };
    let outcome = record(
        &Machine::host(),
        &settings,
        extra,
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = assert_taken_apart(&outcome, &caller);
    assert!(caller.stalls > 0);
    let result = &run.manifest().results[0];
    assert_eq!(caller.stalls + result.dropped_records, result.stalls);
    if !run.manifest().attributed {
        jitterscope_testing::skip("in part: no kernel events here, so nothing was attributed");
        return;
    }
    assert!(caller.turns > 0 && run.manifest().trace.complete);
    let stalls = run.stalls().unwrap().map(Result::unwrap);
    let live: Vec<_> = stalls
        .zip(run.attributions().unwrap().map(|own| Some(own.unwrap())))
        .collect();
    let mut again = Vec::new();
    replay(&run, &mut |stall, attribution| {
        again.push((*stall, attribution))
    })
    .unwrap();
    assert!(
        live == again,
        "{} of {} stalls",
        live.iter().zip(&again).filter(|(a, b)| a == b).count(),
        live.len()
    );
}

#[test]
fn one_thread_does_both_unless_two_cpus_are_free() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for writer in [WriterThread::WhereRoom, WriterThread::Drain] {
        let settings = RecordSettings {
            events: None,
            ..probing(dir.path(), writer)
        };
        let outcome = record(
            &Machine::host(),
            &settings,
            Extra::default(),
            &AtomicBool::new(false),
            &mut (),
        )
        .unwrap();
        let helpers = outcome.manifest.self_noise.helper_cpus.len();
        assert_eq!(
            outcome.writer.is_some(),
            writer == WriterThread::WhereRoom && helpers >= 2,
            "{helpers}"
        );
    }
}

#[test]
fn followed_threads_are_recorded() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let line = [
        "sh",
        "-c",
        "n=0; while [ $n -lt 60 ]; do sleep 0.003; n=$((n+1)); done",
    ];
    let settings = AttachSettings {
        stacks: true,
        run: run_settings(dir.path(), WriterThread::Own),
        wait: false,
        followed: Followed::Command {
            line: line.map(str::to_owned).to_vec(),
            env: Vec::new(),
            to_stderr: true,
        },
        most_threads: None,
        children: true,
        duration: Some(Nanos(10_000_000_000)),
        threshold: Nanos(2_000),
    };
    let mut caller = Caller::default();
    let outputs = vec![Output::to("caller", &mut caller)];
    let outcome = attach(
        &Machine::host(),
        &settings,
        outputs,
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = assert_taken_apart(&outcome, &caller);
    assert!(outcome.command.is_some_and(|status| status.success()));
    assert!(run.manifest().threads.len() > 30 && caller.stalls > 0 && caller.turns > 0);
}

#[test]
fn watched_cpus_are_recorded() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = PassiveRecordSettings {
        run: run_settings(dir.path(), WriterThread::Own),
        cpus: measured(),
        owners: Owners::Named("nobody-of-this".into()),
        duration: Nanos(600_000_000),
        look: Nanos(100_000_000),
        threshold: Nanos(0),
        interval: Nanos(100_000_000),
        events: EventGrain::All,
    };
    let mut caller = Caller::default();
    let outputs = vec![Output::to("caller", &mut caller)];
    let outcome = record_passive(
        &Machine::host(),
        &settings,
        outputs,
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = assert_taken_apart(&outcome, &caller);
    assert!(!run.manifest().passive.is_empty() && caller.turns > 0);
    replay(&run, &mut |_, _| {}).unwrap();
}

#[test]
fn a_pipeline_is_recorded() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = PipelineRecordSettings {
        run: run_settings(&dir.path().join("runs"), WriterThread::Own),
        record_length: 64,
        input: InputChoice::Made {
            folder: dir.path().join("input"),
            records: 100,
        },
        ring: 1024,
        interval: Nanos(20_000),
        pacing: PipelinePacing::Schedule,
        length: PipelineLength::Messages(20_000),
        warm_up_messages: 1_000,
        pause: Nanos(10_000_000),
        journaller: true,
        journal: None,
        writing: JournalWriting::Mapped,
        via: PipelineVia::Ring,
        places: Places::default(),
        slow_above: Some(Nanos(100_000)),
        reporting: Nanos(50_000_000),
        trace: is_root(),
        force: true,
    };
    let mut caller = Caller::default();
    let outputs = vec![Output::to("caller", &mut caller)];
    let outcome = record_pipeline(
        &Machine::host(),
        &settings,
        outputs,
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = assert_taken_apart(&outcome, &caller);
    // The histograms of the whole measurement come last, after the thread has ended.
    assert!(caller.wholes > 0);
    let written = run
        .manifest()
        .pipeline
        .as_ref()
        .and_then(|result| result.journal.as_ref());
    assert!(
        written.is_some_and(|journal| journal.written > 0),
        "{written:?}"
    );
}

/// Interrupts the recording at the first reported progress.
struct Interrupts<'a>(&'a AtomicBool);

impl Observer for Interrupts<'_> {
    fn progress(&mut self, progress: &Progress) {
        if progress.elapsed > Nanos::ZERO {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn who_interrupts_it_keeps_what_was_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut caller = Caller::default();
    let hour = Nanos(3_600_000_000_000);
    let settings = RecordSettings {
        duration: hour,
        ..probing(dir.path(), WriterThread::Own)
    };
    let extra = Extra {
        outputs: vec![Output::to("caller", &mut caller)],
        ..Extra::default()
    };
    let stop = AtomicBool::new(false);
    let outcome = record(
        &Machine::host(),
        &settings,
        extra,
        &stop,
        &mut Interrupts(&stop),
    )
    .unwrap();
    let run = assert_taken_apart(&outcome, &caller);
    assert!(run.manifest().interrupted && run.manifest().results[0].samples > 0);
}

/// Takes no row: fails or panics.
struct Broken {
    panics: bool,
}

impl Sink for Broken {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        if batch.iter().any(|row| matches!(row, Row::Stall(..))) {
            assert!(!self.panics, "a sink that panics, as a test asks for");
            return Err(SinkError::new(std::io::Error::from(
                std::io::ErrorKind::StorageFull,
            )));
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        panic!("what has failed is asked no more")
    }
}

#[test]
fn an_essential_output_that_fails_ends_it_with_what_was_measured() {
    #[derive(Default)]
    struct Heard(Vec<String>);
    impl Observer for Heard {
        fn output_failed(&mut self, output: &str, why: &SinkError) {
            self.0.push(format!("{output}: {why}"));
        }
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let (mut broken, mut caller, mut heard) = (
        Broken { panics: false },
        Caller::default(),
        Heard::default(),
    );
    let settings = RecordSettings {
        duration: Nanos(3_600_000_000_000),
        ..probing(dir.path(), WriterThread::Own)
    };
    let outputs = vec![
        Output::to("caller", &mut caller),
        Output::to("broken", &mut broken).essential(),
    ];
    let extra = Extra {
        outputs,
        ..Extra::default()
    };
    let outcome = record(
        &Machine::host(),
        &settings,
        extra,
        &AtomicBool::new(false),
        &mut heard,
    )
    .unwrap();
    assert_eq!(heard.0.len(), 1, "reported once: {:?}", heard.0);
    let run = assert_taken_apart(&outcome, &caller);
    assert!(run.manifest().interrupted);
    let lost = run
        .manifest()
        .warnings
        .iter()
        .find_map(|warning| match warning {
            Warning::OutputLost {
                output,
                lost,
                delivered,
                ..
            } => Some((output.as_str(), *lost, *delivered)),
            _ => None,
        });
    assert_eq!(lost, Some(("broken", caller.stalls, 0)));
}

#[test]
fn a_panic_of_a_sink_is_an_error_and_leaves_no_run_and_no_tracer() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = RecordSettings {
        duration: Nanos(3_600_000_000_000),
        ..probing(dir.path(), WriterThread::Own)
    };
    let mut broken = Broken { panics: true };
    let extra = Extra {
        outputs: vec![Output::to("broken", &mut broken)],
        ..Extra::default()
    };
    let before = current_affinity().unwrap();
    let error = record(
        &Machine::host(),
        &settings,
        extra,
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap_err();
    assert!(
        matches!(&error, RecordError::Output(why) if why.to_string().contains("panicked")),
        "{error:?}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(current_affinity().unwrap(), before);
    let settings = probing(dir.path(), WriterThread::Own);
    let outcome = record(
        &Machine::host(),
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let left = |warning: &Warning| matches!(warning, Warning::LeftoversRemoved { .. });
    assert!(
        !outcome.manifest.warnings.iter().any(left),
        "{:?}",
        outcome.manifest.warnings
    );
}

/// Fills a disk once the measurement has begun.
struct Fills<'a>(&'a Path);

impl Observer for Fills<'_> {
    fn measuring(&mut self, _threshold: Nanos) {
        let mut other = File::create(self.0.join("other")).unwrap();
        let block = vec![1; 64 << 10];
        while other.write_all(&block).is_ok() {}
    }
}

#[test]
fn a_disk_that_fills_up_ends_it_with_what_was_measured() {
    let Some(disk) = Tmpfs::mount(100 << 20) else {
        return;
    };
    let _turn = turn();
    let mut caller = Caller::default();
    let settings = RecordSettings {
        duration: Nanos(3_600_000_000_000),
        ..probing(disk.path(), WriterThread::Own)
    };
    let extra = Extra {
        outputs: vec![Output::to("caller", &mut caller)],
        ..Extra::default()
    };
    let stop = AtomicBool::new(false);
    let outcome = record(
        &Machine::host(),
        &settings,
        extra,
        &stop,
        &mut Fills(disk.path()),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    assert!(run.manifest().interrupted && outcome.writer.is_some());
    let reported = run
        .manifest()
        .warnings
        .iter()
        .find_map(|warning| match warning {
            Warning::DiskFull { unstored } => Some(*unstored),
            _ => None,
        });
    let stored = run.stalls().unwrap().count() as u64;
    assert_eq!(
        reported.map(|unstored| stored + unstored),
        Some(caller.stalls)
    );
}
