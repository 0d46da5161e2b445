//! A real InfluxDB 1 returns what was written to it, over HTTP and over UDP.
//!
//! Needs `influxd` from the Debian package `influxdb`; without it the test prints a note and passes.

use crate::common;
use crate::dashboard;

use jitterscope_export::{Destination, export_run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

static STARTING: Mutex<()> = Mutex::new(());

/// A server for this test on loopback, in its own folder.
struct Influx {
    child: Child,
    http: u16,
    udp: u16,
    _dir: tempfile::TempDir,
}

impl Influx {
    fn start() -> Option<Influx> {
        // The server takes its ports only once it runs: without this lock another test could choose the same ones.
        let _one_by_one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let (http, rpc, udp) = {
            let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
            // All sockets are open at once, so that no port appears twice.
            let (http, rpc, udp) = (tcp(), tcp(), UdpSocket::bind("127.0.0.1:0").unwrap());
            let port = |of: &TcpListener| of.local_addr().unwrap().port();
            (port(&http), port(&rpc), udp.local_addr().unwrap().port())
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let config = dir.path().join("influxdb.conf");
        std::fs::write(
            &config,
            format!(
                "reporting-disabled = true\nbind-address = \"127.0.0.1:{rpc}\"\n\
                 [meta]\ndir = \"{path}/meta\"\n[data]\ndir = \"{path}/data\"\nwal-dir = \"{path}/wal\"\n\
                 [http]\nbind-address = \"127.0.0.1:{http}\"\nlog-enabled = false\n\
                 [[udp]]\nenabled = true\nbind-address = \"127.0.0.1:{udp}\"\ndatabase = \"udp\"\nbatch-size = 100\n\
                 batch-timeout = \"100ms\"\n[monitor]\nstore-enabled = false\n"
            ),
        )
        .unwrap();
        let child = Command::new("influxd")
            .arg("run")
            .arg("-config")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            jitterscope_testing::skip("there is no influxd; apt-get install influxdb");
            return None;
        };
        let mut influx = Influx {
            child,
            http,
            udp,
            _dir: dir,
        };
        let begun = Instant::now();
        while ureq::get(format!("http://127.0.0.1:{http}/ping"))
            .call()
            .is_err()
        {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "influxd does not answer"
            );
            assert!(
                influx.child.try_wait().unwrap().is_none(),
                "influxd has ended"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(influx)
    }

    fn query(&self, db: &str, query: &str) -> Value {
        let url = format!("http://127.0.0.1:{}/query", self.http);
        let text = ureq::post(&url)
            .query("db", db)
            .query("q", query)
            .query("epoch", "ns")
            .send_empty()
            .unwrap()
            .body_mut()
            .read_to_string()
            .unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// All points of a measurement: a map from column name to value.
    fn points(&self, db: &str, measurement: &str) -> Vec<BTreeMap<String, Value>> {
        let answer = self.query(db, &format!("SELECT * FROM {measurement}"));
        let series = &answer["results"][0]["series"][0];
        let columns: Vec<String> = series["columns"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| c.as_str().unwrap().to_owned())
            .collect();
        series["values"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| {
                columns
                    .iter()
                    .cloned()
                    .zip(row.as_array().unwrap().iter().cloned())
                    .collect()
            })
            .collect()
    }
}

impl Drop for Influx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn check(influx: &Influx, db: &str) {
    let begun = Instant::now();
    let expected = common::stalls();
    // The server writes UDP data asynchronously.
    let mut stalls = influx.points(db, "jitter_stall");
    while stalls.len() < expected.len() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        stalls = influx.points(db, "jitter_stall");
    }
    stalls.sort_by_key(|point| point["stall_id"].as_u64());
    assert_eq!(stalls.len(), expected.len());
    for (point, (stall, attribution)) in stalls.iter().zip(&expected) {
        assert_eq!(
            point["time"].as_u64(),
            Some(common::EPOCH + stall.start.0 - 1_000_000)
        );
        assert_eq!(point["stall_id"].as_u64(), Some(stall.id.0));
        assert_eq!(point["duration_ns"].as_u64(), Some(stall.length().0));
        assert_eq!(
            point["explained_ns"].as_u64(),
            Some(attribution.explained().0)
        );
        assert_eq!(point["cpu"].as_str(), Some(stall.cpu.to_string().as_str()));
        assert_eq!(point["culprit"].as_str(), Some("tick_sched_timer"));
        assert_eq!(point["comm"].as_str(), Some("js-spin, \"x\""));
        assert_eq!(point["tid"].as_i64(), Some(stall.victim.tid.into()));
        assert_eq!(point["culprit_function"].as_str(), Some("tick_sched_timer"));
        assert!(point["culprit_ns"].as_u64() > Some(0));
    }
    assert_eq!(
        influx.points(db, "jitter_interval").len() as u64,
        2 * common::INTERVALS
    );
    assert_eq!(influx.points(db, "jitter_run").len(), 1);
}

#[test]
fn the_dashboards_queries_find_what_is_written() {
    let Some(influx) = Influx::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    influx.query("", "CREATE DATABASE http");
    let to = format!("influx+http://127.0.0.1:{}/?db=http", influx.http)
        .parse()
        .unwrap();
    export_run(&common::run(dir.path()), &[to]).unwrap();
    for query in dashboard::queries() {
        let concrete = query
            .replace("/^$host$/", "/.*/")
            .replace("/^$label$/", "/.*/")
            .replace("/^$cpu$/", "/.*/")
            .replace("$__interval", "1s")
            .replace(
                "$timeFilter",
                &format!(
                    "time >= {} AND time < {}",
                    common::EPOCH,
                    common::EPOCH + 4_000_000_000
                ),
            );
        let answer = influx.query("http", &concrete);
        let values = &answer["results"][0]["series"][0]["values"];
        assert!(
            values.as_array().is_some_and(|rows| !rows.is_empty()),
            "{concrete}: {answer}"
        );
    }
}

#[test]
fn what_was_written_is_queried_back_and_equal() {
    let Some(influx) = Influx::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    influx.query("", "CREATE DATABASE http");
    let target = |text: String| -> Vec<Destination> { vec![text.parse().unwrap()] };
    let http = target(format!("influx+http://127.0.0.1:{}/?db=http", influx.http));
    let delivery = &export_run(&run, &http).unwrap()[0];
    assert_eq!(
        (delivery.delivered, delivery.lost, delivery.confirmed),
        (307, 0, true)
    );
    check(&influx, "http");

    let udp = target(format!("influx://127.0.0.1:{}", influx.udp));
    let delivery = &export_run(&run, &udp).unwrap()[0];
    assert_eq!((delivery.delivered, delivery.confirmed), (307, false));
    check(&influx, "udp");

    let wrong = target(format!(
        "influx+http://127.0.0.1:{}/?db=missing",
        influx.http
    ));
    let error = export_run(&run, &wrong).unwrap_err().to_string();
    assert!(
        error.contains("database not found") && error.contains("Create the database"),
        "{error}"
    );
}
