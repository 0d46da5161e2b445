//! Outputs in addition to the stored run: they have the same rows, during the recording; and the runs of the fronts.

use crate::live;

use jitterscope_testing::Tmpfs;
use live::{can_trace, jitterscope, json, stderr, turn};
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const RECORD: [&str; 7] = [
    "record",
    "-d",
    "1s",
    "--warmup",
    "100ms",
    "--interval",
    "50ms",
];

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The only run of a folder.
fn run_of(runs: &Path) -> String {
    let list = json(&jitterscope(runs, &["list", "--json"]));
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "{list}");
    runs[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_written_while_it_records_is_what_the_stored_run_exports() {
    let _turn = turn();
    let (runs, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kinds = [
        "csv",
        "json",
        "hlog",
        "hgrm",
        "csv?rows=intervals",
        "csv?rows=series",
    ];
    let targets = |of: &str| -> Vec<String> {
        let target = |(n, kind): (usize, &&str)| {
            let (scheme, options) = kind.split_once('?').unwrap_or((kind, ""));
            format!("{scheme}://{}/{of}-{n}?{options}", dir.path().display())
        };
        kinds.iter().enumerate().map(target).collect()
    };
    let (live, stored) = (targets("live"), targets("stored"));
    let live: Vec<&str> = live.iter().flat_map(|target| ["-o", target]).collect();
    let stored: Vec<&str> = stored.iter().flat_map(|target| ["--to", target]).collect();
    let output = jitterscope(runs.path(), &[&RECORD[..], &["-q"], &live].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        stderr(&output),
        "",
        "nothing is said where nothing was lost"
    );
    assert!(
        jitterscope(runs.path(), &[&["export"], &stored[..]].concat())
            .status
            .success()
    );
    for (n, kind) in kinds.iter().enumerate() {
        let of = |of: &str| lines(&dir.path().join(format!("{of}-{n}")));
        let (live, stored) = (of("live"), of("stored"));
        assert!(live.len() > 3, "{kind}: {live:?}");
        assert_eq!(live, stored, "{kind}");
    }
}

#[test]
fn an_output_of_a_recording_is_named_and_apart() {
    let runs = tempfile::tempdir().unwrap();
    let wrong = [
        ("csv://-", "standard output has the report"),
        ("parquet://x", "from a stored run only"),
        ("xml://x", "is not known"),
        (
            &*format!("hgrm://{}/x?cpu=4095", runs.path().display()),
            "CPU 4095 is not measured",
        ),
    ];
    let _turn = turn();
    for recording in [
        &["record", "-d", "1h"][..],
        &["record", "pipeline", "--duration", "1h", "--two-thread"],
    ] {
        for (target, word) in wrong {
            let output = jitterscope(runs.path(), &[recording, &["-o", target]].concat());
            assert_eq!(
                output.status.code(),
                Some(2),
                "{recording:?} {target}: {}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains(word),
                "{recording:?} {target}: {}",
                stderr(&output)
            );
        }
    }
    assert_eq!(
        fs::read_dir(runs.path()).map_or(0, Iterator::count),
        0,
        "no run is left"
    );
}

/// A child that dies with the test.
struct Running(Option<Child>);

impl Running {
    fn start(runs: &Path, args: &[&str]) -> Running {
        let mut command = Command::new(live::program());
        command
            .env("JITTERSCOPE_RUNS", runs)
            .args(args)
            .stdin(Stdio::null());
        Running(Some(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        ))
    }

    fn wait_for(&mut self, mut found: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !found() {
            let child = self.0.as_mut().unwrap();
            assert!(child.try_wait().unwrap().is_none(), "it ended before");
            assert!(Instant::now() < until, "nothing happened in a minute");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn interrupt(mut self) -> Output {
        let child = self.0.take().unwrap();
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        child.wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn ctrl_c_keeps_the_run_and_what_was_written_beside_it() {
    let _turn = turn();
    let (runs, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (live, stored) = (dir.path().join("live"), dir.path().join("stored"));
    let target = |path: &Path| format!("json://{}", path.display());
    let whole = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let args = [
        "record",
        "-d",
        "1h",
        "--warmup",
        "100ms",
        "--interval",
        "50ms",
        "-o",
        &target(&live),
    ];
    let mut child = Running::start(runs.path(), &args);
    child.wait_for(|| whole(&live) > 10);
    let output = child.interrupt();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        jitterscope(runs.path(), &["export", "--to", &target(&stored)])
            .status
            .success()
    );
    let written = lines(&live);
    assert!(
        written.last().unwrap().contains("\"type\":\"end\""),
        "{written:?}"
    );
    assert_eq!(written, lines(&stored));
    let report = json(&jitterscope(runs.path(), &["report", "--json"]));
    assert_eq!(report["run"]["interrupted"], true);
}

#[test]
fn an_output_that_fails_midway_reports_its_losses() {
    let _turn = turn();
    let Some(disk) = Tmpfs::mount(16 << 10) else {
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    let (full, fine) = (disk.path().join("full"), runs.path().join("fine"));
    let target = |path: &Path| format!("csv://{}?rows=intervals", path.display());
    let targets = ["-o", &target(&full), "-o", &target(&fine)];
    let interval = [
        "record",
        "-d",
        "2s",
        "--warmup",
        "100ms",
        "--interval",
        "1ms",
        "--no-trace",
        "-q",
    ];
    let output = jitterscope(runs.path(), &[&interval[..], &targets].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let printed = stderr(&output);
    assert!(
        printed.contains("takes no more rows") && printed.contains("No space left"),
        "{printed}"
    );
    let (full, fine) = (lines(&full).len() - 1, lines(&fine).len() - 1);
    assert!(full > 10 && full < fine, "{full} {fine}: the other goes on");
    assert!(
        printed.contains(&format!("{full} rows, {} lost", fine - full)),
        "{full} {fine}: {printed}"
    );
    let report = json(&jitterscope(runs.path(), &["report", "--json"]));
    assert!(report["run"]["interrupted"] == false);
    let warnings = report["warnings"].as_array().unwrap();
    let lost = warnings
        .iter()
        .find(|warning| warning["id"] == "output-lost")
        .unwrap();
    assert!(
        lost["text"]
            .as_str()
            .unwrap()
            .contains(&format!("received {full} rows and lost {}", fine - full))
    );
}

/// The fields of a line of line protocol.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name}="))?;
    let value = rest.split([',', ' ']).next()?;
    // A number ends with the letter of its type; so may a text.
    let text = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(text.unwrap_or_else(|| value.trim_end_matches('i')))
}

#[test]
fn a_spike_of_the_sampler_leads_to_the_trace_of_that_moment() {
    if !can_trace() {
        return;
    }
    let _turn = turn();
    let runs = tempfile::tempdir().unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let target = format!("influx://{}", server.local_addr().unwrap());
    let receiver = std::thread::spawn(move || {
        let (mut text, mut datagram) = (String::new(), [0; 2000]);
        // Until the sampler has been silent for a while after its first output.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            match server.recv(&mut datagram) {
                Ok(length) => text.push_str(&String::from_utf8_lossy(&datagram[..length])),
                Err(_) if text.lines().count() > 2 => break,
                Err(_) => {}
            }
        }
        text
    });
    let output = jitterscope(
        runs.path(),
        &["sampler", "-d", "1", "-r", "100", "-o", &target],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = receiver.join().unwrap();
    let run = run_of(runs.path());
    assert!(
        stderr(&output).contains(&format!("jitterscope report {run}")),
        "{}",
        stderr(&output)
    );
    let points: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("jitter_run,"))
        .collect();
    assert!(points.len() > 5, "{text}");
    assert!(
        points.iter().all(|line| field(line, "run") == Some(&run)),
        "{text}"
    );
    // The worst of the series, by their ids; on a virtual machine some are the host's, without any record.
    let length = |line: &str| field(line, "duration_ns").unwrap().parse::<u64>().unwrap();
    let mut stalls: Vec<&str> = points
        .iter()
        .copied()
        .filter(|line| line.starts_with("jitter_stall,"))
        .collect();
    stalls.sort_by_key(|line| std::cmp::Reverse(length(line)));
    let has_frames = |line: &&str| {
        let number = field(line, "stall_id").unwrap();
        let stall = json(&jitterscope(
            runs.path(),
            &["report", &run, "--stall", number, "--json"],
        ));
        assert_eq!(stall["stall"]["stall"].as_u64(), number.parse().ok());
        assert_eq!(stall["stall"]["duration_ns"].as_u64(), Some(length(line)));
        stall["frames"]
            .as_array()
            .is_some_and(|frames| !frames.is_empty())
    };
    assert!(
        stalls.iter().take(20).any(has_frames),
        "none of the worst has a trace: {stalls:?}"
    );
}

#[test]
fn sljtest_keeps_a_run_whose_stalls_are_its_outliers() {
    let _turn = turn();
    let runs = tempfile::tempdir().unwrap();
    let file = runs.path().join("outliers.txt");
    let args = [
        "sljtest", "-r", "500ms", "-k", "2000", "--label", "SLJ", "--json", "-f",
    ];
    let output = jitterscope(
        runs.path(),
        &[&args[..], &[file.to_str().unwrap()]].concat(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let slj: Value = json(&output);
    let run = run_of(runs.path());
    let report = json(&jitterscope(runs.path(), &["report", &run, "--json"]));
    assert_eq!(report["run"]["label"], "SLJ", "{report}");
    let seen = slj["cpus"][0]["outliers"]["seen"].as_u64().unwrap();
    let to = format!("csv://{}", runs.path().join("stalls").display());
    assert!(
        jitterscope(runs.path(), &["export", &run, "--to", &to])
            .status
            .success()
    );
    assert_eq!(lines(&runs.path().join("stalls")).len() as u64 - 1, seen);
    assert_eq!(lines(&file).len() as u64, seen);
}

#[test]
fn the_file_of_outliers_has_all_above_the_knee_that_are_not_the_probes_own_work() {
    let _turn = turn();
    let runs = tempfile::tempdir().unwrap();
    let file = runs.path().join("outliers.txt");
    let args = [
        "sljtest",
        "-r",
        "300ms",
        "-o",
        "10000000",
        "--no-trace",
        "--json",
        "-f",
    ];
    let output = jitterscope(
        runs.path(),
        &[&args[..], &[file.to_str().unwrap()]].concat(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let slj: Value = json(&output);
    let report = json(&jitterscope(runs.path(), &["report", "--json"]));
    let costs = &report["probe"]["clock_costs"];
    let of = |name: &str| costs[name].as_u64().unwrap();
    let own = (4 * of("read_tail_ns")).max(2 * of("store_ns"));
    let threshold = report["probe"]["threshold_ns"].as_u64().unwrap();
    // One tick of the knee may round up.
    assert!(threshold <= own.max(50) + 1, "{threshold} {costs}");
    let cpu = &slj["cpus"][0];
    let seen = cpu["outliers"]["seen"].as_u64().unwrap();
    assert_eq!(lines(&file).len() as u64, seen);
    // Those in the file and those that are only counted are all above the knee.
    let bins = cpu["bins"].as_array().unwrap();
    let above: u64 = bins[10..]
        .iter()
        .map(|bin| bin["count"].as_u64().unwrap())
        .sum();
    let message = stderr(&output);
    let words: Vec<&str> = message.split_whitespace().collect();
    let at = words
        .windows(4)
        .position(|of| of[1..] == ["outliers", "are", "shorter"]);
    let short = at.map_or(0, |at| words[at].parse::<u64>().unwrap());
    let dropped = report["trust"]["dropped_records"].as_u64().unwrap();
    assert_eq!(seen + short + dropped, above, "{message} {cpu}");
}
