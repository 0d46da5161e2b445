//! `record pipeline` and `journal` on this machine, as users run them.

use crate::schema_check::conforms;
use jitterscope_testing::{Tmpfs, turn};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The command with its runs and its cache in `dir`.
fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command
        .args(args)
        .env("JITTERSCOPE_RUNS", dir.join("runs"))
        .env("XDG_CACHE_HOME", dir.join("cache"));
    command.stdin(Stdio::null()).current_dir(dir);
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

/// A short recording; the machine may be smaller than the pipeline needs.
fn record(dir: &Path, args: &[&str]) -> Output {
    let short = [
        "record", "pipeline", "--force", "--warmup", "20ms", "--pause", "10ms", "--period", "20us",
    ];
    run(dir, &[&short, args].concat())
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output))
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", stdout(output), stderr(output)))
}

/// The numbers of a table in the long form.
fn table(text: &str, title: &str) -> Vec<(String, u64)> {
    let mut lines = text
        .lines()
        .skip_while(|line| *line != format!("== {title} =="));
    lines
        .next()
        .unwrap_or_else(|| panic!("no table {title}:\n{text}"));
    lines
        .take_while(|line| !line.is_empty())
        .map(|line| {
            assert_eq!(line.len(), 28, "{line}");
            (
                line[..8].trim_end().to_owned(),
                line[8..].trim_start().parse().unwrap(),
            )
        })
        .collect()
}

#[test]
fn results_are_on_stdout_and_progress_on_stderr() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = record(dir.path(), &["--messages", "4000", "--full"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for title in [
        "Accumulator Inter-Message Latency (ns)",
        "Accumulator Message Transit Latency (ns)",
        "Journaller Inter-Message Latency (ns)",
        "Journaller Message Transit Latency (ns)",
        "Producer Inter-Message Latency (ns)",
    ] {
        let rows = table(&text, title);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "mean", "min", "50.00%", "90.00%", "99.00%", "99.90%", "99.99%", "99.999%",
                "99.9999%", "max", "count"
            ]
        );
        assert_eq!(rows[10].1, 4000, "{title}");
        assert!(
            rows[1..10].windows(2).all(|pair| pair[0].1 <= pair[1].1),
            "{rows:?}"
        );
    }
    assert!(
        text.contains("intended")
            && text.contains("oordinated omission")
            && text.contains("HOW FAR"),
        "{text}"
    );
    let talk = stderr(&output);
    let lines: Vec<&str> = talk.lines().collect();
    for (line, begins) in lines.iter().zip([
        "Starting replay at ",
        "Accumulator thread has pid: ",
        "Journaller thread has pid: ",
        "Producer thread has pid: ",
        "Warm-up complete at ",
        "Pausing for 10.0 ms...",
        "Executing test at ",
    ]) {
        assert!(line.starts_with(begins), "{line} is not {begins}\n{talk}");
    }
    assert_eq!(
        stdout(&run(dir.path(), &["report", "latest", "--full"])),
        text
    );
    let brief = stdout(&run(dir.path(), &["report"]));
    assert!(
        brief.lines().count() <= 24
            && brief.contains("Messages reached the ")
            && brief.contains(": 50 % within "),
        "{brief}"
    );
    let made: Vec<_> = fs::read_dir(dir.path().join("cache/jitterscope"))
        .unwrap()
        .collect();
    assert_eq!(made.len(), 1, "the input is made on first use");
}

#[test]
fn json_has_the_promised_fields() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = record(
        dir.path(),
        &[
            "--two-thread",
            "--messages",
            "3000",
            "--json",
            "--quiet",
            "-l",
            "J",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let value = json(&output);
    assert_eq!(
        (&value["schema_version"], &value["run"]["label"]),
        (&Value::from(2), &Value::from("J"))
    );
    crate::schema_check::conforms("report", &value);
    let pipeline = &value["pipeline"];
    assert_eq!(pipeline["setup"]["pacing"], "schedule");
    assert_eq!(pipeline["producer"]["sent"], 3000);
    assert_eq!(pipeline["consumers"].as_array().unwrap().len(), 1);
    let accumulator = &pipeline["consumers"][0];
    assert_eq!(accumulator["role"], "accumulator");
    for times in ["transit", "from_intended", "inter"] {
        assert_eq!(accumulator[times]["count"], 3000);
        // Of 3000 messages thirty lie above 99 %, and three above 99.9 %.
        let listed: Vec<&String> = accumulator[times]["percentiles_ns"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(listed, ["50", "90", "99"], "{times}");
    }
    assert!(pipeline["journal"].is_null() && pipeline["threads"].as_array().unwrap().len() == 2);
    assert!(value["trust"]["peak_rss_bytes"].as_u64().unwrap() > 0);
    assert_eq!(json(&run(dir.path(), &["report", "J", "--json"])), value);
    let list = json(&run(dir.path(), &["list", "--json"]));
    assert_eq!(list["runs"][0]["probe"], "pipeline");
}

#[test]
fn the_journal_is_read_back_and_damage_is_reported() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own.jnl");
    let own_text = own.to_str().unwrap();
    let output = record(
        dir.path(),
        &[
            "--messages",
            "2500",
            "--quiet",
            "--journal",
            own_text,
            "--json",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let transit_max = json(&output)["pipeline"]["consumers"][1]["transit"]["max_ns"]
        .as_u64()
        .unwrap();

    let csv = stdout(&run(dir.path(), &["journal", own_text, "--format", "csv"]));
    let rows: Vec<Vec<i64>> = csv
        .lines()
        .skip(1)
        .map(|line| {
            line.split(',')
                .map(|field| field.parse().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(rows.len(), 2500);
    assert!(
        rows.iter()
            .zip(0..)
            .all(|(row, n)| row[0] == n && row[2] - row[1] == row[3])
    );
    assert_eq!(
        rows.iter().map(|row| row[3]).max(),
        Some(transit_max as i64)
    );

    let document = json(&run(
        dir.path(),
        &["journal", own_text, "--json", "--limit", "2"],
    ));
    conforms("journal", &document);
    assert_eq!(
        (
            &document["summary"]["records"],
            &document["summary"]["damage"]
        ),
        (&Value::from(2500), &Value::Null)
    );
    assert_eq!(document["summary"]["transit"]["max_ns"], transit_max);
    assert_eq!(document["records"].as_array().unwrap().len(), 2);
    assert_eq!(document["records"][1]["sequence"], 1);
    let shown = run(
        dir.path(),
        &["journal", own_text, "--format", "table", "--limit", "3"],
    );
    assert_eq!(stdout(&shown).lines().count(), 4);
    assert!(
        stderr(&shown).contains("2497 more records"),
        "{}",
        stderr(&shown)
    );
    let named = run(dir.path(), &["journal"]);
    assert_eq!(
        named.status.code(),
        Some(2),
        "the run keeps its journal elsewhere"
    );
    assert!(stderr(&named).contains(own_text), "{}", stderr(&named));

    // Truncated within a record, then with an overwritten record.
    let bytes = fs::read(&own).unwrap();
    fs::write(&own, &bytes[..32 * 100 + 5]).unwrap();
    let cut = run(dir.path(), &["journal", own_text, "--json"]);
    assert_eq!(cut.status.code(), Some(1));
    conforms("journal", &json(&cut));
    assert_eq!(
        (
            &json(&cut)["summary"]["records"],
            &json(&cut)["summary"]["damage"]["kind"]
        ),
        (&Value::from(100), &Value::from("cut"))
    );
    let mut torn = bytes;
    torn[32 * 7] = 0;
    fs::write(&own, &torn).unwrap();
    let torn = run(dir.path(), &["journal", own_text]);
    assert_eq!(torn.status.code(), Some(1));
    assert!(
        stdout(&torn).contains("7 records") && stderr(&torn).contains("byte 224"),
        "{}",
        stderr(&torn)
    );
}

#[test]
fn a_run_keeps_its_journal_unless_a_file_is_named() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = record(dir.path(), &["--messages", "500", "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = run(dir.path(), &["journal"]);
    assert!(
        shown.status.success() && stdout(&shown).contains("500 records"),
        "{}",
        stdout(&shown)
    );
}

#[test]
fn an_input_without_a_record_and_a_journal_that_is_no_file_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("empty"), "").unwrap();
    let refused = record(dir.path(), &["--two-thread", "--input", "empty", "--quiet"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(
        stderr(&refused).contains("the input of 0 bytes holds no record of 64 bytes"),
        "{refused:?}"
    );
    let pipe = dir.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let _turn = turn();
    let refused = record(
        dir.path(),
        &["--journal", "pipe", "--messages", "100", "--quiet"],
    );
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        stderr(&refused).contains("it is a named pipe, not a regular file"),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(dir.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn the_ancestors_flags_and_files_work() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let properties = dir.path().join("perf-workshop.properties");
    let out = dir.path().join("out");
    let args = [
        "workshop",
        "--force",
        "--pause",
        "10ms",
        "-i",
        "5",
        "-w",
        "2",
        "-n",
        "400",
        "-l",
        "32",
        "-b",
        "1024",
        "-r",
        "SHORT",
        "-r",
        "DETAILED",
        "-t",
        "BASELINE",
        "-o",
        properties.to_str().unwrap(),
        "-d",
        out.to_str().unwrap(),
    ];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let line = text.lines().next().unwrap();
    let fields: Vec<u64> = line
        .split(',')
        .map(|field| field.parse().unwrap())
        .collect();
    assert_eq!((fields.len(), fields[8]), (9, 1200), "{line}");
    assert!(
        !text.contains("Journaller"),
        "the properties file that was made says there is none"
    );
    assert!(
        fs::read_to_string(&properties)
            .unwrap()
            .contains("perf.workshop.journaller.enabled=false")
    );
    let files: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 2 * 4, "{files:?}");
    for extension in [".hgrm", ".hlog"] {
        let of = |title: &str| {
            files.iter().any(|f| {
                f.starts_with(&format!("encoded-result-histogram-{title}-"))
                    && f.ends_with(&format!("-LABEL_BASELINE{extension}"))
            })
        };
        assert!(of("Accumulator_Message_Transit_Latency__ns_"), "{files:?}");
    }
    let run_of = json(&run(dir.path(), &["report", "BASELINE", "--json"]));
    let setup = &run_of["pipeline"]["setup"];
    assert_eq!(
        (
            &setup["record_length_bytes"],
            &setup["ring"],
            &setup["warm_up_messages"]
        ),
        (&32.into(), &1024.into(), &800.into())
    );

    // Flags override the file.
    fs::write(
        &properties,
        "perf.workshop.journaller.enabled=false\nperf.workshop.affinity.producer=0\n",
    )
    .unwrap();
    let output = record(
        dir.path(),
        &[
            "--messages",
            "300",
            "--json",
            "-q",
            "--properties",
            properties.to_str().unwrap(),
            "--journaller",
            "on",
        ],
    );
    let threads = json(&output)["pipeline"]["threads"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!((threads.len(), &threads[0]["cpu"]), (3, &Value::from(0)));
    fs::write(&properties, "perf.workshop.affinity.producer=first\n").unwrap();
    let refused = record(dir.path(), &["--properties", properties.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("line 1: 'first'"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_limit_that_is_exceeded_is_code_three() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = record(
        dir.path(),
        &[
            "--two-thread",
            "--messages",
            "500",
            "--fail-above",
            "1ns",
            "-q",
        ],
    );
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--fail-above 1 ns"),
        "{}",
        stderr(&output)
    );
}

/// Waits until the child has printed `what` on stderr.
fn wait_for(child: &mut Child, what: &str) -> BufReader<std::process::ChildStderr> {
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while talk.read_line(&mut line).unwrap() > 0 {
        if line.starts_with(what) {
            return talk;
        }
        line.clear();
    }
    panic!("it ended before it said {what}");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(
        dir.path(),
        &[
            "record",
            "pipeline",
            "--two-thread",
            "--force",
            "--warmup",
            "20ms",
            "--pause",
            "10ms",
            "--duration",
            "1h",
            "--json",
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut talk = wait_for(&mut child, "Executing test at ");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    // Both ends at once: the result is larger than a pipe.
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        talk.read_to_string(&mut rest).map(|_| rest)
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", rest.join().unwrap().unwrap());
    let value = json(&output);
    assert_eq!(value["run"]["interrupted"], true);
    let sent = value["pipeline"]["producer"]["sent"].as_u64().unwrap();
    assert!(sent > 0 && value["pipeline"]["consumers"][0]["transit"]["count"] == sent);
    assert_eq!(
        json(&run(dir.path(), &["report", "latest", "--json"])),
        value
    );
}

#[test]
fn ctrl_c_in_the_warm_up_leaves_no_run_and_no_journal_of_zeros() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let args = [
        "record",
        "pipeline",
        "--force",
        "--no-trace",
        "--warmup",
        "1h",
        "--journal",
        "journal",
    ];
    let mut child = command(dir.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = wait_for(&mut child, "Producer thread has pid: ");
    assert!(
        fs::metadata(&journal).unwrap().len() > 0,
        "its room is reserved while it warms up"
    );
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    talk.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(!journal.exists());
    assert_eq!(fs::read_dir(dir.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_a_failure_that_keeps_what_was_measured() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(768 << 10) else {
        return;
    };
    let journal = disk.path().join("j");
    let journal = journal.to_str().unwrap();
    let output = record(
        dir.path(),
        &["--duration", "1h", "--journal", journal, "--json", "-q"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("journal ended") && stderr(&output).contains("make room"),
        "{}",
        stderr(&output)
    );
    let value = json(&output);
    let written = value["pipeline"]["journal"]["written"].as_u64().unwrap();
    assert_eq!(value["pipeline"]["journal"]["ended"]["disk_full"], true);
    let read = json(&run(
        dir.path(),
        &["journal", journal, "--json", "--limit", "0"],
    ));
    assert_eq!(
        (&read["summary"]["records"], &read["summary"]["damage"]),
        (&written.into(), &Value::Null)
    );
}

#[test]
fn its_whole_histograms_are_exported() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = record(
        dir.path(),
        &[
            "--two-thread",
            "--messages",
            "3000",
            "--no-trace",
            "--quiet",
            "-l",
            "E",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let export = |to: &str| run(dir.path(), &["export", "E", "--quiet", "--to", to]);
    let table = stdout(&export("hgrm://-"));
    assert!(table.contains("Total count    =         3000"), "{table}");
    let lateness = stdout(&export("hgrm://-?of=pipeline-producer-lateness"));
    assert!(
        lateness.contains("Total count    =         3000") && lateness != table,
        "{lateness}"
    );
    let log = stdout(&export("hlog://-"));
    for tag in [
        "pipeline-accumulator-transit",
        "pipeline-producer-inter",
        "pipeline-accumulator-from-intended",
    ] {
        assert_eq!(
            log.lines()
                .filter(|line| line.starts_with(&format!("Tag={tag},")))
                .count(),
            1,
            "{log}"
        );
    }
    let file = dir.path().join("none.hgrm");
    let wrong = export(&format!("hgrm://{}?of=nothing", file.display()));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("no histogram 'nothing', only pipeline-producer-inter, "),
        "{}",
        stderr(&wrong)
    );
    assert!(!file.exists());
}
