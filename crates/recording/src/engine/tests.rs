//! Compares rows taken on the writer thread with the same rows taken on the draining thread.

use super::fan_out::{FanOut, Opened};
use super::output::Output;
use super::outputs::Outputs;
use super::writer::MOST_UNDER_WAY;
use hdrhistogram::Histogram;
use jitterscope_analyze::RowsOf;
use jitterscope_model::{
    Attribution, ClockReading, Comm, CpuId, Delivery, DrainTurn, Evidence, IntervalRow, Nanos,
    Part, RawPage, Row, RunFacts, RunManifest, Sink, SinkError, Stall, StallId, Subject, ThreadRef,
    TickRate, Ticks, TraceRole,
};
use jitterscope_store::{RunReader, RunWriter, StoreSink};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const EPOCH: u64 = 1_795_213_189_826_000_000;

fn clock() -> ClockReading {
    ClockReading {
        ticks: Ticks(1_000),
        monotonic_raw_ns: 1,
        realtime_ns: EPOCH,
        boottime_ns: None,
        width_ticks: 10,
    }
}

fn facts() -> RunFacts {
    RunFacts {
        id: String::new(),
        label: "L".into(),
        hostname: "host".into(),
        probe: "spin".into(),
        cpus: [CpuId(1)].into_iter().collect(),
        threshold: Nanos(300),
        interval: Nanos(1_000_000_000),
        rate: TickRate::NANOSECONDS,
        clock: clock(),
    }
}

fn manifest() -> RunManifest {
    let text = r#"{"schema_version": 2, "tool_version": "test", "id": "", "label": "L", "command_line": [],
        "host": {"hostname": "h", "kernel_release": "", "kernel_version": "", "arch": "", "cpu_model": "",
          "cmdline": "", "online": "0-1", "isolated": "", "nohz_full": "", "hypervisor": null},
        "clock": "monotonic_raw", "rate": {"hz": 1000000000, "error_ppb": 0, "source": "exact"},
        "clock_start": {"ticks": 1000, "monotonic_raw_ns": 1, "realtime_ns": 1795213189826000000, "width_ticks": 10},
        "clock_end": {"ticks": 1000, "monotonic_raw_ns": 1, "realtime_ns": 1795213189826000000, "width_ticks": 10},
        "probe": {"kind": "spin", "cpus": "1", "cpus_chosen_because": null, "duration_ns": 1, "warmup_ns": 0,
          "threshold_ns": 300, "interval_ns": 1, "fifo_priority": null},
        "results": [], "attributed": true, "sources": [], "counters": [],
        "events_in_gaps": {"events": 0, "inside": 0, "control_events": 0, "control_inside": 0},
        "audit": {},
        "self_noise": {"helper_cpus": "", "helper_cpu_ns": 0, "peak_rss_bytes": 0, "entry_cost_ns": 0,
          "exit_cost_ns": 0, "cost_samples": 0},
        "trace": {"bytes": 0, "complete": true, "limit_bytes": 0}, "interrupted": false, "warnings": []}"#;
    serde_json::from_str(text).unwrap()
}

fn takers<'a>(runs: &Path, trace_limit: u64, beside: Vec<Output<'a>>) -> FanOut<'a> {
    let mut writer = RunWriter::create(runs, "L", EPOCH).unwrap();
    writer.limit_trace(trace_limit);
    Opened::open(beside).unwrap().with(StoreSink::new(writer))
}

fn noise(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
}

fn stall(id: u64) -> (Stall, Option<Attribution>) {
    let victim = ThreadRef {
        tid: 7,
        comm: Comm::new("js-spin/1"),
    };
    let start = Ticks(2_000 + (id << 20));
    let stall = Stall {
        id: StallId(id),
        cpu: CpuId(1),
        victim,
        start,
        end: start + Ticks(1 + noise(id) % 90_000),
    };
    let part = |k: u64| {
        let name = format!("kworker/{:x}", noise(id * 7 + k) % 50);
        Part::inside(
            Subject::Call(name.as_str().into()),
            Nanos(noise(id + k) % 9_000),
            Evidence::SwitchRecords,
        )
    };
    (
        stall,
        Some(Attribution {
            stall: stall.id,
            parts: (0..id % 5).map(part).collect(),
        }),
    )
}

/// A turn of a drain: pages, an interval between stalls, and the recorder's steps.
fn turn(number: u64, rows: &mut dyn Sink) -> Result<(), SinkError> {
    for page in 0..30 {
        let at = Ticks(2_000 + ((number * 30 + page) << 20));
        let bytes: Vec<u8> = (0..4096)
            .map(|byte| noise(number + page + byte) as u8)
            .collect();
        let (role, cpu) = (TraceRole::Local, CpuId(1));
        rows.rows(&[Row::Page(RawPage {
            role,
            cpu,
            first: at,
            last: at + Ticks(9),
            bytes: &bytes,
        })])?;
    }
    let mut stalls: Vec<_> = (number * 90..number * 90 + 60).map(stall).collect();
    rows.stalls(&mut stalls)?;
    assert!(stalls.is_empty());
    let mut lengths = Histogram::new(3).unwrap();
    lengths.record_n(1 + noise(number) % 100_000, 60).unwrap();
    let (start, end) = (Ticks(2_000 + number * 1_000), Ticks(3_000 + number * 1_000));
    let (max, stolen) = (Nanos(lengths.max()), Nanos(60 * lengths.max()));
    let interval = IntervalRow {
        cpu: CpuId(1),
        start,
        end,
        count: 60,
        max,
        stolen,
    };
    rows.rows(&[Row::Interval(&interval, &lengths)])?;
    rows.stalls(&mut (number * 90 + 60..number * 90 + 90).map(stall).collect())?;
    let asked = vec![(number as i32, format!("thread {number}"))];
    rows.rows(&[Row::Turn(&DrainTurn {
        number,
        now: end,
        asked,
        ..DrainTurn::default()
    })])?;
    rows.tick().map(|_| ())
}

/// Records `turns` turns, the first before the measurement. Returns the result of `close`.
fn record<T>(
    takers: FanOut<'_>,
    own: bool,
    turns: u64,
    close: impl FnOnce(&mut Outputs<'_>, Result<(), SinkError>) -> T,
) -> T {
    std::thread::scope(|scope| {
        let mut outputs = Outputs::new(takers);
        turn(0, &mut outputs).unwrap();
        outputs.begin_beside(&facts(), |_| Ok(())).unwrap();
        outputs.sum_up(RowsOf::run(&manifest())).unwrap();
        outputs.begin(&facts()).unwrap();
        if own {
            outputs.write_beside(scope);
        }
        let fed = (1..turns).try_for_each(|number| turn(number, &mut outputs));
        close(&mut outputs, fed)
    })
}

/// Closes a run that succeeded. Returns its files by name, with the run's id replaced.
fn closed(outputs: &mut Outputs<'_>, fed: Result<(), SinkError>) -> BTreeMap<String, Vec<u8>> {
    fed.unwrap();
    let id = outputs.id().to_owned();
    let takers = outputs.takers().unwrap();
    let mut manifest = manifest();
    takers.end_beside(&manifest);
    let sums = takers.sums(&manifest, None).expect("what the rows come to");
    takers.store.summary(&sums);
    let path = takers.store.close(&mut manifest).unwrap();
    assert_eq!(
        RunReader::open(&path).unwrap().stalls().unwrap().count(),
        39 * 90,
        "the run can be read"
    );
    let mut files = BTreeMap::new();
    gather(&path, &path, &id, &mut files);
    files
}

fn gather(root: &Path, folder: &Path, id: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(root, &path, id, files);
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        while let Some(at) = bytes
            .windows(id.len())
            .position(|window| window == id.as_bytes())
        {
            bytes[at..at + id.len()].fill(b'_');
        }
        files.insert(
            path.strip_prefix(root).unwrap().display().to_string(),
            bytes,
        );
    }
}

#[test]
fn a_run_is_the_same_to_the_byte_whichever_thread_takes_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let run = |own| record(takers(dir.path(), 3 << 20, Vec::new()), own, 40, closed);
    let (here, there) = (run(false), run(true));
    assert_eq!(
        here.keys().collect::<Vec<_>>(),
        there.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &here {
        assert!(there[name] == *bytes, "{name} differs");
    }
    assert!(
        here.keys().any(|name| name.ends_with(".seg")) && here.contains_key("summary.json"),
        "{here:?}"
    );
}

/// Writes down every call.
#[derive(Default)]
struct Transcript(String);

impl Sink for Transcript {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        self.0 += "begin\n";
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        batch.iter().for_each(|row| self.0 += &format!("{row:?}\n"));
        Ok(())
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.0 += "tick\n";
        Ok(0)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        self.0 += "end\n";
        Ok(Delivery::default())
    }
}

#[test]
fn outputs_get_the_same_rows_in_order_without_the_warm_up() {
    let dir = tempfile::tempdir().unwrap();
    let run = |own| {
        let mut reported = Transcript::default();
        record(
            takers(dir.path(), 0, vec![Output::to("told", &mut reported)]),
            own,
            40,
            closed,
        );
        reported.0
    };
    let (here, there) = (run(false), run(true));
    assert!(here == there, "outputs are told something else");
    let (first, last) = (here.get(..60), here.get(here.len() - 60..));
    assert!(
        here.starts_with("tick\nbegin\nPage") && here.ends_with("tick\nend\n"),
        "{first:?} ... {last:?}"
    );
    assert_eq!(here.matches("\ntick\n").count(), 39);
    assert!(!here.contains("number: 0,"), "the turn of the warm-up");
}

/// Fails or panics at the first row.
struct Broken {
    panics: bool,
}

impl Sink for Broken {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, _batch: &[Row<'_>]) -> Result<(), SinkError> {
        assert!(!self.panics, "a sink that panics, as a test asks for");
        Err(SinkError::new(std::io::Error::from(
            std::io::ErrorKind::StorageFull,
        )))
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        panic!("what has failed is asked no more")
    }
}

#[test]
fn only_an_essential_output_ends_the_recording_when_it_fails() {
    for (own, essential) in [(false, false), (false, true), (true, false), (true, true)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut broken, mut reported) = (Broken { panics: false }, Transcript::default());
        let output = Output::to("broken", &mut broken);
        let output = if essential {
            output.essential()
        } else {
            output
        };
        let beside = vec![output, Output::to("told", &mut reported)];
        let (failures, stuck, delivered) =
            record(takers(dir.path(), 0, beside), own, 40, |outputs, fed| {
                fed.unwrap();
                let mut failures = outputs.failures();
                outputs.takers().unwrap();
                failures.extend(outputs.failures());
                (
                    failures,
                    outputs.is_stuck(),
                    outputs.takers().unwrap().end_beside(&manifest()),
                )
            });
        assert_eq!(stuck, essential);
        assert_eq!(
            failures.iter().map(|(name, _)| &**name).collect::<Vec<_>>(),
            ["broken"]
        );
        assert!(delivered[0].error.is_some() && delivered[1].error.is_none());
        assert_eq!(
            (delivered[0].delivery.delivered, delivered[0].delivery.lost),
            (0, 39 * 90)
        );
        assert_eq!(
            reported.0.matches("Stall(").count(),
            39 * 90,
            "the others go on"
        );
    }
}

#[test]
fn that_an_essential_output_failed_there_is_known_while_rows_still_come() {
    let dir = tempfile::tempdir().unwrap();
    let mut broken = Broken { panics: false };
    let beside = vec![Output::to("broken", &mut broken).essential()];
    record(takers(dir.path(), 0, beside), true, 2, |outputs, fed| {
        fed.unwrap();
        let known = (2..1_000).any(|number| {
            std::thread::sleep(Duration::from_millis(5));
            turn(number, outputs).unwrap();
            outputs.is_stuck()
        });
        assert!(known);
        assert_eq!(outputs.failures().len(), 1);
    });
}

#[test]
fn a_panic_there_is_an_error_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut broken = Broken { panics: true };
    let beside = vec![Output::to("broken", &mut broken)];
    let error = record(takers(dir.path(), 0, beside), true, 40, |outputs, fed| {
        let error = fed.and_then(|()| outputs.takers().map(|_| ())).unwrap_err();
        // Every later call fails, too.
        assert!(outputs.takers().is_err() && outputs.is_stuck());
        assert!(turn(40, outputs).is_err());
        error
    });
    assert!(error.to_string().contains("panicked"), "{error}");
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "a run that is none"
    );
}

#[test]
fn a_recording_that_fails_elsewhere_ends_the_thread_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut reported = Transcript::default();
    let beside = vec![Output::to("told", &mut reported)];
    record(takers(dir.path(), 0, beside), true, 40, |_, fed| {
        fed.unwrap()
    });
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "a run that was not closed"
    );
}

/// Takes no row until allowed.
struct Late<'a> {
    may: &'a AtomicBool,
    pages: u64,
}

impl Sink for Late<'_> {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        while !self.may.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.pages += batch
            .iter()
            .filter(|row| matches!(row, Row::Page(_)))
            .count() as u64;
        Ok(())
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::default())
    }
}

#[test]
fn a_full_queue_makes_the_drain_wait_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (may, fed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut late = Late {
        may: &may,
        pages: 0,
    };
    let page = [7u8; 4096];
    let pages = 2 * MOST_UNDER_WAY / page.len();
    let release = || {
        let mut before = usize::MAX;
        while fed.load(Ordering::Acquire) != before || before == 0 {
            before = fed.load(Ordering::Acquire);
            std::thread::sleep(Duration::from_millis(300));
        }
        may.store(true, Ordering::Release);
        before
    };
    let (waited_at, used) = std::thread::scope(|scope| {
        let releaser = scope.spawn(release);
        let beside = vec![Output::to("late", &mut late)];
        let used = record(takers(dir.path(), 0, beside), true, 1, |outputs, begun| {
            begun.unwrap();
            for n in 0..pages as u64 {
                let (role, cpu, first) = (TraceRole::Local, CpuId(1), Ticks(n));
                let row = Row::Page(RawPage {
                    role,
                    cpu,
                    first,
                    last: first,
                    bytes: &page,
                });
                outputs.rows(&[row]).unwrap();
                fed.fetch_add(page.len(), Ordering::Release);
            }
            outputs.takers().unwrap();
            outputs.of_writer().unwrap()
        });
        (releaser.join().unwrap(), used)
    });
    let most = MOST_UNDER_WAY + (1 << 20);
    assert!(
        (MOST_UNDER_WAY / 2..most).contains(&waited_at),
        "{waited_at} bytes were on their way"
    );
    assert!(used.waited >= Nanos(200_000_000), "{used:?}");
    assert_eq!(late.pages, pages as u64);
}

#[test]
fn a_thread_of_its_own_takes_rows_where_two_cpus_are_free() {
    use crate::settings::WriterThread;
    let cpus = |count: u32| (0..count).map(CpuId).collect();
    for (helpers, beside_us, own) in [
        (0, 0, false),
        (1, 0, false),
        (2, 0, true),
        (2, 1, false),
        (3, 1, true),
        (64, 3, true),
    ] {
        assert_eq!(
            WriterThread::WhereRoom.is_own(&cpus(helpers), beside_us),
            own,
            "{helpers}, {beside_us}"
        );
        assert!(WriterThread::Own.is_own(&cpus(helpers), beside_us));
        assert!(!WriterThread::Drain.is_own(&cpus(helpers), beside_us));
    }
}
