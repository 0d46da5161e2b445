//! The program `jitterscope-fleet`, on fleets in folders.
//!
//! DuckDB comes from PyPI; without it, tests that need it say so and skip.

use jitterscope_store::rollup::{
    GroupHour, HostHour, HourFile, RollupCulprit, RollupHost, encode, hour_start_s, object_name,
    raw_folder,
};
use jitterscope_testing::python;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The first hour of 2026-11-11.
const HOUR: u64 = 498_432;

fn duckdb() -> Option<PathBuf> {
    python(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &["duckdb-cli==1.5.6"],
    )
}

fn fleet(path: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope-fleet"))
        .args(args)
        .env("PATH", path)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hour(host: usize, kernel: &str, hour: u64, random: &mut fastrand::Rng) -> HostHour {
    let base = 1_000_000_000 + random.u64(0..200_000_000);
    let firmware = if host == 5 { 40_000_000_000 } else { 0 };
    let softirq = if kernel == "6.12" {
        600_000_000
    } else {
        300_000_000
    };
    let mut culprits = vec![("thread", "java", base), ("softirq", "rcu", softirq)];
    if firmware > 0 {
        culprits.push(("smi", "firmware", firmware));
    }
    if host < 3 && hour >= HOUR + 24 {
        culprits.push(("thread", "newcomer", 200_000_000));
    }
    let culprit = |(kind, name, time_ns): (&str, &str, u64)| RollupCulprit {
        kind: kind.into(),
        name: name.into(),
        owner: (name == "newcomer").then(|| "pod:0a1b".to_owned()),
        count: 10,
        time_ns,
        longest_ns: time_ns / 10,
    };
    let stalled_ns = culprits.iter().map(|of| of.2).sum();
    HostHour {
        host: RollupHost {
            id: format!("id{host:02}"),
            name: format!("host{host}"),
            boot: "0a0b0c0d".into(),
            kernel: kernel.into(),
            cpu_model: "EPYC".into(),
            machine: "Box 1".into(),
            firmware: Some("1.0".into()),
            tuning: "feedbeef".into(),
            version: "0.2.0".into(),
            probe: "spin".into(),
        },
        hour,
        clock_ahead_s: None,
        groups: vec![GroupHour {
            cpus: "2-3".parse().unwrap(),
            stalls: 100,
            stalled_ns,
            longest_ns: 1_000_000,
            measured_ns: 2 * 3_600_000_000_000,
            culprits: culprits.into_iter().map(culprit).collect(),
            ..GroupHour::default()
        }],
    }
}

/// A fleet of 40 hosts over two days, a third of them on another kernel.
fn made(folder: &Path) {
    let mut random = fastrand::Rng::with_seed(1);
    for host in 0..40 {
        let kernel = if host % 3 == 0 { "6.12" } else { "6.1" };
        for at in [HOUR, HOUR + 6, HOUR + 24, HOUR + 30] {
            let hour = hour(host, kernel, at, &mut random);
            let name = object_name(&hour.host, "cpus-2-3", &HourFile::new(at, &hour.host.boot));
            let day = jitterscope_fleet::day(hour_start_s(at));
            let place = folder.join(raw_folder("c1", &day));
            fs::create_dir_all(&place).unwrap();
            fs::write(
                place.join(format!("{name}.parquet")),
                encode(&hour, &name).unwrap(),
            )
            .unwrap();
        }
    }
}

#[test]
fn planted_causes_are_reported_before_and_after_compaction() {
    let Some(tools) = duckdb() else { return };
    let path = tools.join("bin").to_string_lossy().into_owned();
    let dir = tempfile::tempdir().unwrap();
    made(dir.path());
    let url = format!("file://{}", dir.path().display());
    let days = ["--from", "2026-11-11", "--to", "2026-11-12"];
    let ask = |more: &[&str]| fleet(&path, &[&["report", &url][..], &days, more].concat());
    let first = ask(&["--json"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let found: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(
        (&found["hosts"], &found["host_hours"]),
        (&40.into(), &160.into())
    );
    assert_eq!(found["worst"].as_array().unwrap().len(), 1, "{found:#}");
    assert_eq!(found["worst"][0]["host"], "host5");
    assert_eq!(found["worst"][0]["causes"][0]["kind"], "smi");
    let new = &found["new"][0];
    assert_eq!(
        (&new["name"], &new["hosts"]),
        (&"newcomer".into(), &3.into())
    );
    assert_eq!(
        (&new["owner"], &new["first_day"]),
        (&"pod:0a1b".into(), &"2026-11-12".into())
    );
    let change = &found["changes"][0];
    assert_eq!(
        (&change["varied"], &change["second"]),
        (&"kernel".into(), &"6.12".into())
    );
    // Compaction changes no answer.
    let until = ["compact", &url, "--until", "2026-12-01", "--grace", "0s"];
    let compacted = fleet(&path, &until);
    assert!(compacted.status.success(), "{}", text(&compacted.stderr));
    assert!(
        text(&compacted.stdout).contains("merged 160 host-hours"),
        "{}",
        text(&compacted.stdout)
    );
    assert_eq!(text(&ask(&["--json"]).stdout), text(&first.stdout));
    let shown = text(&ask(&[]).stdout);
    for part in [
        "host5",
        "smi firmware",
        "Kernel 6.12",
        "softirq rcu",
        "thread newcomer",
        "pod:0a1b",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let page = dir.path().join("fleet.html");
    let with_page = ask(&["--html", page.to_str().unwrap()]);
    assert!(with_page.status.success(), "{}", text(&with_page.stderr));
    assert!(fs::read_to_string(page).unwrap().contains("host5"));
}

#[test]
fn what_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", dir.path().display());
    let without = fleet("/nowhere", &["report", &url]);
    assert_eq!(without.status.code(), Some(4));
    assert!(text(&without.stderr).contains("duckdb is not on the path"));
    let wrong = fleet("/nowhere", &["compact", "s3:///x"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("the name of the bucket is missing"));
    let wrong = fleet("/nowhere", &["report", &url, "--from", "monday"]);
    assert_eq!(wrong.status.code(), Some(2));
    if let Some(tools) = duckdb() {
        let path = tools.join("bin").to_string_lossy().into_owned();
        let empty = fleet(&path, &["report", &url, "--from", "2026-11-11"]);
        assert_eq!(empty.status.code(), Some(1));
        assert!(text(&empty.stderr).contains("there are no rollups from 2026-11-11"));
    }
}

#[test]
fn an_unreachable_store_and_missing_credentials_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let watch = dir.path().join("cpus-1");
    let hours = watch.join("hours");
    fs::create_dir_all(&hours).unwrap();
    let hour = hour(1, "6.1", HOUR, &mut fastrand::Rng::with_seed(1));
    let file = hours.join(HourFile::new(HOUR, &hour.host.boot).name());
    fs::write(&file, serde_json::to_vec(&hour).unwrap()).unwrap();
    let upload = |url: &str, set: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_jitterscope-fleet"))
            .args(["upload", url, "--once", "--watch"])
            .arg(&watch)
            .env_clear()
            .envs(set.iter().copied())
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    };
    // Port 1 of this machine has no server.
    let (code, said) = upload(
        "s3://bucket/x",
        &[
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_ENDPOINT", "http://127.0.0.1:1"),
            ("AWS_ALLOW_HTTP", "true"),
        ],
    );
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("unreachable: ") && said.contains("1 hours wait"),
        "{said}"
    );
    assert!(file.exists(), "the hour waits");
    let (code, said) = upload("az://container/x", &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("Account") || said.contains("account"),
        "{said}"
    );
    let (code, said) = upload(&format!("file://{}/store", dir.path().display()), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("sent 1 hours"), "{said}");
    assert!(!file.exists());
}

#[test]
fn the_views_name_the_place() {
    for dialect in ["duckdb", "clickhouse", "spark"] {
        let output = fleet("/nowhere", &["schema", "s3://b/it's", "--dialect", dialect]);
        let sql = text(&output.stdout);
        assert!(sql.contains("://b/it''s/v1/"), "{dialect}: {sql}");
        assert!(!sql.contains("{url}"), "{dialect}");
    }
}
