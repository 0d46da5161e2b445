use super::fake::{Fake, START};
use super::*;
use jitterscope_model::EventGrain;
use rustix::io::Errno;
use std::collections::BTreeSet;

fn settings() -> RecorderSettings {
    RecorderSettings {
        measured: "1".parse().unwrap(),
        online: "0-3".parse().unwrap(),
        clock: ClockKind::Tsc,
        buffer_kb_per_cpu: 1024,
        follow_threads: true,
        charges_later: true,
        grain: EventGrain::All,
        asked: Vec::new(),
    }
}

fn instance(role: &str) -> String {
    format!(
        "/sys/kernel/tracing/instances/jitterscope-{}-{START}-{role}",
        std::process::id()
    )
}

fn recording(fake: &Fake) -> Recorder {
    let mut recorder = Recorder::start(&fake.open(), &settings()).unwrap();
    recorder.end_pricing().unwrap();
    assert_eq!(recorder.look(true), None, "nobody wrote");
    recorder
}

/// A foreign write: the file, the value, and the value after the repair.
const CHANGES: [(&str, &str, &str); 9] = [
    ("tracing_on", "0", "1"),
    (
        "trace_clock",
        "[local] global mono_raw x86-tsc\n",
        "[x86-tsc]",
    ),
    ("tracing_cpumask", "0", "2"),
    ("set_event_pid", "77\n", ""),
    ("set_event_notrace_pid", "77\n", ""),
    ("set_event", "", "sched:sched_switch\n"),
    ("current_tracer", "blk\n", "nop"),
    (
        "events/sched/sched_switch/filter",
        "prev_pid == 1\n",
        "none",
    ),
    ("per_cpu/cpu1/buffer_size_kb", "8\n", "1024"),
];

#[test]
fn whatever_somebody_changes_is_named_and_put_right() {
    for (file, value, right) in CHANGES {
        for watched in [true, false] {
            let fake = Fake::new();
            let mut recorder = recording(&fake);
            assert!(recorder.is_watched());
            if !watched {
                recorder.stop_watching();
            }
            let path = format!("{}/{file}", instance("local"));
            fake.put(&path, value);
            // Without a watch, filters are not read at every check.
            let tampering = recorder.look(!watched).unwrap();
            let named = format!("local/{file}");
            assert!(tampering.files.contains(&named), "{file}: {tampering:?}");
            assert!(tampering.repaired, "{file}");
            let text = fake.machine().read(&path).unwrap();
            assert!(text.contains(right), "{file}: {text}");
            assert_eq!(recorder.look(true), None, "{file}: it was put right");
        }
    }
}

#[test]
fn without_a_watch_what_holds_for_the_instance_is_read_at_every_look() {
    let fake = Fake::new();
    let mut recorder = recording(&fake);
    recorder.stop_watching();
    fake.put(&format!("{}/tracing_cpumask", instance("senders")), "0");
    let tampering = recorder.look(false).unwrap();
    assert_eq!(
        tampering.files,
        ["senders/tracing_cpumask".to_owned()].into()
    );
    assert_eq!(recorder.look(false), None);
}

/// Between two checks only the watch can detect such a write.
#[test]
fn what_was_put_back_by_whoever_changed_it_is_named_all_the_same() {
    let fake = Fake::new();
    let mut recorder = recording(&fake);
    for value in ["0", "1"] {
        fake.put(&format!("{}/tracing_on", instance("local")), value);
    }
    let tampering = recorder.look(false).unwrap();
    assert_eq!(tampering.files, ["local/tracing_on".to_owned()].into());
    assert!(tampering.repaired);
    // A write that empties the buffer leaves no control changed.
    fake.put(&format!("{}/trace", instance("local")), "");
    let tampering = recorder.look(false).unwrap();
    assert_eq!(tampering.files, ["local/trace".to_owned()].into());
    // A write that adds a record does not affect ours.
    fake.put(&format!("{}/trace_marker", instance("local")), "hello");
    assert_eq!(recorder.look(false), None);
}

/// Another process may write between our check and our repair, which then restores the value.
#[test]
fn foreign_writes_during_a_repair_are_named() {
    let fake = Fake::new();
    let mut recorder = recording(&fake);
    fake.put(&format!("{}/tracing_cpumask", instance("local")), "0");
    fake.put(&format!("{}/trace", instance("senders")), "");
    let mut files = BTreeSet::new();
    assert!(recorder.repair(&mut files));
    let expected = ["local/tracing_cpumask", "senders/trace"];
    assert_eq!(files, expected.map(String::from).into());
    assert_eq!(recorder.look(true), None);
}

#[test]
fn our_own_writes_are_no_tampering() {
    let fake = Fake::new();
    let mut recorder = recording(&fake);
    recorder.record_charges().unwrap();
    assert_eq!(recorder.look(true), None);
    recorder.stop().unwrap();
    assert_eq!(recorder.look(true), None);
}

#[test]
fn events_that_somebody_adds_are_switched_off_again() {
    let fake = Fake::new();
    let mut recorder = recording(&fake);
    let list = format!("{}/set_event", instance("local"));
    let before = fake.machine().read(&list).unwrap();
    fake.put(&list, &format!("{before}task:task_rename\n"));
    assert!(recorder.look(false).unwrap().repaired);
    assert_eq!(fake.machine().read(&list).unwrap(), before);
    assert_eq!(
        fake.log().last().map(String::as_str),
        Some("local/tracing_on=1"),
        "recording goes on last"
    );
}

#[test]
fn what_cannot_be_put_right_is_said_to_be_so() {
    let fake = Fake::new();
    let mut recorder = recording(&fake);
    fake.refuse("local/tracing_on=1", Errno::PERM);
    fake.put(&format!("{}/tracing_on", instance("local")), "0");
    for _ in 0..2 {
        let tampering = recorder.look(false).unwrap();
        assert_eq!(tampering.files, ["local/tracing_on".to_owned()].into());
        assert!(!tampering.repaired);
    }
}

/// `umount -l` removes a mount from its place at once, even while it is in use.
#[test]
fn a_mount_that_is_taken_away_meanwhile_leaves_no_instance() {
    let fake = Fake::new();
    let tracefs = fake.open();
    let mut recorder = recording(&fake);
    let root = fake.machine().path("/sys/kernel/tracing");
    let away = fake.machine().path("/away");
    std::fs::rename(&root, &away).unwrap();
    std::fs::create_dir(&root).unwrap();
    std::fs::write(
        away.join("instances")
            .join(instance("local").rsplit('/').next().unwrap())
            .join("tracing_on"),
        "0",
    )
    .unwrap();
    assert!(recorder.look(false).unwrap().repaired);
    recorder.stop().unwrap();
    drop(recorder);
    assert_eq!(
        std::fs::read_dir(away.join("instances")).unwrap().count(),
        0
    );
    assert!(tracefs.take_left_behind().is_empty());
}

#[test]
fn an_instance_that_cannot_be_removed_is_reported() {
    let fake = Fake::new();
    let tracefs = fake.open();
    let recorder = Recorder::start(&tracefs, &settings()).unwrap();
    fake.refuse("rmdir senders", Errno::NOENT);
    drop(recorder);
    let left = tracefs.take_left_behind();
    let [(name, why)] = &left[..] else {
        panic!("{left:?}")
    };
    assert!(name.ends_with("-senders"), "{name}");
    assert_eq!(why.kind(), std::io::ErrorKind::NotFound);
    assert!(tracefs.take_left_behind().is_empty(), "it was told");
    assert_eq!(fake.instances(), vec![name.clone()]);
    assert_eq!(
        tracefs.leftovers()[0].name,
        *name,
        "the next start finds it"
    );
}
