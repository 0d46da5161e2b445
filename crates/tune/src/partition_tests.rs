//! Machines with either kind of cpusets, unchanged and halfway to the goal.

use super::*;
use crate::fake_machine::{FakeMachine, goal};

const V2: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
    ("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n"),
];
const OURS: &str = "/sys/fs/cgroup/jitterscope.isolated";
const ISOLATED: (&str, &str) = ("/sys/devices/system/cpu/isolated", "2-3\n");

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn found(files: &[&[(&str, &str)]]) -> Option<Partition> {
    let files: Vec<(&str, &str)> = files.iter().flat_map(|some| some.iter()).copied().collect();
    look(&FakeMachine::of(&files).machine, &goal("2-3", "0-1"))
}

/// A short form of each change.
fn steps(partition: &Partition) -> Vec<String> {
    let step = |op: &Op| format!("{}: {} -> {}", op.what(), op.from_text(), op.to_text());
    partition.ops.iter().map(step).collect()
}

#[test]
fn a_machine_without_cpusets_has_none() {
    assert_eq!(found(&[]), None);
    assert_eq!(
        found(&[&[("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")]]),
        None
    );
}

#[test]
fn a_partition_is_made_step_by_step() {
    let fresh = found(&[&V2]).unwrap();
    assert_eq!(fresh.found, Finding::NoneIsolated);
    assert_eq!(fresh.wanted, Wanted::Partition { cpus: cpus("2-3") });
    assert_eq!(fresh.use_it, Notice::StartInGroup { group: OURS.into() });
    assert_eq!(
        steps(&fresh),
        [
            "/sys/fs/cgroup/cgroup.subtree_control: cpu -> +cpuset".to_owned(),
            format!("{OURS}: (none) -> new cgroup"),
            format!("{OURS}/cpuset.cpus: (made in this step) -> 2-3"),
            format!("{OURS}/cpuset.cpus.partition: (made in this step) -> isolated"),
        ]
    );
    // The controller is already delegated, and the group exists with another CPU.
    let (list, state) = (
        format!("{OURS}/cpuset.cpus"),
        format!("{OURS}/cpuset.cpus.partition"),
    );
    let on = [("/sys/fs/cgroup/cgroup.subtree_control", "cpuset\n")];
    let half = found(&[&V2[..1], &on, &[(&list, "2\n"), (&state, "isolated\n")]]).unwrap();
    let ours = Finding::OwnPartition {
        group: OURS.into(),
        state: "isolated".into(),
        cpus: cpus("2"),
    };
    assert_eq!(half.found, ours);
    assert_eq!(
        steps(&half),
        [
            format!("{list}: 2 -> 2-3"),
            format!("{state}: isolated -> isolated")
        ]
    );
    // An invalid partition contains no CPU.
    let void = found(&[
        &V2[..1],
        &on,
        &[(&list, "2-3\n"), (&state, "isolated invalid (x)\n")],
    ])
    .unwrap();
    assert_eq!(void.ops.len(), 2);
    let done = found(&[&V2, &[(&list, "2-3\n"), (&state, "isolated\n")]]).unwrap();
    assert!(done.ops.is_empty(), "{done:?}");
    assert_eq!(done.use_it, Notice::StartInGroup { group: OURS.into() });
    assert_eq!(done.found, Finding::Isolated { cpus: cpus("2-3") });
}

#[test]
fn cpus_that_others_isolated_need_no_partition_of_ours() {
    let root = [("/sys/fs/cgroup/cpuset.cpus.isolated", "2-3\n")];
    for held in [&[ISOLATED][..], &root] {
        let partition = found(&[&V2, held]).unwrap();
        assert!(partition.ops.is_empty());
        assert_eq!(partition.use_it, Notice::PinPrograms { cpus: cpus("2-3") });
    }
    let one = found(&[&V2, &[("/sys/devices/system/cpu/isolated", "3\n")]]).unwrap();
    assert_eq!(
        (one.found, one.ops.len()),
        (Finding::Isolated { cpus: cpus("3") }, 4)
    );
}

/// A cpuset of version 1: its files for `cpus` and load balancing.
fn v1(group: &str, cpus: &'static str, balances: &'static str) -> [(String, &'static str); 3] {
    let file = |name: &str| format!("/sys/fs/cgroup/cpuset{group}/{name}");
    [
        (file("cpuset.cpus"), cpus),
        (file("cpuset.mems"), "0-1\n"),
        (file("cpuset.sched_load_balance"), balances),
    ]
}

fn found_v1(groups: &[[(String, &'static str); 3]], more: &[(&str, &str)]) -> Partition {
    let files: Vec<(&str, &str)> = groups
        .iter()
        .flatten()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    found(&[&files, more]).unwrap()
}

#[test]
fn balancing_stops_in_every_cpuset_that_reaches_the_isolated_cpus() {
    let groups = [
        v1("", "0-3\n", "1\n"),
        v1("/a", "0-3\n", "1\n"),
        v1("/a/b", "2\n", "1\n"),
        v1("/c", "0-1\n", "1\n"),
        v1("/d", "3\n", "0\n"),
    ];
    let partition = found_v1(&groups, &[]);
    let root = "/sys/fs/cgroup/cpuset";
    let ours = format!("{root}/jitterscope.housekeeping");
    let cpusets = ["", "/a", "/a/b"]
        .map(|group| format!("{root}{group}"))
        .to_vec();
    assert_eq!(
        partition.found,
        Finding::Balanced {
            cpus: cpus("2-3"),
            cpusets
        }
    );
    assert_eq!(
        partition.wanted,
        Wanted::BalancedAmong { cpus: cpus("0-1") }
    );
    assert_eq!(
        steps(&partition),
        [
            format!("{ours}: (none) -> new cgroup"),
            format!("{ours}/cpuset.mems: (made in this step) -> 0-1"),
            format!("{ours}/cpuset.cpus: (made in this step) -> 0-1"),
            format!("{root}/cpuset.sched_load_balance: 1 -> 0"),
            format!("{root}/a/cpuset.sched_load_balance: 1 -> 0"),
            format!("{root}/a/b/cpuset.sched_load_balance: 1 -> 0"),
        ]
    );
    // Existing folders are not created again.
    let half = [
        v1("", "0-3\n", "1\n"),
        v1("/jitterscope.housekeeping", "0,1\n", "1\n"),
    ];
    assert_eq!(
        steps(&found_v1(&half, &[])),
        [format!("{root}/cpuset.sched_load_balance: 1 -> 0")]
    );
}

#[test]
fn where_nothing_balances_the_isolated_cpus_there_is_nothing_to_do() {
    let quiet = found_v1(&[v1("", "0-3\n", "0\n"), v1("/c", "0-1\n", "1\n")], &[]);
    assert_eq!(
        (quiet.found, quiet.ops.len()),
        (Finding::NotBalanced { cpus: cpus("2-3") }, 0)
    );
    let at_boot = found_v1(&[v1("", "0-3\n", "1\n")], &[ISOLATED]);
    assert_eq!(
        (at_boot.found, at_boot.ops.len()),
        (Finding::IsolatedAtBoot { cpus: cpus("2-3") }, 0)
    );
}

#[test]
fn only_what_is_proposed_may_be_made() {
    let fake = FakeMachine::of(&V2);
    let may = |op: &Op| may_make(&fake.machine, op);
    for op in found(&[&V2]).unwrap().ops {
        assert_eq!(may(&op).as_deref(), Some("/sys/fs/cgroup"), "{op:?}");
    }
    for op in found_v1(&[v1("", "0-3\n", "1\n"), v1("/a", "0-3\n", "1\n")], &[]).ops {
        assert_eq!(may(&op).as_deref(), Some("/sys/fs/cgroup/cpuset"), "{op:?}");
    }
    let v2 =
        |file: &str, kind, to: &str| write(format!("/sys/fs/cgroup/{file}"), kind, None, to.into());
    for op in [
        Op::MakeDir {
            path: "/sys/fs/cgroup/other".into(),
            cgroup: true,
        },
        Op::MakeDir {
            path: OURS.into(),
            cgroup: false,
        },
        Op::MakeDir {
            path: "/elsewhere/jitterscope.isolated".into(),
            cgroup: true,
        },
        v2("cgroup.subtree_control", ValueKind::Controllers, "+memory"),
        v2("cgroup.subtree_control", ValueKind::Text, "+cpuset"),
        v2(
            "other/cgroup.subtree_control",
            ValueKind::Controllers,
            "+cpuset",
        ),
        v2("other/cpuset.cpus", ValueKind::CpuList, "0"),
        v2("jitterscope.isolated/cpuset.mems", ValueKind::CpuList, "0"),
        v2("jitterscope.isolated/cpuset.cpus", ValueKind::Text, "0"),
        v2("cpuset.cpus.partition", ValueKind::Text, "isolated"),
        Op::Blink {
            cpu: jitterscope_model::CpuId(1),
        },
    ] {
        assert_eq!(may(&op), None, "{op:?}");
    }
    // Other mount points count, too.
    let mounted = FakeMachine::of(&[(
        "/proc/mounts",
        "none /cg cgroup2 rw 0 0\nnone /data ext4 rw 0 0\n",
    )]);
    let made = |root: &str| Op::MakeDir {
        path: format!("{root}/jitterscope.isolated"),
        cgroup: true,
    };
    assert_eq!(
        may_make(&mounted.machine, &made("/cg")).as_deref(),
        Some("/cg")
    );
    assert_eq!(may_make(&mounted.machine, &made("/data")), None);
}
