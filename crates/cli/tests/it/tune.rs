//! `audit` and `tune` from the command line, on a tree of files that resembles a machine.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("proc/sys/vm/stat_interval", "1\n"),
    ("proc/sys/kernel/random/boot_id", "b\n"),
    ("proc/irq/24/smp_affinity_list", "0-3\n"),
    ("proc/irq/24/effective_affinity_list", "0\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    ),
    ("proc/cmdline", "quiet\n"),
    ("etc/sysctl.d/50-mine.conf", "vm.swappiness = 10\n"),
];

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in FILES {
        let path = dir.path().join("root").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command.args(args).arg("--root").arg(dir.join("root"));
    if args[0] == "tune" && args[1] != "plan" {
        command.arg("--state-dir").arg(dir.join("state"));
    }
    command
        .env("JITTERSCOPE_RUNS", dir.join("runs"))
        .output()
        .unwrap()
}

fn json(document: &str, output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    crate::schema_check::conforms(document, &value);
    value
}

#[test]
fn wrong_arguments_end_with_two_and_change_nothing() {
    let dir = machine();
    for args in [
        ["tune", "plan", "--profile", "isolation", "--cpus", "0-3"].as_slice(),
        &["tune", "plan", "--profile", "isolation", "--cpus", "0"],
        &["tune", "plan", "--profile", "isolation", "--cpus", "9"],
        &["tune", "plan", "--only", "no-such", "--cpus", "3"],
        &["tune", "plan", "--cpus", "3"],
        &["tune", "apply", "--only", "vmstat", "--cpus", "3"],
        &["audit", "--explain", "no-such"],
    ] {
        let output = run(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(
        fs::read_to_string(dir.path().join("root/proc/sys/vm/stat_interval")).unwrap(),
        "1\n"
    );
}

#[test]
fn applied_shown_drifted_and_rolled_back() {
    let dir = machine();
    let read = |file: &str| fs::read_to_string(dir.path().join("root").join(file)).unwrap();
    let audit = json(
        "audit",
        &run(dir.path(), &["audit", "--cpus", "3", "--json"]),
    );
    assert_eq!(audit["schema_version"], 2);
    let vmstat = audit["knobs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["id"] == "vmstat")
        .unwrap();
    assert_eq!(
        (&vmstat["state"], &vmstat["current"]),
        (&Value::from("wrong"), &Value::from("1"))
    );

    let only = ["--only", "vmstat,irq-aff,thp", "--cpus", "3", "--persist"];
    let plan = json(
        "tune-plan",
        &run(
            dir.path(),
            &[&["tune", "plan", "--json"], only.as_slice()].concat(),
        ),
    );
    let first = &plan["changes"][0];
    for (key, value) in [
        ("knob", "vmstat"),
        ("path", "/proc/sys/vm/stat_interval"),
        ("from", "1"),
        ("to", "60"),
    ] {
        assert_eq!(first[key], value);
    }
    assert_eq!(plan["boot"]["add"][0], "irqaffinity=0-2");

    let applied = run(
        dir.path(),
        &[&["tune", "apply", "--yes", "--json"], only.as_slice()].concat(),
    );
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    assert_eq!(
        json("tune-apply", &applied)["applied"][0]["outcome"],
        "applied"
    );
    assert_eq!(
        read("sys/kernel/mm/transparent_hugepage/enabled"),
        "always [madvise] never\n"
    );
    assert!(read("etc/sysctl.d/99-zz-jitterscope.conf").contains("vm.stat_interval = 60\n"));

    fs::write(dir.path().join("root/proc/sys/vm/stat_interval"), "7\n").unwrap();
    let status = json(
        "tune-status",
        &run(dir.path(), &["tune", "status", "--json"]),
    );
    assert_eq!(status["active"], true);
    assert!(
        status["changes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["now"] == "drifted" && c["reads"] == "7")
    );

    let rolled = run(dir.path(), &["tune", "rollback", "--yes", "--json"]);
    assert_eq!(
        rolled.status.code(),
        Some(1),
        "what somebody else has changed is not overwritten unasked"
    );
    json("tune-rollback", &rolled);
    assert_eq!(read("proc/sys/vm/stat_interval"), "7\n");
    assert_eq!(
        run(dir.path(), &["tune", "rollback", "--yes", "--force"])
            .status
            .code(),
        Some(0)
    );
    for (file, text) in FILES {
        assert_eq!(read(file), *text, "{file}");
    }
    assert!(!dir.path().join("root/etc/tmpfiles.d").exists());
    assert_eq!(
        json(
            "tune-status",
            &run(dir.path(), &["tune", "status", "--json"])
        )["active"],
        false
    );
}

#[test]
fn one_knob_is_rolled_back_by_itself() {
    let dir = machine();
    let read = |file: &str| fs::read_to_string(dir.path().join("root").join(file)).unwrap();
    let only = ["--only", "vmstat,thp", "--cpus", "3"];
    let applied = run(
        dir.path(),
        &[&["tune", "apply", "--yes"], only.as_slice()].concat(),
    );
    let text = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(
        text.starts_with("Changes for CPU 3: 2 made\n")
            && text.contains("In force later\n  - vmstat: by "),
        "{text}"
    );
    for (id, code) in [("no-such", 2), ("ksm", 2), ("vmstat", 0), ("vmstat", 2)] {
        let rolled = run(dir.path(), &["tune", "rollback", "--yes", "--only", id]);
        assert_eq!(rolled.status.code(), Some(code), "{id}: {rolled:?}");
    }
    assert_eq!(read("proc/sys/vm/stat_interval"), "1\n");
    assert_eq!(
        read("sys/kernel/mm/transparent_hugepage/enabled"),
        "always [madvise] never\n"
    );
    let status = json(
        "tune-status",
        &run(dir.path(), &["tune", "status", "--json"]),
    );
    assert_eq!(
        (&status["active"], &status["rolled_back"][0]),
        (&Value::from(true), &Value::from("vmstat"))
    );
    assert_eq!(status["settling"][0]["knob"], "vmstat");
    assert_eq!(status["settling"][0]["in_force_by"]["when"], "at_latest");
    let text = run(dir.path(), &["tune", "status"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("Rolled back automatically: vmstat\n"),
        "{text}"
    );
    assert_eq!(
        run(dir.path(), &["tune", "rollback", "--yes"])
            .status
            .code(),
        Some(0)
    );
    // Nothing is applied, but it is still in effect.
    let text = run(dir.path(), &["tune", "status"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.starts_with(
            "Nothing is applied.\n\nRolled back, in force again later\n  - vmstat: by "
        ),
        "{text}"
    );
}

#[test]
fn what_was_named_and_not_done_is_an_error_with_the_last_word() {
    let dir = machine();
    // A kernel with pressure-stall figures, which only a boot parameter turns off.
    fs::create_dir_all(dir.path().join("root/proc/pressure")).unwrap();
    let apply = |ids: &str| {
        run(
            dir.path(),
            &["tune", "apply", "--yes", "--only", ids, "--cpus", "3"],
        )
    };
    let last_word = |ids: &str| {
        let output = apply(ids);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            text.lines().last().unwrap_or_default().to_owned(),
        )
    };
    let (code, said) = last_word("psi,vmstat");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("not applied: psi: ") && !said.contains("vmstat"),
        "{said}"
    );
    // It has the wanted value already: nothing was refused.
    let (code, said) = last_word("vmstat");
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(
        String::from_utf8_lossy(&apply("vmstat").stdout).contains("there was nothing to change")
    );
    let (code, said) = last_word("governor");
    assert!(
        code == Some(1) && said.contains("not applied: governor: "),
        "{said}"
    );
}

#[test]
fn a_plan_of_many_changes_fits_one_screen() {
    let dir = machine();
    for irq in 100..260 {
        let folder = dir.path().join(format!("root/proc/irq/{irq}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("smp_affinity_list"), "0-3\n").unwrap();
        fs::write(folder.join("effective_affinity_list"), "3\n").unwrap();
    }
    let args = ["tune", "plan", "--profile", "isolation", "--cpus", "3"];
    let output = run(dir.path(), &args);
    let text = String::from_utf8_lossy(&output.stdout);
    let plan = json(
        "tune-plan",
        &run(dir.path(), &[&args[..], &["--json"]].concat()),
    );
    assert!(plan["changes"].as_array().unwrap().len() > 100, "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn interrupts_of_this_machine_are_printed_as_described() {
    // The timer interrupt of some CPU rises in this time.
    let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args([
            "tune",
            "interrupts",
            "--json",
            "--cpus",
            "all",
            "--for",
            "2s",
        ])
        .output()
        .unwrap();
    let found = json("tune-interrupts", &output);
    let rose = found["rose"].as_array().unwrap();
    assert!(!rose.is_empty(), "{found}");
    for line in rose {
        let cpus = line["cpus"].as_array().unwrap();
        assert!(
            cpus.iter()
                .any(|of| of["after"].as_u64() > of["before"].as_u64())
        );
    }
}
