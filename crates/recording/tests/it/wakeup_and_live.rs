//! Wake-up recordings and live measurements on the machine that runs the tests.

use jitterscope_model::{
    Attribution, CpuSet, Delivery, EventGrain, Nanos, Row, RunFacts, RunManifest, Sink, SinkError,
    Stall, Ticks, Warning,
};
use jitterscope_platform::{CpuChoice, Machine, Topology, current_affinity, select_cpus};
use jitterscope_recording::{
    Extra, Observer, Output, Progress, RecordSettings, RunSettings, WakeupChoice, WriterThread,
    record,
};
use jitterscope_store::RunReader;
use jitterscope_testing::turn;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn cpus() -> CpuSet {
    let topology = Topology::read(&Machine::host());
    select_cpus(None, &topology, &current_affinity().unwrap())
        .unwrap()
        .cpus
}

fn wakeup_settings(runs_dir: &Path) -> RecordSettings {
    RecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 0,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: "WAKE".into(),
            runs_dir: runs_dir.to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
        },
        cpus: CpuChoice {
            cpus: cpus(),
            because: None,
        },
        wakeup: Some(WakeupChoice {
            period: Nanos(500_000),
            hold_latency: false,
            idle_control: None,
        }),
        duration: Nanos(1_000_000_000),
        warmup: Nanos(100_000_000),
        threshold: Some(Nanos(50_000)),
        interval: Nanos(100_000_000),
        fifo_priority: None,
        events: None,
        graph: Vec::new(),
    }
}

#[test]
fn every_late_wake_up_is_stored_and_split_exactly() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = wakeup_settings(dir.path());
    // So low that hardly any wake-up is in time.
    settings.threshold = Some(Nanos(2_000));
    settings.events = Some(EventGrain::All);
    let outcome = record(
        &Machine::host(),
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    let manifest = run.manifest();
    let wake = &manifest.wakeups[0];
    assert_eq!(manifest.probe.kind, "wakeup");
    let conditions = manifest.probe.wakeup.as_ref().unwrap();
    assert_eq!(
        (conditions.period_ns, conditions.idle_control),
        (Nanos(500_000), None)
    );
    assert!(wake.wakeups > 0 && wake.stalls > 0, "{wake:?}");
    assert_eq!(manifest.results[0].samples, wake.wakeups);
    let count = |rows: &[(u64, u64)]| rows.iter().map(|row| row.1).sum::<u64>();
    assert_eq!(
        (count(&wake.plain), count(&wake.corrected)),
        (wake.wakeups, wake.wakeups + wake.missed)
    );

    let stalls: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
    assert_eq!(stalls.len() as u64 + wake.dropped_records, wake.stalls);
    assert!(
        stalls
            .iter()
            .all(|stall| stall.victim.comm.to_string().starts_with("js-wake/"))
    );
    let in_intervals: u64 = run.intervals().unwrap().map(|row| row.unwrap().count).sum();
    assert_eq!(in_intervals, wake.stalls);
    let tags: Vec<String> = run
        .interval_histograms()
        .unwrap()
        .map(|histogram| histogram.unwrap().tag)
        .collect();
    assert!(
        !tags.is_empty() && tags.iter().all(|tag| tag.starts_with("wakeup-cpu")),
        "{tags:?}"
    );
    if !manifest.attributed {
        jitterscope_testing::skip("in part: no kernel events here, so nothing was attributed");
        return;
    }
    let attributions: Vec<Attribution> = run.attributions().unwrap().map(Result::unwrap).collect();
    assert_eq!(attributions.len(), stalls.len());
    for (stall, attribution) in stalls.iter().zip(&attributions) {
        assert_eq!(
            attribution.total(),
            manifest.rate.nanos(stall.length()),
            "{attribution:?}"
        );
    }
    // Each wake-up is a timer interrupt, so some time is explained unless all records were lost.
    assert!(
        attributions
            .iter()
            .any(|attribution| attribution.explained() > Nanos::ZERO)
    );
}

#[derive(Default)]
struct Counter {
    begun: bool,
    stalls: u64,
    longest: Ticks,
    of_intervals: u64,
    lengths: u64,
    ticks: u64,
}

impl Sink for Counter {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.begun = !facts.id.is_empty();
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => {
                    assert!(self.begun && attribution.is_none());
                    self.stalls += 1;
                    self.longest = self.longest.max(stall.length());
                }
                Row::Interval(row, lengths) => {
                    assert!(row.end > row.start);
                    self.of_intervals += row.count;
                    self.lengths += lengths.len();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.ticks += 1;
        Ok(0)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(self.stalls))
    }
}

fn spin_settings(runs_dir: &Path) -> RecordSettings {
    RecordSettings {
        wakeup: None,
        threshold: Some(Nanos(1_000)),
        ..wakeup_settings(runs_dir)
    }
}

#[test]
fn an_output_is_given_every_stall_once() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = RecordSettings {
        duration: Nanos(400_000_000),
        interval: Nanos(1_000_000),
        ..spin_settings(dir.path())
    };
    let mut counter = Counter::default();
    let extra = Extra {
        outputs: vec![Output::to("counter", &mut counter)],
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
    let run = RunReader::open(&outcome.path).unwrap();
    let result = &run.manifest().results[0];
    assert_eq!(
        result.sum_ticks,
        result.end.since(result.start).0,
        "the deltas leave a hole"
    );
    assert_eq!(counter.stalls + result.dropped_records, result.stalls);
    assert!(counter.longest.0 <= result.max_ticks);
    // No interval may be missing: the drain thread empties their queue often enough.
    assert_eq!(
        (counter.of_intervals, counter.lengths),
        (result.stalls, counter.stalls)
    );
    assert!(counter.ticks > 0);
    assert_eq!(run.stalls().unwrap().count() as u64, counter.stalls);
    assert_eq!(outcome.outputs[0].delivery, Delivery::of(counter.stalls));
}

/// Refuses every row, or refuses to begin.
struct Stubborn {
    begins: bool,
}

impl Sink for Stubborn {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        if self.begins { Ok(()) } else { Err(full()) }
    }

    fn rows(&mut self, _batch: &[Row<'_>]) -> Result<(), SinkError> {
        Err(full())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        panic!("what has failed is asked no more")
    }
}

fn full() -> SinkError {
    SinkError::new(std::io::Error::from(std::io::ErrorKind::StorageFull))
}

#[test]
fn a_failed_output_is_counted_and_ends_only_an_output_only_recording() {
    #[derive(Default)]
    struct Heard(Vec<String>);
    impl Observer for Heard {
        fn output_failed(&mut self, output: &str, why: &SinkError) {
            self.0.push(format!("{output}: {why}"));
        }
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for essential in [false, true] {
        // So low that every half second has stalls.
        let duration = if essential {
            3_600_000_000_000
        } else {
            500_000_000
        };
        let settings = RecordSettings {
            duration: Nanos(duration),
            ..spin_settings(dir.path())
        };
        let (mut stubborn, mut counter, mut heard) = (
            Stubborn { begins: true },
            Counter::default(),
            Heard::default(),
        );
        let output = Output::to("stubborn", &mut stubborn);
        let output = if essential {
            output.essential()
        } else {
            output
        };
        let extra = Extra {
            outputs: vec![output, Output::to("counter", &mut counter)],
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
        let run = RunReader::open(&outcome.path).unwrap();
        let manifest = run.manifest();
        let stored = run.stalls().unwrap().count() as u64;
        assert_eq!(manifest.interrupted, essential);
        assert_eq!(stored, counter.stalls, "the others go on");
        let failed = &outcome.outputs[0];
        assert!(failed.error.is_some());
        assert_eq!(
            (failed.delivery.delivered, failed.delivery.lost),
            (0, stored)
        );
        let reported = manifest
            .warnings
            .iter()
            .find(|warning| warning.id() == "output-lost")
            .unwrap();
        let Warning::OutputLost {
            output,
            delivered,
            lost,
            ..
        } = reported
        else {
            panic!("{reported:?}")
        };
        assert_eq!(
            (output.as_str(), *delivered, *lost),
            ("stubborn", 0, stored)
        );
    }
}

#[test]
fn an_output_that_refuses_ends_it_before_anything_is_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut stubborn = Stubborn { begins: false };
    let extra = Extra {
        outputs: vec![Output::to("stubborn", &mut stubborn)],
        ..Extra::default()
    };
    let settings = RecordSettings {
        duration: Nanos(3_600_000_000_000),
        ..spin_settings(dir.path())
    };
    let result = record(
        &Machine::host(),
        &settings,
        extra,
        &AtomicBool::new(false),
        &mut (),
    );
    assert!(result.unwrap_err().to_string().contains("storage"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The requested maximum exit latency from idle, microseconds.
fn asked_latency() -> std::io::Result<i32> {
    let mut bytes = [0; 4];
    std::fs::File::open("/dev/cpu_dma_latency")?.read_exact(&mut bytes)?;
    Ok(i32::from_ne_bytes(bytes))
}

#[test]
fn the_latency_is_held_while_it_measures_and_no_longer() {
    #[derive(Default)]
    struct Looker(Vec<i32>);
    impl Observer for Looker {
        fn progress(&mut self, _progress: &Progress) {
            self.0.extend(asked_latency());
        }
    }
    let _turn = turn();
    let before = match asked_latency() {
        Ok(0) => return jitterscope_testing::skip("somebody else holds /dev/cpu_dma_latency at 0"),
        Ok(before) => before,
        Err(error) => return jitterscope_testing::skip(&format!("/dev/cpu_dma_latency: {error}")),
    };
    let dir = tempfile::tempdir().unwrap();
    let mut settings = wakeup_settings(dir.path());
    for hold_latency in [true, false] {
        settings.wakeup = Some(WakeupChoice {
            period: Nanos(500_000),
            hold_latency,
            idle_control: None,
        });
        let mut looker = Looker::default();
        record(
            &Machine::host(),
            &settings,
            Extra::default(),
            &AtomicBool::new(false),
            &mut looker,
        )
        .unwrap();
        assert!(!looker.0.is_empty());
        let expected = if hold_latency { 0 } else { before };
        assert!(
            looker.0.iter().all(|asked| *asked == expected),
            "{hold_latency}: {:?}",
            looker.0
        );
        assert_eq!(asked_latency().unwrap(), before);
    }
}

#[test]
fn an_idle_control_shares_its_cpu_with_us_only_when_no_other_is_left() {
    let _turn = turn();
    let allowed = current_affinity().unwrap();
    let Some(control) = allowed.difference(&cpus()).last() else {
        return jitterscope_testing::skip("this needs a CPU beside the measured one");
    };
    let dir = tempfile::tempdir().unwrap();
    let mut settings = wakeup_settings(dir.path());
    settings.cpus.cpus = settings.cpus.cpus.iter().chain([control]).collect();
    settings.wakeup = Some(WakeupChoice {
        period: Nanos(500_000),
        hold_latency: false,
        idle_control: Some(control),
    });
    let outcome = record(
        &Machine::host(),
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    )
    .unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    let manifest = run.manifest();
    assert_eq!(manifest.idle_control(), Some(control));
    assert_eq!(manifest.wakeups.len(), settings.cpus.cpus.len());
    assert!(
        manifest.wakeups.iter().all(|wake| wake.wakeups > 100),
        "{:?}",
        manifest.wakeups
    );
    let free = allowed.difference(&settings.cpus.cpus);
    let shared = manifest
        .warnings
        .iter()
        .any(|warning| warning.id() == "idle-control-shared");
    assert_eq!(shared, free.is_empty(), "{:?}", manifest.warnings);
    let home: CpuSet = if free.is_empty() {
        [control].into_iter().collect()
    } else {
        free
    };
    assert_eq!(manifest.self_noise.helper_cpus, home);
    assert_eq!(
        current_affinity().unwrap(),
        allowed,
        "the thread is put back"
    );
}

#[test]
fn sleepers_of_a_real_time_class_on_every_cpu_can_be_ended() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = wakeup_settings(dir.path());
    settings.cpus.cpus = current_affinity().unwrap();
    settings.fifo_priority = Some(10);
    settings.wakeup = Some(WakeupChoice {
        period: Nanos(50_000),
        hold_latency: false,
        idle_control: None,
    });
    match record(
        &Machine::host(),
        &settings,
        Extra::default(),
        &AtomicBool::new(false),
        &mut (),
    ) {
        Ok(outcome) => {
            let run = RunReader::open(&outcome.path).unwrap();
            assert!(run.manifest().wakeups.iter().all(|wake| wake.wakeups > 100));
            assert!(
                run.manifest()
                    .warnings
                    .iter()
                    .any(|warning| warning.id() == "no-free-cpu")
            );
        }
        Err(error) if error.to_string().contains("SCHED_FIFO") => {
            jitterscope_testing::skip(&format!("{error}"))
        }
        Err(error) => panic!("{error}"),
    }
}
