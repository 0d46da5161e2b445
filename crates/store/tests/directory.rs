//! The run directory as a whole: what goes in comes out, and what is not whole is no run.

use jitterscope_model::*;
use jitterscope_store::{
    RunReader, RunWriter, SCHEMA, StoreError, TraceRole, clean_partials, list, partials,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::process::Command;

const EPOCH: u64 = 1_795_213_189_826_000_000;

fn clock() -> ClockReading {
    ClockReading { ticks: Ticks(1_000), monotonic_raw_ns: 1, realtime_ns: EPOCH, width_ticks: 10 }
}

fn manifest() -> RunManifest {
    let text = format!(
        r#"{{"schema_version": 1, "tool_version": "test", "id": "", "label": "L", "command_line": [],
        "host": {{"hostname": "h", "kernel_release": "", "kernel_version": "", "arch": "", "cpu_model": "",
          "cmdline": "", "online": "0-1", "isolated": "", "nohz_full": "", "hypervisor": null}},
        "clock": "monotonic_raw", "rate": {{"hz": 1000000000, "error_ppb": 0, "source": "exact"}},
        "clock_start": {0}, "clock_end": {0},
        "probe": {{"kind": "spin", "cpus": "1", "cpus_chosen_because": null, "duration_ns": 1, "warmup_ns": 0,
          "threshold_ns": 300, "interval_ns": 1, "fifo_priority": null}},
        "results": [], "attributed": true, "sources": [], "counters": [],
        "events_in_gaps": {{"events": 0, "inside": 0, "control_events": 0, "control_inside": 0}},
        "audit": {{}},
        "self_noise": {{"helper_cpus": "", "helper_cpu_ns": 0, "peak_rss_bytes": 0, "entry_cost_ns": 0,
          "exit_cost_ns": 0, "cost_samples": 0}},
        "trace": {{"bytes": 0, "complete": true, "limit_bytes": 0}}, "interrupted": false, "warnings": [],
        "a_field_of_a_later_version": [1, 2, 3]}}"#,
        r#"{"ticks": 1000, "monotonic_raw_ns": 1, "realtime_ns": 1795213189826000000, "width_ticks": 10}"#
    );
    // A later version may have added fields: they are passed over.
    serde_json::from_str(&text).unwrap()
}

fn writer(runs: &Path) -> RunWriter {
    let mut writer = RunWriter::create(runs, "L", EPOCH).unwrap();
    writer.begin(clock(), TickRate::NANOSECONDS).unwrap();
    writer
}

fn stall(id: u64, start: u64, length: u64, comm: &str) -> Stall {
    let victim = ThreadRef { tid: 7, comm: Comm::new(comm) };
    let (start, end) = (Ticks(start), Ticks(start + length));
    Stall { id: StallId(id), cpu: CpuId(1), victim, start, end }
}

fn part(name: &str, net: u64, sender: bool) -> Part {
    let via = Some("on_each_cpu".into());
    let sender = sender.then_some(Sender {
        context: ExecutionContext::Interrupt,
        comm: None,
        tid: -3,
        cpu: CpuId(9),
        via,
    });
    let culprit = Culprit { kind: CulpritKind::Ipi, name: name.into(), detail: "".into(), sender };
    let (placement, confidence) = (Placement::Hole, Confidence::Low);
    Part { culprit, net: Nanos(net), gross: Nanos(net), placement, confidence, evidence: name.into() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_come_back_as_they_went_in(
        rows in proptest::collection::vec(
            (0u64..1 << 60, 0u64..1 << 40, "[ -~\u{e9}]{0,7}", proptest::collection::vec(("\\PC{0,12}", any::<u64>(), any::<bool>()), 1..4)),
            0..80,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut w = writer(dir.path());
        let (mut stalls, mut attributions) = (Vec::new(), Vec::new());
        for (id, (start, length, comm, parts)) in (0u64..).zip(rows) {
            stalls.push(stall(id, start, length, &comm));
            let parts = parts.iter().map(|(name, net, sender)| part(name, *net, *sender)).collect();
            attributions.push(Attribution { stall: StallId(id), parts });
            w.stall(stalls.last().unwrap()).unwrap();
            w.attribution(attributions.last().unwrap()).unwrap();
        }
        let path = w.finish(manifest()).unwrap();
        let run = RunReader::open(&path).unwrap();
        prop_assert_eq!(run.stalls().unwrap().map(Result::unwrap).collect::<Vec<_>>(), stalls);
        prop_assert_eq!(run.attributions().unwrap().map(Result::unwrap).collect::<Vec<_>>(), attributions);
    }
}

#[test]
fn an_unfinished_run_is_no_run_and_a_living_recorders_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let w = writer(dir.path());
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert!(partials(dir.path()).unwrap().is_empty(), "its recorder lives: this process");
    let dead = dir.path().join(".partial-4194305-1-20261121T000000Z-L-abcdef");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("manifest.json"), "{}").unwrap();
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert_eq!(clean_partials(dir.path()).unwrap().len(), 1);
    assert!(!dead.exists());
    drop(w);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "dropped before its end it leaves nothing");
}

#[test]
fn the_files_have_the_columns_that_the_schema_lists() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    for (file, columns) in SCHEMA {
        let file = fs::File::open(path.join(file)).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let written: Vec<String> = reader.schema().fields().iter().map(|f| f.name().clone()).collect();
        let listed: Vec<&str> = columns.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(written, listed);
    }
}

#[test]
fn a_cut_segment_is_an_error_that_names_the_file_whatever_else_was_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = writer(dir.path());
    w.limit_trace(1 << 20);
    for n in 0..60u64 {
        w.trace_page(TraceRole::Local, CpuId(1), Ticks(n * 10), Ticks(n * 10 + 9), &[0; 4096]).unwrap();
    }
    let run = RunReader::open(&w.finish(manifest()).unwrap()).unwrap();
    assert_eq!(run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap().len(), 60);
    let second = run.path().join("trace/segments/000002.seg");
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 100]).unwrap();
    match run.trace_pages(Ticks(0), Ticks(u64::MAX)) {
        Err(StoreError::Damaged { path, .. }) => assert_eq!(path, second),
        other => panic!("{other:?}"),
    }
}

/// Unmounts when dropped.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(self.0).status().unwrap().success());
    }
}

#[test]
fn a_disk_that_fills_up_in_mid_run_is_a_typed_error_and_leaves_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=80m", "jitterscope-test"];
    let mounted =
        Command::new("mount").args(mount).arg(dir.path()).stderr(std::process::Stdio::null()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no tmpfs can be mounted (this test needs root)");
        return;
    }
    let _mounted = Mounted(dir.path());
    let mut w = writer(dir.path());
    assert!(!w.is_space_low());
    // Somebody else takes the rest.
    fs::write(dir.path().join("other"), vec![1u8; 70 << 20]).unwrap();
    assert!(w.is_space_low());
    let mut error = None;
    for n in 0..3_000_000u64 {
        // Lengths without a pattern, which compression could take away.
        let length = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
        if let Err(e) = w.stall(&stall(n, n << 30, length, "x")) {
            error = Some(e);
            break;
        }
    }
    assert!(matches!(error, Some(StoreError::Full { .. })), "{error:?}");
    assert!(matches!(w.finish(manifest()), Err(StoreError::Incomplete { .. })));
    assert!(list(dir.path()).unwrap().0.is_empty());
    assert!(partials(dir.path()).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_tables_are_errors_or_rows_but_never_a_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut w = writer(dir.path());
        for n in 0..40 {
            w.stall(&stall(n, n * 100, n, "x")).unwrap();
            w.attribution(&Attribution { stall: StallId(n), parts: vec![part("f", n, n % 2 == 0)] }).unwrap();
        }
        let path = w.finish(manifest()).unwrap();
        for file in ["gaps.parquet", "attributions.parquet"] {
            let file = path.join(file);
            let mut bytes = fs::read(&file).unwrap();
            for (at, with) in &flips {
                let at = at.index(bytes.len());
                bytes[at] ^= with;
            }
            fs::write(&file, bytes).unwrap();
        }
        let run = RunReader::open(&path).unwrap();
        let _ = run.stalls().map(|rows| rows.take(10_000).filter(Result::is_ok).count());
        let _ = run.attributions().map(|rows| rows.take(10_000).filter(Result::is_ok).count());
    }
}
