//! What unprivileged users can do, and one who was given only the folder of tracing instances.

use crate::live::{can_trace, json, program, stderr};
use jitterscope_testing::{is_root, skip, turn};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const NOBODY: u32 = 65_534;
/// Another user without any rights.
const STRANGER: u32 = 65_533;
const TRACING: &str = "/sys/kernel/tracing";

/// A user without capabilities, with an own folder and a copy of the program in it: the test's build folder need not be
/// world-readable.
struct User {
    id: u32,
    home: tempfile::TempDir,
}

impl User {
    fn new(id: u32) -> User {
        let home = tempfile::tempdir().unwrap();
        chown(home.path(), Some(id), Some(id)).unwrap();
        fs::copy(program(), home.path().join("jitterscope")).unwrap();
        User { id, home }
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(self.home.path().join("jitterscope"))
            .env("JITTERSCOPE_RUNS", self.home.path().join("runs"))
            .args(args)
            .uid(self.id)
            .gid(self.id)
            .output()
            .unwrap()
    }

    /// Runs a program as root of a user namespace of this user.
    fn inside(&self, program: &Path, args: &[&str]) -> std::io::Result<Output> {
        Command::new("unshare")
            .args(["--user", "--map-root-user"])
            .arg(program)
            .env("JITTERSCOPE_RUNS", self.home.path().join("runs"))
            .args(args)
            .uid(self.id)
            .gid(self.id)
            .output()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        json(&output)
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        // As one line, regardless of wrapping.
        let words = String::from_utf8(output.stdout).unwrap();
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn source<'v>(of: &'v Value, name: &str) -> &'v Value {
    let all = of["sources"].as_array().unwrap();
    all.iter().find(|source| source["name"] == name).unwrap()
}

/// Modes and owners of tracefs, restored when dropped; unmounted if it was not mounted before.
struct Tracefs {
    mounted: bool,
    was: Vec<(PathBuf, fs::Metadata)>,
}

impl Tracefs {
    fn keep() -> Tracefs {
        let mounted = is_mounted();
        if !mounted {
            mount();
        }
        let paths = [TRACING.into(), Path::new(TRACING).join("instances")];
        let was = paths.map(|path| {
            let now = fs::metadata(&path).unwrap();
            (path, now)
        });
        if !mounted {
            unmount();
        }
        Tracefs {
            mounted,
            was: was.into(),
        }
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if !is_mounted() {
            mount();
        }
        for (path, was) in &self.was {
            chown(path, Some(was.uid()), Some(was.gid())).unwrap();
            fs::set_permissions(path, was.permissions()).unwrap();
        }
        if !self.mounted {
            unmount();
        }
    }
}

fn is_mounted() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.contains(TRACING))
}

fn mount() {
    let done = Command::new("mount")
        .args(["-t", "tracefs", "tracefs", TRACING])
        .status();
    assert!(done.unwrap().success());
}

fn unmount() {
    assert!(
        Command::new("umount")
            .arg(TRACING)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_user_given_the_instances_records_without_privilege() {
    let _turn = turn();
    if !can_trace() || !Path::new(TRACING).is_dir() {
        return;
    }
    let kept = Tracefs::keep();
    let (user, stranger) = (User::new(NOBODY), User::new(STRANGER));
    let denied = user.json(&["doctor", "--json"]);
    assert_eq!(source(&denied, "tracefs")["status"], "denied");
    // The test follows doctor's advice word for word.
    let fix = source(&denied, "tracefs")["fix"].as_str().unwrap();
    let commands: Vec<&str> = fix.split('`').skip(1).step_by(2).collect();
    assert!(commands.len() >= 2, "{fix}");
    for command in commands {
        // The remaining advice uses the paths that root types.
        let rest = user.json(&["doctor", "--json"]);
        let rest = source(&rest, "tracefs")["fix"].as_str().unwrap().to_owned();
        let last = format!("`chown USER {TRACING}/instances`");
        assert!(rest.contains(&last), "{rest}");
        let command = command.replace("USER", &NOBODY.to_string());
        let given = Command::new("sh").args(["-c", &command]).status();
        assert!(given.unwrap().success(), "{command}");
    }

    let doctor = user.json(&["doctor", "--json"]);
    let status = |of: &Value, name: &str| source(of, name)["status"].as_str().unwrap().to_owned();
    for name in ["tracefs", "senders", "trace-clock"] {
        assert_ne!(status(&doctor, name), "denied", "{doctor}");
    }
    assert!(user.text(&["doctor"]).contains("Stalls can be measured"));
    let run = user.json(&["record", "--duration", "2s", "--json", "--quiet"]);
    let attribution = &run["attribution"];
    assert!(
        attribution["events"].as_u64().unwrap() > 100,
        "{attribution}"
    );
    assert_eq!(attribution["proven"], true, "{attribution}");
    for name in ["tracefs", "senders"] {
        assert_eq!(status(&run, name), status(&doctor, name));
    }
    let attached = user.json(&[
        "attach",
        "-q",
        "--json",
        "--",
        "sh",
        "-c",
        "sleep 0.3; sleep 0.3",
    ]);
    assert!(!attached["threads"].as_array().unwrap().is_empty());

    // It belongs to this user alone, and no other files changed their owner.
    let others = stranger.json(&["doctor", "--json"]);
    assert_eq!(status(&others, "tracefs"), "denied");
    let problem = &source(&others, "tracefs")["problems"][0];
    assert_eq!(problem["id"], "instances_of_owner", "{problem}");
    assert_eq!(problem["owner"], NOBODY, "{problem}");
    assert_eq!(status(&doctor, "function_graph"), "denied");
    let left = fs::read_dir(format!("{TRACING}/instances")).unwrap();
    let left: Vec<_> = left
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|of| of.uid() == NOBODY))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    drop(kept);
    let mode = |path: &Path| fs::metadata(path).map(|of| of.permissions().mode()).ok();
    assert!(!is_mounted() || mode(Path::new(TRACING)).is_some_and(|mode| mode & 0o001 == 0));
}

#[test]
fn without_privilege_it_measures_and_says_what_it_cannot_see() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let nobody = User::new(NOBODY);
    let run = nobody.json(&["record", "--duration", "1s", "--json", "--quiet"]);
    assert!(run["attribution"].is_null());
    assert!(run["probe"]["cpus"][0]["samples"].as_u64().unwrap() > 1_000_000);
    let ids: Vec<&str> = run["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"no-kernel-events"), "{ids:?}");
    let tracefs = source(&run, "tracefs");
    assert_eq!(tracefs["status"], "denied");
    assert!(!tracefs["fix"].as_str().unwrap().is_empty());
    assert!(!run["counters"].as_array().unwrap().is_empty());
    // One sentence: what was stolen, the worst stall, and the host's part.
    let brief = nobody.text(&["report"]);
    let sentence = brief
        .split(". ")
        .find(|sentence| sentence.contains("of its time"))
        .unwrap_or_else(|| panic!("{brief}"));
    for part in ["has lost", "; the worst lasted", " host"] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
}

#[test]
fn root_of_a_user_namespace_measures_like_its_user_and_is_told_why() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let nobody = User::new(NOBODY);
    let possible = nobody.inside(Path::new("true"), &[]);
    if !possible.is_ok_and(|output| output.status.success()) {
        skip("this machine does not let users make user namespaces");
        return;
    }
    let program = nobody.home.path().join("jitterscope");
    let run = |args: &[&str]| nobody.inside(&program, args).unwrap();
    let doctor = json(&run(&["doctor", "--json"]));
    for name in ["tracefs", "symbols"] {
        let of = source(&doctor, name);
        assert_eq!(of["status"], "denied", "{of}");
        assert_eq!(of["problems"][0]["id"], "user_namespace", "{of}");
        assert_eq!(of["problems"][0]["user"], NOBODY, "{of}");
    }
    let fix = source(&doctor, "tracefs")["fix"].as_str().unwrap();
    assert!(fix.contains(&format!("chown {NOBODY} ")), "{fix}");

    let recorded = run(&["record", "--duration", "1s", "--quiet"]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let brief = String::from_utf8(recorded.stdout).unwrap();
    let brief = brief.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "of its time",
        "; the worst lasted",
        " host",
        "in a user namespace, whose capabilities do not count",
    ] {
        assert!(brief.contains(part), "{part}: {brief}");
    }
    let refused = run(&["record", "-d", "300ms", "--priority", "5", "-q"]);
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("capabilities of this user namespace do not count"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn what_takes_a_privilege_ends_with_code_four_without_it() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let nobody = User::new(NOBODY);
    let refused = |args: &[&str], said: &str| {
        let output = nobody.run(args);
        assert_eq!(
            output.status.code(),
            Some(4),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(said),
            "{args:?}: {}",
            stderr(&output)
        );
    };
    refused(
        &["record", "-d", "300ms", "--priority", "5", "-q"],
        "CAP_SYS_NICE",
    );
    refused(
        &["record", "wakeup", "-d", "300ms", "--priority", "5", "-q"],
        "CAP_SYS_NICE",
    );
    let veth = [
        "record",
        "pipeline",
        "--force",
        "--input",
        "/etc/passwd",
        "--via",
        "veth",
        "-d",
        "300ms",
        "-q",
    ];
    refused(&veth, "CAP_SYS_ADMIN");
    refused(
        &["selftest", "--only", "fair"],
        "as root, once after each boot",
    );
}

#[test]
fn an_experiment_that_may_not_note_its_change_says_so_before_it_measures() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let nobody = User::new(NOBODY);
    // A folder of root's.
    let state = tempfile::tempdir().unwrap();
    let output = nobody.run(&[
        "experiment",
        "--knob",
        "vmstat",
        "-d",
        "300ms",
        "--state-dir",
        state.path().to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("Permission denied"),
        "{}",
        stderr(&output)
    );
    assert!(!nobody.home.path().join("runs").exists());
}

#[test]
fn without_proc_and_sys_stalls_are_measured_all_the_same() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let hide = "mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", hide, "sh"])
        .arg(program())
        .arg("--runs")
        .arg(runs.path())
        .args(["record", "--duration", "300ms", "--json", "--quiet"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let run = json(&output);
    assert!(run["attribution"].is_null());
    assert!(run["probe"]["cpus"][0]["samples"].as_u64().unwrap() > 100_000);
}

#[test]
fn in_a_pid_namespace_nothing_is_named_and_doctor_says_why() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let inside = |args: &[&str]| {
        Command::new("unshare")
            .args(["--pid", "--fork", "--mount-proc"])
            .arg(program())
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let doctor = json(&inside(&["doctor", "--json"]));
    let of = source(&doctor, "tracefs");
    assert_eq!(of["problems"][0]["id"], "pid_namespace", "{of}");
    assert!(of["fix"].as_str().unwrap().contains("--pid host"), "{of}");
    let runs = tempfile::tempdir().unwrap();
    let folder = runs.path().to_str().unwrap();
    let record = inside(&["--runs", folder, "record", "-d", "300ms", "--json", "-q"]);
    assert!(record.status.success(), "{}", stderr(&record));
    let run = json(&record);
    assert!(run["attribution"].is_null(), "{}", run["attribution"]);
    assert!(run["probe"]["total"]["measured_ns"].as_u64().unwrap() > 0);
}
