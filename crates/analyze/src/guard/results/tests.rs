//! Files as the tools wrote them, and changed ones.

use super::*;
use crate::guard::{Baseline, Contamination, Iteration, Made, Series, Stolen};
use jitterscope_model::Nanos;
use proptest::prelude::*;
use std::path::Path;

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/benchmarks");
    std::fs::read(folder.join(name)).unwrap()
}

fn of_criterion() -> [Vec<u8>; 3] {
    ["benchmark", "estimates", "sample"].map(|name| file(&format!("criterion/{name}.json")))
}

fn changed(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.contains(from), "{from} in {text}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn files_of_the_tools_have_their_benchmarks() {
    let found = hyperfine(&file("hyperfine.json")).unwrap();
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    let commands = [
        "sleep 0.01",
        "sleep 0.02",
        "sleep 0.01; false",
        "sleep 0.02; false",
    ];
    assert_eq!(names, commands);
    assert_eq!(found[0].median, FineNanos(11_535_857.0));
    assert_eq!((found[0].samples, found[2].samples), (3, 2));
    let found = pytest_benchmark(&file("pytest.json")).unwrap();
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    let tests = ["test_sum[10]", "test_sum[1000]", "test_pedantic"];
    assert_eq!(names, tests.map(|test| format!("test_b.py::{test}")));
    assert_eq!(found[0].median, FineNanos(555.0));
    assert_eq!((found[0].samples, found[2].samples), (5577, 5));
    let [id, estimates, sample] = of_criterion();
    let found = criterion(&id, &estimates, &sample).unwrap();
    assert_eq!(found.name, "sum/of/100");
    assert_eq!((found.median, found.samples), (FineNanos(45.486), 10));
    assert_eq!(
        (found.min, found.max),
        (FineNanos(40.435), FineNanos(1882.559))
    );
}

#[test]
fn both_versions_of_hyperfines_file_are_read() {
    let second =
        br#"{"schema_version": 2, "metadata": {"hyperfine_version": "2.0.0"}, "results": [{
        "command": "sleep 1", "name": "a nap", "measurements": [
            {"time_wall_clock": {"value": 1.25, "unit": "second"}, "exit_code": 0},
            {"time_wall_clock": {"value": 1.75, "unit": "second"}, "exit_code": null}
        ], "summary": {}}]}"#;
    let found = hyperfine(second).unwrap();
    assert_eq!((found[0].name.as_str(), found[0].samples), ("a nap", 2));
    assert_eq!(found[0].median, FineNanos(1.5e9));
    let times = hyperfine_times(second).unwrap();
    assert_eq!(times[0].command, "sleep 1");
    assert_eq!(times[0].times, [Nanos(1_250_000_000), Nanos(1_750_000_000)]);
}

#[test]
fn errors_name_what_is_wrong() {
    let error = |bytes: Vec<u8>| hyperfine(&bytes).unwrap_err().to_string();
    let good = file("hyperfine.json");
    for (bytes, text) in [
        (b"[1".to_vec(), "not JSON as hyperfine writes it"),
        (b"{}".to_vec(), "missing field `results`"),
        (b"{\"results\":[]}".to_vec(), "no benchmark"),
        (
            changed(&good, "\"command\": \"sleep 0.01\"", "\"command\": \"\""),
            "no name",
        ),
        (
            changed(&good, "\"times\": [", "\"times\": [-1,"),
            "negative",
        ),
        (
            changed(&good, "\"times\": [", "\"times\": [1e60,"),
            "30 years",
        ),
        (
            changed(&good, "\"times\": [", "\"times\": [NaN,"),
            "not JSON",
        ),
        (
            changed(&good, "\"times\"", "\"x\""),
            "neither a list of times",
        ),
    ] {
        let error = error(bytes);
        assert!(error.contains(text), "{error}");
    }
    let hostile = changed(
        &good,
        "\"command\": \"sleep 0.01\"",
        "\"command\": \"\\u001b[2J\"",
    );
    let error = error(changed(&hostile, "\"times\": [", "\"times\": [-1,"));
    assert!(
        error.contains("\\x1b[2J") && !error.contains('\u{1b}'),
        "{error:?}"
    );
    let pytest = changed(&file("pytest.json"), "\"max\": 0", "\"max\": 0, \"x\": 0");
    let found = pytest_benchmark(&pytest).unwrap_err().to_string();
    assert!(found.contains("between least"), "{found}");
    let [id, estimates, sample] = of_criterion();
    for from in ["3477.0,", "\"iters\":[3477.0"] {
        let to = if from.ends_with(',') {
            ""
        } else {
            "\"iters\":[0.0"
        };
        let error = criterion(&id, &estimates, &changed(&sample, from, to)).unwrap_err();
        assert!(error.to_string().contains("a number of calls"), "{error}");
    }
}

#[test]
fn names_that_occur_twice_get_numbers() {
    let one = |name: &str| {
        let times = Unchecked {
            median: 1.0,
            min: 1.0,
            max: 1.0,
            mean: 1.0,
            samples: 1,
        };
        Benchmark::checked(name.into(), times).unwrap()
    };
    let names = ["a", "a (2)", "a", "a", "b"].map(one).to_vec();
    let names: Vec<String> = distinct(names)
        .unwrap()
        .into_iter()
        .map(|one| one.name)
        .collect();
    assert_eq!(names, ["a", "a (2)", "a (3)", "a (4)", "b"]);
    let same = std::iter::repeat_n(one("a"), MOST_BENCHMARKS + 1);
    assert!(matches!(
        distinct(same.clone().collect()),
        Err(ResultsError::TooMany)
    ));
    let many = distinct(same.skip(1).collect()).unwrap();
    assert_eq!(
        many[MOST_BENCHMARKS - 1].name,
        format!("a ({MOST_BENCHMARKS})")
    );
}

/// A series of these iterations: time, verdict, and the median of its only benchmark.
fn series(iterations: &[(u64, Contamination, f64)]) -> Series {
    let iteration = |(time, contamination, median): &(u64, Contamination, f64)| {
        let times = Unchecked {
            median: *median,
            min: median / 2.0,
            max: median * 2.0,
            mean: *median,
            samples: 7,
        };
        Iteration {
            made: Made {
                exit_code: Some(0),
                ..Made::default()
            },
            run: "r".into(),
            started_realtime_ns: 0,
            time: Nanos(*time),
            stolen: Stolen::default(),
            contamination: *contamination,
            unsure: Vec::new(),
            benchmarks: vec![Benchmark::checked("b".into(), times).unwrap()],
        }
    };
    Series {
        command: vec!["bench".into()],
        label: "guard".into(),
        planned: iterations.len(),
        retry: 0,
        limit: 0.01,
        tool: Some(BenchmarkTool::Criterion),
        baseline: None,
        iterations: iterations.iter().map(iteration).collect(),
        interrupted: false,
    }
}

#[test]
fn a_benchmark_counts_all_iterations_and_shows_the_clean_ones_beside_them() {
    use Contamination::{Clean, Contaminated, Unknown};
    let mixed = series(&[
        (1, Clean, 1.0),
        (1, Contaminated, 9.0),
        (1, Unknown, 4.0),
        (1, Clean, 2.0),
    ]);
    let found = mixed.benchmarks();
    assert_eq!(found.len(), 1);
    let one = &found[0];
    assert_eq!((one.iterations, one.contaminated, one.unknown), (4, 1, 1));
    assert_eq!(
        (one.median, one.clean_median),
        (FineNanos(3.0), Some(FineNanos(1.5)))
    );
    assert_eq!((one.min, one.max), (FineNanos(0.5), FineNanos(18.0)));
    assert_eq!(
        series(&[(1, Unknown, 4.0)]).benchmarks()[0].clean_median,
        None
    );
}

#[test]
fn a_change_from_stored_times_has_its_error() {
    let stored = hyperfine_times(&file("hyperfine.json")).unwrap();
    assert_eq!(stored.len(), 4);
    assert_eq!(
        stored[0].times,
        [11_392_730, 11_554_662, 11_535_857].map(Nanos)
    );
    assert!(!stored[0].by_guard);
    let clean = Contamination::Clean;
    let tenth_longer = stored[0].times.iter().map(|t| (t.0 * 11 / 10, clean, 1.0));
    let mut longer = series(&tenth_longer.collect::<Vec<_>>());
    assert_eq!(longer.change(), None);
    longer.baseline = Some(Baseline(stored[0].clone()));
    let change = longer.change().unwrap();
    assert_eq!(
        (change.counted, change.median),
        (3, Some(Nanos(11_535_857)))
    );
    assert!(
        (change.change_fraction.unwrap() - 0.1).abs() < 1e-6,
        "{change:?}"
    );
    let interval = change.change.unwrap();
    assert!(0.05 < interval.low && interval.low < 0.1, "{interval:?}");
    assert!(0.1 < interval.high && interval.high < 0.15, "{interval:?}");
    // A single time has no error, and a time of zero no ratio.
    longer.iterations.truncate(1);
    assert_eq!(longer.change().unwrap().change, None);
    let zero = series(&[(0, clean, 1.0), (1, clean, 1.0)]);
    let zero = Series {
        baseline: longer.baseline,
        ..zero
    };
    assert_eq!(zero.change().unwrap().change_fraction, None);
}

/// What every accepted benchmark fulfils.
fn sound(found: Result<Vec<Benchmark>, ResultsError>) {
    for one in found.unwrap_or_default() {
        let all = [one.min, one.median, one.max, one.mean];
        assert!(all.iter().all(|t| t.0.is_finite() && t.0 >= 0.0), "{one:?}");
        assert!(one.samples > 0 && !one.name.is_empty());
    }
}

/// Changes bytes, cuts the file, or puts a piece of JSON somewhere.
fn disturbed() -> impl Strategy<Value = (Vec<(usize, u8)>, Option<usize>, usize, String)> {
    let pieces = "(null|-1|1e308|1e999|0|\\[\\]|\\{\\}|\"\"|,|\\[{1,200}|NaN|true|\\\\u0000)";
    (
        prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        prop::option::of(any::<usize>()),
        any::<usize>(),
        prop::option::of(pieces).prop_map(Option::unwrap_or_default),
    )
}

proptest! {
    #[test]
    fn no_file_makes_a_reader_panic((bytes, end, at, piece) in disturbed()) {
        let disturb = |mut file: Vec<u8>| {
            for (at, byte) in &bytes {
                let at = at % file.len();
                file[at] = *byte;
            }
            if let Some(end) = end {
                file.truncate(end % file.len());
            }
            let at = at % (file.len() + 1);
            file.splice(at..at, piece.bytes());
            file
        };
        sound(hyperfine(&disturb(file("hyperfine.json"))));
        sound(pytest_benchmark(&disturb(file("pytest.json"))));
        let _ = hyperfine_times(&disturb(file("hyperfine.json")));
        let [id, estimates, sample] = of_criterion();
        for which in 0..3 {
            let mut files = [id.clone(), estimates.clone(), sample.clone()];
            files[which] = disturb(std::mem::take(&mut files[which]));
            let [id, estimates, sample] = &files;
            sound(criterion(id, estimates, sample).map(|one| vec![one]));
        }
    }
}
