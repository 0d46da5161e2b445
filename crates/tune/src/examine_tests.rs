//! Each sort of knob on a machine of a few files: its state, the found and wanted values, and the changes.

use super::*;
use crate::catalogue;
use crate::fake_machine::{FakeMachine, goal};
use jitterscope_model::CpuId;

const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// Examines a knob on a machine of these files, with CPUs 2 and 3 isolated.
fn examined_on(fake: &FakeMachine, id: &str, housekeeping: &str) -> Examination {
    let goal = goal("2-3", housekeeping);
    Inspection::new(&fake.machine, &goal).examine(catalogue::find(id).unwrap())
}

fn examined(id: &str, files: &[(&str, &str)]) -> Examination {
    examined_on(&FakeMachine::of(files), id, "0-1")
}

fn is_unavailable(found: &Examination) -> bool {
    matches!(found.state, KnobState::Unavailable(_)) && found.ops.is_empty()
}

fn values(found: &Examination) -> usize {
    match &found.wanted {
        Some(Wanted::Values { values }) => values.len(),
        other => panic!("{other:?}"),
    }
}

fn file(path: &str, reads: &str, in_force: Option<&str>) -> FileValue {
    FileValue {
        path: path.into(),
        reads: reads.into(),
        in_force: in_force.map(str::to_owned),
    }
}

#[test]
fn files_are_counted_and_the_first_that_is_wrong_is_named() {
    let path = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let paths: Vec<String> = (0..4).map(path).collect();
    let of = |texts: &[&'static str]| {
        let files: Vec<(&str, &str)> = paths
            .iter()
            .map(String::as_str)
            .zip(texts.iter().copied())
            .collect();
        let found = examined("governor", &files);
        (
            found.state.clone(),
            found.found.clone(),
            found.ops.len(),
            found,
        )
    };
    let (right, wrong) = ("performance\n", "powersave\n");
    let (state, reported, ops, found) = of(&[right; 4]);
    assert_eq!(
        (state, reported, ops),
        (
            KnobState::Fine,
            Some(Finding::FilesAsWanted { files: 4 }),
            0
        )
    );
    assert_eq!((values(&found), found.notice), (1, None));
    let (state, reported, ops, _) = of(&[right, wrong, wrong, right]);
    let first = file(&path(1), "powersave", None);
    let expected = Finding::FilesWrong {
        wrong: 2,
        files: 4,
        first,
    };
    assert_eq!(
        (state, reported, ops),
        (KnobState::Wrong, Some(expected), 2)
    );
    // A single file is reported with its value, right or wrong.
    let (state, reported, ..) = of(&[wrong]);
    assert_eq!(
        (state, reported),
        (
            KnobState::Wrong,
            Some(Finding::File(file(&path(0), "powersave", None)))
        )
    );
    let (state, reported, ..) = of(&[right]);
    assert_eq!(
        (state, reported),
        (
            KnobState::Fine,
            Some(Finding::File(file(&path(0), "performance", None)))
        )
    );
    assert!(is_unavailable(&of(&[]).3));
}

#[test]
fn a_wanted_value_is_reported_once_and_for_existing_files_only() {
    let default = ("/proc/sys/net/core/rps_default_mask", "f\n");
    let queue = ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "f\n");
    assert_eq!(
        values(&examined("rps", &[default, queue])),
        1,
        "both the same"
    );
    let turbo = ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    let boost = ("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    assert_eq!(values(&examined("turbo", &[turbo])), 1);
    assert_eq!(values(&examined("turbo", &[turbo, boost])), 2);
}

#[test]
fn interrupts_that_are_still_in_force_on_isolated_cpus_move_later() {
    let paths: Vec<[String; 2]> = (0..4)
        .map(|irq| {
            ["smp_affinity_list", "effective_affinity_list"]
                .map(|name| format!("/proc/irq/{irq}/{name}"))
        })
        .collect();
    let of = |texts: &[(&'static str, &'static str)]| {
        let both = paths
            .iter()
            .zip(texts)
            .flat_map(|([list, effective], (now, in_force))| {
                [(list.as_str(), *now), (effective.as_str(), *in_force)]
            });
        examined("irq-aff", &both.collect::<Vec<_>>())
    };
    // One is elsewhere already, two were requested and have not moved, and one is still to be requested.
    let found = of(&[
        ("0-1\n", "1\n"),
        ("0-1\n", "2\n"),
        ("0\n", "3\n"),
        ("0-3\n", "3\n"),
    ]);
    assert_eq!(
        (found.notice, found.ops.len()),
        (Some(Notice::MoveLater { interrupts: 2 }), 1)
    );
    let found = of(&[("0-1\n", "1\n"), ("0-1\n", "\n")]);
    assert_eq!((found.notice, found.state), (None, KnobState::Fine));
    // The effective value is reported if it differs from the set value.
    let shown = |effective| of(&[("0-1\n", effective)]).found;
    let path = "/proc/irq/0/smp_affinity_list";
    assert_eq!(
        shown("1\n"),
        Some(Finding::File(file(path, "0-1", Some("1"))))
    );
    assert_eq!(shown("0-1\n"), Some(Finding::File(file(path, "0-1", None))));
}

#[test]
fn a_knob_all_of_whose_files_are_denied_is_unreadable() {
    use std::os::unix::fs::PermissionsExt;
    let fake = FakeMachine::of(&[
        ("/sys/class/net/a/threaded", "1\n"),
        ("/sys/class/net/b/threaded", "1\n"),
    ]);
    let deny = |path: &str| {
        let path = fake.machine.path(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    };
    deny("/sys/class/net/a/threaded");
    if fake.machine.read("/sys/class/net/a/threaded").is_ok() {
        jitterscope_testing::skip("root is denied nothing");
        return;
    }
    let found = examined_on(&fake, "napi-thread", "0-1");
    assert_eq!(
        (found.state, found.found),
        (KnobState::Fine, Some(Finding::FilesAsWanted { files: 2 }))
    );
    deny("/sys/class/net/b/threaded");
    let found = examined_on(&fake, "napi-thread", "0-1");
    assert!(
        matches!(found.state, KnobState::Unreadable(_)),
        "{:?}",
        found.state
    );
    assert_eq!(found.found, None);
}

/// A machine with these threads: (pid, name, flags, allowed CPUs).
fn with_threads(threads: &[(u32, &str, u64, &str)]) -> FakeMachine {
    let fake = FakeMachine::of(&[("/proc/cmdline", "quiet\n")]);
    for (pid, comm, flags, cpus) in threads {
        let parent = if flags & PF_KTHREAD != 0 { 2 } else { 1 };
        let stat =
            format!("{pid} ({comm}) S {parent} 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n");
        fake.put(&format!("/proc/{pid}/task/{pid}/stat"), &stat);
        fake.put(
            &format!("/proc/{pid}/task/{pid}/status"),
            &format!("Cpus_allowed_list:\t{cpus}\n"),
        );
    }
    fake
}

#[test]
fn movable_threads_are_moved_and_others_are_reported() {
    let bound = PF_KTHREAD | PF_NO_SETAFFINITY;
    let fake = with_threads(&[
        (10, "anywhere", PF_KTHREAD, "0-3"),
        (11, "bound here", bound, "2"),
        (12, "bound across", bound, "1-2"),
        (13, "here alone", PF_KTHREAD, "2-3"),
        (14, "elsewhere", PF_KTHREAD, "0-1"),
        (20, "program", 0, "1-2"),
        (21, "pinned", 0, "3"),
        // On a fake machine it is an ordinary process.
        (std::process::id(), "like ourselves", 0, "0-1"),
    ]);
    let left = |tid, comm: &str, because| Left {
        comm: comm.into(),
        tid,
        because,
    };
    let moved = |found: &Examination| -> Vec<(String, String)> {
        found
            .ops
            .iter()
            .map(|op| (op.what(), op.to_text()))
            .collect()
    };
    let kernel = examined_on(&fake, "kthread-aff", "0-1");
    assert_eq!(
        (kernel.state.clone(), kernel.wanted.clone()),
        (KnobState::Wrong, Some(Wanted::NoThreads))
    );
    assert_eq!(
        moved(&kernel),
        [("thread 10 (anywhere)".into(), "0-1".into())]
    );
    assert_eq!(
        kernel.left,
        [
            left(11, "bound here", Stays::BoundToCpu),
            left(12, "bound across", Stays::Immovable),
            left(13, "here alone", Stays::OnIsolatedOnly),
        ]
    );
    let some = vec!["anywhere".to_owned()];
    assert_eq!(
        kernel.found,
        Some(Finding::ThreadsHere {
            movable: 1,
            threads: 5,
            kernel: true,
            some
        })
    );
    let user = examined_on(&fake, "systemd-aff", "0-1");
    assert_eq!(moved(&user), [("thread 20 (program)".into(), "1".into())]);
    assert_eq!(user.left, [left(21, "pinned", Stays::PinnedThere)]);
    let some = vec!["program".to_owned()];
    assert_eq!(
        user.found,
        Some(Finding::ThreadsHere {
            movable: 1,
            threads: 3,
            kernel: false,
            some
        })
    );
}

#[test]
fn three_threads_are_named_and_none_where_none_can_be_moved() {
    let names = ["a", "b", "c", "d"];
    let threads: Vec<(u32, &str, u64, &str)> = (10..)
        .zip(names)
        .map(|(pid, name)| (pid, name, PF_KTHREAD, "0-3"))
        .collect();
    match examined_on(&with_threads(&threads), "kthread-aff", "0-1").found {
        Some(Finding::ThreadsHere { movable, some, .. }) => {
            assert_eq!(
                (movable, some),
                (
                    4,
                    names[..3].iter().map(|name| (*name).to_owned()).collect()
                )
            );
        }
        other => panic!("{other:?}"),
    }
    let fine = examined_on(
        &with_threads(&[(14, "elsewhere", PF_KTHREAD, "0-1")]),
        "kthread-aff",
        "0-1",
    );
    let none = Finding::NoThreadsHere {
        threads: 1,
        kernel: true,
    };
    assert_eq!((fine.state, fine.found), (KnobState::Fine, Some(none)));
    assert!(is_unavailable(&examined_on(
        &with_threads(&[(20, "program", 0, "0-3")]),
        "kthread-aff",
        "0-1"
    )));
}

#[test]
fn what_needs_housekeeping_cpus_does_not_apply_without() {
    let fake = with_threads(&[(10, "k", PF_KTHREAD, "0-3"), (20, "u", 0, "0-3")]);
    fake.put("/sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    for id in ["kthread-aff", "systemd-aff", "cpuset-part"] {
        assert_eq!(
            examined_on(&fake, id, "").state,
            KnobState::NotApplicable(KnobReason::NoHousekeeping)
        );
        assert_eq!(
            examined_on(&fake, id, "0-1").state,
            KnobState::Wrong,
            "{id}"
        );
    }
}

#[test]
fn a_partition_is_wrong_until_it_is_there() {
    let controllers = ("/sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    let wanted = || {
        Some(Wanted::Partition {
            cpus: "2-3".parse().unwrap(),
        })
    };
    let found = examined("cpuset-part", &[controllers]);
    assert_eq!(
        (found.state, found.found, found.wanted),
        (KnobState::Wrong, Some(Finding::NoneIsolated), wanted())
    );
    assert!(!found.ops.is_empty() && found.notice.is_some());
    let found = examined(
        "cpuset-part",
        &[
            controllers,
            ("/sys/fs/cgroup/cpuset.cpus.isolated", "2-3\n"),
        ],
    );
    let isolated = Some(Finding::Isolated {
        cpus: "2-3".parse().unwrap(),
    });
    assert_eq!(
        (found.state, found.found, found.wanted),
        (KnobState::Fine, isolated, wanted())
    );
    assert!(found.ops.is_empty() && found.notice.is_some());
    assert!(is_unavailable(&examined("cpuset-part", &[])));
}

#[test]
fn cpus_that_can_go_offline_can_blink() {
    let online = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let (here, elsewhere) = (online(3), online(1));
    let found = examined("cpu-blink", &[(&here, "1\n"), (&elsewhere, "1\n")]);
    assert_eq!(
        found.state,
        KnobState::NotApplicable(KnobReason::LeavesNoTrace)
    );
    assert_eq!(
        (found.ops, found.wanted),
        (vec![Op::Blink { cpu: CpuId(3) }], Some(Wanted::Once))
    );
    assert!(is_unavailable(&examined(
        "cpu-blink",
        &[(&elsewhere, "1\n")]
    )));
}

#[test]
fn a_boot_parameter_is_looked_for_on_the_command_line() {
    let of = |id: &str, line: &str| {
        let found = examined(id, &[("/proc/cmdline", line)]);
        let missing: Vec<&str> = found.boot.iter().map(|param| param.key).collect();
        (found.state, found.found.unwrap(), missing)
    };
    let parameters = |text: &str| Finding::BootParameters {
        parameters: vec![text.into()],
    };
    assert_eq!(
        of("threadirqs", "quiet"),
        (KnobState::Wrong, Finding::NotOnBootLine, vec!["threadirqs"])
    );
    assert_eq!(
        of("threadirqs", "threadirqs"),
        (KnobState::Fine, parameters("threadirqs"), vec![])
    );
    assert_eq!(
        of("idle-poll", "idle=halt"),
        (KnobState::Wrong, parameters("idle=halt"), vec!["idle"])
    );
    assert_eq!(
        of("rcu-nocbs", "nohz_full=2-3"),
        (KnobState::Fine, Finding::ImpliedByNohzFull, vec![])
    );
    let both = "nohz_full=2-3 rcu_nocbs=2-3";
    assert_eq!(
        of("rcu-nocbs", both),
        (KnobState::Fine, parameters("rcu_nocbs=2-3"), vec![])
    );
    let wanted = examined("rcu-nocbs", &[]).wanted;
    assert_eq!(
        wanted,
        Some(Wanted::BootParameters {
            parameters: vec!["rcu_nocbs=2-3".into()]
        })
    );
}

#[test]
fn what_does_not_matter_here_is_wrong_for_nobody_but_who_names_it() {
    let aspm = (
        "/sys/module/pcie_aspm/parameters/policy",
        "[default] performance\n",
    );
    let delay = (
        "/sys/module/rcutree/parameters/nohz_full_patience_delay",
        "0\n",
    );
    let (cpu, guest) = (
        ("/proc/cpuinfo", "flags : fpu\n"),
        ("/proc/cpuinfo", "flags : fpu hypervisor\n"),
    );
    let full = |list| ("/sys/devices/system/cpu/nohz_full", list);
    let wrong = KnobState::Wrong;
    let moot = KnobState::NotApplicable;
    for (knob, files, judged) in [
        ("aspm", [aspm, cpu], wrong.clone()),
        ("aspm", [aspm, guest], moot(KnobReason::LinksOfHost)),
        ("rcu-patience", [delay, full("2-3\n")], wrong.clone()),
        (
            "rcu-patience",
            [delay, full("(null)\n")],
            moot(KnobReason::NoFullDynticks),
        ),
    ] {
        let fake = FakeMachine::of(&files);
        let goal = goal("2-3", "0-1");
        let inspection = Inspection::new(&fake.machine, &goal);
        let knob = catalogue::find(knob).unwrap();
        let found = inspection.judge(knob);
        assert_eq!(found.state, judged, "{} {files:?}", knob.id);
        assert_eq!(
            found.ops.is_empty() && found.boot.is_empty(),
            judged != wrong
        );
        assert_eq!(inspection.examine(knob).state, wrong);
    }
}

#[test]
fn what_a_boot_parameter_did_is_read_where_the_kernel_shows_it() {
    let full = "/sys/devices/system/cpu/nohz_full";
    let dynticks = |text| {
        let found = examined("nohz-full", &[(full, text)]);
        (found.state, found.found)
    };
    let cpus = |list: &str| {
        Some(Finding::Cpus {
            cpus: list.parse().unwrap(),
        })
    };
    assert_eq!(dynticks("2-3\n"), (KnobState::Fine, cpus("2-3")));
    assert_eq!(dynticks("1-7\n"), (KnobState::Fine, cpus("1-7")));
    assert_eq!(dynticks("2\n"), (KnobState::Wrong, cpus("2")));
    assert!(is_unavailable(&examined("nohz-full", &[])));
    let delay = "/sys/module/rcutree/parameters/nohz_full_patience_delay";
    let patience = |text| {
        let found = examined("rcu-patience", &[(delay, text)]);
        (found.state, found.found)
    };
    let reads = |value: &str| {
        Some(Finding::Value {
            value: value.into(),
        })
    };
    assert_eq!(patience("1000\n"), (KnobState::Fine, reads("1000")));
    assert_eq!(patience("0\n"), (KnobState::Wrong, reads("0")));
    assert!(is_unavailable(&examined("rcu-patience", &[])));
    let pressure = examined("psi", &[("/proc/pressure/cpu", "")]);
    let path = || "/proc/pressure".to_owned();
    let there = Some(Finding::FileThere { path: path() });
    assert_eq!((pressure.state, pressure.found), (KnobState::Wrong, there));
    let gone = examined("psi", &[]);
    assert_eq!(
        (gone.state, gone.found),
        (KnobState::Fine, Some(Finding::FileGone { path: path() }))
    );
}

#[test]
fn a_cpuset_replaces_the_boot_parameter_only_for_domains() {
    let cpuset = [
        ("/sys/fs/cgroup/cgroup.controllers", "cpuset\n"),
        ("/sys/fs/cgroup/cpuset.cpus.isolated", "2-3\n"),
        ("/sys/devices/system/cpu/isolated", "\n"),
        ("/sys/devices/system/cpu/nohz_full", "\n"),
    ];
    let domain = |files: &[(&str, &str)]| {
        let found = examined("isolcpus-domain", files);
        (found.state, found.found)
    };
    assert_eq!(
        domain(&cpuset),
        (KnobState::Fine, Some(Finding::CpusetInstead))
    );
    // If it is missing or not as wanted, the kernel's value counts.
    let none = (
        KnobState::Wrong,
        Some(Finding::Cpus {
            cpus: CpuSet::new(),
        }),
    );
    assert_eq!(domain(&cpuset[2..]), none);
    assert_eq!(domain(&[cpuset[0], cpuset[2]]), none);
    let at_boot = Some(Finding::Cpus {
        cpus: "2-3".parse().unwrap(),
    });
    let booted = [
        cpuset[0],
        cpuset[1],
        ("/sys/devices/system/cpu/isolated", "2-3\n"),
    ];
    assert_eq!(domain(&booted), (KnobState::Fine, at_boot));
    assert_eq!(examined("nohz-full", &cpuset).state, KnobState::Wrong);
}
