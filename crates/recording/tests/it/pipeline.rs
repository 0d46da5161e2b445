//! Recordings of the pipeline on the machine that runs the tests.

use jitterscope_model::{
    AnyVersion, CpuSet, JournalFault, JournalReader, JournalWriting, MessageTimes, Misfit, Nanos,
    PipelineJournal, PipelinePacing, PipelineResult, PipelineRole, PipelineVia, Stall,
};
use jitterscope_platform::{Machine, MappedFile, Topology, current_affinity};
use jitterscope_recording::pipeline::{
    InputChoice, PipelineLength, PipelineRecordError, PipelineRecordSettings, Places,
    record_pipeline,
};
use jitterscope_recording::{Observer, RecordError, RunSettings, Step, WriterThread};
use jitterscope_store::RunReader;
use jitterscope_testing::{Tmpfs, turn};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn settings(dir: &Path) -> PipelineRecordSettings {
    PipelineRecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 1024,
            trace_limit_bytes: 1 << 20,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: "PIPE".into(),
            runs_dir: dir.join("runs"),
            command_line: vec!["test".into()],
            profile: None,
        },
        record_length: 64,
        input: InputChoice::Made {
            folder: dir.join("input"),
            records: 100,
        },
        ring: 1024,
        interval: Nanos(20_000),
        pacing: PipelinePacing::Schedule,
        length: PipelineLength::Messages(5_000),
        warm_up_messages: 1_000,
        pause: Nanos(10_000_000),
        journaller: false,
        journal: None,
        writing: JournalWriting::Mapped,
        via: PipelineVia::Ring,
        places: Places::default(),
        slow_above: None,
        reporting: Nanos(50_000_000),
        trace: false,
        // The test machine may be smaller than the pipeline needs.
        force: true,
    }
}

fn run(settings: &PipelineRecordSettings) -> RunReader {
    let outcome = record_pipeline(
        &Machine::host(),
        settings,
        Vec::new(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    assert_eq!(run.manifest(), &outcome.manifest);
    run
}

fn count(times: &MessageTimes) -> u64 {
    times.plain.iter().map(|(_, n)| n).sum()
}

/// Checks that apply to every run.
fn check(run: &RunReader) -> PipelineResult {
    let manifest = run.manifest();
    let pipeline = manifest.pipeline.clone().unwrap();
    assert_eq!(manifest.probe.kind, "pipeline");
    let sent = pipeline.producer.sent;
    for times in [&pipeline.producer.inter, &pipeline.producer.lateness] {
        assert_eq!((times.count, count(times)), (sent, sent));
    }
    for consumer in &pipeline.consumers {
        assert_eq!(
            (consumer.received, consumer.disordered),
            (sent, 0),
            "{}",
            consumer.role
        );
        for times in [&consumer.transit, &consumer.from_intended, &consumer.inter] {
            assert_eq!(
                (times.count, count(times)),
                (sent, sent),
                "{}",
                consumer.role
            );
            assert!(times.min <= times.mean() && times.mean() <= times.max);
            assert_eq!(times.quantile(1.0), times.max);
        }
        assert!(consumer.from_intended.max >= consumer.transit.max);
    }
    let stalls: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
    let slow: u64 = pipeline
        .consumers
        .iter()
        .map(|c| c.slow - c.slow_dropped)
        .sum();
    assert_eq!(stalls.len() as u64, slow);
    for stall in &stalls {
        let of = pipeline
            .threads
            .iter()
            .find(|thread| thread.tid == stall.victim.tid)
            .unwrap();
        assert_ne!(of.role, PipelineRole::Producer);
        assert_eq!(of.comm, stall.victim.comm.to_string());
        let consumer = pipeline.consumer(of.role).unwrap();
        assert!(manifest.rate.nanos(stall.length()) <= consumer.from_intended.max);
    }
    let intervals: Vec<_> = run.intervals().unwrap().map(Result::unwrap).collect();
    // Intervals also count messages without a row.
    let all: u64 = pipeline.consumers.iter().map(|c| c.slow).sum();
    let counted = intervals.iter().map(|row| row.count).sum::<u64>();
    assert_eq!(counted, all);
    let lengths = run
        .interval_histograms()
        .unwrap()
        .map(Result::unwrap)
        .take(intervals.len());
    assert_eq!(lengths.map(|of| of.histogram.len()).sum::<u64>(), all);
    assert!(
        intervals
            .iter()
            .all(|row| row.stolen <= manifest.rate.nanos(row.end.since(row.start)) + row.max)
    );
    let tags: Vec<_> = run
        .interval_histograms()
        .unwrap()
        .map(Result::unwrap)
        .skip(intervals.len())
        .collect();
    let transit = tags
        .iter()
        .find(|h| h.tag == "pipeline-accumulator-transit")
        .unwrap();
    assert_eq!(
        (transit.histogram.len(), tags.len()),
        (sent, 2 + 3 * pipeline.consumers.len())
    );
    assert!(manifest.self_noise.peak_rss_bytes > 0);
    pipeline
}

#[test]
fn every_histogram_counts_every_message() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let run = run(&settings(dir.path()));
    let pipeline = check(&run);
    assert_eq!(
        (pipeline.producer.sent, pipeline.setup.warm_up_messages),
        (5_000, 1_000)
    );
    assert!(pipeline.producer.completed && !run.manifest().interrupted);
    assert!(pipeline.journal.is_none() && run.journal().is_none());
}

#[test]
fn a_length_of_time_is_kept_and_the_slow_ones_are_rows() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let time = Nanos(200_000_000);
    let settings = PipelineRecordSettings {
        length: PipelineLength::Time(time),
        slow_above: Some(Nanos(1)),
        pacing: PipelinePacing::AfterPublication,
        ..settings(dir.path())
    };
    let run = run(&settings);
    let pipeline = check(&run);
    assert!(
        pipeline.producer.sent > 0 && pipeline.producer.sent <= time.0 / settings.interval.0 + 1
    );
    let accumulator = pipeline.consumer(PipelineRole::Accumulator).unwrap();
    assert_eq!(
        accumulator.slow, accumulator.received,
        "above a nanosecond all are slow"
    );
    let took = run
        .manifest()
        .rate
        .nanos(pipeline.end.since(pipeline.start));
    assert!(took >= Nanos(time.0 - settings.interval.0), "{took}");
}

fn entries(path: &Path, journal: &PipelineJournal) {
    let map = MappedFile::open(path).unwrap();
    assert_eq!(map.as_ref().len() as u64, journal.written * 32);
    let read: Vec<_> = JournalReader::new(map.as_ref())
        .map(Result::unwrap)
        .collect();
    assert_eq!(read.len() as u64, journal.written);
    assert!(read.iter().zip(0..).all(|(entry, n)| entry.sequence == n));
    assert!(
        read.iter()
            .all(|e| e.journalled_ns - e.published_ns == e.delta_ns && e.delta_ns >= 0)
    );
}

#[test]
fn the_journal_holds_every_message() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    // More than one piece of the journal.
    let messages = 20_000;
    let settings = PipelineRecordSettings {
        journaller: true,
        length: PipelineLength::Messages(messages),
        ..settings(dir.path())
    };
    let run = run(&settings);
    let pipeline = check(&run);
    let journal = pipeline.journal.unwrap();
    assert_eq!(
        (journal.written, journal.unwritten, journal.ended.as_ref()),
        (messages, 0, None)
    );
    entries(&run.journal().unwrap(), &journal);
    let delta_max = {
        let map = MappedFile::open(&run.journal().unwrap()).unwrap();
        JournalReader::new(map.as_ref())
            .map(|entry| entry.unwrap().delta_ns)
            .max()
            .unwrap()
    };
    let journaller = pipeline
        .consumers
        .iter()
        .find(|c| c.role == PipelineRole::Journaller)
        .unwrap();
    assert_eq!(
        delta_max as u64, journaller.transit.max.0,
        "the journal and the histogram agree"
    );
}

#[test]
fn a_full_disk_ends_the_journal_and_keeps_what_was_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(1280 << 10) else {
        return;
    };
    let path = disk.path().join("journal");
    let settings = PipelineRecordSettings {
        journaller: true,
        journal: Some(path.clone()),
        length: PipelineLength::Messages(10_000_000),
        interval: Nanos(5_000),
        ..settings(dir.path())
    };
    let run = run(&settings);
    let pipeline = check(&run);
    assert!(run.manifest().interrupted && !pipeline.producer.completed);
    let journal = pipeline.journal.unwrap();
    let end = journal.ended.clone().unwrap();
    let AnyVersion::Known(JournalFault::System { system: why }) = &end.why else {
        panic!("{end:?}")
    };
    assert!(end.disk_full && why.contains("make room"), "{end:?}");
    assert!(journal.written > 0 && journal.written + journal.unwritten == pipeline.producer.sent);
    assert!(
        run.manifest()
            .warnings
            .iter()
            .any(|warning| warning.id() == "journal-disk-full")
    );
    entries(&path, &journal);
}

/// Stops as soon as something was measured.
struct Impatient<'a>(&'a AtomicBool);

impl Observer for Impatient<'_> {
    fn progress(&mut self, progress: &jitterscope_recording::Progress) {
        if progress.elapsed > Nanos(100_000_000) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_keeps_what_was_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = PipelineRecordSettings {
        length: PipelineLength::Time(Nanos(3_600_000_000_000)),
        ..settings(dir.path())
    };
    let stop = AtomicBool::new(false);
    let outcome = record_pipeline(
        &Machine::host(),
        &settings,
        Vec::new(),
        &stop,
        &mut Impatient(&stop),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    let pipeline = check(&run);
    assert!(
        run.manifest().interrupted && pipeline.producer.sent > 0 && !pipeline.producer.completed
    );
    assert!(
        run.manifest()
            .warnings
            .iter()
            .any(|warning| warning.id() == "interrupted")
    );
}

struct StopAt<'a>(&'a AtomicBool, fn(&Step<'_>) -> bool, Vec<&'static str>);

impl Observer for StopAt<'_> {
    fn step(&mut self, step: Step<'_>) {
        self.2.push(match step {
            Step::Starting => "starting",
            Step::Threads(threads) => {
                assert!(threads.iter().all(|(_, thread)| thread.tid > 0));
                "threads"
            }
            Step::WarmUpComplete => "warm",
            Step::Pausing(_) => "pausing",
            Step::Executing => "executing",
        });
        if (self.1)(&step) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_before_the_measurement_leaves_nothing() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let settings = PipelineRecordSettings {
        pause: Nanos(60_000_000_000),
        ..settings(dir.path())
    };
    let mut observer = StopAt(&stop, |step| matches!(step, Step::Pausing(_)), Vec::new());
    let begun = std::time::Instant::now();
    let outcome = record_pipeline(
        &Machine::host(),
        &settings,
        Vec::new(),
        &stop,
        &mut observer,
    );
    assert!(
        matches!(
            outcome,
            Err(PipelineRecordError::Record(RecordError::InterruptedEarly))
        ),
        "{outcome:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "the pause was not waited out"
    );
    assert_eq!(observer.2, ["starting", "threads", "warm", "pausing"]);
    assert_eq!(
        std::fs::read_dir(dir.path().join("runs")).unwrap().count(),
        0
    );
}

#[test]
fn what_does_not_fit_is_refused_unless_forced() {
    let dir = tempfile::tempdir().unwrap();
    let cpu = current_affinity().unwrap().first();
    let mut settings = PipelineRecordSettings {
        force: false,
        ..settings(dir.path())
    };
    settings.places.producer.cpu = cpu;
    settings.places.accumulator.cpu = cpu;
    let refuse = |settings: &PipelineRecordSettings| {
        record_pipeline(
            &Machine::host(),
            settings,
            Vec::new(),
            &AtomicBool::new(false),
            &mut (),
        )
        .unwrap_err()
    };
    let refused = refuse(&settings);
    let PipelineRecordError::Misfit(misfits) = &refused else {
        panic!("{refused}")
    };
    assert!(
        matches!(&misfits[..], [Misfit::SameCpu { .. }]),
        "{misfits:?}"
    );
    assert!(refused.to_string().contains("--force"), "{refused}");
    let present: CpuSet = Topology::read(&Machine::host()).present;
    settings.places.producer.cpu = Some(jitterscope_model::CpuId(present.last().unwrap().0 + 1));
    settings.force = true;
    assert!(
        matches!(refuse(&settings), PipelineRecordError::Cpu(_)),
        "an absent CPU cannot be forced"
    );

    settings.places.producer.cpu = cpu;
    settings.places.producer.fifo_priority = Some(1);
    assert!(
        matches!(refuse(&settings), PipelineRecordError::WouldHang),
        "nor can threads that starve each other"
    );
}
