//! A journal, a lock or a folder that another user has modified; and files whose access is preserved.

use crate::support;

use jitterscope_platform::{Distrust, Machine, TrustError};
use jitterscope_testing::{name_of_test, sealed_journal};
use jitterscope_tune::{
    ApplyError, NowIs, OnDrift, OnRefusal, Outcome, Select, StateDir, StateError, Undoing, apply,
    plan, rollback, status,
};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Cgroups, FakeHands, build, differences, folder, goal, snapshot, who};

struct World {
    dir: tempfile::TempDir,
    root: PathBuf,
    state: PathBuf,
    machine: Machine,
}

fn world(cgroups: Cgroups) -> World {
    let dir = folder();
    let (root, state) = (dir.path().join("root"), dir.path().join("state"));
    World {
        machine: build(&root, cgroups),
        root,
        state,
        dir,
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

impl World {
    fn dir(&self) -> StateDir {
        StateDir::at(&self.state)
    }

    fn apply(
        &self,
        ids: &[&str],
        persist: bool,
    ) -> Result<jitterscope_tune::ApplyReport, ApplyError> {
        let select = Select::Only(ids.iter().map(|s| (*s).to_owned()).collect());
        let plan = plan(&self.machine, &goal(&self.machine), &select, &[], persist).unwrap();
        apply(
            &mut FakeHands::new(&self.machine),
            &self.dir(),
            &plan,
            who(),
            OnRefusal::GoOn,
        )
    }

    fn rollback(&self) -> Result<jitterscope_tune::RollbackReport, StateError> {
        rollback(&mut FakeHands::new(&self.machine), &self.dir(), &mut |_| {
            OnDrift::Restore
        })
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A journal with valid checksums in which each step was made.
    fn forge(&self, steps: &[(&str, Value)]) {
        let boot = self
            .machine
            .read_trimmed("/proc/sys/kernel/random/boot_id")
            .unwrap();
        let who = json!({"uid": 0, "name": null, "pid": 1, "command": "x", "at_realtime_ns": 1});
        let mut lines = vec![json!({
            "record": "begin", "version": 3, "boot_id": boot, "who": who, "isolated": "2-3", "housekeeping": "0-1",
        })];
        for (seq, (knob, op)) in steps.iter().enumerate() {
            lines.push(json!({"record": "intend", "seq": seq, "knob": knob, "op": op}));
            lines.push(json!({"record": "done", "seq": seq, "outcome": "applied", "reads": "x"}));
        }
        lines.push(json!({"record": "end", "stopped": false}));
        fs::create_dir_all(&self.state).unwrap();
        set_mode(&self.state, 0o755);
        let path = self.state.join("journal.jsonl");
        fs::write(&path, sealed_journal(lines.iter().map(Value::to_string))).unwrap();
        set_mode(&path, 0o644);
    }
}

fn write(path: &str, kind: &str, from: &str, to: &str) -> Value {
    json!({"do": "write", "path": path, "kind": kind, "from": from, "to": to, "effective": null})
}

fn put_file(path: &str, from: Option<&str>, to: &str) -> Value {
    json!({"do": "put_file", "path": path, "from": from, "to": to})
}

const STAT: &str = "/proc/sys/vm/stat_interval";

#[test]
fn a_forged_journal_changes_only_what_its_knobs_can_change() {
    let w = world(Cgroups::V1);
    let secret = w.put("etc/secret", "secret\n");
    set_mode(&secret, 0o600);
    let precious = w.put("etc/precious", "precious\n");
    w.put("proc/sys/vm/stat_interval", "60");
    w.forge(&[
        ("vmstat", write(STAT, "number", "1\n", "60")),
        (
            "persist",
            put_file("/etc/secret", Some("evil\n"), "secret\n"),
        ),
        ("persist", put_file("/etc/precious", None, "precious\n")),
    ]);
    let seen = status(&w.machine, &w.dir()).unwrap();
    let forbidden = seen
        .changes
        .iter()
        .filter(|c| matches!(c.standing, NowIs::Forbidden { .. }));
    assert_eq!(forbidden.count(), 2, "{seen:?}");
    let report = w.rollback().unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");
    assert_eq!(
        (
            mode(&secret),
            fs::read_to_string(&precious).unwrap().as_str()
        ),
        (0o600, "precious\n")
    );
    // Its valid entry is undone.
    assert_eq!(w.machine.read(STAT).unwrap(), "1\n");
    let restored = report
        .steps
        .iter()
        .filter(|s| s.undoing == Undoing::Restored)
        .count();
    assert_eq!((restored, report.unsettled().count()), (1, 2), "{report:?}");
    assert!(
        status(&w.machine, &w.dir()).unwrap().active,
        "they stay on record"
    );
}

#[test]
fn whatever_no_knob_declares_is_forbidden() {
    let w = world(Cgroups::V1);
    let outside = w.dir.path().join("outside");
    fs::create_dir_all(outside.join("smp")).unwrap();
    fs::write(outside.join("smp/smp_affinity_list"), "0-1\n").unwrap();
    symlink(outside.join("smp"), w.root.join("proc/irq/99")).unwrap();
    fs::write(outside.join("conf"), "b").unwrap();
    fs::create_dir_all(w.root.join("etc/sysctl.d")).unwrap();
    symlink(
        outside.join("conf"),
        w.root.join("etc/sysctl.d/99-zz-jitterscope.conf"),
    )
    .unwrap();
    symlink(&outside, w.root.join("etc/tmpfiles.d")).unwrap();
    let irq = |path: &str, effective: Value| json!({"do": "write", "path": path, "kind": "cpu_list", "from": "0-3\n", "to": "0-1", "effective": effective});
    let thread = |tid: i32| json!({"do": "thread", "pid": tid, "tid": tid, "start_time": 1000 + tid, "comm": "x", "from": "0-3", "to": "0"});
    let effective = |n: &str| Value::from(format!("/proc/irq/{n}/effective_affinity_list"));
    let group = "/sys/fs/cgroup/cpuset";
    let long = "1".repeat(5000);
    let cases: Vec<(&str, Value)> = vec![
        ("of-a-newer-version", write(STAT, "number", "1\n", "60")),
        (
            "vmstat",
            write("/proc/sys/kernel/core_pattern", "text", "|/tmp/x", "core"),
        ),
        (
            "vmstat",
            write("/proc/sys/vm/../vm/stat_interval", "number", "1\n", "60"),
        ),
        ("vmstat", write(STAT, "text", "1\n", "60")),
        ("vmstat", write(STAT, "number", &long, "60")),
        ("vmstat", write(STAT, "number", "1\0", "60")),
        (
            "vmstat",
            put_file("/etc/sysctl.d/99-zz-jitterscope.conf", None, "x"),
        ),
        ("vmstat", json!({"do": "blink", "cpu": 3})),
        (
            "cpu-blink",
            write("/sys/devices/system/cpu/cpu3/online", "number", "1", "0"),
        ),
        (
            "irq-aff",
            irq("/proc/irq/24/smp_affinity_list", Value::from("/etc/shadow")),
        ),
        (
            "irq-aff",
            irq("/proc/irq/99/smp_affinity_list", effective("99")),
        ),
        (
            "irq-aff",
            irq(
                "/proc/irq/../irq/24/smp_affinity_list",
                effective("../irq/24"),
            ),
        ),
        ("persist", put_file("/etc/passwd", Some("x"), "y")),
        (
            "persist",
            put_file("/etc/sysctl.d/99-zz-jitterscope.conf", Some("a"), "b"),
        ),
        (
            "persist",
            put_file("/etc/tmpfiles.d/zz-jitterscope.conf", Some("a"), "b"),
        ),
        (
            "persist",
            json!({"do": "make_dir", "path": "/etc/default/x", "cgroup": false}),
        ),
        (
            "persist",
            json!({"do": "make_dir", "path": "/etc/sysctl.d", "cgroup": true}),
        ),
        (
            "persist",
            json!({"do": "put_file", "path": "/etc/systemd/system.conf.d/90-jitterscope.conf", "from": "a", "to": "b",
                   "access": {"mode": 0o4755, "uid": 0, "gid": 0}}),
        ),
        (
            "cpuset-part",
            json!({"do": "make_dir", "path": format!("{group}/docker"), "cgroup": true}),
        ),
        (
            "cpuset-part",
            json!({"do": "make_dir", "path": "/etc/jitterscope.housekeeping", "cgroup": true}),
        ),
        (
            "cpuset-part",
            json!({"do": "make_dir", "path": format!("{group}/jitterscope.housekeeping"), "cgroup": false}),
        ),
        (
            "cpuset-part",
            write(
                &format!("{group}/docker/cpuset.cpus"),
                "cpu_list",
                "0-3\n",
                "0",
            ),
        ),
        (
            "cpuset-part",
            write(
                &format!("{group}/docker/../cpuset.sched_load_balance"),
                "number",
                "1\n",
                "0",
            ),
        ),
        ("kthread-aff", thread(300)),
        ("systemd-aff", thread(2)),
    ];
    let before = snapshot(w.dir.path().join("root").as_path());
    w.forge(&cases);
    let report = w.rollback().unwrap();
    for (step, (knob, op)) in report.steps.iter().rev().zip(&cases) {
        assert!(
            matches!(step.undoing, Undoing::Forbidden { .. }),
            "{knob} {op}: {step:?}"
        );
    }
    assert_eq!(report.steps.len(), cases.len());
    assert_eq!(report.inherited_freed, 0);
    assert_eq!(
        differences(&before, &snapshot(&w.root)),
        Vec::<String>::new()
    );
    assert_eq!(fs::read_to_string(outside.join("conf")).unwrap(), "b");
    assert_eq!(
        fs::read_to_string(outside.join("smp/smp_affinity_list")).unwrap(),
        "0-1\n"
    );
}

#[test]
fn what_could_not_be_undone_is_not_done() {
    let w = world(Cgroups::V1);
    fs::create_dir_all(w.root.join("etc/sysctl.d")).unwrap();
    let elsewhere = w.dir.path().join("elsewhere");
    fs::write(&elsewhere, "theirs\n").unwrap();
    symlink(
        &elsewhere,
        w.root.join("etc/sysctl.d/99-zz-jitterscope.conf"),
    )
    .unwrap();
    let report = w.apply(&["vmstat"], true).unwrap();
    let outcome = &report
        .applied
        .iter()
        .find(|a| a.knob == "persist")
        .unwrap()
        .outcome;
    assert!(matches!(outcome, Outcome::Forbidden { .. }), "{outcome:?}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "theirs\n");
    assert_eq!(w.rollback().unwrap().unsettled().count(), 0);
    assert!(
        w.root
            .join("etc/sysctl.d/99-zz-jitterscope.conf")
            .is_symlink()
    );
    assert_eq!(w.machine.read(STAT).unwrap(), "1\n");
}

/// The reason why a file or folder is not trusted.
fn distrust<T: std::fmt::Debug>(result: Result<T, StateError>) -> Distrust {
    match result {
        Err(
            StateError::Trust(TrustError::Distrusted { reason, .. })
            | StateError::Journal(jitterscope_tune::JournalError::Trust(TrustError::Distrusted {
                reason,
                ..
            })),
        ) => reason,
        other => panic!("{other:?}"),
    }
}

fn applied<T: std::fmt::Debug>(result: Result<T, ApplyError>) -> Result<T, StateError> {
    result.map_err(|e| match e {
        ApplyError::State(e) => e,
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_linked_lock_or_journal_is_refused_and_its_target_stays() {
    for name in ["lock", "journal.jsonl"] {
        let w = world(Cgroups::V1);
        fs::create_dir(&w.state).unwrap();
        set_mode(&w.state, 0o755);
        let victim = w.dir.path().join("victim");
        fs::write(&victim, "theirs").unwrap();
        set_mode(&victim, 0o640);
        symlink(&victim, w.state.join(name)).unwrap();
        assert_eq!(
            distrust(applied(w.apply(&["vmstat"], false))),
            Distrust::Link,
            "{name}"
        );
        assert_eq!(distrust(w.rollback()), Distrust::Link, "{name}");
        assert_eq!(
            (fs::read_to_string(&victim).unwrap().as_str(), mode(&victim)),
            ("theirs", 0o640)
        );
        assert_eq!(w.machine.read(STAT).unwrap(), "1\n");
        fs::remove_file(w.state.join(name)).unwrap();
        // A dangling link does not create a file there.
        symlink(w.dir.path().join("new"), w.state.join(name)).unwrap();
        assert_eq!(
            distrust(applied(w.apply(&["vmstat"], false))),
            Distrust::Link,
            "{name}"
        );
        assert!(!w.dir.path().join("new").exists());
    }
}

#[test]
fn a_folder_or_journal_that_others_can_write_to_is_neither_read_nor_used() {
    let w = world(Cgroups::V1);
    w.apply(&["vmstat"], false).unwrap();
    let journal = w.state.join("journal.jsonl");
    for (at, loose, tight) in [(&w.state, 0o777, 0o755), (&journal, 0o666, 0o644)] {
        set_mode(at, loose);
        let wanted = Distrust::Writable { mode: loose };
        assert_eq!(distrust(w.rollback()), wanted);
        assert_eq!(distrust(status(&w.machine, &w.dir())), wanted);
        assert_eq!(distrust(applied(w.apply(&["ksm"], false))), wanted);
        assert_eq!(w.machine.read(STAT).unwrap(), "60");
        set_mode(at, tight);
    }
    assert_eq!(w.rollback().unwrap().unsettled().count(), 0);
}

#[test]
fn anothers_folder_is_neither_read_nor_used() {
    if !rustix::process::geteuid().is_root() {
        jitterscope_testing::skip("giving a folder away needs root");
        return;
    }
    let w = world(Cgroups::V1);
    w.apply(&["vmstat"], false).unwrap();
    for at in [&w.state, &w.state.join("journal.jsonl")] {
        chown(at, Some(65_534), None).unwrap();
        assert_eq!(
            distrust(w.rollback()),
            Distrust::Owner {
                owner: 65_534,
                wanted: 0
            }
        );
        chown(at, Some(0), None).unwrap();
    }
    assert_eq!(w.rollback().unwrap().unsettled().count(), 0);
}

#[test]
fn an_edited_line_stops_a_rollback_and_a_torn_one_does_not() {
    let w = world(Cgroups::V1);
    w.apply(&["vmstat"], false).unwrap();
    let path = w.state.join("journal.jsonl");
    let sound = fs::read_to_string(&path).unwrap();
    // A value that parses as well as the original.
    let edited = sound.replacen("\"from\":\"1\\n\"", "\"from\":\"7\\n\"", 1);
    assert_ne!(edited, sound);
    fs::write(&path, edited).unwrap();
    let error = w.rollback().unwrap_err().to_string();
    assert!(
        error.contains("line 2") && error.contains("checksum"),
        "{error}"
    );
    assert_eq!(w.machine.read(STAT).unwrap(), "60");
    fs::write(&path, &sound[..sound.len() - 9]).unwrap();
    assert_eq!(w.rollback().unwrap().unsettled().count(), 0);
    assert_eq!(w.machine.read(STAT).unwrap(), "1\n");
}

const WORLD: &str = "JITTERSCOPE_TEST_UMASK_WORLD";

/// The child's part, under the umask that it was started with; without the variable it does nothing.
#[test]
fn child_applies_and_rolls_back() {
    let Ok(base) = std::env::var(WORLD) else {
        return;
    };
    let base = PathBuf::from(base);
    let machine = Machine::at(&base.join("root"));
    let state = StateDir::at(&base.join("deep/state"));
    for round in 0..2 {
        let select = Select::Only(vec!["vmstat".into(), "thp".into(), "systemd-aff".into()]);
        let plan = plan(&machine, &goal(&machine), &select, &[], true).unwrap();
        apply(
            &mut FakeHands::new(&machine),
            &state,
            &plan,
            who(),
            OnRefusal::GoOn,
        )
        .unwrap();
        if round == 0 {
            let report = rollback(&mut FakeHands::new(&machine), &state, &mut |_| {
                OnDrift::Later
            })
            .unwrap();
            assert_eq!(report.unsettled().count(), 0, "{report:?}");
        }
    }
}

#[test]
fn modes_are_what_they_should_be_under_any_umask() {
    for umask in ["000", "022", "077", "777"] {
        let w = world(Cgroups::V1);
        let child = Command::new("sh")
            .args(["-c", "umask $0; exec \"$@\"", umask])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &name_of_test!(child_applies_and_rolls_back)])
            .env(WORLD, w.dir.path())
            .output()
            .unwrap();
        assert!(
            child.status.success(),
            "umask {umask}: {}",
            String::from_utf8_lossy(&child.stdout)
        );
        let state = w.dir.path().join("deep/state");
        for (path, wanted) in [
            (w.dir.path().join("deep"), 0o755),
            (state.clone(), 0o755),
            (state.join("lock"), 0o600),
            (state.join("journal.jsonl"), 0o644),
            (state.join("journal.last.jsonl"), 0o644),
            (w.root.join("etc/tmpfiles.d"), 0o755),
            (w.root.join("etc/systemd/system.conf.d"), 0o755),
            (w.root.join("etc/sysctl.d/99-zz-jitterscope.conf"), 0o644),
            (
                w.root.join("etc/systemd/system.conf.d/90-jitterscope.conf"),
                0o644,
            ),
        ] {
            assert_eq!(
                mode(&path),
                wanted,
                "umask {umask}: {}: {:o}",
                path.display(),
                mode(&path)
            );
        }
    }
}

#[test]
fn a_drop_in_keeps_its_mode_and_owner_through_apply_and_rollback() {
    let w = world(Cgroups::V1);
    let path = w.put("etc/sysctl.d/99-zz-jitterscope.conf", "kernel.other = 1\n");
    set_mode(&path, 0o640);
    let root = rustix::process::geteuid().is_root();
    if root {
        chown(&path, Some(65_534), Some(65_533)).unwrap();
    } else {
        jitterscope_testing::skip("in part: giving a file away needs root");
    }
    let access = || {
        let now = fs::metadata(&path).unwrap();
        (now.mode() & 0o7777, now.uid(), now.gid())
    };
    let before = access();
    w.apply(&["vmstat"], true).unwrap();
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .contains("vm.stat_interval = 60")
    );
    assert_eq!(access(), before, "applied");
    // The file is opened to all users; a restore closes it again.
    set_mode(&path, 0o666);
    assert_eq!(w.rollback().unwrap().unsettled().count(), 0);
    assert_eq!(
        (fs::read_to_string(&path).unwrap().as_str(), access()),
        ("kernel.other = 1\n", before)
    );
}

#[test]
fn a_half_written_drop_in_that_is_a_link_is_not_written_through() {
    let w = world(Cgroups::V1);
    fs::create_dir_all(w.root.join("etc/sysctl.d")).unwrap();
    let victim = w.dir.path().join("victim");
    fs::write(&victim, "theirs").unwrap();
    symlink(
        &victim,
        w.root
            .join("etc/sysctl.d/99-zz-jitterscope.conf.jitterscope-unfinished"),
    )
    .unwrap();
    w.apply(&["vmstat"], true).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    assert_eq!(w.rollback().unwrap().unsettled().count(), 0);
}
