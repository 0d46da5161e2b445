//! `import --into`: trace-cmd's records for the stalls of a probe that traced nothing.

use crate::import::{import, recorded};
use crate::live;

use live::{can_trace, jitterscope, json, stderr, turn};
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// It takes a CPU for some milliseconds at uneven times.
const BURN: &str = "while :; do for rest in 0.011 0.023 0.017 0.031 0.013; do i=0; \
                    while [ $i -lt 6000 ]; do i=$((i+1)); done; sleep $rest; done; done";

struct Thief(Child);

impl Thief {
    /// The CPU time that it had so far.
    fn ran(&self) -> Duration {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.0.id())).unwrap();
        Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn trace_cmds_records_say_who_caused_the_stalls_of_a_probe_that_traced_nothing() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let cpu = jitterscope_testing::highest_cpu().to_string();
    let thief = dir.path().join("into-thief");
    fs::copy("/bin/sh", &thief).unwrap();
    let spawned = Command::new("chrt")
        .args(["-f", "50", "taskset", "-c", &cpu])
        .arg(&thief)
        .args(["-c", BURN])
        .spawn();
    let Ok(thief) = spawned.map(Thief) else {
        return jitterscope_testing::skip("there is no chrt");
    };
    let probe = [
        "record",
        "-d",
        "5s",
        "--no-trace",
        "--cpus",
        &cpu,
        "-l",
        "PROBE",
        "-q",
    ];
    let traced = std::thread::scope(|scope| {
        let probe = scope.spawn(|| jitterscope(&runs, &probe));
        std::thread::sleep(Duration::from_millis(1500));
        let (before, begun) = (thief.ran(), Instant::now());
        let traced = recorded(dir.path(), &[]);
        let share = (thief.ran() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        let probe = probe.join().unwrap();
        assert!(probe.status.success(), "{}", stderr(&probe));
        traced.map(|()| share)
    });
    let Some(share) = traced else {
        return;
    };
    drop(thief);
    let output = import(
        dir.path(),
        "trace.dat",
        &["--into", "PROBE", "-l", "JOINED", "--json"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let run = json(&output);
    let added = &run["run"]["added"];
    let of = |name: &str| added[name].as_f64().unwrap();
    assert_eq!(
        (&added["file"]["clock"], &added["start"]),
        (&"mono".into(), &"clock_readings".into())
    );
    assert!(of("inside") >= 0.95 * of("compared"), "{added}");
    assert!(of("by_chance") <= 0.8 * of("compared"), "{added}");
    // Within long stalls, offsets that differ by less than their length fit nearly alike.
    assert!(of("error_ns") < 200_000.0, "{added}");
    assert!((0.1..0.6).contains(&of("covered")), "{added}");
    // Of the time that the trace covers, the thief had its share.
    let culprits = run["attribution"]["culprits"].as_array().unwrap();
    let of_thief = |row: &&serde_json::Value| row["name"] == "into-thief";
    let total = culprits
        .iter()
        .filter(of_thief)
        .map(|row| row["total_ns"].as_f64().unwrap());
    let seconds = run["run"]["duration_ns"].as_f64().unwrap() / 1e9 * of("covered");
    let found = total.sum::<f64>() / 1e9 / seconds;
    assert!(
        (found / share - 1.0).abs() < 0.25,
        "{found} of the covered time, it ran {share}: {culprits:?}"
    );
    let shown = jitterscope(&runs, &["report", "JOINED", "--full"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in [
        "into-thief",
        "compared records lie in stalls",
        "trace.dat of version",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // The probe's run is as it was.
    let before = json(&jitterscope(&runs, &["report", "PROBE", "--json"]));
    assert!(before["attribution"].is_null() && before["run"]["added"].is_null());
    let refused = import(
        dir.path(),
        "trace.dat",
        &["--into", "PROBE", "--cpus", &cpu],
    );
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let refused = import(dir.path(), "trace.dat", &["--into", "NONE"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
}
