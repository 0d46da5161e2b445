use super::*;
use crate::replay::replay;
use jitterscope_model::{AskedBy, Attribution};

fn fixture(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(kind)
}

fn moment() -> SavedMoment {
    SavedMoment {
        realtime_ns: 7,
        by: AskedBy::Person,
        text: "x".into(),
        joined: 0,
    }
}

fn part_in(dir: &Path) -> Destination<'_> {
    Destination {
        workshop: dir,
        runs: dir,
        label: "part",
    }
}

/// The middle half of a run.
fn middle(run: &RunReader) -> Window {
    let (from, to) = run.manifest().span().unwrap();
    let quarter = Ticks(to.since(from).0 / 4);
    Window {
        from: from + quarter,
        to: to - quarter,
    }
}

/// The time of each thread, nanoseconds.
fn by_thread(attributions: &[Attribution]) -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    for part in attributions.iter().flat_map(|of| &of.parts) {
        let subject = &part.culprit.subject;
        if subject.kind_word() == "thread" {
            *times.entry(subject.name().into_owned()).or_default() += part.net.0;
        }
    }
    times
}

#[test]
fn a_part_of_a_run_has_the_rows_of_its_window_and_replays_to_the_same_culprits() {
    let whole = RunReader::open(&fixture("spin")).unwrap();
    let window = middle(&whole);
    let dir = tempfile::tempdir().unwrap();
    let part = cut(&[fixture("spin")], window, part_in(dir.path()), &moment()).unwrap();
    let part = RunReader::open(&part).unwrap();
    let manifest = part.manifest();
    assert_eq!(manifest.moment, Some(moment()));
    assert_eq!((manifest.label.as_str(), manifest.killed), ("part", false));
    let rate = manifest.rate;
    assert_eq!(
        manifest.probe.duration_ns,
        rate.nanos(window.to.since(window.from))
    );
    let meets = |stall: &Stall| window.meets(stall.start, stall.end);
    let all: Vec<Stall> = whole.stalls().unwrap().map(Result::unwrap).collect();
    let wanted: Vec<&Stall> = all.iter().filter(|stall| meets(stall)).collect();
    let found: Vec<Stall> = part.stalls().unwrap().map(Result::unwrap).collect();
    assert!(wanted.len() > 20, "{}", wanted.len());
    assert_eq!(found.len(), wanted.len());
    for (n, (found, wanted)) in (0..).zip(found.iter().zip(&wanted)) {
        let expected = Stall {
            id: StallId(n),
            ..**wanted
        };
        assert_eq!(*found, expected);
    }
    let stored: Vec<Attribution> = part.attributions().unwrap().map(Result::unwrap).collect();
    assert_eq!(stored.len(), found.len());
    let held: Vec<_> = whole.intervals().unwrap().map(Result::unwrap).collect();
    let held = held
        .iter()
        .filter(|row| window.has(row.start, row.end))
        .count();
    assert_eq!(part.intervals().unwrap().count(), held);
    assert_eq!(part.interval_histograms().unwrap().count(), held);
    // This version's verdicts on the whole run: what the fixture has stored is older.
    let mut expected = Vec::new();
    replay(&whole, &mut |stall, attribution| {
        expected.extend(attribution.filter(|_| meets(stall)));
    })
    .unwrap();
    let mut again = Vec::new();
    let replayed = replay(&part, &mut |_, attribution| again.extend(attribution)).unwrap();
    assert_eq!(replayed.without_trace, 0);
    assert_eq!(again.len(), expected.len());
    // What was learnt of the edges of stalls before the window is not known in it, so a few microseconds move.
    let (expected, again) = (by_thread(&expected), by_thread(&again));
    for (name, time) in expected.iter().filter(|(_, time)| **time > 1_000_000) {
        let found = again[name];
        assert!(
            found.abs_diff(*time) < time / 50,
            "{name}: {found} and {time}"
        );
    }
    let events = replayed.events_in_gaps.unwrap();
    assert!(events.inside * 100 >= events.due() * 99, "{events:?}");
}

#[test]
fn a_part_from_the_very_beginning_counts_no_event_before_the_first_read() {
    let whole = RunReader::open(&fixture("spin")).unwrap();
    let window = Window {
        from: Ticks(1),
        to: middle(&whole).to,
    };
    let dir = tempfile::tempdir().unwrap();
    let part = cut(&[fixture("spin")], window, part_in(dir.path()), &moment()).unwrap();
    let events = RunReader::open(&part).unwrap().manifest().events_in_gaps;
    assert!(events.events > 100, "{events:?}");
    assert!(events.inside * 100 >= events.due() * 99, "{events:?}");
}

#[test]
fn a_part_of_watched_cpus_has_their_accounts() {
    let whole = RunReader::open(&fixture("passive")).unwrap();
    let window = middle(&whole);
    let dir = tempfile::tempdir().unwrap();
    let part = cut(
        &[fixture("passive")],
        window,
        part_in(dir.path()),
        &moment(),
    )
    .unwrap();
    let part = RunReader::open(&part).unwrap();
    let accounts = &part.manifest().passive;
    assert_eq!(accounts.len(), whole.manifest().passive.len());
    let length = part.manifest().rate.nanos(window.to.since(window.from));
    for cpu in accounts {
        assert!(cpu.watched_ns() <= length + Nanos(1_000_000), "{cpu:?}");
        assert!(cpu.watched_ns() > Nanos(length.0 / 2), "{cpu:?}");
    }
}

#[test]
fn nothing_is_saved_of_a_time_without_history() {
    let dir = tempfile::tempdir().unwrap();
    let of = |sections: &[PathBuf], window| {
        cut(sections, window, part_in(dir.path()), &moment()).unwrap_err()
    };
    let early = Window {
        from: Ticks(1),
        to: Ticks(2),
    };
    assert!(matches!(of(&[], early), CutError::Nothing));
    assert!(matches!(of(&[fixture("spin")], early), CutError::Nothing));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
