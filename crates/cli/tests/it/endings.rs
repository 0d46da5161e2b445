//! Every way in which a command can end, and what it leaves. Tests that need root or tracefs print a note when they are
//! skipped.

use crate::live;

use jitterscope_testing::instances_of;
use live::{can_trace, jitterscope, json, program, stderr, turn};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a line of shell with `"$J"` for the program.
fn shell(runs: &Path, line: &str) -> std::process::Output {
    shell_command(runs, line)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn shell_command(runs: &Path, line: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .env("J", program())
        .env("JITTERSCOPE_RUNS", runs);
    command
}

fn send(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    until("the end of the process", || {
        child.try_wait().unwrap().is_some()
    });
    child.wait().unwrap()
}

fn tracing_is_on(pid: u32) -> bool {
    instances_of(pid)
        .iter()
        .any(|path| fs::read_to_string(path.join("tracing_on")).is_ok_and(|on| on == "1\n"))
}

/// Complete runs, as `list` shows them.
fn runs(folder: &Path) -> Vec<serde_json::Value> {
    json(&jitterscope(folder, &["list", "--json"]))["runs"]
        .as_array()
        .unwrap()
        .clone()
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect()
}

const SHORT: &str = "--duration 300ms --warmup 50ms";

#[test]
fn repeated_runs_are_all_kept_and_ctrl_c_ends_the_last() {
    if !can_trace() {
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let done = shell(
        dir.path(),
        &format!("exec \"$J\" record {SHORT} --repeat 2 --label TWICE"),
    );
    assert!(done.status.success(), "{}", stderr(&done));
    let stored = runs(dir.path());
    assert_eq!(stored.len(), 2);
    // A machine has one threshold: a run keeps it, or takes a longer one if its own clock costs more.
    let threshold = |run: &serde_json::Value| {
        let report = ["report", run["id"].as_str().unwrap(), "--json"];
        json(&jitterscope(dir.path(), &report))["probe"]["threshold_ns"].as_u64()
    };
    assert!(threshold(&stored[0]) <= threshold(&stored[1]), "{stored:?}");
    let doctor = json(&jitterscope(dir.path(), &["doctor", "--json"]));
    let of_machine = &doctor["threshold"];
    assert!(
        stored.iter().any(|run| run["id"] == of_machine["run"]),
        "{doctor:#}"
    );
    let kept = of_machine["threshold_ns"].as_u64();
    let [first, second] = [0, 1].map(|run| threshold(&stored[run]));
    // Of two calibrations the shorter counts: that of the first run, if the second took a longer threshold.
    let is_right = if second > first {
        kept == first
    } else {
        kept.is_some() && kept <= first
    };
    assert!(is_right, "{stored:?} {doctor:#}");
    let line = "exec \"$J\" record --duration 30s --repeat 3 --label LONG";
    let mut child = shell_command(dir.path(), line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    begun(&child);
    send(child.id(), "INT");
    assert!(wait(&mut child).success());
    let stored = runs(dir.path());
    assert_eq!(stored.len(), 3, "the run that Ctrl-C ended is kept");
    assert_eq!(stored[2]["interrupted"], true);
}

#[test]
fn a_full_or_closed_stderr_stops_nothing() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("none");
    fs::create_dir(&none).unwrap();
    let mut stored = 0;
    for to in ["2>/dev/full", "2>&-", "0<&- 2>&-"] {
        for (line, code, stores) in [
            (format!("record {SHORT}"), 0, true),
            (
                format!("attach --duration 300ms --pid {}", std::process::id()),
                0,
                true,
            ),
            (
                format!("record pipeline --force {SHORT} --pause 10ms"),
                0,
                true,
            ),
            ("list".to_owned(), 0, false),
            ("doctor".to_owned(), 0, false),
            ("report no-such-run".to_owned(), 1, false),
            ("record --cpus 4095".to_owned(), 2, false),
        ] {
            let output = shell(dir.path(), &format!("\"$J\" {line} {to}"));
            assert_eq!(output.status.code(), Some(code), "{line} {to}: {output:?}");
            assert!(code != 0 || !output.stdout.is_empty(), "{line} {to}");
            stored += usize::from(stores);
        }
        assert_eq!(runs(dir.path()).len(), stored, "{to}");
    }
}

#[test]
fn a_full_stdout_is_an_error_that_says_so_and_the_run_is_stored() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for line in [
        &format!("record {SHORT}") as &str,
        "list",
        "list --json",
        "doctor",
        "report latest",
        "completions bash",
        "--help",
        "help record",
        "--version",
    ] {
        let output = shell(dir.path(), &format!("\"$J\" {line} >/dev/full"));
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        let said = stderr(&output);
        assert!(
            said.contains("standard output") && said.contains("No space left"),
            "{line}: {said}"
        );
        let output = shell(dir.path(), &format!("\"$J\" {line} | true"));
        assert!(
            !stderr(&output).contains("error"),
            "{line}: {}",
            stderr(&output)
        );
        let both = shell(dir.path(), &format!("\"$J\" {line} >/dev/full 2>&1"));
        assert_eq!(both.status.code(), Some(1), "{line}: {both:?}");
    }
    assert_eq!(runs(dir.path()).len(), 3);
}

#[test]
fn with_all_three_closed_it_records_and_no_file_takes_their_place() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let line = "exec \"$J\" record --duration 60s --warmup 50ms 0<&- >&- 2>&-";
    let mut child = shell_command(dir.path(), line).spawn().unwrap();
    let opened =
        |fd: u32| fs::read_link(format!("/proc/{}/fd/{fd}", child.id())).unwrap_or_default();
    until("a run begun", || {
        fs::read_dir(format!("/proc/{}/fd", child.id())).is_ok_and(|fds| {
            fds.flatten()
                .any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(dir.path())))
        })
    });
    let std: Vec<PathBuf> = (0..3).map(opened).collect();
    assert!(
        std.iter().all(|path| path == Path::new("/dev/null")),
        "{std:?}"
    );
    std::thread::sleep(Duration::from_secs(2));
    send(child.id(), "TERM");
    assert!(wait(&mut child).success());
    assert_eq!(runs(dir.path()).len(), 1);
}

/// A new terminal and its other end.
pub(crate) fn terminal() -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (master, slave)
}

/// Starts a program in a new session, with this as its controlling terminal and its input and output.
pub(crate) fn in_terminal(runs: &Path, slave: &File, before: &[&str], args: &[&str]) -> Child {
    let end = || Stdio::from(slave.try_clone().unwrap());
    Command::new("setsid")
        .arg("--ctty")
        .args(before)
        .arg(program())
        .args(args)
        .env("JITTERSCOPE_RUNS", runs)
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap()
}

fn begun(child: &Child) {
    until("tracing on", || tracing_is_on(child.id()));
    // Past the warm-up.
    std::thread::sleep(Duration::from_secs(2));
}

#[test]
fn a_closing_terminal_keeps_the_run_however_often_it_says_so() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    for turn in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let (master, slave) = terminal();
        let args = ["record", "--duration", "60s", "--warmup", "50ms"];
        let mut child = in_terminal(dir.path(), &slave, &[], &args);
        begun(&child);
        drop(slave);
        drop(master);
        // A terminal's shell passes the signal on to its jobs, after the kernel.
        while child.try_wait().unwrap().is_none() {
            let _ = Command::new("kill")
                .args(["-HUP", &child.id().to_string()])
                .stderr(Stdio::null())
                .status();
            std::thread::sleep(Duration::from_millis(3));
        }
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), None, "turn {turn}: a signal ended it");
        assert!(instances_of(child.id()).is_empty(), "turn {turn}");
        let stored = runs(dir.path());
        assert_eq!(
            (stored.len(), stored[0]["interrupted"].as_bool()),
            (1, Some(true)),
            "turn {turn}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "turn {turn}");
    }
}

#[test]
fn nohup_is_honoured() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (master, slave) = terminal();
    let args = ["record", "--duration", "5s", "--warmup", "50ms", "--json"];
    // nohup(1) would write a file into the current folder: the shell ignores the signal in the same way.
    let before = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut child = in_terminal(dir.path(), &slave, &before, &args);
    until("tracing on", || tracing_is_on(child.id()));
    drop((master, slave));
    send(child.id(), "HUP");
    wait(&mut child);
    let stored = runs(dir.path());
    assert_eq!(
        (stored.len(), stored[0]["interrupted"].as_bool()),
        (1, Some(false))
    );
}

#[test]
fn an_ignored_interrupt_stays_ignored() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // As a shell without job control does for `command &`.
    let line = format!(
        "trap '' INT; exec \"$J\" record --duration 4s --warmup 50ms --json >{}/out",
        dir.path().display()
    );
    let mut child = shell_command(&dir.path().join("runs"), &line)
        .spawn()
        .unwrap();
    until("tracing on", || tracing_is_on(child.id()));
    send(child.id(), "INT");
    assert!(wait(&mut child).success());
    assert_eq!(
        runs(&dir.path().join("runs"))[0]["interrupted"].as_bool(),
        Some(false)
    );
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_no_tracing() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The command takes time to end, which the first Ctrl-C must wait for.
    let mut child = Command::new(program())
        .args([
            "attach",
            "--duration",
            "60s",
            "--",
            "sh",
            "-c",
            "trap '' TERM; sleep 7",
        ])
        .env("JITTERSCOPE_RUNS", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // By then it ignores the signal. It starts after all instances.
    let sleeps = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
    };
    until("the command sleeps", || {
        let shells = children(child.id());
        let below = shells.iter().flat_map(|shell| children(*shell));
        below.chain(shells.clone()).any(|pid| sleeps(&pid))
    });
    for _ in 0..2 {
        // Another process passed the signal on: it still counts as the first.
        send(child.id(), "INT");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    assert!(
        child.try_wait().unwrap().is_none(),
        "the command is not patient enough for this test"
    );
    send(child.id(), "INT");
    let mut said = child.stderr.take().unwrap();
    let status = wait(&mut child);
    assert_eq!(status.signal(), Some(2), "{status:?}");
    assert!(instances_of(child.id()).is_empty());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut said, &mut text).unwrap();
    assert!(text.contains("second Ctrl-C"), "{text}");
    assert!(runs(dir.path()).is_empty());
}

fn tracefs_mounts() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines()
        .filter(|line| line.contains(" - tracefs "))
        .map(str::to_owned)
        .collect()
}

/// Those that this process made. Tests beside this one may have mounted tracefs as well.
fn mounts_of(pid: u32) -> Vec<String> {
    let ours = format!(" jitterscope-{pid}-");
    let mut mounts = tracefs_mounts();
    mounts.retain(|line| line.contains(&ours));
    mounts
}

/// The examination mounts tracefs for a moment.
#[test]
fn a_doctor_that_is_interrupted_leaves_no_mount() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for delay in (0..200).step_by(8) {
        let mut child = Command::new(program())
            .arg("doctor")
            .env("JITTERSCOPE_RUNS", dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        send(child.id(), "INT");
        wait(&mut child);
        // A neighbour that uses the mount unmounts it later.
        until(&format!("its mount goes, struck after {delay} ms"), || {
            mounts_of(child.id()).is_empty()
        });
    }
}

/// The process that mounts tracefs is interrupted at that very moment.
#[test]
fn whoever_is_interrupted_as_tracefs_is_mounted_unmounts_it() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    if !tracefs_mounts().is_empty() {
        jitterscope_testing::skip("tracefs is mounted already");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["doctor"][..],
        &["selftest", "--only", "timer"],
        &["record", "--require", "tracefs", "--duration", "300ms"],
        &["attach", "--duration", "300ms", "--", "sleep", "1"],
    ] {
        let mut child = Command::new(program())
            .args(args)
            .env("JITTERSCOPE_RUNS", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut seen = false;
        while !seen && child.try_wait().unwrap().is_none() {
            seen = !mounts_of(child.id()).is_empty();
        }
        assert!(seen, "{args:?} mounted nothing");
        send(child.id(), "INT");
        wait(&mut child);
        until(&format!("the mount of {args:?} goes"), || {
            mounts_of(child.id()).is_empty()
        });
    }
}

#[test]
fn the_command_of_a_killed_attach_ends() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(program())
        .args(["attach", "--duration", "60s", "--", "sleep", "600"])
        .env("JITTERSCOPE_RUNS", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the command", || !children(child.id()).is_empty());
    until("tracing on", || tracing_is_on(child.id()));
    let command = children(child.id())[0];
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || {
        let stat = fs::read_to_string(format!("/proc/{command}/stat"));
        stat.map_or(true, |stat| {
            !stat.contains("(sleep)") || stat.contains(") Z ")
        })
    });
    let cleaned = json(&jitterscope(dir.path(), &["doctor", "--clean", "--json"]));
    assert!(
        cleaned["removed"].to_string().contains("tracing instance"),
        "{cleaned}"
    );
    assert!(instances_of(child.id()).is_empty());
}

#[test]
fn clean_in_another_pid_namespace_leaves_what_lives() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let unshare = ["--pid", "--fork", "--mount-proc"];
    if !Command::new("unshare")
        .args(unshare)
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        jitterscope_testing::skip("no PID namespace can be made here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(program())
        .args(["record", "--duration", "60s", "--warmup", "50ms", "--json"])
        .env("JITTERSCOPE_RUNS", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // From its first step on: before the buffers are open the kernel lets any process remove an instance.
    let clean = || {
        let mut command = Command::new("unshare");
        command
            .args(unshare)
            .arg(program())
            .args(["doctor", "--clean", "--json"]);
        let output = command
            .env("JITTERSCOPE_RUNS", dir.path())
            .output()
            .unwrap();
        assert_eq!(
            json(&output)["removed"].as_array().unwrap().len(),
            0,
            "{output:?}"
        );
    };
    until("tracing on", || {
        clean();
        tracing_is_on(child.id())
    });
    let before = instances_of(child.id());
    assert_eq!(before.len(), 2);
    std::thread::sleep(Duration::from_secs(1));
    clean();
    assert_eq!(instances_of(child.id()), before);
    send(child.id(), "INT");
    assert!(wait(&mut child).success());
    assert_eq!(runs(dir.path()).len(), 1);
}
