//! Runs of before recorders kept their turns can still be attributed again, as far as they can.

use jitterscope_model::{Attribution, CulpritKind};
use jitterscope_recording::{ReplayError, replay};
use jitterscope_store::RunReader;
use std::collections::BTreeMap;
use std::path::Path;

fn open(kind: &str) -> RunReader {
    let format_1 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures/format-1");
    RunReader::open(&format_1.join(kind)).unwrap()
}

/// Net time by kind and name. Details and senders may differ: what was sent before the measurement is not
/// kept in such a run.
fn by_name(attribution: &Attribution) -> BTreeMap<(CulpritKind, String), u64> {
    let mut sums = BTreeMap::new();
    for part in &attribution.parts {
        *sums
            .entry((
                part.culprit.kind(),
                part.culprit.subject.name().into_owned(),
            ))
            .or_default() += part.net.0;
    }
    sums
}

/// Those recorders blamed the host for whatever left no event, of which such runs have no evidence, and for all time
/// before an interrupt; now only for what of it the interrupt is shown to have come late.
fn as_told_now(
    mut sums: BTreeMap<(CulpritKind, String), u64>,
) -> BTreeMap<(CulpritKind, String), u64> {
    for (blamed, nobodys) in [
        ("CPU taken", "no kernel event"),
        ("late interrupt", "before first event"),
    ] {
        if let Some(net) = sums.remove(&(CulpritKind::Hypervisor, blamed.to_owned())) {
            *sums
                .entry((CulpritKind::Unresolved, nobodys.to_owned()))
                .or_default() += net;
        }
    }
    sums
}

/// Without what the tick's delay shows of the host, which those recorders did not ask.
fn without_lateness(
    sums: BTreeMap<(CulpritKind, String), u64>,
) -> BTreeMap<(CulpritKind, String), u64> {
    let taken = (CulpritKind::Hypervisor, "CPU taken".to_owned());
    assert!(
        !sums.contains_key(&taken),
        "no stolen time was kept: {sums:?}"
    );
    as_told_now(sums)
}

#[test]
fn probes_of_old_runs_are_attributed_from_their_pages_alone() {
    for (kind, stalls) in [("spin", 1002), ("wakeup", 96)] {
        let run = open(kind);
        let mut stored = run.attributions().unwrap().map(Result::unwrap);
        let mut differing = Vec::new();
        let replayed = replay(&run, &mut |stall, attribution| {
            let (before, again) = (stored.next().unwrap(), attribution.unwrap());
            assert_eq!((before.stall, again.stall), (stall.id, stall.id));
            assert_eq!(again.total(), run.manifest().rate.nanos(stall.length()));
            if as_told_now(by_name(&before)) != without_lateness(by_name(&again)) {
                differing.push(stall.id.0);
            }
        })
        .unwrap();
        assert_eq!((replayed.stalls, replayed.without_trace), (stalls, 0));
        differing.retain(|id| match (kind, id) {
            // What ran when the first wake-up was due was recorded before the measurement.
            ("wakeup", 0) => false,
            // By now a turn is named as it ended (`coordinator` had become another thread of the compiler), and
            // time between records of two threads with no switch between has no owner.
            ("wakeup", 7) | ("spin", 471) => false,
            _ => true,
        });
        assert!(differing.is_empty(), "{kind}: {differing:?}");
    }
}

#[test]
fn what_was_not_kept_of_followed_threads_is_said() {
    for kind in ["attach", "pipeline"] {
        let error = replay(&open(kind), &mut |_, _| panic!("a verdict from nowhere")).unwrap_err();
        assert!(
            matches!(&error, ReplayError::TooOld { kind: of, .. } if of == kind),
            "{error}"
        );
        assert!(error.to_string().contains("record it anew"), "{error}");
    }
}
