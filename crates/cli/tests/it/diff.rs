//! Stored runs side by side.

use crate::common;

use common::{Scenario, busy, late, part, thread, work};
use jitterscope_model::{ChosenThread, EventGrain, MachineState, Nanos, PassiveCpu, RanInstead};
use jitterscope_store::RunWriter;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Stores a run, this many seconds after the others.
fn store(scenario: &Scenario, label: &str, at: u64, runs: &Path, machine: Option<&MachineState>) {
    let mut manifest = scenario.manifest.clone();
    manifest.label = label.into();
    manifest.clock_start.realtime_ns += at * 1_000_000_000;
    let mut writer = RunWriter::create(runs, label, manifest.clock_start.realtime_ns).unwrap();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    if let Some(machine) = machine {
        writer.machine(machine).unwrap();
    }
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        writer.stall(stall).unwrap();
        writer.attribution(attribution).unwrap();
    }
    writer.finish(manifest).unwrap();
}

fn diff(runs: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .arg("diff")
        .args(args)
        .arg("--runs")
        .arg(runs)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A stall of each second by a work item, and others by a thread.
fn ten_seconds(works: bool, threads: u32, length: u64) -> Scenario {
    let mut scenario = Scenario::new(&[1]);
    for second in 0..10u64 {
        if works {
            let part = part(
                work("vmstat_update", Some("kworker/1:1"), Some("mm_percpu_wq")),
                5_000,
            );
            scenario.stall(1, second * 1_000_000 + 100, vec![part]);
        }
        for n in 0..u64::from(threads) {
            let part = part(thread("rival", 99), length);
            scenario.stall(1, second * 1_000_000 + 1000 + n * 10_000, vec![part]);
        }
    }
    scenario.finish()
}

fn with_stat_interval(value: &str) -> MachineState {
    let text = format!(
        r#"{{"tuning": {{"value": {{"settings": [{{"knob": "vmstat", "values":
        [{{"path": "/proc/sys/vm/stat_interval", "files": 1, "value": {{"value": "{value}"}}}}]}}]}}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn culprit<'a>(diff: &'a Value, name: &str) -> &'a Value {
    let rows = diff["against"][0]["culprits"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

fn total(diff: &Value) -> &Value {
    let rows = diff["against"][0]["figures"].as_array().unwrap();
    &rows.iter().find(|row| row["is_total"] == true).unwrap()["comparison"]
}

#[test]
fn one_run_of_each_shows_what_was_predicted_and_decides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (with_stat_interval("1"), with_stat_interval("60"));
    store(
        &ten_seconds(true, 30, 9_000),
        "BEFORE",
        0,
        dir.path(),
        Some(&before),
    );
    store(
        &ten_seconds(true, 12, 7_000),
        "SAME",
        100,
        dir.path(),
        Some(&before),
    );
    store(
        &ten_seconds(false, 12, 7_000),
        "AFTER",
        200,
        dir.path(),
        Some(&after),
    );

    let same = json(&diff(dir.path(), &["BEFORE", "SAME", "--json"]));
    assert_eq!(total(&same)["verdict"], "inconclusive");
    assert_eq!(total(&same)["undecided"]["because"], "single_runs");
    let work = culprit(&same, "vmstat_update");
    assert_eq!(
        (&work["predicted"], &work["became"]),
        (&Value::Bool(false), &"stayed".into())
    );
    assert!(!["better", "worse"].contains(&work["events"]["verdict"].as_str().unwrap()));

    let knob = json(&diff(dir.path(), &["BEFORE", "AFTER", "--json"]));
    assert_eq!(total(&knob)["verdict"], "inconclusive");
    assert_eq!(knob["against"][0]["knobs"][0], "vmstat");
    let work = culprit(&knob, "vmstat_update");
    assert_eq!(
        (&work["predicted"], &work["became"]),
        (&Value::Bool(true), &"vanished".into())
    );
    assert_eq!(work["verdict"], "inconclusive", "{work}");
    for figure in ["events", "stolen"] {
        let of = &work[figure];
        assert_eq!(of["undecided"]["because"], "single_runs", "{of}");
        assert_eq!(of["runs"], serde_json::json!([1, 1]));
        assert!(of["change"].as_f64().unwrap() < 0.0, "{of}");
    }
    let printed = text(&diff(dir.path(), &["BEFORE", "AFTER"]));
    for run_together in ["beforeinconclusive", "%0", "%<"] {
        assert!(!printed.contains(run_together), "{run_together}: {printed}");
    }
    let row = printed
        .lines()
        .find(|line| line.contains("* kworker vmstat_update"));
    assert!(
        row.is_some_and(|row| row.contains("vanished") && row.contains("inconclusive")),
        "{printed}"
    );
    assert!(
        printed.contains("tuning.settings.vmstat  1 in A, 60 in B"),
        "{printed}"
    );
    assert!(printed.contains("no verdict: one run of each"), "{printed}");
}

#[test]
fn labels_are_samples_and_samples_decide() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..5u32 {
        store(
            &ten_seconds(true, 20 + at, 9_000),
            "BUSY",
            u64::from(at) * 60,
            dir.path(),
            None,
        );
        store(
            &ten_seconds(true, 5 + at % 2, 9_000),
            "QUIET",
            u64::from(at) * 60 + 30,
            dir.path(),
            None,
        );
        store(
            &ten_seconds(true, 7 + at % 2, 9_000),
            "LESS",
            u64::from(at) * 60 + 45,
            dir.path(),
            None,
        );
    }
    let found = json(&diff(dir.path(), &["BUSY", "QUIET", "--json"]));
    assert_eq!(found["sides"][0]["runs"].as_array().unwrap().len(), 5);
    assert_eq!(total(&found)["verdict"], "better", "{}", total(&found));
    assert!(total(&found)["change"].as_f64().unwrap() < -0.5);
    assert!(total(&found)["noise_floor"].as_f64().unwrap() > 0.0);
    assert_eq!(culprit(&found, "rival")["stolen"]["verdict"], "better");
    let printed = text(&diff(dir.path(), &["BUSY", "QUIET", "LESS"]));
    assert!(
        printed.contains("ALL SIDES") && printed.contains("C AGAINST A"),
        "{printed}"
    );
    // The longest of all of a side's runs, with the time of observation.
    store(
        &ten_seconds(true, 5, 90_000),
        "QUIET",
        400,
        dir.path(),
        None,
    );
    let printed = text(&diff(dir.path(), &["BUSY", "QUIET"]));
    let mut lines = printed
        .lines()
        .skip_while(|line| !line.starts_with("worst"));
    let worst: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert!(
        worst.starts_with(&["worst", "9.00", "us", "90.0", "us"]),
        "{printed}"
    );
    let exposure = lines.next().unwrap();
    assert!(
        exposure.starts_with("  in 49.") && exposure.contains(" and 59."),
        "{printed}"
    );
    let printed = text(&diff(dir.path(), &["BUSY", "QUIET", "LESS"]));
    for line in printed.lines() {
        assert!(
            line.chars().count() <= 80,
            "{}: {line}",
            line.chars().count()
        );
    }
}

/// As users record: first the baseline, then the change.
#[test]
fn labels_recorded_one_after_the_other_get_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (with_stat_interval("1"), with_stat_interval("60"));
    for at in 0..5u32 {
        let [first, then] = [0, 600].map(|from| from + u64::from(at) * 60);
        let busy = ten_seconds(true, 20 + at, 9_000);
        store(&busy, "BASELINE", first, dir.path(), Some(&before));
        let quiet = ten_seconds(false, 5 + at % 2, 9_000);
        store(&quiet, "TUNED", then, dir.path(), Some(&after));
    }
    let found = json(&diff(dir.path(), &["BASELINE", "TUNED", "--json"]));
    assert_eq!(total(&found)["verdict"], "inconclusive");
    assert_eq!(total(&found)["undecided"]["because"], "one_after_the_other");
    assert!(total(&found)["change"].as_f64().unwrap() < -0.5);
    assert!(total(&found)["interval"].is_null(), "{}", total(&found));
    assert_eq!(culprit(&found, "rival")["verdict"], "inconclusive");
    // Nor has what the changed knob removes.
    let work = culprit(&found, "vmstat_update");
    assert_eq!(
        (&work["predicted"], &work["became"], &work["verdict"]),
        (&true.into(), &"vanished".into(), &"inconclusive".into())
    );
    assert_eq!(
        work["events"]["undecided"]["because"],
        "one_after_the_other"
    );
    let printed = text(&diff(dir.path(), &["BASELINE", "TUNED"]));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        printed.contains("no verdict: recorded one after the other")
            && printed.contains("jitterscope experiment"),
        "{printed}"
    );
    // The difference and its exposure come first.
    let [difference, verdict] = ["A is 5 runs, 49", "no verdict"].map(|of| printed.find(of));
    assert!(difference.is_some() && difference < verdict, "{printed}");
    let gate = diff(
        dir.path(),
        &["BASELINE", "TUNED", "--fail-if", "worse(total)"],
    );
    let said = String::from_utf8_lossy(&gate.stderr);
    assert_eq!(gate.status.code(), Some(4), "{said}");
    assert!(said.contains("one after the other"), "{said}");
}

#[test]
fn a_side_is_a_list_of_runs() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..4u32 {
        let of = |label: &str, threads, offset| {
            let run = ten_seconds(true, threads + at, 9_000);
            let label = format!("{label}{at}");
            store(&run, &label, u64::from(at) * 60 + offset, dir.path(), None);
        };
        of("A", 20, 0);
        of("B", 5, 30);
    }
    let lists = ["A0,A1,A2,A3", "B0,B1, B2,B3"];
    let found = json(&diff(dir.path(), &[lists[0], lists[1], "--json"]));
    assert_eq!(found["sides"][1]["runs"].as_array().unwrap().len(), 4);
    assert_eq!(total(&found)["verdict"], "better", "{}", total(&found));
    let twice = refused(&diff(dir.path(), &["A0,A1,A0", "B0"]));
    assert!(twice.contains("more than once"), "{twice}");
    let absent = diff(dir.path(), &["A0,NONE", "B0"]);
    assert_eq!(absent.status.code(), Some(1));
    let on_cpu = json(&diff(dir.path(), &["A0,A1@1", "B0,B1@1", "--json"]));
    assert_eq!(on_cpu["sides"][0]["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_compared_is_not_judged() {
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0, 1]), "SPIN", 0, dir.path(), None);
    store(&late(&[0, 1, 3], Some(3)), "WAKEUP", 60, dir.path(), None);
    let mut coarse = busy(&[0, 1]);
    coarse.manifest.probe.threshold_ns = Nanos(5_000);
    store(&coarse, "COARSE", 120, dir.path(), None);
    {
        let other = "WAKEUP";
        let found = json(&diff(dir.path(), &["SPIN", other, "--json"]));
        let figures = found["against"][0]["figures"].as_array().unwrap();
        assert!(figures.iter().all(|row| row["comparison"].is_null()));
        assert!(text(&diff(dir.path(), &["SPIN", other])).contains("NOT COMPARABLE"));
        let gate = [
            "SPIN",
            other,
            "--fail-if",
            "worse(any), worse(culprit rival)",
        ];
        let printed = diff(dir.path(), &gate);
        let said = String::from_utf8_lossy(&printed.stderr)
            .matches("not comparable: ")
            .count();
        assert_eq!((printed.status.code(), said), (Some(4), 2), "{other}");
    }
    // Stalls of both count from the longer threshold on.
    let found = json(&diff(dir.path(), &["SPIN", "COARSE", "--json"]));
    let threshold = &found["against"][0]["conditions"][0];
    assert_eq!(
        (&threshold["what"], &threshold["incomparable"]),
        (&"threshold".into(), &false.into())
    );
    let change = total(&found)["change"].as_f64().unwrap();
    assert!(change.abs() < 0.02, "{}", total(&found));
    let printed = text(&diff(dir.path(), &["SPIN", "COARSE"]));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("counted from the longer one"), "{printed}");
    let cpus = json(&diff(dir.path(), &["SPIN@0", "SPIN@1", "--json"]));
    assert_eq!(
        (&cpus["sides"][0]["cpus"], &cpus["sides"][1]["cpus"]),
        (&"0".into(), &"1".into())
    );
    assert_eq!(total(&cpus)["verdict"], "inconclusive");
}

/// The same ticks have other names there, and take less time.
#[test]
fn runs_with_another_choice_of_kernel_events_are_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let mut coarse = busy(&[0, 1]);
    coarse.manifest.probe.event_grain = EventGrain::Coarse;
    let mut bare = busy(&[0, 1]);
    bare.manifest.attributed = false;
    store(&busy(&[0, 1]), "ALL", 0, dir.path(), None);
    store(&coarse, "COARSE", 60, dir.path(), None);
    store(&coarse, "AGAIN", 120, dir.path(), None);
    store(&bare, "BARE", 180, dir.path(), None);
    let found = json(&diff(dir.path(), &["ALL", "COARSE", "--json"]));
    let reported = serde_json::json!({"what": "kernel events", "before": "all", "after": "coarse", "incomparable": true});
    assert_eq!(
        found["against"][0]["conditions"],
        Value::Array(vec![reported])
    );
    let printed = text(&diff(dir.path(), &["ALL", "COARSE"]));
    assert!(
        printed.contains("NOT COMPARABLE: kernel events: all in A, coarse in B"),
        "{printed}"
    );
    assert!(printed.contains("the same --events"), "{printed}");
    let alike = json(&diff(dir.path(), &["COARSE", "AGAIN", "--json"]));
    assert_eq!(alike["against"][0]["conditions"], Value::Array(Vec::new()));
    // The absence of events is reported as before.
    let without = json(&diff(dir.path(), &["BARE", "COARSE", "--json"]));
    let conditions = without["against"][0]["conditions"].as_array().unwrap();
    assert_eq!(
        (conditions.len(), &conditions[0]["incomparable"]),
        (1, &false.into()),
        "{conditions:?}"
    );
    // A report shows the choice.
    for (label, grain) in [
        ("ALL", Value::from("all")),
        ("COARSE", "coarse".into()),
        ("BARE", Value::Null),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
            .args(["report", label, "--json", "--runs"])
            .arg(dir.path())
            .output()
            .unwrap();
        assert_eq!(json(&output)["probe"]["event_grain"], grain, "{label}");
    }
}

#[test]
fn wrong_sides_are_refused_with_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    store(
        &busy(&[0, 1]),
        "ONE",
        0,
        dir.path(),
        Some(&with_stat_interval("1")),
    );
    store(
        &busy(&[0, 1]),
        "TWO",
        30,
        dir.path(),
        Some(&with_stat_interval("1")),
    );
    store(
        &busy(&[0, 1]),
        "TWO",
        60,
        dir.path(),
        Some(&with_stat_interval("60")),
    );
    let mixed = refused(&diff(dir.path(), &["ONE", "TWO"]));
    assert!(
        mixed.contains("different settings") && mixed.contains("tuning.settings.vmstat: 1, 60"),
        "{mixed}"
    );
    assert!(refused(&diff(dir.path(), &["ONE@7", "ONE@0"])).contains("did not measure CPU 7"));
    assert!(refused(&diff(dir.path(), &["ONE@x", "ONE@0"])).contains("no list of CPUs"));
    assert!(refused(&diff(dir.path(), &["ONE", "ONE"])).contains("in both ONE and ONE"));
    assert!(
        refused(&diff(dir.path(), &["ONE@0", "ONE@0,1"])).contains("in both ONE@0 and ONE@0,1")
    );
    for picture in [
        ["--html", "-"].as_slice(),
        &["--chart", "culprits", "--out", "-"],
    ] {
        let drawn = diff(dir.path(), &[&["ONE@0", "ONE@1"], picture].concat());
        assert!(refused(&drawn).contains("ONE@0: charts are of whole runs. Leave out --html"));
        assert!(drawn.stdout.is_empty());
    }
    assert!(refused(&diff(dir.path(), &["ONE", "TWO", "--margin", "0%"])).contains("above 0%"));
    let absent = diff(dir.path(), &["ONE", "THREE"]);
    assert_eq!(absent.status.code(), Some(1));
    // A folder from elsewhere.
    let folder = std::fs::read_dir(dir.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copied");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if file.is_file() {
            std::fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
        }
    }
    assert!(
        text(&diff(
            dir.path(),
            &["ONE@0", &format!("{}@1", copy.display())]
        ))
        .contains("copied@1")
    );
}

/// As part of a label and alone, or as a copy: a run compared with itself shows no change.
#[test]
fn a_run_is_not_compared_with_itself_however_it_is_called() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..4u32 {
        store(
            &ten_seconds(true, 20 + at, 9_000),
            "BUSY",
            u64::from(at) * 60,
            dir.path(),
            None,
        );
    }
    store(&ten_seconds(true, 5, 9_000), "QUIET", 300, dir.path(), None);
    let mut folders: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.retain(|folder| folder.display().to_string().contains("BUSY"));
    let one = folders[0].to_str().unwrap();
    for sides in [["BUSY", one], [one, "BUSY"]] {
        let printed = refused(&diff(dir.path(), &sides));
        assert!(
            printed.contains("is in both") && printed.contains("name by id"),
            "{printed}"
        );
        assert!(
            printed.contains("is in both BUSY and ") || printed.contains(" and BUSY:"),
            "{printed}"
        );
    }
    assert!(
        refused(&diff(dir.path(), &["QUIET", "BUSY", "QUIET"])).contains("in both QUIET and QUIET")
    );
    text(&diff(dir.path(), &["BUSY", "QUIET"]));
    // A copy with the same label is not a second run.
    let copy = folders[0].with_extension("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(&folders[0])
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if file.is_file() {
            std::fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
        }
    }
    let printed = refused(&diff(dir.path(), &["BUSY", "QUIET"]));
    assert!(
        printed.contains("more than once") && printed.contains("it would count as several runs"),
        "{printed}"
    );
}

#[test]
fn conditions_decide_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (with_stat_interval("1"), with_stat_interval("60"));
    store(
        &ten_seconds(true, 30, 9_000),
        "BEFORE",
        0,
        dir.path(),
        Some(&before),
    );
    store(
        &ten_seconds(false, 12, 7_000),
        "AFTER",
        200,
        dir.path(),
        Some(&after),
    );
    let code = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
            .args(args)
            .arg("--runs")
            .arg(dir.path())
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (condition, exit, said) in [
        ("max>1ms, culprit(rival)>50%", 0, "max>1ms: 9.00 us, kept"),
        ("culprit(rival)>0.01%", 3, "culprit(rival)>0.01%: 0.027"),
        ("culprit(kworker)>10%, max>1us", 3, "exceeded"),
        // Ten seconds do not support one instant in a million.
        ("wait.p99.9999>1ms", 4, "cannot be decided"),
        ("late.p99>1ms", 4, "no probe slept"),
        ("late.p99>1ms, max>1us", 3, "exceeded"),
        ("mx>1ms", 2, "nothing is called"),
        ("worse(total)", 2, "only diff compares"),
    ] {
        let (found, text) = code(&["report", "BEFORE", "--fail-if", condition]);
        assert_eq!(found, exit, "{condition}: {text}");
        assert!(text.contains(said), "{condition}: {text}");
    }
    for (condition, exit) in [
        ("worse(culprit vmstat_update)", 4),
        ("worse(total)", 4),
        ("worse(total), max>1us", 3),
        ("max>1ms", 0),
    ] {
        let (found, text) = code(&["diff", "BEFORE", "AFTER", "--fail-if", condition]);
        assert_eq!(found, exit, "{condition}: {text}");
    }
    let junit = dir.path().join("gates.xml");
    let path = junit.to_str().unwrap();
    let (found, _) = code(&[
        "report",
        "BEFORE",
        "--fail-if",
        "max>1us, late.p50>1us",
        "--junit",
        path,
    ]);
    assert_eq!(found, 3);
    let text = std::fs::read_to_string(&junit).unwrap();
    for wanted in [
        r#"tests="2""#,
        r#"failures="1" errors="1""#,
        r#"<failure message="9.00 us, exceeded"#,
        "hostname=",
        "timestamp=",
        "time=",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

/// Two watched CPUs whose owner wants to run half of the time, and a rival that takes the CPU.
fn watched(rivals: u64, length: u64, belongs: &str) -> Scenario {
    let mut scenario = Scenario::new(&[1, 2]);
    for n in 0..rivals {
        for cpu in [1, 2] {
            let part = part(thread("rival", 99), length);
            scenario.stall(cpu, n * 10_000 + u64::from(cpu), vec![part]);
        }
    }
    let mut scenario = scenario.finish();
    let manifest = &mut scenario.manifest;
    let rival = scenario.attributions[0].parts[0].culprit.subject.clone();
    manifest.passive = std::mem::take(&mut manifest.results)
        .iter()
        .map(|of| {
            let taken = Nanos(rivals * length);
            // A tenth more was too short for rows.
            let ran = RanInstead {
                subject: rival.clone(),
                threads: 1,
                count: rivals * 3,
                min_ns: Nanos(100),
                max_ns: Nanos(length),
                total_ns: Nanos(taken.0 + taken.0 / 10),
            };
            PassiveCpu {
                cpu: of.cpu,
                from_ticks: of.start,
                until_ticks: of.end,
                chosen: Some(ChosenThread {
                    tid: 7,
                    comm: belongs.into(),
                    ..ChosenThread::default()
                }),
                running_ns: Nanos(5_000_000_000 - ran.total_ns.0),
                waiting_ns: ran.total_ns,
                idle_ns: Nanos(5_000_000_000),
                longest_ns: Nanos(length),
                stalls: rivals,
                ran_instead: vec![ran],
                ..PassiveCpu::default()
            }
        })
        .collect();
    manifest.probe.kind = "passive".into();
    scenario
}

#[test]
fn watched_cpus_are_compared_by_what_was_taken_from_what_belongs_there() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..5u64 {
        store(
            &watched(1000 + at * 7, 40_000, "mine"),
            "BEFORE",
            at * 20,
            dir.path(),
            None,
        );
        store(
            &watched(500 + at * 5, 40_000, "mine"),
            "AFTER",
            at * 20 + 10,
            dir.path(),
            None,
        );
    }
    store(
        &watched(500, 40_000, "yours"),
        "OTHER",
        200,
        dir.path(),
        None,
    );
    let found = json(&diff(dir.path(), &["BEFORE", "AFTER", "--json"]));
    let figures = found["against"][0]["figures"].as_array().unwrap();
    let names: Vec<&str> = figures
        .iter()
        .map(|row| row["figure"].as_str().unwrap())
        .collect();
    assert_eq!(
        names[..4],
        ["lost", "waiting", "interrupted", "stalls_over"],
        "{names:?}"
    );
    assert_eq!(names.last(), Some(&"worst"));
    assert_eq!(total(&found)["verdict"], "better", "{found}");
    // 1000 of 40 us and a tenth more, of 5 s that were wanted, on either CPU.
    let lost = figures[0]["first"][0].as_f64().unwrap();
    assert!((lost - 0.0088).abs() < 1e-6, "{lost}");
    let over = figures.iter().find(|row| row["over_ns"] == 10_000).unwrap();
    assert!(
        (over["first"][0].as_f64().unwrap() - 200.0).abs() < 1e-6,
        "{over}"
    );
    assert_eq!(found["against"][0]["cpus"].as_array().unwrap().len(), 2);
    let rival = culprit(&found, "rival");
    assert_eq!(
        (&rival["became"], &rival["stolen"]["verdict"]),
        (&"shrank".into(), &"better".into())
    );
    assert!(
        (rival["stolen"]["first"].as_f64().unwrap() - 0.0089).abs() < 0.0002,
        "{rival}"
    );
    // A single CPU; and different owners do not compare.
    let one = json(&diff(dir.path(), &["BEFORE@1", "AFTER@2", "--json"]));
    assert_eq!(total(&one)["verdict"], "better");
    assert!(refused(&diff(dir.path(), &["BEFORE@3", "AFTER"])).contains("did not measure CPU 3"));
    let other = json(&diff(dir.path(), &["BEFORE", "OTHER", "--json"]));
    assert_eq!(other["against"][0]["conditions"][0]["what"], "owner");
    assert_eq!(other["against"][0]["culprits"], Value::Null);
    let printed = text(&diff(dir.path(), &["BEFORE", "AFTER"]));
    assert!(
        printed.contains("lost") && printed.contains("better"),
        "{printed}"
    );
}

#[test]
fn a_redacted_comparison_uses_one_pseudonym_per_name() {
    let dir = tempfile::tempdir().unwrap();
    store(
        &watched(1000, 40_000, "secret-victim"),
        "SECRET-BEFORE",
        0,
        dir.path(),
        None,
    );
    store(
        &watched(500, 40_000, "secret-victim"),
        "SECRET-AFTER",
        20,
        dir.path(),
        None,
    );
    let sides = ["SECRET-BEFORE", "SECRET-AFTER", "--redact"];
    let printed = text(&diff(dir.path(), &sides));
    let as_json = text(&diff(dir.path(), &[&sides[..], &["--json"]].concat()));
    let page = text(&diff(dir.path(), &[&sides[..], &["--html", "-"]].concat()));
    let file = dir.path().join("summary.md");
    let asked = [&sides[..], &["--markdown", file.to_str().unwrap()]].concat();
    diff(dir.path(), &asked);
    let markdown = std::fs::read_to_string(&file).unwrap();
    assert!(
        markdown.starts_with("### label-1 beside label-2\n"),
        "{markdown}"
    );
    for text in [&printed, &as_json, &page, &markdown] {
        for name in [
            "SECRET",
            "secret-victim",
            "rival",
            dir.path().to_str().unwrap(),
        ] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }
    let found: Value = serde_json::from_str(&as_json).unwrap();
    assert_eq!(
        (&found["sides"][0]["name"], &found["sides"][1]["name"]),
        (&"label-1".into(), &"label-2".into())
    );
    // One thread has one name in both, and the culprits of both match.
    let rows = found["against"][0]["culprits"].as_array().unwrap();
    let threads: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "thread").collect();
    assert_eq!(
        (threads.len(), &threads[0]["became"]),
        (1, &"shrank".into()),
        "{rows:?}"
    );
    let name = format!("thread {}", threads[0]["name"].as_str().unwrap());
    assert!(
        printed.contains(&name) && page.matches(&name).count() >= 3,
        "{name}: {printed}"
    );
}
