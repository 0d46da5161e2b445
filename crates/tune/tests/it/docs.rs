//! Every step page names knobs and commands that exist.

use jitterscope_tune::catalogue;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn step_pages_name_knobs_that_exist() {
    let (mut pages, mut scripts) = (0, 0);
    for entry in std::fs::read_dir(docs().join("steps")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "sh") {
            scripts += 1;
            // `    vmstat) echo vmstat ;;` in the function that lists a step's knobs.
            let function = text
                .split("knobs_of() {")
                .nth(1)
                .unwrap()
                .split("\n}")
                .next()
                .unwrap();
            let lists = function
                .split("echo ")
                .skip(1)
                .map(|rest| rest.split([' ', '\n', ';']).next().unwrap());
            for id in lists.flat_map(|list| list.split(',')) {
                assert!(
                    catalogue::find(id).is_some(),
                    "{}: no knob '{id}'",
                    path.display()
                );
            }
            continue;
        }
        pages += 1;
        for (flag, end) in [("--only ", ' '), ("--explain ", ' '), ("knobs.md#", ')')] {
            for part in text.split(flag).skip(1) {
                let list: String = part
                    .chars()
                    .take_while(|c| *c != end && !matches!(c, '`' | '\n' | '"'))
                    .collect();
                for id in list.split(',').filter(|id| *id != "KNOB") {
                    assert!(
                        catalogue::find(id).is_some(),
                        "{}: no knob '{id}'",
                        path.display()
                    );
                }
            }
        }
    }
    assert!(pages >= 8, "only {pages} step pages");
    assert_eq!(scripts, 1, "the walk");
}
