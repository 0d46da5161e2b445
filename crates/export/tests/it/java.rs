//! `hlog` and `hgrm` files as HdrHistogram's own Java reader sees them.
//!
//! Needs `java` and `mvn`, and Maven Central or its cache; without them the test prints a note and passes.

use crate::common;

use jitterscope_export::export_run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ARTIFACT: &str = "org.hdrhistogram:HdrHistogram:2.2.2";

fn skipped(why: &str) -> Option<PathBuf> {
    jitterscope_testing::skip(&format!(
        "{why}; apt-get install default-jdk-headless maven"
    ));
    None
}

/// The library's jar, copied to `folder`.
fn jar(folder: &Path) -> Option<PathBuf> {
    if Command::new("java").arg("-version").output().is_err() {
        return skipped("there is no java");
    }
    let copied = Command::new("mvn")
        .args([
            "-q",
            "-B",
            "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy",
        ])
        .arg(format!("-Dartifact={ARTIFACT}"))
        .arg(format!("-DoutputDirectory={}", folder.display()))
        .current_dir(folder)
        .output();
    match copied {
        Err(_) => skipped("there is no mvn"),
        Ok(output) if !output.status.success() => skipped("mvn could not get HdrHistogram"),
        Ok(_) => Some(folder.join("HdrHistogram-2.2.2.jar")),
    }
}

/// The numbers of a table: value, percentile, count.
fn rows(table: &str) -> Vec<[String; 3]> {
    table
        .lines()
        .filter_map(|line| {
            let mut cells = line.split_whitespace().map(str::to_owned);
            let row = [cells.next()?, cells.next()?, cells.next()?];
            row[0].parse::<f64>().is_ok().then_some(row)
        })
        .collect()
}

#[test]
fn javas_reader_sees_the_same_intervals_and_makes_the_same_table() {
    let dir = tempfile::tempdir().unwrap();
    let Some(jar) = jar(dir.path()) else { return };
    let run = common::run(&dir.path().join("runs"));
    let (hlog, hgrm) = (dir.path().join("x.hlog"), dir.path().join("x.hgrm"));
    let targets = [
        format!("hlog://{}", hlog.display()).parse().unwrap(),
        format!("hgrm://{}", hgrm.display()).parse().unwrap(),
    ];
    export_run(&run, &targets).unwrap();
    let output = Command::new("java")
        .arg("-cp")
        .arg(&jar)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/Reader.java"))
        .arg(&hlog)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let intervals: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("interval "))
        .collect();
    let epoch_ms = common::EPOCH / 1_000_000;
    let expected: Vec<String> = run
        .intervals()
        .unwrap()
        .map(Result::unwrap)
        .enumerate()
        .map(|(n, row)| {
            let start = epoch_ms + 1000 * (n as u64 / 2);
            // Java's maximum is the highest value of the bucket, as in the table.
            format!("interval spin-cpu{} {start} 1000 {} ", row.cpu, row.count)
        })
        .collect();
    assert_eq!(intervals.len(), expected.len(), "{text}");
    for (found, expected) in intervals.iter().zip(&expected) {
        assert!(
            found.starts_with(expected.as_str()),
            "{found} is not {expected}"
        );
    }

    let ours = fs::read_to_string(&hgrm).unwrap();
    assert!(rows(&ours).len() > 20, "{ours}");
    assert_eq!(rows(&ours), rows(&text), "ours:\n{ours}\ntheirs:\n{text}");
    let summary = |table: &str| -> Vec<String> {
        let lines = table.lines().filter(|line| line.starts_with("#["));
        lines
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    assert_eq!(summary(&ours)[..2], summary(&text)[..2]);
}
