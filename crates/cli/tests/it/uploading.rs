//! `watch --upload`: real hourly sums reach a store, and the child that sends them ends with the watch. Needs root and
//! tracefs; without them, the test prints a note and is skipped.

use crate::live::{can_trace, jitterscope, json, turn};
use crate::watch::{PATIENCE, THIEF, Watching, steal};
use jitterscope_store::rollup::{HostHour, HourFile, merge};
use jitterscope_testing::highest_cpu;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The program lies beside the one that the tests run.
fn fleet() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_jitterscope")).with_file_name("jitterscope-fleet")
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn children_named(name: &str, folder: &Path) -> usize {
    let of = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(name) && line.contains(&*folder.to_string_lossy())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(of).count()
}

#[test]
fn hours_that_are_over_are_sent_and_the_metrics_say_so() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    assert!(fleet().is_file(), "{}", fleet().display());
    let dir = tempfile::tempdir().unwrap();
    let (cpu, runs) = (highest_cpu(), dir.path().join("runs"));
    let store = dir.path().join("store");
    let watch = Watching::start(&runs, &format!("--cpus {cpu} --probe spin --section 1s"));
    watch.says("watching CPU");
    steal(dir.path(), cpu, Duration::from_secs(2));
    watch.signal("INT");
    assert!(watch.ends().success());

    // Its hour becomes an earlier one, which is over.
    let hours = runs.join(format!(".watch/cpus-{cpu}/hours"));
    let written = files(&hours).remove(0);
    let mut hour: HostHour = serde_json::from_slice(&fs::read(&written).unwrap()).unwrap();
    assert_eq!((hour.groups.len(), hour.host.id.len()), (1, 16));
    let group = &hour.groups[0];
    assert_eq!(
        (group.cpus.to_string(), group.longest.len()),
        (cpu.to_string(), 8)
    );
    assert!(
        group.culprits.iter().any(|of| of.name == THIEF),
        "{group:#?}"
    );
    let counted = group.buckets.iter().filter(|of| of.key == "stall");
    assert_eq!(counted.map(|of| of.count).sum::<u64>(), group.stalls);
    hour.hour -= 3;
    let earlier = HourFile::new(hour.hour, &hour.host.boot);
    fs::write(
        hours.join(earlier.name()),
        serde_json::to_vec(&hour).unwrap(),
    )
    .unwrap();

    let metrics = dir.path().join("js.prom");
    let watch = Watching::start(
        &runs,
        &format!(
            "--cpus {cpu} --probe spin --section 1s --upload file://{} --cluster lab --metrics-file {}",
            store.display(),
            metrics.display()
        ),
    );
    watch.says("watching CPU");
    let until = Instant::now() + PATIENCE;
    let row = format!("jitterscope_uploaded_hours_total{{cpus=\"{cpu}\"}} 1");
    while !fs::read_to_string(&metrics)
        .unwrap_or_default()
        .contains(&row)
    {
        assert!(Instant::now() < until, "{:?}", fs::read_to_string(&metrics));
        std::thread::sleep(Duration::from_millis(200));
    }
    let status = jitterscope(&runs, &["watch", "status", "--json"]);
    let status = json(&status);
    let upload = &status["watches"][0]["upload"];
    assert_eq!(
        (
            &upload["sent_hours"],
            &upload["waiting_hours"],
            &upload["problem"]
        ),
        (&1.into(), &0.into(), &serde_json::Value::Null),
        "{status:#}"
    );
    assert_eq!(children_named("jitterscope-fleet", &store), 1);
    watch.signal("INT");
    assert!(watch.ends().success());
    assert_eq!(children_named("jitterscope-fleet", &store), 0);

    let sent: Vec<PathBuf> = files(&store.join("v1/raw/cluster=lab"));
    assert_eq!(sent.len(), 1, "{sent:?}");
    let group = &hour.groups[0];
    let parts: usize = group.longest.iter().map(|of| of.parts.len()).sum();
    let rows = 1 + group.culprits.len() + group.buckets.len() + group.longest.len() + parts;
    let file = fs::File::open(&sent[0]).unwrap();
    let merged = merge(vec![(file, &*sent[0])], &|_| false).unwrap();
    assert_eq!(merged.rows, rows as u64);
    assert!(
        hours
            .join(earlier.name())
            .with_extension("sent.json")
            .exists()
    );
}
