//! The command in folders and on files that another user, or a full disk, has a hand in.

mod live;

use jitterscope_testing::{Tmpfs, is_root};
use live::{can_trace, jitterscope, json, program, stderr, turn};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A user that this process is not.
const OTHER: u32 = 65_533;

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// What it says, unless it waits for somebody: then it is ended, and the test has failed.
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

/// Somebody else takes all that is left of a disk.
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
        // Low enough that there are many rows, too.
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
