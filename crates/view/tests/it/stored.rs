//! A stored run gives the same report as its rows, and unreadable runs are reported.

use crate::common;

use crate::full_text;
use common::{Scenario, busy, late};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{RowSummer, RowSums, RowsOf, SummaryBuilder};
use jitterscope_model::{Row, Sink};
use jitterscope_store::{RunReader, RunWriter, StoreError, StoredRow, add_summary};
use jitterscope_view::{Style, json, list, load, load_periods, load_worst};
use std::path::{Path, PathBuf};

fn store(scenario: &Scenario, dir: &Path) -> PathBuf {
    store_with(scenario, dir, None)
}

fn store_with(scenario: &Scenario, dir: &Path, sums: Option<&RowSums>) -> PathBuf {
    let manifest = &scenario.manifest;
    let mut writer =
        RunWriter::create(dir, &manifest.label, manifest.clock_start.realtime_ns).unwrap();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        writer.stall(stall).unwrap();
        if manifest.attributed {
            writer.attribution(attribution).unwrap();
        }
    }
    for row in &scenario.intervals {
        writer.interval(row).unwrap();
    }
    if let Some(sums) = sums {
        writer.summary(sums).unwrap();
    }
    writer.finish(manifest.clone()).unwrap()
}

/// The sums as a recording computes them.
fn sums(scenario: &Scenario) -> RowSums {
    let mut summer = RowSummer::stored(RowsOf::run(&scenario.manifest));
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        summer
            .rows(&[Row::Stall(stall, Some(attribution))])
            .unwrap();
    }
    summer.finish(&scenario.manifest, None)
}

#[test]
fn a_stored_summary_gives_the_same_report_as_its_rows() {
    for scenario in [busy(&[0, 1]), late(&[0, 1, 3], Some(3))] {
        let dir = tempfile::tempdir().unwrap();
        let read = load_periods(&store(&scenario, dir.path()), 10, Effort::BRIEF)
            .unwrap()
            .1;
        let dir = tempfile::tempdir().unwrap();
        let path = store_with(&scenario, dir.path(), Some(&sums(&scenario)));
        // Files that are not read may contain anything.
        for table in ["stalls.parquet", "parts.parquet"] {
            std::fs::write(path.join(table), "not a table").unwrap();
        }
        let mut kept = load_periods(&path, 10, Effort::BRIEF).unwrap().1;
        kept.run.id.clone_from(&read.run.id);
        kept.run.path.clone_from(&read.run.path);
        assert_eq!(kept, read);
        assert_eq!(load(&path).unwrap().1.periods, None);
        assert_eq!(load_worst(&path, 3).unwrap().1.worst, read.worst[..3]);
        // A request for more than is stored reads them.
        assert!(load_worst(&path, 11).is_err());
        assert!(load_periods(&path, 10, Effort::THOROUGH).is_err());
    }
}

/// What delayed a pipeline's messages depends on their percentiles, and is stored anyway.
#[test]
fn a_stored_pipeline_summary_gives_the_same_report_as_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/pipeline");
    for file in std::fs::read_dir(recorded).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
        }
    }
    // Pretends that most messages were fast, so that some stored ones are above the 99th percentile.
    let file = dir.path().join("details.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let times = &mut manifest["pipeline"]["consumers"][0]["from_intended"];
    (times["count"], times["plain_ns"]) = (
        5_000.into(),
        serde_json::json!([[12_000_000, 4_980], [24_170_290, 20]]),
    );
    std::fs::write(&file, manifest.to_string()).unwrap();
    let run = RunReader::open(dir.path()).unwrap();
    assert_eq!(
        run.summary::<serde_json::Value>().unwrap(),
        None,
        "an older run has none"
    );
    let read = load_periods(dir.path(), 10, Effort::BRIEF).unwrap().1;
    let blame = &read.pipeline.as_ref().unwrap().blame;
    assert_eq!(
        blame.iter().map(|of| of.above).collect::<Vec<_>>(),
        [20, 50]
    );
    assert!(
        0 < blame[0].split && blame[0].split < blame[1].split && !blame[0].rows.is_empty(),
        "{blame:?}"
    );
    let mut sums = SummaryBuilder::new(run.manifest())
        .machine(run.machine().unwrap())
        .stored();
    run.rows(|row| match row {
        StoredRow::Stall(stall) => sums.stall(&stall),
        StoredRow::Attribution(attribution) => sums.attribution(&attribution),
        StoredRow::Interval(interval) => sums.interval(&interval),
    })
    .unwrap();
    add_summary(dir.path(), &sums.into_sums()).unwrap();
    for table in ["stalls.parquet", "parts.parquet"] {
        std::fs::write(dir.path().join(table), "not a table").unwrap();
    }
    let kept = load_periods(dir.path(), 10, Effort::BRIEF).unwrap().1;
    assert_eq!(kept, read);
    assert_eq!(json::render(&kept).unwrap(), json::render(&read).unwrap());
    assert_eq!(
        full_text(&kept, Style::default()),
        full_text(&read, Style::default())
    );
}

#[test]
fn what_other_code_summed_up_is_summed_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = busy(&[0, 1]);
    let mut sums = serde_json::to_value(sums(&scenario)).unwrap();
    sums["code"] = "0123456789abcdef".into();
    sums["stalls"] = 1.into();
    let sums: RowSums = serde_json::from_value(sums).unwrap();
    assert!(!sums.is_current());
    let path = store_with(&scenario, dir.path(), Some(&sums));
    let stalls = load(&path).unwrap().1.attribution.unwrap().stalls;
    assert_eq!(stalls, scenario.summary().attribution.unwrap().stalls);
    // An unknown form does not prevent a report.
    std::fs::write(path.join("summary.json"), "{\"code\": 7}").unwrap();
    assert_eq!(load(&path).unwrap().1.attribution.unwrap().stalls, stalls);
}

#[test]
fn a_stored_run_reports_what_its_rows_did() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = busy(&[0, 1]);
    let path = store(&scenario, dir.path());
    let (manifest, mut loaded) = load(&path).unwrap();
    assert_eq!(loaded.run.path, path.display().to_string());
    // Data of the store that the rows do not contain.
    scenario.manifest.id.clone_from(&manifest.id);
    scenario.manifest.trace = manifest.trace.clone();
    loaded.run.path.clear();
    let direct = scenario.summary();
    assert_eq!(loaded, direct);
    assert_eq!(
        full_text(&loaded, Style::default()),
        full_text(&direct, Style::default())
    );
    let value: serde_json::Value = serde_json::from_str(&json::render(&loaded).unwrap()).unwrap();
    assert_eq!(value["schema_version"], jitterscope_model::SCHEMA_VERSION);
    assert_eq!(load_worst(&path, 3).unwrap().1.worst.len(), 3);
}

#[test]
fn stored_wake_ups_keep_their_phases_and_the_idle_control_is_in_no_sum() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = late(&[0, 1, 3], Some(3));
    let (_, loaded) = load(&store(&scenario, dir.path())).unwrap();
    let wakeup = loaded.wakeup.as_ref().unwrap();
    assert_eq!(wakeup, scenario.summary().wakeup.as_ref().unwrap());
    let attribution = loaded.attribution.as_ref().unwrap();
    assert_eq!(
        wakeup.phases.iter().map(|row| row.total_ns.0).sum::<u64>(),
        attribution.stalled_ns.0
    );
    assert_eq!((attribution.stalls, loaded.probe.total.stalls), (338, 338));
    assert!(loaded.worst.iter().all(|stall| stall.cpu.0 != 3));
    let own = &wakeup.cpus[2];
    assert!(own.idle_control && own.lateness.late == 120);
    assert_eq!(
        wakeup.total.wakeups,
        wakeup.cpus[..2]
            .iter()
            .map(|cpu| cpu.lateness.wakeups)
            .sum::<Option<u64>>()
    );
    assert_eq!(wakeup.total.missed, Some(128));
    // The mean is always that of the lateness.
    assert_eq!(
        wakeup.cpus[0].lateness.mean_ns.unwrap().rounded(),
        loaded.probe.cpus[0].mean_ns.unwrap().rounded()
    );
    let control = wakeup.idle_control.as_ref().unwrap();
    let late: u64 = control.phases.iter().map(|row| row.total_ns.0).sum();
    assert_eq!(
        late,
        control
            .culprits
            .iter()
            .map(|row| row.total_ns.0)
            .sum::<u64>()
    );
    assert_eq!(control.phases[0].phase, jitterscope_model::Phase::IdleExit);
    assert!(control.max_ratio.unwrap() > 70.0);
    // Missed deadlines affect the corrected percentiles only.
    let p = |of: &jitterscope_analyze::Percentiles| of["99"].unwrap();
    assert!(p(&wakeup.total.corrected_percentiles_ns) > p(&wakeup.total.percentiles_ns));
    let value: serde_json::Value = serde_json::from_str(&json::render(&loaded).unwrap()).unwrap();
    assert_eq!(value["wakeup"]["cpus"][2]["idle_control"], true);
    assert_eq!(value["wakeup"]["cpus"][0]["wakeups"], 9780);
    assert_eq!(value["wakeup"]["period_ns"], 1_000_000);
}

#[test]
fn a_damaged_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = store(&busy(&[1]), dir.path());
    let gaps = path.join("stalls.parquet");
    let bytes = std::fs::read(&gaps).unwrap();
    std::fs::write(&gaps, &bytes[..bytes.len() / 2]).unwrap();
    match load(&path) {
        // The bytes at the position of the footer's length may be any number.
        Err(StoreError::Damaged { path, .. } | StoreError::Cap { path, .. }) => {
            assert_eq!(path, gaps);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_list_has_a_line_a_run_and_says_what_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut quiet = Scenario::new(&[3]).finish();
    quiet.manifest.label = "a-label-that-is-quite-long-for-a-list".into();
    quiet.manifest.interrupted = true;
    quiet.manifest.clock_start.realtime_ns += 3_600_000_000_000;
    let mut paths = [store(&busy(&[0, 1]), dir.path()), store(&quiet, dir.path())];
    let other = dir.path().join("20000101T000000Z-old-aaaaaa");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("manifest.json"), "{\"schema_version\": 9}").unwrap();
    let (runs, problems) = jitterscope_store::list(dir.path()).unwrap();
    let shown = list::render(&runs, &problems, Style::default());
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 5, "{shown}");
    assert!(lines[..4].iter().all(|line| line.len() <= 80), "{shown}");
    assert!(
        lines[1].contains("BASELINE") && lines[1].contains("0-1") && lines[1].contains("1.30 ms"),
        "{shown}"
    );
    assert!(
        lines[2].contains("9.87 s*") && lines[2].contains("0 %") && lines[2].contains(".."),
        "{shown}"
    );
    assert!(lines[4].contains("schema version 9"), "{shown}");
    let value: serde_json::Value = serde_json::to_value(list::json(&runs, &problems)).unwrap();
    paths.sort();
    assert_eq!(value["runs"][0]["path"], paths[0].display().to_string());
    assert_eq!(value["runs"][1]["interrupted"], true);
    assert_eq!(value["problems"].as_array().unwrap().len(), 1);
    assert_eq!(
        value["runs"][0]["stolen_fraction"]
            .as_f64()
            .map(|share| share > 0.0),
        Some(true)
    );
    assert_eq!(
        list::render(&[], &[], Style::default()),
        "No runs yet. Record one with: jitterscope record\n"
    );
}

#[test]
fn the_list_calls_nothing_stolen_that_no_spinning_probe_measured() {
    for probe in ["wakeup", "pipeline", "attach"] {
        let dir = tempfile::tempdir().unwrap();
        let mut run = busy(&[0, 1]);
        run.manifest.probe.kind = probe.into();
        store(&run, dir.path());
        let (runs, problems) = jitterscope_store::list(dir.path()).unwrap();
        let shown = list::render(&runs, &problems, Style::default());
        let row = shown.lines().nth(1).unwrap();
        assert!(
            row.contains(probe) && !row.contains('%') && row.contains(" - "),
            "{shown}"
        );
        assert!(
            shown.contains("stolen: only a spinning probe can tell"),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
        let value: serde_json::Value = serde_json::to_value(list::json(&runs, &problems)).unwrap();
        assert!(value["runs"][0]["stolen_fraction"].is_null(), "{value}");
    }
}

#[test]
fn the_list_leaves_the_idle_control_out() {
    let of = |control: Option<u32>| {
        let dir = tempfile::tempdir().unwrap();
        let mut run = late(&[0, 1], control);
        // The idle CPU woke latest: that is not the run's worst.
        run.manifest.results[0].max_ticks = u64::MAX / 1_000_000;
        store(&run, dir.path());
        let (runs, problems) = jitterscope_store::list(dir.path()).unwrap();
        serde_json::to_value(list::json(&runs, &problems)).unwrap()["runs"][0].clone()
    };
    let (all, without) = (of(None), of(Some(0)));
    assert!(
        all["max_ns"].as_u64() > without["max_ns"].as_u64(),
        "{all} {without}"
    );
    assert!(
        all["stalls"].as_u64() > without["stalls"].as_u64(),
        "{all} {without}"
    );
    assert_eq!(
        (&all["cpus"], &without["cpus"]),
        (&"0-1".into(), &"1".into())
    );
}
