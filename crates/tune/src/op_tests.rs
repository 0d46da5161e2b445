//! Each kind of change: its texts, its state, and the result of undoing it.

use super::*;
use crate::fake_machine::FakeMachine;
use crate::machine_writer::HostWriter;
use rustix::io::Errno;

fn write(path: &str, kind: ValueKind, from: Option<&str>, to: &str) -> Op {
    Op::Write {
        path: path.into(),
        kind,
        from: from.map(str::to_owned),
        to: to.into(),
        effective: None,
    }
}

fn thread(from: &str, to: &str) -> Op {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    Op::Thread {
        pid: 7,
        tid: 8,
        start_time: 55,
        comm: "app".into(),
        from,
        to,
    }
}

fn file(from: Option<&str>, to: &str) -> Op {
    Op::PutFile {
        path: "/etc/x.conf".into(),
        from: from.map(str::to_owned),
        to: to.into(),
        access: None,
    }
}

fn folder(cgroup: bool) -> Op {
    Op::MakeDir {
        path: "/cg/ours".into(),
        cgroup,
    }
}

/// A machine with this thread.
fn running(start_time: u64, cpus: &str) -> FakeMachine {
    let stat = format!("8 (app) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start_time} 0 0\n");
    let status = format!("Name:\tapp\nCpus_allowed_list:\t{cpus}\n");
    FakeMachine::of(&[
        ("/proc/7/task/8/stat", &stat),
        ("/proc/7/task/8/status", &status),
    ])
}

#[test]
fn a_refusal_names_what_was_refused() {
    let of = |op: &Op, errno: Errno| {
        let (class, meaning) = classify(op, &io::Error::from(errno));
        let why = io::Error::from(errno).to_string();
        let outcome = Outcome::Refused {
            class,
            why,
            means: Some(meaning),
        };
        assert_eq!(op.refused(&io::Error::from(errno)), outcome);
        class
    };
    let irq = write(
        "/proc/irq/5/smp_affinity_list",
        ValueKind::CpuList,
        None,
        "0",
    );
    let other = write("/proc/irq/5/smp_affinity", ValueKind::CpuMask, None, "1");
    let sysctl = write("/proc/sys/a_list", ValueKind::Number, None, "1");
    assert_eq!(
        [of(&irq, Errno::IO), of(&irq, Errno::PERM)],
        [Refusal::Managed; 2]
    );
    for op in [&other, &sysctl] {
        assert_eq!(
            [of(op, Errno::IO), of(op, Errno::PERM)],
            [Refusal::Other, Refusal::NotPermitted]
        );
    }
    for op in [&irq, &sysctl, &thread("0", "1")] {
        assert_eq!(of(op, Errno::INVAL), Refusal::Invalid);
        assert_eq!(of(op, Errno::BUSY), Refusal::Busy);
        assert_eq!(
            [of(op, Errno::ACCESS), of(op, Errno::ROFS)],
            [Refusal::NotPermitted, Refusal::ReadOnly]
        );
        assert_eq!(of(op, Errno::NOSPC), Refusal::Other);
    }
    let means = |op: &Op, errno: Errno| classify(op, &io::Error::from(errno)).1;
    assert_eq!(means(&thread("0", "1"), Errno::INVAL), Meaning::BoundThread);
    assert_eq!(means(&sysctl, Errno::INVAL), Meaning::ValueNotTaken);
    assert_eq!(
        means(&thread("0", "1"), Errno::BUSY),
        Meaning::DeadlineThread
    );
    assert_eq!(means(&sysctl, Errno::BUSY), Meaning::InUse);
    assert_eq!(means(&irq, Errno::PERM), Meaning::KernelPlaces);
    assert_eq!(
        classify(&sysctl, &io::Error::other("odd")).0,
        Refusal::Other
    );
}

#[test]
fn a_change_says_what_it_changes_from_what_to_what() {
    let choice = write("/a", ValueKind::Choice, Some("x [y] z\n"), "z");
    for (op, what, from, to) in [
        (choice, "/a", "y", "z"),
        (
            write("/a", ValueKind::Text, None, "z\n"),
            "/a",
            "(made in this step)",
            "z",
        ),
        (folder(true), "/cg/ours", "(none)", "new cgroup"),
        (folder(false), "/cg/ours", "(none)", "new folder"),
        (thread("0-3", "0"), "thread 8 (app)", "0-3", "0"),
        (
            Op::Blink { cpu: CpuId(5) },
            "/sys/devices/system/cpu/cpu5/online",
            "online",
            "offline, then online",
        ),
        (file(None, "a\nb\n"), "/etc/x.conf", "(none)", "2 lines"),
        (
            file(Some("a\n"), "a\nb\nc\n"),
            "/etc/x.conf",
            "1 lines",
            "3 lines",
        ),
    ] {
        assert_eq!(
            (op.what(), op.from_text(), op.to_text()),
            (what.into(), from.into(), to.into())
        );
    }
}

#[test]
fn what_is_so_already_is_known_by_value() {
    for (op, already) in [
        (write("/a", ValueKind::CpuList, Some("0,1\n"), "0-1"), true),
        (write("/a", ValueKind::CpuList, Some("0,2\n"), "0-1"), false),
        (write("/a", ValueKind::CpuList, None, "0-1"), false),
        (thread("0-1", "0,1"), true),
        (thread("0-1", "0"), false),
        (file(Some("a"), "a"), true),
        (file(Some("a"), "b"), false),
        (file(None, ""), false),
        (folder(true), false),
        (Op::Blink { cpu: CpuId(1) }, false),
    ] {
        assert_eq!(op.is_already(), already, "{op:?}");
    }
}

#[test]
fn only_what_becomes_of_the_machine_as_asked_is_a_success() {
    let text = || "x".to_owned();
    assert!(Outcome::Applied { reads: text() }.is_success());
    assert!(Outcome::Pending { effective: text() }.is_success());
    assert!(
        Outcome::Gone {
            cause: GoneBecause::ThreadEnded.into()
        }
        .is_success()
    );
    assert!(!Outcome::Ignored { reads: text() }.is_success());
    assert!(
        !Outcome::Refused {
            class: Refusal::Busy,
            why: text(),
            means: None
        }
        .is_success()
    );
}

#[test]
fn what_was_there_before_is_read_afresh() {
    let fake = running(55, "0-3");
    fake.put("/a", "now\n");
    fake.put("/etc/x.conf", "old\n");
    let captured = |op: &Op| op.captured(&fake.machine);
    assert_eq!(
        captured(&write("/a", ValueKind::Text, Some("long ago"), "z")).unwrap(),
        write("/a", ValueKind::Text, Some("now\n"), "z")
    );
    assert!(captured(&write("/none", ValueKind::Text, None, "z")).is_err());
    assert_eq!(captured(&thread("9", "0")).unwrap(), thread("0-3", "0"));
    let Op::PutFile { from, access, .. } = captured(&file(None, "new\n")).unwrap() else {
        panic!()
    };
    assert_eq!((from.as_deref(), access.is_some()), (Some("old\n"), true));
    assert_eq!(captured(&folder(true)).unwrap(), folder(true));
    // Another thread with that id.
    assert!(
        thread("9", "0")
            .captured(&running(56, "0-3").machine)
            .is_err()
    );
    assert!(
        thread("9", "0")
            .captured(&FakeMachine::of(&[]).machine)
            .is_err()
    );
}

#[test]
fn the_state_of_a_thread_follows_from_its_cpus_and_its_age() {
    let standing =
        |start_time, cpus| thread("0-3", "0-1").standing(&running(start_time, cpus).machine);
    assert_eq!(standing(55, "0-3"), Standing::Original);
    assert_eq!(standing(55, "0,1"), Standing::Ours);
    assert_eq!(standing(55, "2"), Standing::Foreign("2".into()));
    let ended = || Standing::Gone(GoneBecause::ThreadEnded);
    assert_eq!(standing(56, "0-3"), ended());
    assert_eq!(
        thread("0-3", "0-1").standing(&FakeMachine::of(&[]).machine),
        ended()
    );
}

#[test]
fn a_thread_is_moved_and_moved_back_and_one_that_has_ended_is_gone() {
    let fake = running(55, "0-3");
    let mut hands = HostWriter::new(&fake.machine);
    let op = thread("0-3", "0-1");
    assert_eq!(
        op.perform(&mut hands),
        Outcome::Applied {
            reads: "0-1".into()
        }
    );
    assert!(
        fake.text("/proc/7/task/8/status")
            .contains("Cpus_allowed_list:\t0-1\n")
    );
    op.undo(&mut hands).unwrap();
    assert!(
        fake.text("/proc/7/task/8/status")
            .contains("Name:\tapp\nCpus_allowed_list:\t0-3\n")
    );
    let mut nobody = HostWriter::new(&FakeMachine::of(&[]).machine);
    assert_eq!(
        op.perform(&mut nobody),
        Outcome::Gone {
            cause: GoneBecause::EndedUnmoved.into()
        }
    );
    // A missing file, as after a mistake.
    let missing = write("/none", ValueKind::Text, Some("a"), "b").perform(&mut nobody);
    assert!(
        matches!(
            missing,
            Outcome::Refused {
                class: Refusal::Other,
                ..
            }
        ),
        "{missing:?}"
    );
}

#[test]
fn a_value_stands_as_it_reads_in_whatever_spelling() {
    let op = write("/a", ValueKind::CpuList, Some("0-3\n"), "0-1");
    let standing = |text| op.standing(&FakeMachine::of(&[("/a", text)]).machine);
    assert_eq!(
        [standing("0,1,2,3\n"), standing("0,1\n")],
        [Standing::Original, Standing::Ours]
    );
    assert_eq!(standing("2\n"), Standing::Foreign("2".into()));
    assert!(matches!(
        op.standing(&FakeMachine::of(&[]).machine),
        Standing::Gone(GoneBecause::NoFile { .. })
    ));
    // A file that a step creates counts as unchanged until that step is made.
    let made = write("/a", ValueKind::Text, None, "x");
    assert_eq!(
        made.standing(&FakeMachine::of(&[("/a", "x\n")]).machine),
        Standing::Original
    );
    let fake = FakeMachine::of(&[]);
    std::fs::write(fake.machine.path("/a"), [0xff, 0xfe]).unwrap();
    assert!(matches!(
        op.standing(&fake.machine),
        Standing::Gone(GoneBecause::Unreadable { .. })
    ));
}

#[test]
fn an_interrupt_is_pending_while_it_is_in_force_on_another_cpu() {
    let op = |effective: &str| Op::Write {
        path: "/irq/list".into(),
        kind: ValueKind::CpuList,
        from: Some("0-3\n".into()),
        to: "0-1".into(),
        effective: Some(effective.into()),
    };
    let outcome = |in_force| {
        let fake = FakeMachine::of(&[("/irq/list", "0-3\n"), ("/irq/effective", in_force)]);
        op("/irq/effective").perform(&mut HostWriter::new(&fake.machine))
    };
    let applied = Outcome::Applied {
        reads: "0-1".into(),
    };
    assert_eq!(
        outcome("2\n"),
        Outcome::Pending {
            effective: "2".into()
        }
    );
    assert_eq!(
        [outcome("1\n"), outcome("\n")],
        [applied.clone(), applied.clone()]
    );
    let fake = FakeMachine::of(&[("/irq/list", "0-3\n")]);
    assert_eq!(
        op("/irq/effective").perform(&mut HostWriter::new(&fake.machine)),
        applied
    );
}

#[test]
fn a_blink_leaves_a_cpu_online() {
    let online = "/sys/devices/system/cpu/cpu2/online";
    let fake = FakeMachine::of(&[(online, "1\n")]);
    let op = Op::Blink { cpu: CpuId(2) };
    assert_eq!(op.standing(&fake.machine), Standing::Original);
    let mut hands = HostWriter::new(&fake.machine);
    assert_eq!(
        op.perform(&mut hands),
        Outcome::Applied {
            reads: "online".into()
        }
    );
    // A CPU that was left offline is brought back.
    fake.put(online, "0\n");
    assert_eq!(op.standing(&fake.machine), Standing::Ours);
    op.undo(&mut hands).unwrap();
    assert_eq!(fake.text(online), "1\n");
}

#[test]
fn a_cgroup_gives_its_cpus_and_its_members_back_before_it_goes() {
    let fake = FakeMachine::of(&[
        ("/cg/ours/cpuset.cpus.partition", "isolated\n"),
        ("/cg/ours/cgroup.procs", "12\n"),
        ("/cg/cgroup.procs", "1\n"),
    ]);
    let mut hands = HostWriter::new(&fake.machine);
    // On a fake machine its files prevent its removal, as members would.
    assert!(folder(true).undo(&mut hands).is_err());
    assert_eq!(fake.text("/cg/ours/cpuset.cpus.partition"), "member");
    assert_eq!(fake.text("/cg/cgroup.procs"), "12");
    std::fs::remove_dir_all(fake.machine.path("/cg/ours")).unwrap();
    assert_eq!(folder(true).standing(&fake.machine), Standing::Original);
    assert_eq!(
        folder(true).perform(&mut hands),
        Outcome::Applied {
            reads: "new cgroup".into()
        }
    );
    assert_eq!(folder(true).standing(&fake.machine), Standing::Ours);
    folder(true).undo(&mut hands).unwrap();
    assert!(!fake.machine.exists("/cg/ours"));
    // A plain folder has no members: any file in it keeps it.
    fake.put("/cg/ours/cgroup.procs", "13\n");
    assert!(folder(false).undo(&mut hands).is_err());
    assert_eq!(fake.text("/cg/cgroup.procs"), "12");
}

#[test]
fn a_drop_in_comes_and_goes_whole() {
    let fake = FakeMachine::of(&[("/etc/other", "")]);
    let mut hands = HostWriter::new(&fake.machine);
    let op = file(None, "a\n");
    assert_eq!(op.standing(&fake.machine), Standing::Original);
    assert_eq!(
        op.perform(&mut hands),
        Outcome::Applied {
            reads: "1 lines".into()
        }
    );
    assert_eq!(op.standing(&fake.machine), Standing::Ours);
    fake.put("/etc/x.conf", "edited\n");
    assert_eq!(
        op.standing(&fake.machine),
        Standing::Foreign("(edited)".into())
    );
    // A partly written file is ours and is removed, too.
    let half = unfinished("/etc/x.conf");
    std::fs::remove_file(fake.machine.path("/etc/x.conf")).unwrap();
    fake.put(&half, "a");
    assert_eq!(op.standing(&fake.machine), Standing::Ours);
    op.undo(&mut hands).unwrap();
    assert!(!fake.machine.exists(&half) && !fake.machine.exists("/etc/x.conf"));
    // An original file comes back, and its removal is reported.
    let op = file(Some("old\n"), "a\n");
    assert_eq!(
        op.standing(&fake.machine),
        Standing::Foreign("(removed)".into())
    );
    op.undo(&mut hands).unwrap();
    assert_eq!(fake.text("/etc/x.conf"), "old\n");
}

#[test]
fn what_somebody_else_may_do_with_a_drop_in_is_part_of_how_it_stands() {
    let fake = FakeMachine::of(&[("/etc/x.conf", "old\n")]);
    let now = Access::of(&std::fs::metadata(fake.machine.path("/etc/x.conf")).unwrap());
    let op = |access| match file(Some("old\n"), "a\n") {
        Op::PutFile { path, from, to, .. } => Op::PutFile {
            path,
            from,
            to,
            access,
        },
        other => other,
    };
    assert_eq!(op(Some(now)).standing(&fake.machine), Standing::Original);
    assert_eq!(op(None).standing(&fake.machine), Standing::Original);
    let other = Access {
        mode: now.mode ^ 0o020,
        ..now
    };
    assert_eq!(
        op(Some(other)).standing(&fake.machine),
        Standing::Foreign(format!("({})", now.shown()))
    );
}
