//! The cast of a first session: this version accepts and prints what it shows.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Its output, event by event.
fn events() -> (Value, Vec<(f64, String)>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-session.cast");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    let event = |event: Value| {
        assert_eq!(event[1], "o", "{event}");
        (
            event[0].as_f64().unwrap(),
            event[2].as_str().unwrap().to_owned(),
        )
    };
    (head, lines.map(event).collect())
}

#[test]
fn it_plays_on_eighty_columns() {
    let (head, events) = events();
    assert_eq!(
        (&head["version"], &head["width"], &head["height"]),
        (&2.into(), &80.into(), &24.into())
    );
    assert!(events.is_sorted_by(|a, b| a.0 <= b.0));
    for line in events.iter().flat_map(|(_, text)| text.split("\r\n")) {
        let is_typed = line.starts_with("# ");
        assert!(is_typed || line.chars().count() <= 80, "{line}");
        assert!(!line.contains(['\u{1b}', '\r', '\n']), "{line:?}");
    }
}

#[test]
fn every_command_in_it_is_still_one_and_answered() {
    let (_, events) = events();
    let typed: Vec<_> = events
        .iter()
        .enumerate()
        .filter(|(_, (_, text))| text.starts_with("# jitterscope "))
        .collect();
    assert!(
        typed.len() >= 6,
        "a session has more than {} commands",
        typed.len()
    );
    for (at, (_, text)) in typed {
        let words: Vec<&str> = text.trim_end().split(' ').skip(2).collect();
        // An error before --help is still an error.
        let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
            .args(&words)
            .arg("--help")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{text}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let answer = &events[at + 1].1;
        assert!(
            answer.len() > 2 && !answer.starts_with("error:"),
            "{text}: {answer}"
        );
    }
}

#[test]
fn its_screens_are_those_of_this_version() {
    let (_, events) = events();
    let all: String = events.iter().map(|(_, text)| text.as_str()).collect();
    // The sentence at the beginning or end of each.
    for said in [
        "Stalls can be measured here",
        "of its time: ",
        "Trust: recorded kernel activity explains",
        "  everything that was measured",
        "verdict",
        "Nothing was changed. Apply it by `tune apply`",
    ] {
        assert!(all.contains(said), "{said}");
    }
    let heads = |line: &str| line.starts_with("culprit ") && line.ends_with("     mean      max");
    assert_eq!(all.lines().filter(|line| heads(line)).count(), 2, "{all}");
}
