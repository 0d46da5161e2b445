//! A replay of a stored run gives the live results, for every kind and stall by stall. Records live, so it needs root
//! and tracefs; without them the tests are skipped.

use crate::passive::BusyLoop;
use jitterscope_analyze::{RowSummer, RowSums, RowsOf, SummaryBuilder, timer_frequency};
use jitterscope_model::{
    Attribution, CpuSet, EventGrain, Evidence, JournalWriting, Nanos, PipelinePacing, PipelineVia,
    Stall,
};
use jitterscope_platform::{CpuChoice, Machine, Topology, current_affinity, select_cpus};
use jitterscope_recording::pipeline::{
    InputChoice, PipelineLength, PipelineRecordSettings, Places, record_pipeline,
};
use jitterscope_recording::{
    AttachSettings, Extra, Followed, RecordSettings, Replayed, RunSettings, WakeupChoice,
    WriterThread, attach, record, replay,
};
use jitterscope_source::Tracefs;
use jitterscope_store::RunReader;
use jitterscope_testing::turn;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

pub(crate) fn can_trace() -> bool {
    match Tracefs::open(&Machine::host()) {
        Ok(_) => true,
        Err(error) => {
            jitterscope_testing::skip(&format!("no kernel events here: {error}"));
            false
        }
    }
}

/// Starts processes all the time, on every CPU. Ends when dropped.
pub(crate) struct Busy(Child);

impl Busy {
    pub(crate) fn start() -> Busy {
        Busy::with("0.003")
    }

    /// Each process lives for so many seconds.
    fn with(seconds: &str) -> Busy {
        // It ends by itself if the test does not end it.
        let line = format!("n=0; while [ $n -lt 3000 ]; do sleep {seconds}; n=$((n+1)); done");
        let child = Command::new("sh")
            .args(["-c", &line])
            .stdout(Stdio::null())
            .spawn();
        Busy(child.expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn settings(runs: &Path) -> RecordSettings {
    let topology = Topology::read(&Machine::host());
    RecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 64 << 20,
            asked: Vec::new(),
            label: "REPLAY".into(),
            runs_dir: runs.to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
            tuning: None,
            writer: WriterThread::default(),
        },
        cpus: select_cpus(None, &topology, &current_affinity().unwrap()).unwrap(),
        wakeup: None,
        duration: Nanos(1_000_000_000),
        warmup: Nanos(300_000_000),
        threshold: Some(Nanos(300)),
        interval: Nanos(100_000_000),
        fifo_priority: None,
        events: Some(EventGrain::All),
        graph: Vec::new(),
    }
}

pub(crate) type Rows = Vec<(Stall, Option<Attribution>)>;

pub(crate) fn stored(run: &RunReader) -> Rows {
    let mut attributions = run.attributions().unwrap().map(Result::unwrap).peekable();
    let of = |stall: Stall| {
        (
            stall,
            attributions.next_if(|attribution| attribution.stall == stall.id),
        )
    };
    run.stalls().unwrap().map(Result::unwrap).map(of).collect()
}

pub(crate) fn replayed(run: &RunReader) -> (Rows, Replayed) {
    let mut rows = Rows::new();
    let replayed = replay(run, &mut |stall, attribution| {
        rows.push((*stall, attribution))
    })
    .unwrap();
    assert_eq!(rows.len() as u64, replayed.stalls);
    (rows, replayed)
}

/// Checks that every stall is found again, with the same parts, to the nanosecond and the word.
pub(crate) fn assert_same(live: &Rows, again: &Rows) {
    let differing: Vec<_> = live
        .iter()
        .zip(again)
        .filter(|(live, again)| live != again)
        .collect();
    for (live, again) in differing.iter().take(5) {
        eprintln!("live:     {live:#?}\nreplayed: {again:#?}");
    }
    assert!(
        differing.is_empty(),
        "{} of {} stalls differ in replay",
        differing.len(),
        live.len()
    );
    assert_eq!(live.len(), again.len());
    assert!(
        live.iter().all(|(_, attribution)| attribution.is_some()),
        "a stall has no verdict"
    );
}

/// Checks that the sums made while recording match the rows.
fn assert_summed_up(run: &RunReader, live: &Rows) {
    let of = RowsOf::run(run.manifest());
    let mut again = RowSummer::stored(of);
    for (stall, attribution) in live {
        again.stall(stall);
        attribution
            .iter()
            .for_each(|attribution| again.attribution(attribution));
    }
    let kernel_hz = run.machine().unwrap().as_ref().and_then(timer_frequency);
    let kept: RowSums = run.summary().unwrap().expect("the run keeps its sums");
    assert!(kept.is_current());
    assert_eq!(kept, again.finish(run.manifest(), kernel_hz));
}

fn check_probes(settings: &RecordSettings) -> Rows {
    let outcome = record(
        &Machine::host(),
        settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    assert!(run.manifest().trace.complete);
    assert_eq!(
        run.manifest(),
        &outcome.manifest,
        "what is stored is what the recording says of itself"
    );
    let live = stored(&run);
    assert_summed_up(&run, &live);
    let (again, replayed) = replayed(&run);
    assert_same(&live, &again);
    assert_eq!(replayed.without_trace, 0);
    assert_eq!(replayed.events_in_gaps, Some(run.manifest().events_in_gaps));
    live
}

#[test]
fn spinning_probes_replay_as_they_were() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let _busy = Busy::start();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path());
    let live = check_probes(&settings);
    assert!(
        live.len() > 100,
        "hardly a stall in a second: {}",
        live.len()
    );
    // All of them: stalls that begin together must be distinguished from others, too.
    settings.cpus = CpuChoice {
        cpus: current_affinity().unwrap(),
        because: None,
    };
    settings.warmup = Nanos::ZERO;
    check_probes(&settings);
}

#[test]
fn sleeping_probes_replay_as_they_were() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let _busy = Busy::start();
    let dir = tempfile::tempdir().unwrap();
    let settings = RecordSettings {
        wakeup: Some(WakeupChoice {
            period: Nanos(500_000),
            hold_latency: false,
            idle_control: None,
        }),
        threshold: Some(Nanos(2_000)),
        ..settings(dir.path())
    };
    let live = check_probes(&settings);
    assert!(
        live.len() > 100,
        "hardly a late wake-up in a second: {}",
        live.len()
    );
}

#[test]
fn lost_records_replay_as_losses() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let _busy = Busy::start();
    let dir = tempfile::tempdir().unwrap();
    // A buffer so small that it overflows within a turn of the drain.
    let mut settings = RecordSettings {
        threshold: Some(Nanos(300)),
        ..settings(dir.path())
    };
    settings.run.trace_buffer_kib = 8;
    let live = check_probes(&settings);
    let lost = |attribution: &Attribution| {
        attribution
            .parts
            .iter()
            .any(|part| part.evidence == Evidence::LostRecords)
    };
    let without = live
        .iter()
        .filter(|(_, attribution)| attribution.as_ref().is_some_and(lost))
        .count();
    eprintln!("{without} of {} stalls near lost records", live.len());
}

#[test]
fn a_part_of_a_trace_replays_that_part() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let _busy = Busy::start();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = RecordSettings {
        cpus: CpuChoice {
            cpus: current_affinity().unwrap(),
            because: None,
        },
        duration: Nanos(2_000_000_000),
        ..settings(dir.path())
    };
    let stop = AtomicBool::new(false);
    let made = |settings: &RecordSettings| {
        let outcome = record(&Machine::host(), settings, Extra::default(), &stop, &mut ());
        RunReader::open(&outcome.unwrap().path).unwrap()
    };
    // Room for a quarter of the trace, however busy the machine is.
    settings.run.trace_limit_bytes = made(&settings).manifest().trace.bytes / 4;
    let run = made(&settings);
    if run.manifest().trace.complete {
        return jitterscope_testing::skip("hardly an event in two seconds");
    }
    let live = stored(&run);
    let (again, replayed) = replayed(&run);
    assert_eq!(live.len(), again.len());
    assert!(
        live.iter()
            .zip(&again)
            .all(|(live, again)| live.0 == again.0)
    );
    let kept = again
        .iter()
        .filter(|(_, attribution)| attribution.is_some())
        .count() as u64;
    assert!(
        0 < kept && kept < live.len() as u64,
        "{kept} of {}",
        live.len()
    );
    assert_eq!(replayed.without_trace, live.len() as u64 - kept);
    assert_eq!(replayed.events_in_gaps, None, "it cannot be counted again");
    for (stall, attribution) in &again {
        if let Some(attribution) = attribution {
            assert_eq!(
                attribution.total(),
                run.manifest().rate.nanos(stall.length())
            );
            let lost = attribution
                .parts
                .iter()
                .any(|part| part.evidence == Evidence::LostRecords);
            assert!(
                !lost,
                "a page that was given up is no loss: {attribution:?}"
            );
        }
    }
}

#[test]
fn followed_threads_replay_as_they_were() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let busy = Busy::start();
    // The user of a process is read while it lives. These live long enough for that.
    let _longer = ["0.1"; 8].map(Busy::with);
    // Some kernels record no switch from an idle CPU, and then a wake-up there is no wait.
    let _loops: Vec<BusyLoop> = current_affinity()
        .unwrap()
        .iter()
        .map(BusyLoop::start)
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let of = |followed| AttachSettings {
        stacks: true,
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 64 << 20,
            asked: Vec::new(),
            label: "REPLAY".into(),
            runs_dir: dir.path().to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
            tuning: None,
            writer: WriterThread::default(),
        },
        // Between two threads of the name there may be none at the moment of the check.
        wait: matches!(followed, Followed::Named { .. }),
        followed,
        most_threads: None,
        children: true,
        duration: Some(Nanos(3_000_000_000)),
        threshold: Nanos(2_000),
    };
    let line = [
        "sh",
        "-c",
        "n=0; while [ $n -lt 50 ]; do sleep 0.002; n=$((n+1)); done",
    ];
    for target in [
        Followed::Process(busy.0.id().cast_signed()),
        Followed::Named {
            name: "sleep".into(),
            user: None,
        },
        Followed::Named {
            name: "sleep".into(),
            user: Some(0),
        },
        Followed::Command {
            line: line.map(str::to_owned).to_vec(),
            env: Vec::new(),
            to_stderr: true,
        },
    ] {
        let outcome = attach(
            &Machine::host(),
            &of(target),
            Vec::new(),
            &AtomicBool::new(false),
            &mut (),
        )
        .unwrap();
        let run = RunReader::open(&outcome.path).unwrap();
        assert!(run.manifest().trace.complete);
        assert_eq!(run.manifest(), &outcome.manifest);
        let live = stored(&run);
        let (again, replayed) = replayed(&run);
        assert!(live.len() > 20, "hardly a wait: {}", live.len());
        assert_same(&live, &again);
        assert_eq!(replayed.threads.as_deref(), Some(&*run.manifest().threads));
        let intervals: Vec<_> = run.intervals().unwrap().map(Result::unwrap).collect();
        assert_eq!(replayed.intervals, Some(intervals));
    }
}

/// A pipeline of small messages, on the available CPUs.
pub(crate) fn piped(folder: &Path) -> PipelineRecordSettings {
    PipelineRecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 64 << 20,
            asked: Vec::new(),
            label: "REPLAY".into(),
            runs_dir: folder.join("runs"),
            command_line: vec!["test".into()],
            profile: None,
            tuning: None,
            writer: WriterThread::default(),
        },
        record_length: 64,
        input: InputChoice::Made {
            folder: folder.join("input"),
            records: 100,
        },
        ring: 1024,
        interval: Nanos(50_000),
        pacing: PipelinePacing::Schedule,
        length: PipelineLength::Messages(10_000),
        warm_up_messages: 1_000,
        pause: Nanos(10_000_000),
        journaller: false,
        journal: None,
        writing: JournalWriting::Mapped,
        via: PipelineVia::Ring,
        places: Places::default(),
        slow_above: Some(Nanos(20_000)),
        reporting: Nanos(50_000_000),
        trace: true,
        // The test machine may be smaller than the pipeline needs.
        force: true,
    }
}

#[test]
fn slow_messages_replay_as_they_were() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let _busy = Busy::start();
    let dir = tempfile::tempdir().unwrap();
    let settings = piped(dir.path());
    let outcome = record_pipeline(
        &Machine::host(),
        &settings,
        Vec::new(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    let live = stored(&run);
    let (again, replayed) = replayed(&run);
    assert!(!live.is_empty(), "no message took 20 us");
    let mut summary = SummaryBuilder::new(run.manifest())
        .machine(run.machine().unwrap())
        .stored();
    for (stall, attribution) in &live {
        summary.stall(stall);
        attribution
            .iter()
            .for_each(|attribution| summary.attribution(attribution));
    }
    let kept: RowSums = run.summary().unwrap().expect("the run keeps its sums");
    assert!(kept.is_current());
    assert_eq!(kept, summary.into_sums());
    assert_same(&live, &again);
    assert_eq!(replayed.threads.as_deref(), Some(&*run.manifest().threads));
    let cpus: CpuSet = live.iter().map(|(stall, _)| stall.cpu).collect();
    eprintln!("{} slow messages on CPU {cpus}", live.len());
}
