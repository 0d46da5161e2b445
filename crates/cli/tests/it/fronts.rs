//! `sljtest`, `sampler` and `export`: their output, during and after the run, and that an error leaves nothing behind.

use crate::schema_check::conforms;
use jitterscope_testing::{Tmpfs, turn};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("JITTERSCOPE_RUNS", folder.join(".runs"));
    command
}

fn jitterscope(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| name != ".runs");
    names.sort();
    names
}

/// The screen of an `sljtest` that must succeed.
fn screen(folder: &Path, args: &[&str]) -> String {
    let output = jitterscope(folder, &[&["sljtest"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// The histogram's rows: upper bound in ticks, and the amount in that bin.
fn bins(screen: &str) -> Vec<(String, u128)> {
    let rows = screen
        .lines()
        .filter(|line| line.contains('%') && !line.starts_with("Timing"));
    let cells = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    cells
        .map(|cells| (cells[1].to_owned(), cells[2].parse().unwrap()))
        .collect()
}

#[test]
fn the_default_screen_is_28_lines_of_at_most_80_columns() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let text = screen(dir.path(), &[]);
    assert_eq!(text.lines().count(), 28, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_eq!(bins(&text).len(), 20, "{text}");
    assert_eq!(names(dir.path()), [""; 0], "it writes no file unasked");
}

#[test]
fn width_bins_knee_and_minimum_shape_the_screen() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for width in [54usize, 80, 120] {
        let text = screen(dir.path(), &["-r", "100ms", "-w", &width.to_string()]);
        let longest = text
            .lines()
            .filter(|line| line.contains('*'))
            .map(str::len)
            .max();
        assert_eq!(longest, Some(width), "{text}");
    }
    let text = screen(
        dir.path(),
        &[
            "-r", "100ms", "--bins", "8", "--min", "100", "--knee", "500",
        ],
    );
    let bounds: Vec<String> = bins(&text).into_iter().map(|(ticks, _)| ticks).collect();
    assert_eq!(
        bounds,
        [
            "200", "300", "400", "500", "1000", "5000", "10000", "Infinite"
        ],
        "{text}"
    );
}

#[test]
fn sums_are_of_ticks_and_counts_of_deltas() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let total = |text: &str| bins(text).iter().map(|(_, amount)| amount).sum::<u128>();
    let counted = screen(dir.path(), &["-r", "200ms"]);
    let iterations = counted
        .lines()
        .find(|line| line.starts_with("CPU speed"))
        .unwrap();
    let iterations: u128 = iterations
        .split_whitespace()
        .rev()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!(counted.contains(" Count "), "{counted}");
    assert_eq!(
        total(&counted),
        iterations,
        "every delta is in a bin:\n{counted}"
    );
    let summed = screen(dir.path(), &["-r", "200ms", "-s"]);
    assert!(summed.starts_with("Time    Ticks    Sum "), "{summed}");
    // The whole time: the machine's own clock gives the number of ticks.
    let mhz: f64 = summed
        .split("CPU speed measured  : ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let ticks = total(&summed) as f64;
    assert!(
        (ticks / (mhz * 200_000.0) - 1.0).abs() < 0.5,
        "{ticks} ticks at {mhz} MHz:\n{summed}"
    );
    let measured = summed
        .lines()
        .find(|line| line.starts_with("Timing was measured for "))
        .unwrap();
    assert!(measured.ends_with(", 100.00% of runtime"), "{measured}");
}

/// Stalls that do not depend on the machine: another process runs on the measured CPU repeatedly.
struct Disturbed {
    cpu: String,
    child: Child,
}

impl Disturbed {
    fn start() -> Disturbed {
        let cpu = cpus().pop().unwrap();
        let child = Command::new("taskset")
            .args(["-c", &cpu, "sh", "-c", "while :; do sleep 0.002; done"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Disturbed { cpu, child }
    }
}

impl Drop for Disturbed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_outlier_file_is_in_order_holds_the_last_ones_and_fits_the_screen() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outliers.txt");
    fs::write(
        &path,
        "an older and longer file than the new one\n".repeat(10_000),
    )
    .unwrap();
    let read = || -> Vec<(f64, f64)> {
        let text = fs::read_to_string(&path).unwrap();
        text.lines()
            .map(|line| {
                let (at, length) = line.split_once(", ").unwrap();
                (at.parse().unwrap(), length.parse().unwrap())
            })
            .collect()
    };
    // Above 150 ns with any TSC: every outlier is recorded.
    let disturbed = Disturbed::start();
    let args = [
        "--cpus",
        &disturbed.cpu,
        "-r",
        "500ms",
        "-k",
        "2000",
        "-f",
        "outliers.txt",
    ];
    let text = screen(dir.path(), &args);
    let all = read();
    let above: u128 = bins(&text)[10..].iter().map(|(_, count)| count).sum();
    // The file has 10,000 at most: a host can interrupt a CPU more often than that.
    assert_eq!(
        all.len() as u128,
        above.min(10_000),
        "as many as there are above the knee:\n{text}"
    );
    assert!(all.len() > 10, "{text}");
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{all:?}");
    assert!(
        all.iter()
            .all(|(at, length)| (0.0..10_000.0).contains(at) && *length > 0.1),
        "{all:?}"
    );

    screen(dir.path(), &[&args[..], &["-o", "3"]].concat());
    let last = read();
    assert_eq!(last.len(), 3, "{last:?}");
    assert!(last.is_sorted_by(|a, b| a.0 < b.0), "{last:?}");
    // The last ones, not the first.
    assert!(last[2].0 > 250.0, "{last:?}");
    assert_eq!(names(dir.path()), ["outliers.txt"]);
}

#[test]
fn the_pause_comes_before_the_test_and_a_signal_ends_it() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    screen(dir.path(), &["-p", "700", "-r", "50ms"]);
    assert!(begun.elapsed() >= Duration::from_millis(750));

    let mut child = Running::start(dir.path(), &["sljtest", "-p", "1h", "-f", "outliers.txt"]);
    child.wait_for(|| names(dir.path()) == ["outliers.txt"]);
    std::thread::sleep(Duration::from_millis(200));
    child.signal("TERM");
    let output = child.end();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("nothing was recorded"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        names(dir.path()),
        [""; 0],
        "a file without outliers is not worth having"
    );
}

/// A child that dies with the test.
struct Running(Option<Child>);

impl Running {
    fn start(folder: &Path, args: &[&str]) -> Running {
        let child = command(folder, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running(Some(child))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn runs(&mut self) -> bool {
        self.child().try_wait().unwrap().is_none()
    }

    /// Waits while it runs.
    fn wait_for(&mut self, mut found: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !found() {
            assert!(self.runs(), "it ended before");
            assert!(Instant::now() < until, "nothing happened in 30 s");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&mut self, name: &str) {
        let pid = self.child().id().to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
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

/// Rows of a CSV file without its header; only whole lines.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

#[test]
fn the_sampler_writes_to_many_outputs_while_it_runs_with_every_stall() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let udp = format!("influx://{}", server.local_addr().unwrap());
    let disturbed = Disturbed::start();
    let measure = [
        "sampler",
        "-c",
        &disturbed.cpu,
        "-d",
        "3",
        "-r",
        "1",
        "-t",
        "500",
    ];
    let files = ["-o", "csv://j.csv", "-o", "json://j.jsonl"];
    let more = ["-o", "hlog://j.hlog", "-o", "hgrm://j.hgrm", "-o", &udp];
    let begun = Instant::now();
    let mut child = Running::start(dir.path(), &[&measure[..], &files[..], &more[..]].concat());
    let (series, stalls) = (dir.path().join("j.csv"), dir.path().join("j-stalls.csv"));
    let lines = |name: &str| {
        fs::read_to_string(dir.path().join(name))
            .unwrap_or_default()
            .lines()
            .count()
    };
    child.wait_for(|| {
        rows(&series).len() > 10
            && rows(&stalls).len() > 10
            && lines("j.jsonl") > 10
            && lines("j.hlog") > 10
    });
    let mut datagram = [0; 2000];
    let got = server.recv(&mut datagram).unwrap();
    assert!(
        datagram[..got].starts_with(b"jitter_run,"),
        "{}",
        String::from_utf8_lossy(&datagram[..got])
    );
    assert!(child.runs(), "all that was there while it ran");
    let output = child.end();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert!(
        stdout(&output)
            .starts_with("duration: 3s\nreport interval: 1ms\nreport threshold: 500ns\n")
    );
    assert!(stderr(&output).contains("is UDP: whether anything arrives cannot be known"));

    let number = |text: &str| text.parse::<u64>().unwrap();
    let (series, stalls) = (rows(&series), rows(&stalls));
    // end_ns,max_ns,cpu,start_ns,count,stolen_ns beside start_ns,duration_ns,...
    let counted: u64 = series.iter().map(|row| number(&row[4])).sum();
    assert_eq!(
        counted,
        stalls.len() as u64,
        "every stall, not only the longest of an interval"
    );
    assert!(
        series.iter().any(|row| number(&row[4]) > 1),
        "no interval has two: {series:?}"
    );
    let longest = |rows: &[Vec<String>]| rows.iter().map(|row| number(&row[1])).max();
    assert_eq!(longest(&series), longest(&stalls));
    for two in series.windows(2) {
        assert!(
            number(&two[0][0]) <= number(&two[1][3]),
            "intervals overlap: {two:?}"
        );
    }
    assert!(
        stalls.iter().all(|row| number(&row[1]) >= 499),
        "{stalls:?}"
    );
    let json = fs::read_to_string(dir.path().join("j.jsonl")).unwrap();
    let of = |kind: &str| {
        json.lines()
            .filter(|line| line.contains(&format!("\"type\":\"{kind}\"")))
            .count()
    };
    assert_eq!((of("run"), of("stall"), of("end")), (1, stalls.len(), 1));
    assert!(of("interval") > 100, "3 s in intervals of 1 ms");
    assert_eq!(
        names(dir.path()),
        ["j-stalls.csv", "j.csv", "j.hgrm", "j.hlog", "j.jsonl"]
    );
}

/// CPUs that this process may use.
fn cpus() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    let ranges = list
        .trim()
        .split(',')
        .map(|range| range.split_once('-').unwrap_or((range, range)));
    ranges
        .flat_map(|(from, to)| from.parse::<u32>().unwrap()..=to.parse().unwrap())
        .map(|cpu| cpu.to_string())
        .collect()
}

#[test]
fn all_cpus_are_measured_at_once_each_under_its_number() {
    let _turn = turn();
    let (dir, cpus) = (tempfile::tempdir().unwrap(), cpus());
    let list = cpus.join(",");
    let text = screen(
        dir.path(),
        &[
            "-r",
            "200ms",
            "--cpus",
            &list,
            "-f",
            "outliers.txt",
            "--periods",
        ],
    );
    let headings: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("CPU "))
        .collect();
    let headings: Vec<&str> = headings
        .into_iter()
        .filter(|cpu| cpu.parse::<u32>().is_ok())
        .collect();
    let expected = if cpus.len() > 1 {
        cpus.clone()
    } else {
        Vec::new()
    };
    assert_eq!(headings, expected, "{text}");
    assert_eq!(text.matches("Timing was measured for ").count(), cpus.len());
    let outliers = fs::read_to_string(dir.path().join("outliers.txt")).unwrap();
    let times = outliers
        .lines()
        .map(|line| line.split_once(", ").unwrap().0.parse::<f64>().unwrap());
    assert!(
        times.is_sorted(),
        "those of all CPUs in one order:\n{outliers}"
    );

    let args = [
        "sampler", "-c", &list, "-d", "500ms", "-r", "50", "-l", "LOADED", "-o",
    ];
    let intervals = "csv://intervals.csv?rows=intervals";
    let output = jitterscope(
        dir.path(),
        &[&args[..], &[intervals, "-o", "json://j.jsonl"]].concat(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = rows(&dir.path().join("intervals.csv"));
    for cpu in &cpus {
        let own: Vec<_> = rows.iter().filter(|row| row[2] == *cpu).collect();
        assert!(!own.is_empty(), "CPU {cpu} has no intervals");
        assert!(
            own.windows(2).all(|two| two[0][0] == two[1][3]),
            "CPU {cpu} has a hole: {own:?}"
        );
        let length =
            |row: &[String]| row[0].parse::<u64>().unwrap() - row[3].parse::<u64>().unwrap();
        let measured: u64 = own.iter().map(|row| length(row)).sum();
        assert!(measured > 100_000_000, "CPU {cpu}: {own:?}");
    }
    let json = fs::read_to_string(dir.path().join("j.jsonl")).unwrap();
    assert!(
        json.lines()
            .next()
            .unwrap()
            .contains("\"label\":\"LOADED\""),
        "{json}"
    );
}

#[test]
fn without_a_target_the_series_is_on_stdout_and_the_settings_are_not() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = jitterscope(dir.path(), &["sampler", "-d", "300ms", "-r", "100"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("end_ns,max_ns,cpu,start_ns,count,stolen_ns\n"));
    let shown = stderr(&output);
    let settings = "duration: 0.3s\nreport interval: 100ms\nreport threshold: ";
    let (_, threshold) = shown
        .split_once(settings)
        .unwrap_or_else(|| panic!("{shown}"));
    let (threshold, _) = threshold
        .split_once("ns\n")
        .unwrap_or_else(|| panic!("{shown}"));
    // 300 ns, or what the clock's reads allow if the CPU is disturbed.
    assert!(threshold.parse::<u64>().unwrap() >= 300, "{shown}");
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A server with the same answer to every request.
fn http_server(status: &'static str) -> String {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn an_error_leaves_nothing_behind_and_old_files_alone() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("old.csv"), "kept").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let refusing = format!("influx+http://{}/?db=none", http_server("404 Not Found"));
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = format!("influx+http://{gone}/?db=x");
    let both = ["-o", "csv://old.csv", "-o", "json://new.jsonl", "-o"];
    let cases: Vec<(i32, Vec<&str>, &str)> = vec![
        (1, [&both[..], &[&gone]].concat(), "cannot be reached"),
        (1, [&both[..], &[&refusing]].concat(), "refused (404)"),
        (
            1,
            [&both[..], &["influx://no-such-host.invalid:1"]].concat(),
            "cannot be resolved",
        ),
        (
            1,
            [&both[..], &["csv://missing/x.csv"]].concat(),
            "Make its folder first",
        ),
        (1, [&both[..], &["hlog://folder"]].concat(), "Name a file"),
        (
            2,
            [&both[..], &["parquet://tables"]].concat(),
            "from a stored run only",
        ),
        (
            2,
            [&both[..], &["hgrm://x.hgrm?cpu=4095"]].concat(),
            "CPU 4095 is not measured",
        ),
        (
            2,
            [&both[..], &["xml://x"]].concat(),
            "'xml://' is not known",
        ),
        (
            2,
            [&both[..], &["csv://-", "-t", "1s"]].concat(),
            "it can be at most",
        ),
        (
            2,
            [&both[..], &["csv://-", "-c", "4095"]].concat(),
            "CPU 4095 does not exist",
        ),
        (
            2,
            [&both[..], &["hlog://./old.csv"]].concat(),
            "given twice",
        ),
    ];
    for (code, args, word) in cases {
        let begun = Instant::now();
        let output = jitterscope(
            dir.path(),
            &[&["sampler", "-d", "3600"], &args[..]].concat(),
        );
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(word),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{args:?}: {}", stdout(&output));
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{args:?}: it measured"
        );
        assert_eq!(names(dir.path()), ["folder", "old.csv"], "{args:?}");
        assert_eq!(
            fs::read_to_string(dir.path().join("old.csv")).unwrap(),
            "kept",
            "{args:?}"
        );
    }
    let slj = |args: &[&str]| jitterscope(dir.path(), &[&["sljtest", "-r", "3600"], args].concat());
    for args in [
        ["-k", "10"],
        ["-w", "200"],
        ["-b", "1"],
        ["-k", "200000"],
        ["--cpus", "4095"],
    ] {
        for file in ["old.csv", "new.txt"] {
            let output = slj(&[&args[..], &["-f", file]].concat());
            assert_eq!(
                output.status.code(),
                Some(2),
                "{args:?}: {}",
                stderr(&output)
            );
            assert_eq!(names(dir.path()), ["folder", "old.csv"], "{args:?}");
            assert_eq!(
                fs::read_to_string(dir.path().join("old.csv")).unwrap(),
                "kept",
                "{args:?}"
            );
        }
    }
}

#[test]
fn an_export_that_fails_leaves_nothing_behind() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let record = [
        "record",
        "-d",
        "300ms",
        "--warmup",
        "50ms",
        "--no-trace",
        "-q",
    ];
    assert!(jitterscope(dir.path(), &record).status.success());
    fs::write(dir.path().join("old.csv"), "kept").unwrap();
    let refusing = format!("influx+http://{}/?db=none", http_server("404 Not Found"));
    let all = [
        "--to",
        "csv://old.csv",
        "--to",
        "hlog://new.hlog",
        "--to",
        "parquet://a/b",
        "--to",
    ];
    for (code, last, word) in [
        (1, refusing.as_str(), "refused (404)"),
        (1, "csv://missing/x.csv", "Make its folder first"),
        (1, "parquet:///proc/nowhere", "cannot be written"),
        (2, "hgrm://x.hgrm?cpu=4095", "CPU 4095 is not measured"),
        (2, "csv://./old.csv", "given twice"),
    ] {
        let output = jitterscope(dir.path(), &[&["export"], &all[..], &[last]].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{last}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(word),
            "{last}: {}",
            stderr(&output)
        );
        assert_eq!(names(dir.path()), ["old.csv"], "{last}");
        assert_eq!(
            fs::read_to_string(dir.path().join("old.csv")).unwrap(),
            "kept",
            "{last}"
        );
    }
    let output = jitterscope(dir.path(), &[&["export"], &all[..], &["csv://-"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(names(dir.path()), ["a", "new.hlog", "old.csv"]);
    assert_eq!(
        stdout(&output),
        fs::read_to_string(dir.path().join("old.csv")).unwrap()
    );
}

#[test]
fn a_disk_that_fills_up_ends_it_with_whole_rows() {
    let _turn = turn();
    let Some(disk) = Tmpfs::mount(32 << 10) else {
        return;
    };
    let begun = Instant::now();
    // An interval is a row even if it is empty.
    let args = [
        "sampler",
        "-d",
        "600",
        "-r",
        "1",
        "-o",
        "csv://j.csv?rows=intervals",
    ];
    let runs = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = command(disk.path(), args);
        command
            .env("JITTERSCOPE_RUNS", runs.path())
            .output()
            .unwrap()
    };
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("j.csv cannot be written: No space left"),
        "{}",
        stderr(&output)
    );
    assert!(
        begun.elapsed() < Duration::from_secs(300),
        "it went on without its output"
    );
    let text = fs::read_to_string(disk.path().join("j.csv")).unwrap();
    assert!(text.lines().count() > 10 && text.ends_with('\n'), "{text}");
    assert!(
        text.lines().all(|line| line.split(',').count() == 6),
        "{text}"
    );

    // The run is kept up to there, and reports the loss of the file.
    let report = run(&["report", "--json"]);
    assert!(
        stdout(&report).contains("output-lost"),
        "{}",
        stdout(&report)
    );

    // The same for a stored run, which is complete or absent.
    let record = [
        "record",
        "-d",
        "300ms",
        "--warmup",
        "50ms",
        "--interval",
        "1ms",
        "--no-trace",
        "-q",
    ];
    assert!(run(&record).status.success());
    for target in [
        "csv://x.csv?rows=intervals",
        "json://x.jsonl",
        "parquet://tables",
    ] {
        let output = run(&["export", "--to", target]);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{target}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("No space left"),
            "{target}: {}",
            stderr(&output)
        );
        assert_eq!(names(disk.path()), ["j.csv"], "{target}");
    }
}

#[test]
fn the_fronts_and_export_speak_json() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let value = json(&screen(
        dir.path(),
        &["-r", "300ms", "--json", "-f", "o.txt", "--periods"],
    ));
    assert_eq!(value["schema_version"], 2);
    conforms("sljtest", &value);
    let cpu = &value["cpus"][0];
    let bins = cpu["bins"].as_array().unwrap();
    assert_eq!(
        (bins.len(), bins[0]["upper_ticks"].as_u64()),
        (20, Some(14))
    );
    assert!(
        bins[19]["upper_ticks"].is_null(),
        "the last bin is open: {value}"
    );
    let total: u64 = bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
    assert_eq!(
        cpu["statistics"]["samples"].as_u64(),
        Some(total),
        "{value}"
    );
    let sum: u64 = bins
        .iter()
        .map(|bin| bin["sum_ticks"].as_u64().unwrap())
        .sum();
    let ns = sum as f64 * 1e9 / value["ticks_per_second"].as_f64().unwrap();
    assert!(
        (ns - cpu["statistics"]["measured_ns"].as_f64().unwrap()).abs() < 2.0,
        "{value}"
    );
    assert!(
        cpu["recommendations"].is_array() && value["periods"]["rows"].is_array(),
        "{value}"
    );
    let kept = cpu["outliers"]["kept"].as_u64().unwrap();
    assert_eq!(
        fs::read_to_string(dir.path().join("o.txt"))
            .unwrap()
            .lines()
            .count() as u64,
        kept
    );
    let output = jitterscope(dir.path(), &["sljtest", "--json", "-s"]);
    assert_eq!(output.status.code(), Some(2), "sums are in the JSON anyway");

    let output = jitterscope(
        dir.path(),
        &["sampler", "-d", "300ms", "-r", "100ms", "--json"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let lines: Vec<_> = stdout(&output).lines().map(json).collect();
    for line in &lines {
        conforms("export", line);
    }
    assert_eq!(
        (&lines[0]["type"], &lines[lines.len() - 1]["type"]),
        (&"run".into(), &"end".into())
    );
    let output = jitterscope(
        dir.path(),
        &["sampler", "-d", "300ms", "--json", "-o", "csv://-"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));

    let record = [
        "record",
        "-d",
        "300ms",
        "--warmup",
        "50ms",
        "--no-trace",
        "-q",
    ];
    assert!(jitterscope(dir.path(), &record).status.success());
    let output = jitterscope(
        dir.path(),
        &[
            "export",
            "--json",
            "--to",
            "hgrm://h",
            "--to",
            "parquet://p",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let value = json(&stdout(&output));
    assert_eq!(value["targets"][0]["target"], "hgrm://h");
    assert_eq!(
        (
            &value["targets"][1]["delivered"],
            &value["targets"][1]["lost"]
        ),
        (&6.into(), &0.into())
    );
    let output = jitterscope(dir.path(), &["export", "--json", "--to", "csv://-"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "one of them only can have stdout"
    );
}
