//! The manifest's head and details, and the machine's file.

use crate::common;

use common::{manifest, writer};
use jitterscope_model::*;
use jitterscope_store::{RunReader, StoreError, list, resolve};
use std::fs;

/// A manifest of realistic size: most of it are counts of deltas.
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
    // The head agrees with the whole manifest.
    let (runs, _) = list(dir.path()).unwrap();
    let whole = RunReader::open(&path).unwrap().manifest().clone();
    assert_eq!(runs[0].head, RunHead::of(&whole));
    assert_eq!(
        (runs[0].head.figures.stalls, runs[0].head.figures.max_ns),
        (Some(3), Some(Nanos(900)))
    );
    // Damaged or unreadable details keep neither the list nor the lookup from working.
    fs::write(path.join("details.json"), "{").unwrap();
    assert_eq!(list(dir.path()).unwrap().0.len(), 1);
    assert_eq!(resolve(dir.path(), "latest").unwrap(), path);
    assert!(matches!(
        RunReader::open(&path),
        Err(StoreError::Damaged { .. })
    ));
}

#[test]
fn the_machine_comes_back_as_it_went_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = MachineState::default();
    let settings = &mut state.settings;
    settings.put("kernel.release", [MachineEntry::new("6.1")]);
    settings.put("kernel.boot_line", [Reading::Denied.into()]);
    let load = MachineEntry::new(Scalar::Share(0.25)).on([CpuId(0)].into_iter().collect());
    settings.put("load.busy", [load]);
    let mut run = writer(dir.path());
    run.machine(&state).unwrap();
    let path = run.finish(manifest()).unwrap();
    assert_eq!(
        RunReader::open(&path).unwrap().machine().unwrap(),
        Some(state)
    );
    // Fields of a later version are ignored; an invalid machine file damages only that file.
    fs::write(
        path.join("machine.json"),
        r#"{"settings": {"kernel.release": [{"is": {"value": "7.0"}, "moon": 1}], "moon": [{}]}, "phase": []}"#,
    )
    .unwrap();
    let run = RunReader::open(&path).unwrap();
    let settings = run.machine().unwrap().unwrap().settings;
    assert_eq!(settings.value("kernel.release"), Some(&"7.0".into()));
    fs::write(path.join("machine.json"), "[1]").unwrap();
    assert!(matches!(run.machine(), Err(StoreError::Damaged { .. })));
    // A run without a machine leaves no empty file.
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
    // The head belongs to this run, with its current label.
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
fn another_version_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = writer(dir.path()).finish(manifest()).unwrap();
    for other in [RUN_SCHEMA_VERSION - 1, RUN_SCHEMA_VERSION + 1] {
        fs::write(
            path.join("manifest.json"),
            format!(r#"{{"schema_version": {other}}}"#),
        )
        .unwrap();
        let (runs, problems) = list(dir.path()).unwrap();
        assert!(runs.is_empty());
        let error = problems[0].error.to_string();
        let found = format!("schema version {other}");
        let known = format!("reads version {RUN_SCHEMA_VERSION}");
        assert!(error.contains(&found) && error.contains(&known), "{error}");
    }
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
