//! Recordings on the machine that runs the tests. Tests that need root and tracefs report when they are skipped.

use jitterscope_model::{CpuSet, CulpritKind, EventGrain, Nanos, TimelineItem, TimelineRow};
use jitterscope_platform::{CpuChoice, Machine, Topology, current_affinity, select_cpus};
use jitterscope_recording::{
    Extra, RecordError, RecordSettings, RunSettings, WriterThread, record, stall_timeline,
};
use jitterscope_source::Tracefs;
use jitterscope_store::RunReader;
use jitterscope_testing::turn;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn settings(runs: &Path, trace: bool) -> RecordSettings {
    let topology = Topology::read(&Machine::host());
    let cpus = select_cpus(None, &topology, &current_affinity().unwrap()).unwrap();
    RecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 64 << 20,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: "TEST".into(),
            runs_dir: runs.to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
        },
        cpus,
        wakeup: None,
        duration: Nanos(1_500_000_000),
        warmup: Nanos(300_000_000),
        threshold: Some(Nanos(300)),
        interval: Nanos(100_000_000),
        fifo_priority: None,
        events: trace.then_some(EventGrain::All),
        graph: Vec::new(),
    }
}

fn can_trace() -> bool {
    match Tracefs::open(&Machine::host()) {
        Ok(_) => true,
        Err(error) => {
            jitterscope_testing::skip(&format!("no kernel events here: {error}"));
            false
        }
    }
}

#[test]
fn events_lie_inside_gaps_and_every_stall_is_split_exactly() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let outcome = record(
        &Machine::host(),
        &settings(dir.path(), true),
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    let manifest = run.manifest();
    let result = &manifest.results[0];

    assert_eq!(
        result.sum_ticks,
        result.end.since(result.start).0,
        "the deltas leave a hole"
    );
    assert_eq!(
        result.samples,
        result.below.iter().map(|r| r.1).sum::<u64>() + result.stalls
    );

    let proof = manifest.events_in_gaps;
    assert!(
        proof.events > 100,
        "hardly an event in a second and a half: {proof:?}"
    );
    let inside = proof.inside as f64 / proof.events as f64;
    let control = proof.control_inside as f64 / proof.control_events.max(1) as f64;
    eprintln!("{proof:?}: {inside} inside, control {control}");
    assert!(inside >= 0.999, "{proof:?}");
    // An event falls into a stall by chance as often as time is stolen, which a busy machine does in bursts.
    let stolen = result.stalled_ticks as f64 / result.sum_ticks as f64;
    assert!(
        control <= 1.5 * stolen + 0.1,
        "control {control}, stolen {stolen}: {proof:?}"
    );

    let stalls: Vec<_> = run.stalls().unwrap().map(Result::unwrap).collect();
    assert_eq!(stalls.len() as u64 + result.dropped_records, result.stalls);
    let mut attributions = run.attributions().unwrap().map(Result::unwrap);
    for stall in &stalls {
        let attribution = attributions.next().expect("every stall is attributed");
        assert_eq!(attribution.stall, stall.id);
        assert_eq!(attribution.total(), manifest.rate.nanos(stall.length()));
    }
    assert!(attributions.next().is_none());
    let counted: u64 = run.intervals().unwrap().map(|row| row.unwrap().count).sum();
    assert_eq!(
        counted, result.stalls,
        "the intervals' counts sum to the stalls"
    );
    // The stored raw trace shows the same stall again, frame by frame.
    let attributed = run.attributions().unwrap().map(Result::unwrap);
    let timer = attributed
        .filter(|a| {
            a.parts
                .iter()
                .any(|p| p.culprit.kind() == CulpritKind::Timer)
        })
        .find_map(|a| stalls.iter().find(|stall| stall.id == a.stall))
        .expect("no timer interrupt in a second and a half");
    let rows = stall_timeline(&run, timer).unwrap();
    let is_timer = |row: &TimelineRow| matches!(&row.item, TimelineItem::Frame { culprit, .. } if culprit.kind() == CulpritKind::Timer);
    assert!(rows.iter().any(is_timer), "{rows:?}");
    let length = manifest.rate.nanos(timer.length());
    assert!(
        rows.iter()
            .all(|row| row.start <= row.end.unwrap_or(length) && row.start <= length)
    );
}

#[test]
fn without_trace_it_still_measures_and_says_what_it_cannot_see() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let outcome = record(
        &Machine::host(),
        &settings(dir.path(), false),
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    assert!(!run.manifest().attributed);
    assert!(
        run.manifest()
            .warnings
            .iter()
            .any(|w| w.id() == "no-kernel-events")
    );
    assert!(
        run.manifest()
            .counters
            .iter()
            .any(|c| c.name.contains("LOC") || c.total > 0)
    );
    assert!(run.stalls().unwrap().count() as u64 > 0);
    assert_eq!(run.attributions().unwrap().count(), 0);
}

#[test]
fn a_stop_keeps_what_was_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut settings = settings(dir.path(), false);
    settings.duration = Nanos(60_000_000_000);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        record(
            &Machine::host(),
            &settings,
            Extra::default(),
            &stop,
            &mut (),
        )
        .unwrap()
    });
    let run = RunReader::open(&outcome.path).unwrap();
    assert!(run.manifest().interrupted);
    let result = &run.manifest().results[0];
    let seconds = run
        .manifest()
        .rate
        .nanos(result.end.since(result.start))
        .as_secs_f64();
    assert!(seconds > 0.1 && seconds < 50.0, "{seconds}");
    assert!(
        run.manifest()
            .warnings
            .iter()
            .any(|w| w.id() == "interrupted")
    );
}

#[test]
fn a_real_time_probe_on_every_cpu_is_refused() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let all: CpuSet = current_affinity().unwrap();
    let mut settings = settings(dir.path(), false);
    settings.cpus = CpuChoice {
        cpus: all,
        because: None,
    };
    settings.fifo_priority = Some(1);
    let refused = record(
        &Machine::host(),
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    );
    assert!(matches!(refused, Err(RecordError::WouldHang)));
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "a refused recording leaves nothing"
    );
}
