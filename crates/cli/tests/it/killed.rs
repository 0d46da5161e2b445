//! What a SIGKILL leaves, and its clean-up, on this machine. Tests that need root print a note when they are skipped.

use jitterscope_testing::{is_root, turn};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const MASK: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";
const NOTES: &str = "/run/jitterscope/disturb";
const STAT_INTERVAL: &str = "/proc/sys/vm/stat_interval";

fn command(runs: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command
        .arg("--runs")
        .arg(runs)
        .args(args)
        .stdin(Stdio::null());
    command
}

fn jitterscope(runs: &Path, args: &[&str]) -> Output {
    command(runs, args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", stderr(output)))
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Waits until something holds; false after a timeout.
fn until(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

fn partials(runs: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(runs) else {
        return Vec::new();
    };
    let hidden = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with(".partial-")
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(hidden)
        .collect()
}

/// Restores a control file when dropped.
struct PutBack(&'static str, String);

impl PutBack {
    fn of(path: &'static str) -> PutBack {
        PutBack(path, read(path))
    }
}

impl Drop for PutBack {
    fn drop(&mut self) {
        if read(self.0) != self.1 {
            fs::write(self.0, &self.1).unwrap();
        }
    }
}

/// Ends a child when dropped.
struct Kill(Child);

impl Drop for Kill {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(pid: u32, signal: &str) {
    let sent = Command::new("sh")
        .args(["-c", "kill -s $0 $1", signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "kill -s {signal} {pid}");
}

/// Kills a selftest together with its child while the child has writeback's workers on the victim's CPU. Returns false,
/// with a note, if the machine does not allow it.
fn kill_a_selftest_in_writeback(runs: &Path, original: &str) -> bool {
    kill_a_selftest_in("writeback", runs, || read(MASK) != original)
}

/// Kills a selftest together with its child, for one kind, once the child has changed something.
fn kill_a_selftest_in(kind: &str, runs: &Path, changed: impl Fn() -> bool) -> bool {
    let mut selftest = command(runs, &["selftest", "--only", kind]);
    let mut selftest = Kill(
        selftest
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let ended = |child: &mut Kill| child.0.try_wait().unwrap().is_some();
    if !until(|| changed() || ended(&mut selftest)) || ended(&mut selftest) {
        jitterscope_testing::skip(&format!("selftest does not disturb by {kind} here"));
        return false;
    }
    let pid = selftest.0.id();
    // It must not notice its child's end before its own.
    send(pid, "STOP");
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children: Vec<u32> = tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(
        !children.is_empty(),
        "something changed, so there is a child"
    );
    for child in &children {
        send(*child, "KILL");
    }
    drop(selftest);
    // It survives while it waits for the disk. It may stay as a zombie where no process reaps orphans.
    let alive = |child: &u32| {
        let stat = read(&format!("/proc/{child}/stat"));
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(until(|| !children.iter().any(alive)));
    true
}

#[test]
fn the_next_start_undoes_a_killed_selftest() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let original = PutBack::of(MASK);
    for start in [
        ["record", "--duration", "200ms"].as_slice(),
        &["sljtest", "-r", "1"],
        &["attach", "--", "true"],
        &["doctor", "--clean"],
    ] {
        let runs = tempfile::tempdir().unwrap();
        if !kill_a_selftest_in_writeback(runs.path(), &original.1) {
            return;
        }
        assert_ne!(read(MASK), original.1, "killed, it left the mask changed");
        assert_eq!(partials(runs.path()).len(), 1);
        let printed = json(&jitterscope(runs.path(), &["doctor", "--json"]));
        let printed: Vec<&str> = printed["leftovers"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(
            printed.iter().any(|what| what.contains(MASK)),
            "{printed:?}"
        );
        assert!(
            printed.iter().any(|what| what.contains("unfinished run")),
            "{printed:?}"
        );
        assert_ne!(read(MASK), original.1, "doctor only looks");
        let output = jitterscope(runs.path(), start);
        assert_eq!(read(MASK), original.1, "{start:?}: {}", stderr(&output));
        assert_eq!(
            partials(runs.path()),
            Vec::<PathBuf>::new(),
            "{start:?}: {}",
            stderr(&output)
        );
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains(MASK) && said.contains("unfinished run"),
            "{start:?}: {said}"
        );
        let after = json(&jitterscope(runs.path(), &["doctor", "--json"]));
        let after = after["leftovers"].as_array().unwrap();
        assert!(
            !after
                .iter()
                .any(|what| what.as_str().unwrap().contains(MASK)),
            "{after:?}"
        );
    }
}

/// The control groups of a selftest's quota, below the root of version 1's cpu controller.
fn quota_groups() -> Vec<String> {
    fn below(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = entry.path();
                if entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("jitterscope-selftest-")
                {
                    found.push(path.display().to_string());
                }
                below(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup/cpu"), &mut found);
    found
}

#[test]
fn the_next_start_removes_the_control_group_of_a_killed_selftest() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    // Another selftest may be running.
    let others = quota_groups();
    let quota_groups = || -> Vec<String> {
        quota_groups()
            .into_iter()
            .filter(|group| !others.contains(group))
            .collect()
    };
    for start in [
        ["record", "--duration", "200ms"].as_slice(),
        &["doctor", "--clean"],
    ] {
        let runs = tempfile::tempdir().unwrap();
        if !kill_a_selftest_in("quota", runs.path(), || !quota_groups().is_empty()) {
            return;
        }
        let left = quota_groups();
        assert_eq!(left.len(), 1, "killed, it left its group");
        let printed =
            json(&jitterscope(runs.path(), &["doctor", "--json"]))["leftovers"].to_string();
        assert!(printed.contains(&left[0]), "{printed}");
        assert_eq!(quota_groups(), left, "doctor only looks");
        let output = jitterscope(runs.path(), start);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(quota_groups(), Vec::<String>::new(), "{start:?}: {said}");
        assert!(said.contains(&left[0]), "{start:?}: {said}");
        let printed =
            json(&jitterscope(runs.path(), &["doctor", "--json"]))["leftovers"].to_string();
        assert!(!printed.contains(&left[0]), "{printed}");
    }
}

#[test]
fn a_living_recordings_run_is_left_alone_and_a_killed_ones_without_a_row_is_removed() {
    let _turn = turn();
    let runs = tempfile::tempdir().unwrap();
    let mut first = command(runs.path(), &["record", "--duration", "10m"]);
    let mut first = Kill(
        first
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    assert!(until(
        || partials(runs.path()).len() == 1 || first.0.try_wait().unwrap().is_some()
    ));
    let living = partials(runs.path());
    assert_eq!(living.len(), 1);
    for args in [
        ["record", "--duration", "200ms"].as_slice(),
        &["doctor", "--clean"],
    ] {
        let output = jitterscope(runs.path(), args);
        assert_eq!(
            partials(runs.path()),
            living,
            "{args:?}: {}",
            stderr(&output)
        );
    }
    drop(first);
    assert_eq!(partials(runs.path()), living, "killed, it left its run");
    fs::write(living[0].join("rows.log"), "").unwrap();
    let output = jitterscope(runs.path(), &["record", "--duration", "200ms"]);
    assert!(
        output.status.success() && stderr(&output).contains("no row that can be read"),
        "{}",
        stderr(&output)
    );
    assert_eq!(partials(runs.path()), Vec::<PathBuf>::new());
    // The recordings beside the first one found its CPU taken.
    assert_eq!(listed(runs.path()).len(), 1, "the one that ended itself");
}

/// The runs in a folder, oldest first, as `list` shows them.
fn listed(runs: &Path) -> Vec<Value> {
    let list = json(&jitterscope(runs, &["list", "--json"]));
    assert_eq!(list["problems"], serde_json::json!([]));
    list["runs"].as_array().unwrap().clone()
}

/// A recording that is killed once `enough` of its rows are on the disk.
fn kill_a_recording(runs: &Path, args: &[&str], enough: u64) -> PathBuf {
    let mut recording = command(runs, args);
    let recording = recording.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recording = Kill(recording.spawn().unwrap());
    // The kernel cuts a write that a kill interrupts: without a whole batch the run has no readable row, and is removed.
    let has_enough = |path: PathBuf| {
        let log = fs::read(path.join("rows.log")).unwrap_or_default();
        let length = log
            .get(12..16)
            .map(|of| u32::from_le_bytes(of.try_into().unwrap()));
        length.is_some_and(|length| log.len() as u64 >= enough.max(20 + u64::from(length)))
    };
    let ended = |child: &mut Kill| child.0.try_wait().unwrap().is_some();
    let others = partials(runs);
    let new = || {
        partials(runs)
            .into_iter()
            .find(|path| !others.contains(path))
    };
    assert!(
        until(|| new().is_some_and(has_enough) || ended(&mut recording)),
        "it writes no rows"
    );
    assert!(!ended(&mut recording), "{args:?} ended by itself");
    let path = new().unwrap();
    drop(recording);
    path
}

#[test]
fn a_killed_recording_is_finished_by_the_next_start() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let record = [
        "record",
        "--duration",
        "10m",
        "--threshold",
        "1us",
        "--label",
    ];
    // Several in a row; each start finishes the one before.
    for (n, enough) in [20_000, 1_000, 5_000].into_iter().enumerate() {
        let label = format!("K{n}");
        let mut args = record.to_vec();
        args.push(&label);
        let left = kill_a_recording(runs.path(), &args, enough);
        assert_eq!(
            partials(runs.path()),
            [left],
            "the ones before are finished"
        );
    }
    let output = jitterscope(runs.path(), &["record", "--duration", "200ms"]);
    assert!(
        stderr(&output).contains("marked killed"),
        "{}",
        stderr(&output)
    );
    assert_eq!(partials(runs.path()), Vec::<PathBuf>::new());
    let listed = listed(runs.path());
    let killed: Vec<_> = listed.iter().filter(|run| run["killed"] == true).collect();
    assert_eq!((listed.len(), killed.len()), (4, 3));
    for run in killed {
        let id = run["id"].as_str().unwrap();
        assert!(run["stalls"].as_u64().unwrap() > 0, "{run}");
        let report = json(&jitterscope(runs.path(), &["report", id, "--json"]));
        assert_eq!(report["run"]["killed"], true);
        assert_eq!(
            report["trust"]["inconsistent_rows"], 0,
            "parts sum to their stalls"
        );
        let cpu = &report["probe"]["cpus"][0];
        for absent in ["samples", "coverage", "floor_ns", "page_faults"] {
            assert!(cpu[absent].is_null(), "{absent}: {cpu}");
        }
        assert!(report["probe"]["total"]["percentiles_ns"]["99"].is_null());
        let attribution = &report["attribution"];
        let total = |rows: &Value| -> u64 {
            let rows = rows.as_array().unwrap().iter();
            rows.map(|row| row["total_ns"].as_u64().unwrap()).sum()
        };
        assert_eq!(
            total(&attribution["culprits"])
                + attribution["unexplained"]["total_ns"].as_u64().unwrap(),
            attribution["stalled_ns"].as_u64().unwrap()
        );
        let text = |args: &[&str]| {
            let output = jitterscope(runs.path(), args);
            assert!(output.status.success(), "{args:?}: {}", stderr(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let brief = text(&["report", id]);
        assert!(
            brief.contains("killed after") && brief.contains("last second may be missing"),
            "{brief}"
        );
        let stall = report["worst"][0]["stall"].to_string();
        text(&["report", id, "--stall", &stall]);
        let again = json(&jitterscope(
            runs.path(),
            &["report", id, "--reattribute", "--json"],
        ));
        assert_eq!(
            again["attribution"]["culprits"], attribution["culprits"],
            "the trace gives the same verdicts"
        );
        let redacted = text(&["report", id, "--redact", "--json"]);
        assert!(redacted.contains("\"killed\": true"), "{redacted}");
        let page = runs.path().join(format!("{id}.html"));
        text(&["report", id, "--html", page.to_str().unwrap()]);
        let export = runs.path().join(format!("{id}.csv"));
        text(&["export", id, "--to", &format!("csv://{}", export.display())]);
        assert!(fs::metadata(page).unwrap().len() > 0 && fs::metadata(export).unwrap().len() > 0);
        text(&["diff", id, "spin"]);
    }
}

#[test]
fn killed_recordings_of_threads_and_watched_cpus_have_their_accounts() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    // It outlives its recorder by seconds.
    let loops = "for i in $(seq 200); do ls / /usr/bin; sleep 0.02; done";
    let attach = [
        "attach",
        "--duration",
        "10m",
        "--label",
        "A",
        "--",
        "sh",
        "-c",
        loops,
    ];
    kill_a_recording(runs.path(), &attach, 500);
    let wakeup = [
        "record",
        "wakeup",
        "--duration",
        "10m",
        "--threshold",
        "1us",
        "--label",
        "W",
    ];
    kill_a_recording(runs.path(), &wakeup, 500);
    jitterscope(runs.path(), &["doctor", "--clean"]);
    let report = |label: &str| json(&jitterscope(runs.path(), &["report", label, "--json"]));
    let attach = report("A");
    assert_eq!(attach["run"]["killed"], true);
    let threads = attach["threads"].as_array().unwrap();
    assert!(
        threads
            .iter()
            .any(|thread| thread["running_ns"].as_u64() > Some(0)),
        "{threads:?}"
    );
    let wakeup = report("W");
    let total = &wakeup["wakeup"]["total"];
    assert!(
        total["wakeups"].is_null() && total["late"].as_u64() > Some(0),
        "{total}"
    );
    assert!(total["max_ns"].as_u64() > Some(0));
}

/// A note that no disturbance wrote; removed when dropped.
struct BadNote(PathBuf);

impl Drop for BadNote {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_failed_clean_up_is_listed_and_shows_in_the_exit_code() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    fs::create_dir(runs.path().join(".partial-20260101T000000Z-X-abcdef")).unwrap();
    fs::create_dir_all(NOTES).unwrap();
    let victim = runs.path().join("victim");
    fs::write(&victim, "2").unwrap();
    let note = BadNote(Path::new(NOTES).join("0.json"));
    let text = serde_json::json!({
        "boot_id": read("/proc/sys/kernel/random/boot_id"), "pid": 4_194_305, "started": 1,
        "file": victim, "original": "3", "changed": "2",
    });
    fs::write(&note.0, text.to_string()).unwrap();
    let start = jitterscope(runs.path(), &["record", "--duration", "200ms"]);
    assert!(
        start.status.success(),
        "it is no reason not to record: {}",
        stderr(&start)
    );
    assert!(
        stderr(&start).contains("not put right") && stderr(&start).contains("victim"),
        "{}",
        stderr(&start)
    );
    fs::create_dir(runs.path().join(".partial-20260101T000000Z-X-abcdef")).unwrap();
    let cleaned = jitterscope(runs.path(), &["doctor", "--clean", "--json"]);
    assert_eq!(cleaned.status.code(), Some(1));
    let cleaned = json(&cleaned);
    let phrases = |key: &str| {
        cleaned[key]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect::<String>()
    };
    assert!(phrases("failed").contains("victim"), "{cleaned}");
    assert!(phrases("removed").contains("unfinished run"), "{cleaned}");
    assert_eq!(partials(runs.path()), Vec::<PathBuf>::new());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "2");
    drop(note);
    assert_eq!(
        jitterscope(runs.path(), &["doctor", "--clean"])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn doctor_lists_what_tune_changed_and_what_has_drifted() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let before = PutBack::of(STAT_INTERVAL);
    let dir = tempfile::tempdir().unwrap();
    let (runs, state) = (dir.path().join("runs"), dir.path().join("state"));
    let state = state.to_str().unwrap();
    let online = read("/sys/devices/system/cpu/online");
    let cpu = online.rsplit([',', '-']).next().unwrap();
    if cpu == "0" {
        jitterscope_testing::skip("isolating a CPU needs a second one");
        return;
    }
    let apply = [
        "tune",
        "apply",
        "--only",
        "vmstat",
        "--cpus",
        cpu,
        "--yes",
        "--state-dir",
        state,
    ];
    let applied = jitterscope(&runs, &apply);
    assert!(applied.status.success(), "{}", stderr(&applied));
    let doctor = || {
        let output = jitterscope(&runs, &["doctor", "--state-dir", state]);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = doctor();
    assert!(
        text.contains("changed by tune") && text.contains(STAT_INTERVAL),
        "{text}"
    );
    fs::write(STAT_INTERVAL, "77").unwrap();
    let text = doctor();
    assert!(text.contains("drifted") && text.contains("77"), "{text}");
    let all = json(&jitterscope(
        &runs,
        &["doctor", "--state-dir", state, "--json"],
    ));
    assert_eq!(
        all["tune"]["changes"][0]["now"], "drifted",
        "{}",
        all["tune"]
    );
    let rolled_back = jitterscope(
        &runs,
        &["tune", "rollback", "--yes", "--force", "--state-dir", state],
    );
    assert!(rolled_back.status.success(), "{}", stderr(&rolled_back));
    assert_eq!(read(STAT_INTERVAL), before.1);
    assert!(!doctor().contains("changed by tune"));
}

#[test]
fn a_forged_journal_ends_with_one_and_leaves_the_files_as_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (root, state) = (dir.path().join("root"), dir.path().join("state"));
    for folder in [
        &root.join("etc"),
        &root.join("proc/sys/kernel/random"),
        &state,
    ] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(root.join("proc/sys/kernel/random/boot_id"), "b\n").unwrap();
    let secret = root.join("etc/secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let who =
        serde_json::json!({"uid": 0, "name": null, "pid": 1, "command": "x", "at_realtime_ns": 1});
    let lines = [
        serde_json::json!({"record": "begin", "version": 3, "boot_id": "b", "who": who, "isolated": "1", "housekeeping": "0"}),
        serde_json::json!({"record": "intend", "seq": 0, "knob": "persist",
            "op": {"do": "put_file", "path": "/etc/secret", "from": "evil", "to": "secret"}}),
        serde_json::json!({"record": "done", "seq": 0, "outcome": "applied", "reads": "x"}),
        serde_json::json!({"record": "end", "stopped": false}),
    ];
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    let journal = state.join("journal.jsonl");
    fs::write(
        &journal,
        jitterscope_testing::sealed_journal(lines.map(|line| line.to_string())),
    )
    .unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o644)).unwrap();
    let rollback = |extra: &str| {
        let args = [
            "tune",
            "rollback",
            "--yes",
            "--root",
            root.to_str().unwrap(),
            "--state-dir",
        ];
        let args: Vec<&str> = args
            .into_iter()
            .chain([state.to_str().unwrap(), extra])
            .collect();
        jitterscope(dir.path(), &args)
    };
    let output = rollback("--force");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    assert!(
        text.contains("0 restored") && text.contains("/etc/secret"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(
        fs::metadata(&secret).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A world-writable folder is reported, with advice.
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let output = rollback("--keep");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("0777") && stderr(&output).contains("chmod"),
        "{}",
        stderr(&output)
    );
}
