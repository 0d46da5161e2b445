//! The forms of a series.

use super::*;
use crate::style::Style;
use jitterscope_analyze::guard::results::{
    BenchmarkTool, HyperfineTimes, hyperfine as hyperfine_benchmarks,
};
use jitterscope_analyze::guard::{
    Baseline, Contamination, Iteration, Made, QuietWait, Series, Stolen, Thief, Unsure,
};
use jitterscope_model::{CpuId, Nanos, Subject, Task};
use serde_json::{Value, json as value};

fn iteration(time: u64, lost: u64, contamination: Contamination) -> Iteration {
    let unsure = match contamination {
        Contamination::Unknown => vec![Unsure::RecordsLost { lost: 3 }],
        _ => Vec::new(),
    };
    Iteration {
        made: Made {
            exit_code: Some(0),
            user: Nanos(time / 2),
            system: Nanos(time / 4),
            ..Made::default()
        },
        run: "abcdef".into(),
        started_realtime_ns: 1,
        time: Nanos(time),
        stolen: Stolen {
            wanted: Nanos(time),
            waited: Nanos(lost),
            thief: Some(Thief {
                subject: Subject::Thread(Task {
                    comm: "a|thief\u{1b}".into(),
                    ..Task::default()
                }),
                threads: 1,
                total: Nanos(lost),
                recorder: false,
            }),
            ..Stolen::default()
        },
        contamination,
        unsure,
        benchmarks: Vec::new(),
    }
}

fn series(iterations: Vec<Iteration>) -> Series {
    Series {
        command: vec!["bench".into(), "-x".into()],
        label: "SPEED".into(),
        planned: iterations.len(),
        retry: 0,
        limit: 0.01,
        tool: None,
        baseline: None,
        iterations,
        interrupted: false,
    }
}

fn mixed() -> Series {
    let mut mixed = series(vec![
        iteration(100_000_000, 100_000, Contamination::Clean),
        iteration(200_000_000, 100_000_000, Contamination::Contaminated),
        iteration(110_000_000, 0, Contamination::Unknown),
        iteration(120_000_000, 200_000, Contamination::Clean),
    ]);
    mixed.planned = 3;
    mixed.iterations[3].made.additional = true;
    mixed
}

fn text(series: &Series, full: bool) -> String {
    super::text(series, "jitterscope", full, Style::default())
}

#[test]
fn a_screen_has_the_headline_and_a_line_of_each_iteration() {
    let text = text(&mixed(), false);
    assert_eq!(
        text,
        "\
`bench -x`
4 iterations: median 115 ms, from 100 ms to 200 ms.
1 is contaminated: others took more than 1.00 % of the time in which its threads
wanted a CPU. Of 1 it is unknown. 1 was made in place of contaminated ones (+);
the times count all.

 #    time    lost   share  verdict       most to             run
1   100 ms  100 us   0.1 %  clean         thread a|thief\\x1b  abcdef
2   200 ms  100 ms  50.0 %  CONTAMINATED  thread a|thief\\x1b  abcdef
3   110 ms    0 ns   0.0 %  unknown       thread a|thief\\x1b  abcdef
4+  120 ms  200 us   0.2 %  clean         thread a|thief\\x1b  abcdef
Iteration 3: 3 records were lost (raise --trace-buffer).
Times include the cost of following (docs/price.md): compare only guard's.
Longest stall where most was lost: `jitterscope report abcdef --worst 1`
"
    );
}

#[test]
fn waits_for_quiet_are_told_and_vain_ones_marked() {
    let mut waited = mixed();
    for (one, quiet) in waited.iterations.iter_mut().zip([true, false, true, false]) {
        one.made.wait = Some(QuietWait {
            waited: Nanos(600_000_000),
            quiet,
            busiest_cpu: CpuId(5),
            busy_fraction: if quiet { 0.02 } else { 0.4 },
        });
    }
    let screen = text(&waited, false);
    let sentence = "It waited 2.40 s for quiet before 4 iterations; 2 (!) began in spite of busy CPUs: CPU 5 was busy \
                    for 40.0 % of half a second.";
    let joined = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(sentence), "{screen}");
    for row in ["1   600 ms   100 ms", "4+  600 ms!  120 ms"] {
        assert!(screen.contains(row), "{screen}");
    }
    let said = line(&waited).unwrap();
    assert!(said.ends_with(", after 600 ms for quiet in vain"), "{said}");
    let file = serde_json::to_value(json(&waited)).unwrap();
    assert_eq!(file["iterations"][1]["wait"]["quiet"], false);
    assert_eq!(file["iterations"][1]["wait"]["waited_ns"], 600_000_000);
    waited.iterations.truncate(1);
    assert!(
        text(&waited, false).contains("all began on"),
        "{}",
        text(&waited, false)
    );
    assert_eq!(
        serde_json::to_value(json(&mixed())).unwrap()["iterations"][0]["wait"],
        Value::Null
    );
}

#[test]
fn a_command_that_the_recording_disturbs_gets_advice() {
    let mut short = series(vec![iteration(10, 5, Contamination::Contaminated)]);
    if let Some(thief) = &mut short.iterations[0].stolen.thief {
        thief.recorder = true;
    }
    let screen = text(&short, false);
    assert!(
        screen.contains("this recording itself took most"),
        "{screen}"
    );
    assert!(line(&short).is_some_and(|line| line.ends_with("5 ns this recording")));
}

#[test]
fn many_iterations_take_one_screen_and_more_if_asked() {
    let one = |at: u64| {
        let kind = match at % 3 {
            0 => Contamination::Clean,
            1 => Contamination::Contaminated,
            _ => Contamination::Unknown,
        };
        iteration(10_000_000_000 + at, at * 100_000_000, kind)
    };
    let many = series((0..50).map(one).collect());
    let screen = text(&many, false);
    assert!(screen.lines().count() < 24, "{screen}");
    assert!(screen.lines().all(|line| line.len() <= 80), "{screen}");
    assert!(screen.contains("more, which --full shows"), "{screen}");
    // What was contaminated comes before what is clean.
    assert!(!screen.contains("  clean  "), "{screen}");
    // With everything that there may be to say.
    let mut much = many.clone();
    let last = much.iterations.len() - 1;
    much.iterations[last].made.exit_code = Some(7);
    for one in &mut much.iterations {
        one.made.additional = true;
        one.stolen.own = Nanos(1_000_000_000);
        one.stolen
            .thief
            .iter_mut()
            .for_each(|of| of.recorder = true);
    }
    let screen = text(&much, false);
    assert!(screen.lines().count() < 24, "{screen}");
    let full = text(&many, true);
    let rows = full.lines().filter(|line| line.ends_with("abcdef"));
    assert_eq!(rows.count(), 50, "{full}");
}

#[test]
fn a_series_that_ended_early_says_why() {
    let mut failed = series(vec![iteration(10, 0, Contamination::Clean)]);
    failed.planned = 5;
    failed.iterations[0].made.exit_code = Some(7);
    assert!(text(&failed, false).contains("failed with exit code 7"));
    let mut stopped = failed.clone();
    stopped.interrupted = true;
    stopped.iterations[0].made.exit_code = None;
    let screen = text(&stopped, false);
    assert!(screen.contains("none ran to its end"), "{screen}");
    assert!(screen.contains("5 were planned"), "{screen}");
    stopped.iterations.clear();
    assert!(text(&stopped, false).starts_with("`bench -x`\n0 iterations"));
}

fn parsed(text: Result<Option<String>, serde_json::Error>) -> Value {
    serde_json::from_str(&text.unwrap().unwrap()).unwrap()
}

#[test]
fn hyperfines_fields_are_seconds_and_ours_are_beside_them() {
    let file = parsed(hyperfine(&mixed(), "bench -x".into()));
    let result = &file["results"][0];
    assert_eq!(result["command"], "bench -x");
    assert_eq!(result["times"], value!([0.1, 0.2, 0.11, 0.12]));
    assert_eq!(result["exit_codes"], value!([0, 0, 0, 0]));
    for (name, seconds) in [
        ("mean", 0.1325),
        ("median", 0.115),
        ("min", 0.1),
        ("max", 0.2),
        ("user", 0.06625),
        ("system", 0.033_125),
    ] {
        let found = result[name].as_f64().unwrap();
        assert!((found - seconds).abs() < 1e-6, "{name}: {found}");
    }
    assert!((result["stddev"].as_f64().unwrap() - 0.0457).abs() < 1e-4);
    // The same for readers of version 2.
    assert_eq!(file["schema_version"], 2);
    assert_eq!(
        result["measurements"][1]["time_wall_clock"],
        value!({"value": 0.2, "unit": "second"})
    );
    let summary = &result["summary"]["time_wall_clock"];
    for name in ["mean", "median", "min", "max", "stddev"] {
        assert_eq!(summary[name], result[name], "{name}");
    }
    let ours = &result["jitterscope"];
    assert_eq!(ours["contaminated"], 1);
    assert_eq!(ours["iterations"][1]["contamination"], "contaminated");
    assert_eq!(ours["iterations"][1]["culprit"]["name"], "a|thief\u{1b}");
    let one = parsed(hyperfine(
        &series(vec![iteration(5, 0, Contamination::Clean)]),
        String::new(),
    ));
    assert_eq!(one["results"][0]["stddev"], Value::Null);
    assert!(hyperfine(&series(vec![]), String::new()).unwrap().is_none());
}

#[test]
fn bencher_gets_the_median_with_its_range_under_the_label() {
    let file = parsed(bencher(&mixed()));
    assert_eq!(
        file,
        value!({"SPEED": {
            "latency": {"value": 115e6, "lower_value": 100e6, "upper_value": 200e6},
            "contaminated-iterations": {"value": 1.0},
            "unknown-iterations": {"value": 1.0},
        }})
    );
    assert!(bencher(&series(vec![])).unwrap().is_none());
}

/// The mixed series, of a tool with two benchmarks.
fn with_benchmarks() -> Series {
    let mut series = mixed();
    series.tool = Some(BenchmarkTool::Hyperfine);
    for (nth, one) in series.iterations.iter_mut().enumerate() {
        let (a, b) = (10.0 + nth as f64, 1e-3);
        let of = |name: &str, s: f64| {
            let (less, more) = (s / 2.0, s * 2.0);
            format!(r#"{{"command":"{name}","times":[{less},{s},{more}]}}"#)
        };
        let file = format!(r#"{{"results":[{},{}]}}"#, of("a|\\u001b b", a), of("b", b));
        one.benchmarks = hyperfine_benchmarks(file.as_bytes()).unwrap();
    }
    series
}

#[test]
fn benchmarks_of_a_tool_are_in_all_forms() {
    let series = with_benchmarks();
    let screen = text(&series, true);
    for part in ["a|\\x1b b", "if clean", "those of hyperfine"] {
        assert!(screen.contains(part), "{screen}");
    }
    let row = screen.lines().find(|line| line.starts_with("b ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    let times = ["1.00", "ms", "500", "us", "2.00", "ms", "1.00", "ms"];
    assert_eq!(
        cells,
        [&["b"][..], &times, &["1", "of", "4,", "1", "unknown"]].concat()
    );
    let page = markdown(&series);
    let row = page.lines().find(|line| line.starts_with("| a")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
    let file = serde_json::to_value(json(&series)).unwrap();
    assert_eq!(file["tool"], "hyperfine");
    assert_eq!(file["benchmarks"][1]["median_ns"], 1e6);
    assert_eq!(file["iterations"][2]["benchmarks"][0]["median_ns"], 12e9);
    let file = parsed(bencher(&series));
    assert_eq!(file.as_object().unwrap().len(), 3);
    assert_eq!(
        file["SPEED/b"],
        value!({
            "latency": {"value": 1e6, "lower_value": 5e5, "upper_value": 2e6},
            "contaminated-iterations": {"value": 1.0},
            "unknown-iterations": {"value": 1.0},
        })
    );
}

#[test]
fn very_long_names_stay_apart_for_bencher() {
    let mut series = with_benchmarks();
    for (one, end) in series.iterations[0].benchmarks.iter_mut().zip(["x", "y"]) {
        one.name = "n".repeat(2000) + end;
    }
    let file = parsed(bencher(&series));
    let names: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| (1..=1024).contains(&name.chars().count()))
    );
}

#[test]
fn a_change_from_stored_times_is_said_with_its_error() {
    let said = |stored: [u64; 3], by_guard| {
        let times = HyperfineTimes {
            command: "bench -x".into(),
            name: None,
            times: stored.map(|ms| Nanos(ms * 1_000_000)).to_vec(),
            by_guard,
        };
        let mut series = mixed();
        series.baseline = Some(Baseline(times));
        let text = text(&series, true);
        let file = serde_json::to_value(json(&series)).unwrap();
        assert_eq!(file["baseline"]["counted"], 3);
        assert_eq!(file["baseline"]["change"]["level"], 0.95);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let same = said([110, 120, 130], true);
    let text =
        "Against 3 stored times of guard for `bench -x` (median 120 ms): no change is shown (";
    assert!(same.contains(text), "{same}");
    let longer = said([10, 11, 12], false);
    assert!(
        longer.contains("of hyperfine for `bench -x` (median 11.0 ms): 1"),
        "{longer}"
    );
    assert!(longer.contains("longer on average ("), "{longer}");
    assert!(
        longer.contains("contains the cost of following"),
        "{longer}"
    );
}

#[test]
fn names_are_no_markup_in_markdown() {
    let page = markdown(&mixed());
    assert!(page.starts_with("### bench -x\n\n**4 iterations"), "{page}");
    let row = page.lines().find(|line| line.starts_with("| 2 ")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 8, "{row}");
    assert!(row.contains("**CONTAMINATED**"), "{row}");
    assert!(page.contains("\nIteration 3: 3 records"), "{page}");
    assert!(page.lines().any(|line| line.starts_with("| 4+ ")), "{page}");
}
