//! The command in folders and on files that another user, or a full disk, affects.

use crate::common::busy;
use crate::live;
use crate::stored::store;

use jitterscope_testing::{Tmpfs, is_root};
use live::{can_trace, jitterscope, json, program, stderr, turn};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A user other than that of this process.
const OTHER: u32 = 65_533;

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The output; if the command blocks, it is killed and the test fails.
fn ended(mut child: Child, within: Duration) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > within {
            child.kill().unwrap();
            panic!("it hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn start(runs: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(program());
    command
        .env("JITTERSCOPE_RUNS", runs)
        .args(args)
        .stdin(Stdio::null());
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn in_time(runs: &Path, args: &[&str]) -> Output {
    ended(start(runs, args), Duration::from_secs(30))
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    for bad in ["fifo", "folder", "sparse"] {
        fs::create_dir_all(runs.join(bad)).unwrap();
    }
    fifo(&runs.join("fifo/manifest.json"));
    fs::create_dir(runs.join("folder/manifest.json")).unwrap();
    File::create(runs.join("sparse/manifest.json"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    let listed = in_time(&runs, &["list"]);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&listed.stdout),
        stderr(&listed)
    );
    assert!(listed.status.success(), "{text}");
    for why in [
        "a named pipe, not a regular file",
        "a folder, not a regular file",
        "larger than 64 MiB",
    ] {
        assert!(text.contains(why), "{text}");
    }
    let pipe = dir.path().join("pipe");
    fifo(&pipe);
    let pipe = pipe.to_str().unwrap();
    for args in [
        &["journal", pipe] as &[&str],
        &["report", runs.join("fifo").to_str().unwrap()],
        &["record", "pipeline", "--properties", pipe],
        &["record", "pipeline", "--properties", "/dev/zero"],
        &["record", "--profile", pipe],
        &["record", "--profile", "/dev/zero"],
        &["audit", "--expect", pipe],
    ] {
        let refused = in_time(&runs, args);
        assert!(
            matches!(refused.status.code(), Some(1 | 2)),
            "{args:?}: {refused:?}"
        );
    }
}

#[test]
fn root_records_into_no_folder_that_another_user_may_change() {
    if !is_root() {
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let hers = dir.path().join("hers");
    fs::create_dir(&hers).unwrap();
    chown(&hers, Some(OTHER), Some(OTHER)).unwrap();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink(&hers, shared.join("link")).unwrap();
    for runs in [hers.clone(), hers.join("runs"), shared.join("link/runs")] {
        let refused = in_time(
            &runs,
            &[
                "record",
                "--duration",
                "100ms",
                "--warmup",
                "0s",
                "--no-trace",
            ],
        );
        let text = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(
            text.contains(&format!("{} belongs to user {OTHER}", hers.display())),
            "{text}"
        );
        assert!(text.contains("--runs"), "{text}");
        assert_eq!(fs::read_dir(&hers).unwrap().count(), 0);
    }
}

fn fill(disk: &Tmpfs) {
    let mut file = File::create(disk.path().join("other")).unwrap();
    let block = vec![1u8; 4096];
    while file.write_all(&block).is_ok() {}
}

#[test]
fn a_disk_that_fills_up_in_mid_run_keeps_what_was_measured() {
    let _turn = turn();
    for trace in [true, false] {
        if trace && !can_trace() {
            continue;
        }
        let Some(disk) = Tmpfs::mount(100 << 20) else {
            return;
        };
        let runs = disk.path().join("runs");
        // A low threshold, for many rows.
        let mut args = vec![
            "record",
            "--duration",
            "60s",
            "--warmup",
            "0s",
            "--threshold",
            "300ns",
        ];
        if !trace {
            args.push("--no-trace");
        }
        let child = start(&runs, &args);
        let begin = Instant::now();
        while fs::read_dir(&runs).map_or(0, Iterator::count) == 0
            && begin.elapsed() < Duration::from_secs(30)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(3));
        fill(&disk);
        let done = ended(child, Duration::from_secs(50));
        assert!(done.status.success(), "{}", stderr(&done));
        let report = json(&jitterscope(&runs, &["report", "latest", "--json"]));
        let warnings = report["warnings"]
            .as_array()
            .unwrap_or_else(|| panic!("{report}"));
        assert!(
            warnings.iter().any(|warning| warning["id"] == "disk-full"),
            "{warnings:?}"
        );
        let listed = json(&jitterscope(&runs, &["list", "--json"]));
        assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1), "{listed}");
        let rows = jitterscope(&runs, &["export", "latest", "--to", "csv://-"]);
        assert!(rows.status.success(), "{}", stderr(&rows));
        assert!(rows.stdout.iter().filter(|byte| **byte == b'\n').count() > 1);
    }
}

#[test]
fn another_users_lock_stops_no_recording_of_root() {
    if !is_root() {
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let cpu = jitterscope_testing::highest_cpu();
    let record = || {
        let cpu = cpu.to_string();
        let args = [
            "record",
            "--no-trace",
            "--duration",
            "100ms",
            "--cpus",
            &cpu,
        ];
        in_time(dir.path(), &[&args[..], &["--warmup", "0s"]].concat())
    };
    let first = record();
    assert!(first.status.success(), "{}", stderr(&first));
    let sysfs = format!("/sys/devices/system/cpu/cpu{cpu}");
    let claim = format!("/run/jitterscope/cpus/cpu{cpu}");
    let mut stranger = Command::new("setpriv")
        .args(["--reuid", "65533", "--regid", "65533", "--clear-groups"])
        .args([
            "sh",
            "-c",
            "exec flock --no-fork \"$0\" sh -c 'echo locked; exec sleep 60'",
        ])
        .arg(&sysfs)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 6];
    let heard = std::io::Read::read_exact(stranger.stdout.as_mut().unwrap(), &mut said);
    let second = record();
    let opened = Command::new("setpriv")
        .args(["--reuid", "65533", "--regid", "65533", "--clear-groups"])
        .args(["flock", "--nonblock", &claim, "true"])
        .output()
        .unwrap();
    let _ = stranger.kill();
    stranger.wait().unwrap();
    heard.unwrap();
    assert_eq!(&said, b"locked");
    assert!(second.status.success(), "{}", stderr(&second));
    assert!(stderr(&opened).contains("ermission denied"), "{opened:?}");
}

/// The output with a limit set by `prlimit`.
fn limited(limit: &str, runs: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("prlimit");
    command
        .arg(limit)
        .arg(program())
        .env("JITTERSCOPE_RUNS", runs)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ended(command.spawn().unwrap(), Duration::from_secs(30))
}

#[test]
fn a_file_that_may_not_grow_is_an_error_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    fs::create_dir(&runs).unwrap();
    store(&busy(&[0]), &runs);
    let csv = dir.path().join("rows.csv");
    let target = format!("csv://{}", csv.display());
    let refused = limited("--fsize=200", &runs, &["export", "latest", "--to", &target]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stderr(&refused).contains("too large"), "{refused:?}");
    // Nothing is left of it, under any name.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let _turn = turn();
    let args = ["record", "--no-trace", "--duration", "100ms"];
    let refused = limited("--fsize=3000", &runs, &args);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stderr(&refused).contains("ulimit -f"), "{refused:?}");
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 1);
    // Room for everything except the machine's state: the run omits it, and says so. The longest threshold that every
    // clock allows keeps the rows small on a busy machine.
    let coarse = ["-t", "20us", "--interval", "2s"];
    let kept = limited("--fsize=15000", &runs, &[&args[..], &coarse].concat());
    assert!(kept.status.success(), "{kept:?}");
    let report = json(&jitterscope(&runs, &["report", "latest", "--json"]));
    let warnings = report["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|warning| warning["id"] == "disk-full"),
        "{warnings:?}"
    );
    let listed = json(&jitterscope(&runs, &["list", "--json"]));
    let run = listed["runs"].as_array().unwrap().last().unwrap();
    let run = Path::new(run["path"].as_str().unwrap());
    assert!(run.join("manifest.json").exists() && !run.join("machine.json").exists());
    // A file that becomes too large while rows grow: the raw trace is the first to be left out. A neighbour makes it
    // large on a quiet machine.
    if can_trace() {
        let cpu = jitterscope_testing::highest_cpu();
        let _neighbour = jitterscope_testing::Neighbour::on(cpu);
        let cpu = cpu.to_string();
        let args = [&["record", "--cpus", &cpu, "-d", "2s", "-q"], &coarse[..]].concat();
        let kept = limited("--fsize=400000", &runs, &args);
        assert!(kept.status.success(), "{}", stderr(&kept));
        let report = json(&jitterscope(&runs, &["report", "latest", "--json"]));
        let warnings = report["warnings"].to_string();
        assert!(
            warnings.contains("trace-discarded") && warnings.contains("the disk was filling up"),
            "{warnings}"
        );
    }
}

#[test]
fn a_small_stack_is_enough() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0]), dir.path());
    for args in [
        &["report", "latest"][..],
        &["list", "--json"],
        &["record", "--help"],
        &["doctor"],
        &["record", "--no-trace", "-d", "100ms"],
        &["attach", "-d", "2s", "--", "sleep", "0.1"],
    ] {
        let done = limited("--stack=102400", dir.path(), args);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {done:?}");
        assert!(!done.stdout.is_empty(), "{args:?}");
    }
}

/// A stranger's run in the far future, with the label of one of this user's.
fn strangers_run(runs: &Path, ours: &Path) -> PathBuf {
    let theirs = runs.join("22620101T000000Z-L-zzzzzz");
    let copied = Command::new("cp").arg("-r").args([ours, &theirs]).status();
    assert!(copied.unwrap().success());
    let id = ours.file_name().unwrap().to_str().unwrap();
    let id = id.rsplit_once('-').unwrap().1;
    for file in ["manifest.json", "details.json"] {
        let path = theirs.join(file);
        let text = fs::read_to_string(&path).unwrap().replace(id, "zzzzzz");
        let at = text.find("\"started_realtime_ns\"").map(|at| {
            let value = at + text[at..].find(|c: char| c.is_ascii_digit()).unwrap();
            let digits = |c: char| !c.is_ascii_digit();
            (value, value + text[value..].find(digits).unwrap())
        });
        let text = match at {
            Some((from, to)) => format!("{}9214646400000000000{}", &text[..from], &text[to..]),
            None => text,
        };
        fs::write(path, text).unwrap();
    }
    let given = Command::new("chown")
        .args(["-R", &OTHER.to_string()])
        .arg(&theirs)
        .status();
    assert!(given.unwrap().success());
    theirs
}

#[test]
fn in_a_shared_folder_another_users_run_is_neither_the_latest_nor_pruned() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    fs::create_dir(&runs).unwrap();
    fs::set_permissions(&runs, fs::Permissions::from_mode(0o1777)).unwrap();
    let ours = store(&busy(&[0]), &runs);
    let theirs = strangers_run(&runs, &ours);
    let label = json(&jitterscope(&runs, &["list", "--json"]))["runs"][0]["label"].clone();
    let label = label.as_str().unwrap();
    // It is listed with its owner.
    let listed = jitterscope(&runs, &["list"]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        text.contains("zzzzzz") && text.contains("(user 65533)"),
        "{text}"
    );
    for wanted in ["latest", label] {
        let report = json(&jitterscope(&runs, &["report", wanted, "--json"]));
        assert_ne!(report["run"]["id"], "zzzzzz", "{wanted}");
    }
    let report = json(&jitterscope(&runs, &["report", "zzzzzz", "--json"]));
    assert_eq!(report["run"]["id"], "zzzzzz", "by its id it is meant");
    // A run elsewhere, with a link here.
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let far = store(&busy(&[0]), &elsewhere);
    symlink(&far, runs.join("linked")).unwrap();
    for args in [
        &["runs", "prune", "--keep", "1", "--yes"][..],
        &["runs", "prune", "--keep", "1", "--label", label, "--yes"],
    ] {
        let pruned = jitterscope(&runs, args);
        assert!(pruned.status.success(), "{pruned:?}");
        assert!(
            stderr(&pruned).contains("1 run of other users"),
            "{pruned:?}"
        );
    }
    assert!(ours.exists() && theirs.exists() && far.exists());
    assert!(
        !jitterscope(&runs, &["runs", "rm", "L", "--yes"])
            .status
            .success()
            || theirs.exists()
    );
    // Of all users' runs, the newest is kept.
    let all = ["runs", "prune", "--keep", "1", "--all-users", "--yes"];
    let pruned = jitterscope(&runs, &all);
    assert!(pruned.status.success(), "{pruned:?}");
    assert!(!ours.exists() && theirs.exists() && far.exists());
    assert!(
        jitterscope(&runs, &["runs", "rm", "linked", "--yes"])
            .status
            .success()
    );
    assert!(!runs.join("linked").is_symlink() && far.exists());
}

#[test]
fn errors_of_what_is_redacted_name_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = busy(&[0]);
    scenario.manifest.label = "SECRET".into();
    let run = store(&scenario, dir.path());
    let damaged = run.file_name().unwrap().to_str().unwrap();
    let id = damaged.rsplit_once('-').unwrap().1;
    fs::write(run.join("stalls.parquet"), "none").unwrap();
    let _ = fs::remove_file(run.join("summary.json"));
    for args in [
        &["report", "nosuch"][..],
        &["diff", "nosuch", "nosuch"],
        &["export", "nosuch", "--to", "csv://-"],
        &["report", id],
    ] {
        let shown = jitterscope(dir.path(), args);
        assert_eq!(shown.status.code(), Some(1), "{args:?}: {shown:?}");
        assert!(stderr(&shown).contains("SECRET"), "{args:?}: {shown:?}");
        let redacted = jitterscope(dir.path(), &[args, &["--redact"]].concat());
        assert_eq!(redacted.status.code(), Some(1), "{args:?}: {redacted:?}");
        let reported = stderr(&redacted);
        let folder = dir.path().to_str().unwrap();
        assert!(
            !reported.contains("SECRET") && !reported.contains(folder),
            "{args:?}: {reported}"
        );
    }
}

#[test]
fn rows_for_nobody_end_with_a_failure_and_the_run_stays() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("influx://{}", port.local_addr().unwrap());
    drop(port);
    let args = [
        "record",
        "--no-trace",
        "--duration",
        "300ms",
        "--threshold",
        "300ns",
    ];
    let recorded = jitterscope(dir.path(), &[&args[..], &["-o", &target]].concat());
    assert_eq!(recorded.status.code(), Some(1), "{recorded:?}");
    assert!(stderr(&recorded).contains("nobody listens"), "{recorded:?}");
    let report = jitterscope(dir.path(), &["report", "latest", "--json"]);
    assert!(report.status.success(), "{report:?}");
    let exported = jitterscope(dir.path(), &["export", "latest", "--to", &target]);
    assert_eq!(exported.status.code(), Some(1), "{exported:?}");
}
