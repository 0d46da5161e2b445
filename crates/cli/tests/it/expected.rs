//! `audit --write` and `audit --expect`, on a tree of files that resembles a machine.

use crate::schema_check::conforms;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "2-3\n"),
    ("proc/cpuinfo", "processor : 0\nmodel name : Fast 9000\n"),
    ("proc/cmdline", "root=/dev/sda1 isolcpus=2,3 quiet\n"),
    ("proc/sys/vm/stat_interval", "60\n"),
    ("proc/sys/kernel/random/boot_id", "b\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]\n",
    ),
];

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in FILES {
        put(dir.path(), file, text);
    }
    dir
}

fn put(dir: &Path, file: &str, text: &str) {
    let path = dir.join("root").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn audit(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .current_dir(dir)
        .arg("audit")
        .args(args)
        .args(["--root", "root"])
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_host_is_as_it_was_declared_until_a_setting_changes() {
    let machine = machine();
    let dir = machine.path();
    let made = audit(dir, &["--write", "golden.toml"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let golden = fs::read_to_string(dir.join("golden.toml")).unwrap();
    for line in [
        "\"kernel.boot_line\" = \"isolcpus=2,3 quiet\"",
        "\"processors.isolated\" = \"2-3\"",
        "\"memory.transparent_huge_pages\" = \"never\"",
        "\"vmstat\" = \"60\"",
    ] {
        assert!(golden.contains(line), "{line}: {golden}");
    }
    // Another disk is no other state.
    put(dir, "proc/cmdline", "root=/dev/vda7 isolcpus=2,3  quiet\n");
    let same = audit(dir, &["--expect", "golden.toml"]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    assert!(text(&same).starts_with("All "), "{same:?}");

    put(dir, "proc/cmdline", "root=/dev/vda7 quiet nosmt\n");
    put(dir, "sys/devices/system/cpu/isolated", "\n");
    put(dir, "proc/sys/vm/stat_interval", "1\n");
    let other = audit(dir, &["--expect", "golden.toml"]);
    assert_eq!(other.status.code(), Some(3), "{other:?}");
    // Long values go on in the next line.
    let said = text(&other);
    let said = Vec::from_iter(said.split_whitespace()).join(" ");
    for part in [
        " settings are not as golden.toml declares.",
        "declared but missing here: isolcpus=2,3; only here: nosmt",
        "2-3 declared, nothing here",
        "60 declared, 1 here",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("another type"), "{said}");
    let json = audit(dir, &["--expect", "golden.toml", "--json"]);
    assert_eq!(json.status.code(), Some(3));
    let found: Value = serde_json::from_str(&text(&json)).unwrap();
    conforms("audit-expect", &found);
    let deviations = found["deviations"].as_array().unwrap();
    let vmstat = deviations
        .iter()
        .find(|of| of["what"] == "tuning.settings.vmstat")
        .unwrap_or_else(|| panic!("{found}"));
    assert_eq!(
        (&vmstat["declared"], &vmstat["here"], &vmstat["state"]),
        (&"60".into(), &"1".into(), &"differs".into())
    );
}

#[test]
fn a_declaration_of_another_type_of_machine_says_what_does_not_apply() {
    let machine = machine();
    let dir = machine.path();
    assert_eq!(
        audit(dir, &["--write", "golden.toml"]).status.code(),
        Some(0)
    );
    put(dir, "proc/cpuinfo", "processor : 0\nmodel name : Slow 1\n");
    fs::remove_file(dir.join("root/sys/kernel/mm/transparent_hugepage/enabled")).unwrap();
    let output = audit(dir, &["--expect", "golden.toml"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = text(&output);
    for part in [
        "golden.toml describes another type of machine",
        "Fast 9000 declared, Slow 1 here",
        "never declared; does not exist here",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_file_that_declares_nothing_ends_with_two_and_names_the_line() {
    let machine = machine();
    let dir = machine.path();
    for (file, says) in [
        (
            "version = 1\n[machine]\n\nkernel.relase = \"6.1\"\n",
            "bad.toml: line 4: there is no setting 'kernel.relase'",
        ),
        (
            "version = 1\n[knobs]\n\"vm\\u001b[2J\" = 1\n",
            "line 3: there is no knob 'vm\\x1b[2J'",
        ),
        ("version = 1\n[mach", "line 2: "),
        ("", "it has no line `version = 1`"),
    ] {
        fs::write(dir.join("bad.toml"), file).unwrap();
        let output = audit(dir, &["--expect", "bad.toml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{says}: {said}");
    }
    let endless = audit(dir, &["--expect", "/dev/zero"]);
    assert_eq!(endless.status.code(), Some(1), "{endless:?}");
    let missing = audit(dir, &["--expect", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let both = audit(dir, &["--expect", "bad.toml", "--cpus", "1"]);
    assert_eq!(both.status.code(), Some(2), "{both:?}");
}
