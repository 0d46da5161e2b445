//! The manifest's head and details, the machine beside them, and runs of the version before.

mod common;

use common::{manifest, writer};
use jitterscope_model::*;
use jitterscope_store::{RunReader, StoreError, list, resolve};
use std::fs;
use std::path::{Path, PathBuf};

/// A manifest of the size that real ones have: most of it are counts of deltas.
fn large() -> RunManifest {
    let wakeup = WakeupResult {
        cpu: CpuId(1),
        ..WakeupResult::default()
    };
    let mut result = wakeup.as_probe_result(Nanos(300), Ticks(2_000), TickRate::NANOSECONDS);
    result.samples = 10;
    result.max_ticks = 900;
    result.stalls = 3;
    result.stalled_ticks = 1_500;
    result.end = Ticks(1_000_000);
    result.below = (0..20_000).map(|n| (n, 1)).collect();
    RunManifest {
        results: vec![result],
        ..manifest()
    }
}

/// As version 1 wrote it: everything in one file.
fn put_version_1(runs: &Path, name: &str, manifest: &RunManifest) -> PathBuf {
    let path = writer(runs).finish(manifest.clone()).unwrap();
    let old = runs.join(name);
    fs::rename(path, &old).unwrap();
    let mut value = serde_json::to_value(manifest).unwrap();
    value["schema_version"] = 1.into();
    value["id"] = "aaaaaa".into();
    value["audit"] = serde_json::json!({ "/proc/sys/vm/stat_interval": "1" });
    fs::write(
        old.join("manifest.json"),
        serde_json::to_vec_pretty(&value).unwrap(),
    )
    .unwrap();
    fs::remove_file(old.join("details.json")).unwrap();
    old
}

#[test]
fn a_list_reads_nothing_but_small_heads() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(large()).unwrap();
    let size = |file: &str| fs::metadata(path.join(file)).unwrap().len();
    assert!(
        size("manifest.json") < 2_048,
        "{} bytes",
        size("manifest.json")
    );
    assert!(
        size("details.json") > 100 << 10,
        "{} bytes",
        size("details.json")
    );
    // What it says of the run is what all of the manifest says.
    let (runs, _) = list(dir.path()).unwrap();
    let whole = RunReader::open(&path).unwrap().manifest().clone();
    assert_eq!(runs[0].head, RunHead::of(&whole));
    assert_eq!(
        (runs[0].head.figures.stalls, runs[0].head.figures.max_ns),
        (Some(3), Some(Nanos(900)))
    );
    // A damaged or unreadable rest keeps nobody from the list, nor from finding the run.
    fs::write(path.join("details.json"), "{").unwrap();
    assert_eq!(list(dir.path()).unwrap().0.len(), 1);
    assert_eq!(resolve(dir.path(), "latest").unwrap(), path);
    assert!(matches!(
        RunReader::open(&path),
        Err(StoreError::Damaged { .. })
    ));
}

#[test]
fn a_run_of_version_1_is_listed_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let old = put_version_1(dir.path(), "old", &large());
    let (runs, problems) = list(dir.path()).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        (runs[0].head.id.as_str(), runs[0].head.figures.stalls),
        ("aaaaaa", Some(3))
    );
    let run = RunReader::open(&resolve(dir.path(), "aaaaaa").unwrap()).unwrap();
    assert_eq!(run.path(), old);
    assert_eq!(run.manifest().results[0].below.len(), 20_000);
    assert_eq!(run.manifest().audit["/proc/sys/vm/stat_interval"], "1");
    assert_eq!(run.machine().unwrap(), None);
}

#[test]
fn the_machine_comes_back_as_it_went_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = MachineState::default();
    state.kernel.release = "6.1".into();
    state.kernel.boot_line = Reading::Denied;
    state.load = Reading::Value(vec![CpuLoad {
        cpu: CpuId(0),
        busy_share: 0.25,
        ..CpuLoad::default()
    }]);
    let mut run = writer(dir.path());
    run.machine(&state).unwrap();
    let path = run.finish(manifest()).unwrap();
    assert_eq!(
        RunReader::open(&path).unwrap().machine().unwrap(),
        Some(state)
    );
    // What a later version adds is passed over; what is no machine is damage, and only of that file.
    fs::write(
        path.join("machine.json"),
        r#"{"kernel": {"release": "7.0", "moon": 1}, "phase": []}"#,
    )
    .unwrap();
    let run = RunReader::open(&path).unwrap();
    assert_eq!(run.machine().unwrap().unwrap().kernel.release, "7.0");
    fs::write(path.join("machine.json"), "[1]").unwrap();
    assert!(matches!(run.machine(), Err(StoreError::Damaged { .. })));
    // One that nobody looked at leaves no empty file behind.
    let bare = writer(dir.path()).finish(manifest()).unwrap();
    assert!(!bare.join("machine.json").exists());
    assert_eq!(RunReader::open(&bare).unwrap().machine().unwrap(), None);
}

#[test]
fn details_of_another_run_are_not_taken_for_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let one = writer(dir.path()).finish(manifest()).unwrap();
    let other = writer(dir.path()).finish(manifest()).unwrap();
    fs::copy(other.join("details.json"), one.join("details.json")).unwrap();
    let error = RunReader::open(&one).unwrap_err().to_string();
    assert!(error.contains("belongs to run"), "{error}");
}

#[test]
fn a_run_is_opened_with_the_manifest_that_it_was_closed_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut closed = manifest();
    let path = writer(dir.path()).close(&mut closed).unwrap();
    let read = RunReader::open(&path).unwrap();
    assert_eq!(
        read.manifest(),
        &closed,
        "what closed it knows what is stored"
    );
    assert_ne!(closed.id, manifest().id);
    let known = RunReader::with_manifest(&path, closed.clone()).unwrap();
    assert_eq!(
        (known.manifest(), known.path()),
        (read.manifest(), read.path())
    );
    assert_eq!(known.into_manifest(), closed);
    // It is that of this run, with the label that the run has by now.
    let head = fs::read_to_string(path.join("manifest.json")).unwrap();
    fs::write(
        path.join("manifest.json"),
        head.replace(r#""label": "L""#, r#""label": "BASELINE""#),
    )
    .unwrap();
    assert_eq!(
        RunReader::with_manifest(&path, closed.clone())
            .unwrap()
            .manifest()
            .label,
        "BASELINE"
    );
    let other = writer(dir.path()).finish(manifest()).unwrap();
    let error = RunReader::with_manifest(&other, closed.clone())
        .unwrap_err()
        .to_string();
    assert!(error.contains("belongs to run"), "{error}");
    fs::remove_file(other.join("manifest.json")).unwrap();
    assert!(RunReader::with_manifest(&other, closed).is_err());
}

#[test]
fn a_version_to_come_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    fs::write(path.join("manifest.json"), r#"{"schema_version": 3}"#).unwrap();
    let (runs, problems) = list(dir.path()).unwrap();
    assert!(runs.is_empty());
    let error = problems[0].error.to_string();
    assert!(
        error.contains("schema version 3") && error.contains("up to 2"),
        "{error}"
    );
}

#[test]
fn a_label_is_the_users_to_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    let head = fs::read_to_string(path.join("manifest.json")).unwrap();
    let changed = head.replace(r#""label": "L""#, r#""label": "BASELINE""#);
    assert_ne!(changed, head);
    fs::write(path.join("manifest.json"), changed).unwrap();
    assert_eq!(RunReader::open(&path).unwrap().manifest().label, "BASELINE");
    assert_eq!(resolve(dir.path(), "BASELINE").unwrap(), path);
}
