//! Another tool's records for the stalls of a probe's run.

use crate::import::{Parts, Verdicts, exported_to, fixture, is_clean, settings, verdicts};
use jitterscope_model::{AddedRecords, AlignmentStart, Nanos, RunManifest, Ticks};
use jitterscope_recording::{ImportError, import_into, stall_timelines};
use jitterscope_store::RunReader;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The run of a probe with the records of a file.
fn joined(run: &RunReader, file: &Path, dir: &Path) -> Result<RunReader, ImportError> {
    let settings = settings(file, dir, None);
    let made = import_into(&settings, run, &AtomicBool::new(false), &mut ())?;
    Ok(RunReader::open(&made.path).unwrap())
}

fn added(run: &RunReader) -> AddedRecords {
    run.manifest().added.clone().unwrap()
}

/// The share of the time of `expected` that `found` gives to the same culprits.
fn agreement(expected: &Verdicts, found: &Verdicts) -> f64 {
    let of = |parts: &Parts, who: &str| -> u64 {
        parts
            .iter()
            .filter(|(of, _)| of == who)
            .map(|(_, ns)| ns)
            .sum()
    };
    let (mut all, mut same) = (0, 0);
    for (place, parts) in expected {
        all += parts.iter().map(|(_, ns)| ns).sum::<u64>();
        let Some(other) = found.get(place) else {
            continue;
        };
        let mut seen = Vec::new();
        for (who, _) in parts {
            if !seen.contains(&who) {
                same += of(parts, who).min(of(other, who));
                seen.push(who);
            }
        }
    }
    same as f64 / all as f64
}

/// The run as if its recorder had read other clocks.
fn with_clocks(change: impl Fn(&mut RunManifest)) -> RunReader {
    let run = fixture("spin");
    let mut manifest = run.manifest().clone();
    change(&mut manifest);
    run.of_manifest(manifest)
}

#[test]
fn a_runs_own_records_give_its_verdicts_again() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("spin");
    let all = (0, u64::MAX);
    let expected = verdicts(&run, all);
    for (form, start) in [
        ("tracedat", AlignmentStart::SameClock),
        ("perfetto", AlignmentStart::TimeOfDay),
        ("ctf", AlignmentStart::SameClock),
    ] {
        let file = exported_to(form, &run, dir.path());
        let again = joined(&run, &file, dir.path()).unwrap();
        let (found, added) = (verdicts(&again, all), added(&again));
        assert_eq!(found.len(), expected.len());
        let share = agreement(&expected, &found);
        println!("{form}: {share:.4} {added:?}");
        assert_eq!(added.start, start, "{form}");
        assert_eq!(added.run, run.manifest().id);
        assert!(added.error_ns < Nanos(5_000), "{form}: {added:?}");
        assert!(added.covered > 0.999, "{form}: {added:?}");
        assert!(
            added.inside * 100 >= added.compared * 95,
            "{form}: {added:?}"
        );
        let least = match form {
            // It has no message for calls from other CPUs, page faults and NMIs.
            "perfetto" => 0.9,
            _ => 0.98,
        };
        assert!(share >= least, "{form}: {share:.4}");
        // The stalls themselves, the machine and the probe are those of the run.
        let (old, new) = (run.manifest(), again.manifest());
        assert_eq!(old.results, new.results);
        assert_eq!(old.host, new.host);
        assert_eq!(
            run.stalls()
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>(),
            again
                .stalls()
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        );
        assert!(new.imported.is_none() && new.attributed);
    }
}

#[test]
fn the_stored_verdicts_are_those_of_a_replay() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("spin");
    let file = exported_to("perfetto", &run, dir.path());
    let again = joined(&run, &file, dir.path()).unwrap();
    let stored: Vec<_> = again.attributions().unwrap().map(Result::unwrap).collect();
    let mut replayed = Vec::new();
    let result = jitterscope_recording::replay(&again, &mut |_, attribution| {
        replayed.extend(attribution);
    })
    .unwrap();
    assert_eq!(stored, replayed);
    assert_eq!(result.events_in_gaps, Some(again.manifest().events_in_gaps));
    // Its records are shown around a stall.
    let stalls: Vec<_> = again.stalls().unwrap().map(Result::unwrap).collect();
    let longest = stalls.iter().max_by_key(|stall| stall.length()).unwrap();
    let shown = stall_timelines(&again, std::slice::from_ref(longest)).unwrap();
    assert!(!shown.is_empty());
}

#[test]
fn clocks_of_which_nothing_is_known_are_aligned_by_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("spin");
    let file = exported_to("perfetto", &run, dir.path());
    let strange = with_clocks(|manifest| {
        let start = &mut manifest.clock_start;
        start.monotonic_raw_ns += 86_400_000_000_000;
        start.realtime_ns += 3_600_000_000_000;
    });
    let again = joined(&strange, &file, dir.path()).unwrap();
    let found = added(&again);
    assert_eq!(found.start, AlignmentStart::Everywhere, "{found:?}");
    let all = (0, u64::MAX);
    let share = agreement(&verdicts(&run, all), &verdicts(&again, all));
    assert!(share > 0.9, "{share:.4}, {found:?}");
}

#[test]
fn a_trace_of_another_time_and_a_run_without_a_probe_are_refused_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("spin");
    let other = exported_to("tracedat", &fixture("passive"), dir.path());
    let refused = joined(&run, &other, dir.path()).unwrap_err();
    assert!(
        matches!(
            refused,
            ImportError::NotAligned { .. } | ImportError::NoCpus { .. }
        ),
        "{refused}"
    );
    let own = exported_to("tracedat", &run, dir.path());
    for kind in ["attach", "wakeup", "pipeline", "passive"] {
        let refused = joined(&fixture(kind), &own, dir.path()).unwrap_err();
        assert!(
            matches!(refused, ImportError::NoSpinningProbe { .. }),
            "{kind}: {refused}"
        );
    }
    assert!(is_clean(dir.path()));
}

/// Where the file has no records, stalls have no verdict, and the run says how much it covers.
#[test]
fn a_trace_of_a_part_of_the_run_leaves_the_rest_without_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("spin");
    let file = exported_to("tracedat", &run, dir.path());
    let whole = std::fs::read(&file).unwrap();
    // The pages of the measured CPU lie before those of the senders: cut until they are cut.
    let cuts = (1..10).rev().map(|tenths| whole.len() * tenths / 10);
    let mut cut = cuts.map(|length| {
        std::fs::write(&file, &whole[..length]).unwrap();
        joined(&run, &file, dir.path()).unwrap()
    });
    let again = cut.find(|run| added(run).covered < 0.97).unwrap();
    let found = added(&again);
    assert!(found.covered > 0.2, "{found:?}");
    let all = (0, u64::MAX);
    let (before, after) = (verdicts(&run, all), verdicts(&again, all));
    let is_lost = |parts: &Parts| parts.iter().any(|(who, _)| who.contains("trace data lost"));
    let lost: Vec<_> = after.iter().filter(|(_, parts)| is_lost(parts)).collect();
    assert!(!lost.is_empty() && lost.len() < after.len(), "{lost:?}");
    let (_, last) = run.manifest().span().unwrap();
    let kept: Verdicts = before
        .into_iter()
        .filter(|(place, _)| after.get(place).is_some_and(|parts| !is_lost(parts)))
        .collect();
    assert!(agreement(&kept, &after) > 0.9);
    // A lost stall lies in the last part of the run.
    let from = lost.iter().map(|((.., end), _)| Ticks(*end)).min().unwrap();
    assert!(from < last);
}
