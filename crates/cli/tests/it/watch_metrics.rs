//! Metrics of a watch: sums that are exact, forms that their readers understand, and a real Prometheus (Debian's package
//! `prometheus`) that scrapes them, answers the dashboard's queries and raises a shipped alert.

use crate::live;
use crate::watch::{THIEF, Watching, steal};

use jitterscope_testing::highest_cpu;
use live::{can_trace, turn};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OPEN: &str = "application/openmetrics-text;version=1.0.0";
const STOLEN: &str = "jitterscope_stolen_seconds_total";
const STALLS: &str = "jitterscope_stall_duration_seconds";

/// An answer: its head and its body.
pub(crate) fn ask(mut stream: impl Read + Write, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn get(address: &str, path: &str, more: &str) -> (String, String) {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    ask(
        stream,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n"),
    )
}

fn scrape(address: &str) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let (head, body) = get(address, "/metrics", &format!("Accept: {OPEN}\r\n"));
        if head.starts_with("HTTP/1.1 200") {
            assert!(head.contains("application/openmetrics-text"), "{head}");
            return body;
        }
        assert!(Instant::now() < until, "{head}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The rows of a text by name with labels. Fails on what is no OpenMetrics.
pub(crate) fn rows(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let (mut rows, mut family, mut unit) = (BTreeMap::new(), String::new(), String::new());
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            let kinds = ["counter", "gauge", "histogram", "info"];
            assert!(kinds.contains(&kind), "{line}");
            (family, unit) = (name.to_owned(), String::new());
            continue;
        }
        if let Some(of) = line.strip_prefix("# UNIT ") {
            let (name, of) = of.split_once(' ').unwrap();
            assert!(
                name == family && name.ends_with(&format!("_{of}")),
                "{line}"
            );
            unit = of.to_owned();
            continue;
        }
        if let Some(of) = line.strip_prefix("# HELP ") {
            assert!(of.starts_with(&format!("{family} ")), "{line}");
            continue;
        }
        if line == "# EOF" {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let plain = name.split('{').next().unwrap();
        assert!(plain.starts_with(&family), "{line} is not of {family}");
        assert!(unit.is_empty() || plain.contains(&unit), "{line}");
        let value: f64 = value.parse().unwrap();
        assert!(
            rows.insert(name.to_owned(), value).is_none(),
            "twice: {line}"
        );
    }
    rows
}

/// The sum of a family's rows, in nanoseconds: each value is written to the nanosecond.
fn sum(rows: &BTreeMap<String, f64>, name: &str) -> i128 {
    let of = rows
        .iter()
        .filter(|(row, _)| row.split('{').next() == Some(name));
    of.map(|(_, value)| (value * 1e9).round() as i128).sum()
}

/// Counters and the rows of histograms.
fn only_grows(row: &str) -> bool {
    let name = row.split('{').next().unwrap();
    ["_total", "_bucket", "_sum", "_count"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/grafana")
        .join(name)
}

/// The queries of the dashboard, with its variables set.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(shipped("watch.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    queries
        .map(|query| {
            let query = query.replace("$__rate_interval", "1m");
            query.replace("$instance", ".*").replace("$cpus", ".*")
        })
        .collect()
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let words = text
        .split(word)
        .filter(|word| word.starts_with("jitterscope_"));
    words.map(str::to_owned).collect()
}

#[test]
fn a_watch_is_scraped_and_its_sums_are_exact() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu();
    let file = dir.path().join("jitterscope.prom");
    let args = format!(
        "--cpus {cpu} --probe spin --section 1s --keep 20s --disk 64MiB --before 1s --after 500ms \
         --apart 0s --metrics 127.0.0.1:0 --metrics-file {}",
        file.display()
    );
    let watch = Watching::start(&dir.path().join("runs"), &args);
    let line = watch.says("metrics: http://");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .trim_end_matches("/metrics")
        .to_owned();
    watch.says("watching CPU");
    let prometheus = Prometheus::start(dir.path(), &address, &[]);
    // A counter rises only after its first scrape.
    if let Some(prometheus) = &prometheus {
        prometheus.scrapes();
    }
    let first = rows(&scrape(&address));
    steal(dir.path(), cpu, Duration::from_secs(3));
    watch.signal("USR1");
    watch.saves();
    // The counts are shown a turn later. Sections ended meanwhile.
    std::thread::sleep(Duration::from_millis(500));
    let text = scrape(&address);
    let second = rows(&text);
    for (row, before) in first.iter().filter(|(row, _)| only_grows(row)) {
        let now = second.get(row).unwrap_or_else(|| panic!("{row} is gone"));
        assert!(now >= before, "{row} fell from {before} to {now}");
    }
    assert_eq!(sum(&second, STOLEN), sum(&second, &format!("{STALLS}_sum")));
    let thief = format!("{STOLEN}{{cpus=\"{cpu}\",kind=\"thread\",culprit=\"{THIEF}\"}}");
    assert!(second[&thief] > 0.5, "{thief}: {text}");
    let of = |name: &str| second[&format!("{name}{{cpus=\"{cpu}\"}}")];
    assert_eq!(of("jitterscope_saved_runs_total"), 1.0);
    assert!(of("jitterscope_own_cpu_seconds_total") > 0.0);
    assert!(of("jitterscope_own_memory_bytes") > 1e6);
    let level = format!("jitterscope_watch_level{{cpus=\"{cpu}\",level=\"attributed\"}}");
    assert_eq!(second[&level], 1.0);
    let triggers = format!("jitterscope_triggers_total{{cpus=\"{cpu}\",outcome=\"taken\"}}");
    assert_eq!(second[&triggers], 1.0);

    // What the dashboard and the rules name exists.
    let families = named(&text);
    let rules = std::fs::read_to_string(shipped("watch.rules.yml")).unwrap();
    for name in queries()
        .iter()
        .flat_map(|query| named(query))
        .chain(named(&rules))
    {
        assert!(
            families.contains(&name) || is_row_of(&families, &name),
            "{name}"
        );
    }

    // Other pages, hosts and methods are refused.
    let (head, _) = get(&address, "/", "");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    let to = || TcpStream::connect(&address).unwrap();
    let (head, _) = ask(to(), "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    let (head, _) = ask(to(), "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
    let (head, body) = get(&address, "/metrics", "");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    check_metrics(&body);

    // Connections that ask nothing keep nobody out.
    let idle: Vec<_> = (0..300).map(|_| to()).collect();
    assert!(scrape(&address).ends_with("# EOF\n"));
    drop(idle);

    let until = Instant::now() + Duration::from_secs(20);
    let written = loop {
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        if written.contains("jitterscope_saved_runs_total{") && written.contains(THIEF) {
            break written;
        }
        assert!(Instant::now() < until, "{written}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(
        !written.contains("EOF"),
        "node_exporter reads the older form"
    );
    check_metrics(&written);

    if let Some(prometheus) = prometheus {
        prometheus.judges(&thief);
    }
    let native = ["--enable-feature=native-histograms"];
    if let Some(prometheus) = Prometheus::start(&dir.path().join("native"), &address, &native) {
        prometheus.reads_native_histograms();
    }
    watch.signal("INT");
    assert!(watch.ends().success());
    assert!(!file.exists(), "it would look like a running watch");
    assert!(TcpStream::connect(&address).is_err());
}

/// Whether a name is that of a family's rows: of a counter or a histogram.
fn is_row_of(families: &BTreeSet<String>, name: &str) -> bool {
    let endings = ["_total", "_info", "_bucket", "_sum", "_count"];
    endings.iter().any(|end| {
        name.strip_suffix(end)
            .is_some_and(|of| families.contains(of))
    })
}

/// Prometheus's own check of a text.
fn check_metrics(text: &str) {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        jitterscope_testing::skip("there is no promtool; apt-get install prometheus");
        return;
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{said}{}\n{text}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn the_shipped_rules_are_right() {
    let path = shipped("watch.rules.yml");
    let Ok(output) = Command::new("promtool")
        .args(["check", "rules"])
        .arg(&path)
        .output()
    else {
        jitterscope_testing::skip("there is no promtool; apt-get install prometheus");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("7 rules"), "{said}");
}

/// A real Prometheus that scrapes a watch every second.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// `None` without the program.
    fn start(dir: &Path, target: &str, more: &[&str]) -> Option<Prometheus> {
        std::fs::create_dir_all(dir).unwrap();
        let config = dir.join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files:\n  - '{}'\n\
             scrape_configs:\n  - job_name: jitterscope\n    static_configs:\n      - targets: ['{target}']\n",
            shipped("watch.rules.yml").canonicalize().unwrap().display()
        );
        std::fs::write(&config, text).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let address = port.to_string();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.join("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Some(Prometheus { child, address }),
            Err(_) => {
                jitterscope_testing::skip("there is no prometheus; apt-get install prometheus");
                None
            }
        }
    }

    fn api(&self, path: &str) -> Option<Value> {
        let stream = TcpStream::connect(&self.address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .ok()?;
        let request = format!(
            "GET /api/v1/{path} HTTP/1.0\r\nHost: {}\r\n\r\n",
            self.address
        );
        let (_, body) = ask(stream, &request);
        serde_json::from_str(&body).ok()
    }

    fn query(&self, query: &str) -> Option<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        self.api(&format!("query?query={encoded}"))
    }

    /// Waits until it has scraped.
    fn scrapes(&self) {
        let until = Instant::now() + Duration::from_secs(60);
        let has = || {
            let found = self.query("jitterscope_saved_runs_total")?;
            Some(!found["data"]["result"].as_array()?.is_empty())
        };
        while has() != Some(true) {
            assert!(Instant::now() < until, "it scrapes nothing");
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// It scrapes protocol buffers and computes a quantile from the buckets.
    fn reads_native_histograms(&self) {
        let until = Instant::now() + Duration::from_secs(60);
        let query = format!("histogram_quantile(0.5, {STALLS})");
        let median = || -> Option<f64> {
            let found = self.query(&query)?;
            let value = found["data"]["result"][0]["value"][1].as_str()?;
            value.parse().ok()
        };
        loop {
            match median() {
                Some(seconds) if seconds > 1e-7 && seconds < 1.0 => break,
                other => assert!(Instant::now() < until, "{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// It knows the thief, answers every query of the dashboard, and raises the alert that a run was saved.
    fn judges(&self, thief: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        let wait = |what: &str, is: &dyn Fn() -> Result<(), String>| {
            loop {
                match is() {
                    Ok(()) => break,
                    Err(why) => assert!(Instant::now() < until, "{what}: {why}"),
                }
                std::thread::sleep(Duration::from_millis(300));
            }
        };
        wait("the thief", &|| {
            let found = self.query(thief).ok_or("no answer")?;
            let value = found["data"]["result"][0]["value"][1]
                .as_str()
                .ok_or(found.to_string())?;
            let seconds: f64 = value.parse().map_err(|_| value.to_owned())?;
            (seconds > 0.5).then_some(()).ok_or(value.to_owned())
        });
        wait("the alert", &|| {
            let alerts = self.api("alerts").ok_or("no answer")?;
            let all = alerts["data"]["alerts"]
                .as_array()
                .ok_or(alerts.to_string())?;
            let fires = all.iter().any(|alert| {
                alert["labels"]["alertname"] == "JitterscopeMomentSaved"
                    && alert["state"] == "firing"
            });
            fires.then_some(()).ok_or(alerts.to_string())
        });
        let targets = self.api("targets").unwrap();
        assert_eq!(
            targets["data"]["activeTargets"][0]["health"], "up",
            "{targets}"
        );
        let queries = queries();
        assert!(queries.len() > 10);
        for query in queries {
            let answer = self.query(&query).unwrap();
            assert_eq!(answer["status"], "success", "{query}: {answer}");
            // Nothing throttles here.
            let is_empty = answer["data"]["result"].as_array().unwrap().is_empty();
            assert!(
                !is_empty || query.contains("throttled"),
                "{query}: {answer}"
            );
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
