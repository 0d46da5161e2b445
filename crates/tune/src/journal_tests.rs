use super::*;
use crate::refusal::{Meaning, Refusal};
use crate::value::ValueKind;
use proptest::prelude::*;

fn records(version: u32) -> Vec<Record> {
    vec![
        Record::Begin {
            uptime: None,
            version,
            boot_id: "b".into(),
            who: Who {
                uid: 0,
                name: None,
                pid: 1,
                command: "x".into(),
                at_realtime_ns: 5,
            },
            isolated: "1".parse().unwrap(),
            housekeeping: "0".parse().unwrap(),
        },
        Record::Intend {
            seq: 0,
            knob: "vmstat".into(),
            op: Op::Write {
                path: "/proc/sys/vm/stat_interval".into(),
                kind: ValueKind::Number,
                from: Some("1\n".into()),
                to: "3600".into(),
                effective: None,
            },
        },
        Record::Done {
            seq: 0,
            outcome: Outcome::Applied {
                reads: "3600".into(),
            },
            at_realtime_ns: None,
        },
        Record::End { stopped: false },
        Record::Undone {
            seq: 0,
            how: "restored".into(),
            restored_realtime_ns: None,
        },
    ]
}

/// The text in the file.
fn text_of(records: &[Record]) -> String {
    let mut chain = 0;
    let line = |record: &Record| {
        let record = serde_json::to_string(record).unwrap();
        chain = chained(chain, &record);
        sealed(&record, chain) + "\n"
    };
    records.iter().map(line).collect()
}

fn text() -> String {
    text_of(&records(JOURNAL_VERSION))
}

fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn a_journal_cut_anywhere_is_understood_and_never_forgets_a_step_begun() {
    let text = text();
    for cut in 0..=text.len() {
        let state = parse(&text.as_bytes()[..cut]).unwrap().state;
        // A step stands from its complete line until the complete line of its undoing.
        let lines = text[..cut].matches('\n').count();
        assert_eq!(state.is_active(), (2..5).contains(&lines), "cut at {cut}");
    }
}

fn folder() -> (tempfile::TempDir, TrustedFolder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = TrustedFolder::make(&dir.path().join("state")).unwrap();
    (dir, folder)
}

fn put(folder: &TrustedFolder, text: &str) {
    folder.remove(JOURNAL).unwrap();
    let file = folder.make_file(JOURNAL, OFlags::WRONLY, 0o644);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

/// A refusal may carry no meaning, and one from a newer program may carry an unknown meaning.
#[test]
fn a_refusal_is_read_whoever_wrote_it() {
    let done = |means: &str| -> Record {
        let line = format!(
            r#"{{"record":"done","seq":0,"outcome":"refused","class":"busy","system":"busy"{means}}}"#
        );
        serde_json::from_str(&line).unwrap()
    };
    for (text, means) in [
        ("", None),
        (r#","means":"in_use""#, Some(Meaning::InUse)),
        (r#","means":"sun_spots""#, Some(Meaning::Unknown)),
    ] {
        let outcome = Outcome::Refused {
            class: Refusal::Busy,
            why: "busy".into(),
            means,
        };
        assert_eq!(
            done(text),
            Record::Done {
                seq: 0,
                outcome,
                at_realtime_ns: None
            }
        );
    }
}

#[test]
fn opening_cuts_off_the_torn_line_and_goes_on() {
    let (_dir, folder) = folder();
    let text = text();
    put(&folder, &text[..text.len() - 3]);
    let mut journal = Journal::open(&folder).unwrap();
    journal
        .append(&[Record::Undone {
            seq: 0,
            how: "again".into(),
            restored_realtime_ns: None,
        }])
        .unwrap();
    let state = Journal::load(&folder).unwrap();
    assert_eq!(state.steps[0].undone.as_deref(), Some("again"));
}

#[test]
fn damage_and_other_versions_are_refused_with_their_line() {
    let damaged = text().replacen("\"record\":\"done\"", "\"record\":\"dnoe\"", 1);
    assert_eq!(parse(damaged.as_bytes()).unwrap_err().0, 3);
    for other in [JOURNAL_VERSION - 1, JOURNAL_VERSION + 1] {
        let (line, why) = parse(text_of(&records(other)).as_bytes()).unwrap_err();
        assert_eq!(line, 1);
        assert!(why.contains(&format!("version {other}")), "{why}");
    }
    let stripped: String = records(JOURNAL_VERSION)
        .iter()
        .map(|record| serde_json::to_string(record).unwrap() + "\n")
        .collect();
    assert_eq!(
        parse(stripped.as_bytes()).unwrap_err(),
        (1, "it has no checksum".into())
    );
    let (_, unsealed_end) = stripped.trim_end().rsplit_once('\n').unwrap();
    let mixed = text() + unsealed_end + "\n";
    assert_eq!(parse(mixed.as_bytes()).unwrap_err().0, 6);
    assert_eq!(parse(b"\xff\n").unwrap_err().0, 1);
    assert_eq!(parse(b"\xff").unwrap(), Parsed::default(), "torn");
    let mut last = records(JOURNAL_VERSION);
    if let Record::Intend { seq, .. } = &mut last[1] {
        *seq = u64::MAX;
    }
    assert_eq!(
        parse(text_of(&last).as_bytes()).unwrap_err().0,
        2,
        "no step could follow it"
    );
}

#[test]
fn no_edited_byte_and_no_line_removed_put_in_or_moved_goes_unnoticed() {
    let text = text();
    assert_eq!(parse(text.as_bytes()).unwrap().state.steps.len(), 1);
    for at in (0..text.len()).filter(|at| text.as_bytes()[*at] != b'\n') {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        if bytes[at] != b'\n' {
            let line = text[..at].matches('\n').count() + 1;
            assert_eq!(parse(&bytes).unwrap_err().0, line, "byte {at}");
        }
    }
    let all = lines(&text);
    for i in 0..all.len() - 1 {
        let mut without = all.clone();
        let removed = without.remove(i);
        assert_eq!(parse(without.concat().as_bytes()).unwrap_err().0, i + 1);
        let mut twice = all.clone();
        twice.insert(i, removed);
        assert_eq!(parse(twice.concat().as_bytes()).unwrap_err().0, i + 2);
        let mut swapped = all.clone();
        swapped.swap(i, i + 1);
        assert_eq!(parse(swapped.concat().as_bytes()).unwrap_err().0, i + 1);
    }
}

#[test]
fn a_seal_is_the_last_field_only() {
    let tricky = Record::Undone {
        seq: 0,
        how: "x\",\"chain\":\"00000000".into(),
        restored_realtime_ns: None,
    };
    let line = serde_json::to_string(&tricky).unwrap();
    assert_eq!(unsealed(&line), (line.clone(), None));
    assert_eq!(unsealed(&sealed(&line, 0xab)), (line, Some(0xab)));
    for odd in [
        "",
        "\"}",
        "x\"}",
        "\u{20ac}\u{20ac}\u{20ac}\"}",
        ",\"chain\":\"+0000000\"}",
    ] {
        assert_eq!(unsealed(odd).1, None, "{odd}");
    }
}

proptest! {
    #[test]
    fn hostile_text_never_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&text);
    }
}
