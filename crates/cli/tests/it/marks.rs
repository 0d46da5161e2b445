//! An application's own log against runs: a stored one with marks at known stalls, and one that is recorded while a
//! thread writes down what it noticed itself.

use crate::live::{can_trace, jitterscope, json, stderr, turn};
use crate::readme;
use crate::reattribute::{copy, fixtures};
use crate::schema_check::conforms;
use jitterscope_platform::{current_tid, pin_current_thread};
use rustix::process::setpriority_process;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

const MS: u64 = 1_000_000;

fn annotate(runs: &Path, args: &[&str]) -> Output {
    jitterscope(runs, &[&["annotate", "latest"], args].concat())
}

fn good(output: Output) -> String {
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn row<'r>(report: &'r Value, name: &str) -> &'r Value {
    let rows = report["marks"]["names"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("{name} is not in {rows:#?}"))
}

/// A table with a mark around each of the ten worst stalls, and as many where the run has none of them.
fn around_the_worst(report: &Value) -> String {
    let mut table = "start_ns,duration_ns,request\n".to_owned();
    let worst = report["worst"].as_array().unwrap();
    for stall in worst {
        let of = |name: &str| stall[name].as_u64().unwrap();
        let (start, length) = (of("start_realtime_ns"), of("duration_ns"));
        let at = start - MS / 5;
        writeln!(table, "{at},{},\"slow, of course\"", length + 2 * MS / 5).unwrap();
        writeln!(table, "{},{MS},quick", start + 30 * MS).unwrap();
    }
    table
}

#[test]
fn a_timeline_shows_the_marks_that_meet_its_stall() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path();
    let fixture = fixtures("recording/tests/fixtures/spin");
    copy(&fixture, &runs.join("spin"));
    let worst = json(&jitterscope(runs, &["report", "--json"]))["worst"][0].clone();
    let of = |name: &str| worst[name].as_u64().unwrap();
    let (start, length) = (of("start_realtime_ns"), of("duration_ns"));
    let third = length / 3;
    let table = [
        format!("{},{},around", start - MS, length + 2 * MS),
        format!("{},{MS},begun", start + third),
        format!("{},{},ended", start - MS, MS + 2 * third),
        format!("{},{MS},elsewhere", start + length + MS),
    ];
    let file = runs.join("some.csv");
    fs::write(
        &file,
        format!("start_ns,duration_ns,request\n{}\n", table.join("\n")),
    )
    .unwrap();
    good(annotate(runs, &[file.to_str().unwrap()]));
    let shown = ["report", "--worst", "1", "--json"];
    let stall = json(&jitterscope(runs, &shown));
    let frames = stall["frames"].as_array().unwrap();
    let marks: Vec<&Value> = frames.iter().filter(|row| row["item"] == "mark").collect();
    let [begun, ended] = marks[..] else {
        panic!("{marks:#?}");
    };
    assert_eq!(
        (&begun["name"], &begun["ends"]),
        (&"begun".into(), &false.into())
    );
    assert_eq!(
        (&ended["name"], &ended["ends"]),
        (&"ended".into(), &true.into())
    );
    let near = |row: &Value, at: u64| row["start_ns"].as_u64().unwrap().abs_diff(at) < 1000;
    assert!(near(begun, third) && near(ended, 2 * third), "{marks:#?}");
    let remarks = stall["remarks"].to_string();
    let around = "It lies within the mark 'around', which began 1.00 ms earlier";
    assert!(
        remarks.contains(around) && !remarks.contains("elsewhere"),
        "{remarks}"
    );
    let text = good(jitterscope(runs, &["report", "--worst", "1"]));
    assert!(
        text.contains("mark begun") && text.contains("mark 'around'"),
        "{text}"
    );
    let hidden = good(jitterscope(runs, &["report", "--worst", "1", "--redact"]));
    assert!(
        !hidden.contains("begun") && !hidden.contains("around'"),
        "{hidden}"
    );
}

#[test]
fn marks_at_known_stalls_are_explained_by_them() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path();
    readme::copied(runs, readme::RUN);
    let before = json(&jitterscope(runs, &["report", "--json"]));
    assert!(before.get("marks").is_none());
    let table = runs.join("slow.csv");
    fs::write(&table, around_the_worst(&before) + "1,2,early\nsoon,7,x\n").unwrap();
    let table = table.to_str().unwrap();

    let found = json(&annotate(runs, &[table, "--json"]));
    conforms("report", &found);
    let log = &found["marks"]["logs"][0];
    assert_eq!(
        (&log["file"], &log["form"], &log["marks"]),
        (&"slow.csv".into(), &"csv".into(), &20.into())
    );
    assert_eq!((&log["outside"], &log["unread"]), (&1.into(), &1.into()));
    let slow = row(&found, "slow, of course");
    assert_eq!(
        (&slow["count"], &slow["with_stalls"]),
        (&10.into(), &10.into())
    );
    assert!(slow["chance"].as_f64().unwrap() <= 0.002, "{slow}");
    let of = |row: &Value, name: &str| row[name].as_u64().unwrap();
    assert!(
        of(slow, "stalled_ns") > 10 * of(slow, "expected_ns"),
        "{slow}"
    );
    let quick = row(&found, "quick");
    assert!(
        of(quick, "stalled_ns") < of(slow, "stalled_ns") / 10,
        "{quick}"
    );
    // The longest stall explains its mark, but for the fifths of a millisecond around it.
    let worst = &found["marks"]["worst"][0];
    assert_eq!(worst["stall"], before["worst"][0]["stall"]);
    let stalled = of(&before["worst"][0], "duration_ns") as f64;
    let share = stalled / (stalled + 0.4 * MS as f64);
    let explained = worst["explained"].as_f64().unwrap();
    assert!(
        explained > share - 0.001 && explained < share + 0.1,
        "{worst}"
    );

    let text = good(annotate(runs, &[table]));
    assert!(
        text.contains("slow, of course") && text.contains("1 outside of the run's time"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let brief = good(jitterscope(runs, &["report"]));
    assert!(brief.ends_with(&text), "{brief}");
    assert!(good(jitterscope(runs, &["report", "--full"])).contains("MARKS OF THE APPLICATION"));
    let page = runs.join("page.html");
    good(jitterscope(
        runs,
        &["report", "--html", page.to_str().unwrap()],
    ));
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("slow, of course")
    );
    let redacted = good(jitterscope(runs, &["report", "--redact", "--json"]));
    assert!(
        !redacted.contains("slow") && redacted.contains("mark-1"),
        "{redacted}"
    );

    assert!(good(annotate(runs, &["--remove"])).contains("are removed"));
    assert!(good(annotate(runs, &["--remove"])).contains("has no marks"));
    let after = json(&jitterscope(runs, &["report", "--json"]));
    assert_eq!(after["worst"], before["worst"]);
    assert!(after.get("marks").is_none());
}

#[test]
fn a_log_without_marks_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path();
    readme::copied(runs, readme::RUN);
    let refused = |text: &str, more: &[&str], said: &str| {
        let log = runs.join("log");
        fs::write(&log, text).unwrap();
        let output = annotate(runs, &[&[log.to_str().unwrap()], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    };
    refused("", &[], "it has no lines");
    refused("hello\nworld\n", &[], "--time-format");
    refused(
        "[0.1s][info][gc] GC(0) Pause Full 1M->1M(2M) 1.0ms\n",
        &[],
        "-Xlog:",
    );
    refused("a,b\n1,2\n", &["--form", "csv"], "no column for a time");
    refused(
        "12:00:00 x\n",
        &["--time-format", "%!"],
        "is no format of times",
    );
    let pipe = runs.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let output = annotate(runs, &[pipe.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let output = annotate(runs, &["x", "--form", "jvm", "--took"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        json(&jitterscope(runs, &["report", "--json"]))
            .get("marks")
            .is_none()
    );
}

/// How long the calling thread has run.
fn run_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().unwrap()
}

/// A thread that works in pieces of a millisecond, and writes down the start and the length of those in which it waited
/// for two. Time that the host of a virtual machine takes is no wait: no record shows it, and the kernel counts it as
/// run.
fn noticing(until: &AtomicBool) -> String {
    let mut table = "start_ns,duration_ns,name\n".to_owned();
    while !until.load(Ordering::Relaxed) {
        let (started, began, ran) = (SystemTime::now(), Instant::now(), run_time());
        while began.elapsed() < Duration::from_millis(1) {}
        let took = began.elapsed();
        if took > run_time() - ran + Duration::from_millis(2) {
            let start = started.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            writeln!(table, "{},{},piece", start.as_nanos(), took.as_nanos()).unwrap();
        }
    }
    table
}

#[test]
fn what_a_thread_noticed_itself_is_explained_by_who_took_its_cpu() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = jitterscope_testing::highest_cpu();
    let thief = dir.path().join("marks-thief");
    fs::copy("/bin/sh", &thief).unwrap();
    let burn = "while :; do i=0; while [ $i -lt 8000 ]; do i=$((i+1)); done; sleep 0.1; done";
    let Ok(mut thief) = Command::new("chrt")
        .args(["-f", "50", "taskset", "-c", &cpu.to_string()])
        .arg(&thief)
        .args(["-c", burn])
        .spawn()
    else {
        return jitterscope_testing::skip("there is no chrt");
    };
    let stop = AtomicBool::new(false);
    let log = dir.path().join("pieces.csv");
    let recorded = std::thread::scope(|scope| {
        let (sender, tid) = channel();
        let (stop, log) = (&stop, &log);
        let worker = scope.spawn(move || {
            pin_current_thread(jitterscope_model::CpuId(cpu)).unwrap();
            // Other tests run beside this one.
            setpriority_process(None, -20).unwrap();
            sender.send(current_tid()).unwrap();
            fs::write(log, noticing(stop)).unwrap();
        });
        let tid = tid.recv().unwrap().to_string();
        let recorded = jitterscope(dir.path(), &["attach", "--tid", &tid, "-d", "3s", "-q"]);
        stop.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        recorded
    });
    thief.kill().unwrap();
    thief.wait().unwrap();
    good(recorded);
    let found = json(&annotate(dir.path(), &[log.to_str().unwrap(), "--json"]));
    let piece = row(&found, "piece");
    let of = |name: &str| piece[name].as_u64().unwrap();
    assert!(of("count") >= 5, "{piece}");
    assert!(of("with_stalls") * 10 >= of("count") * 9, "{piece}");
    // A piece has up to a millisecond of work of its own.
    let own = of("count") * MS;
    assert!(
        of("stalled_ns") * 10 >= (of("total_ns") - own) * 8,
        "{piece}"
    );
    assert_eq!(piece["culprits"][0]["name"], "marks-thief", "{piece}");
    assert!(piece["chance"].as_f64().unwrap() <= 0.01, "{piece}");
}
