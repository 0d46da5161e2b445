//! Two machines compared.

use jitterscope_analyze::{DifferenceClass, MachineDifference, MachineValue, compare_machines};
use jitterscope_model::*;

fn value<T>(value: T) -> Reading<T> {
    Reading::Value(value)
}

fn machine() -> MachineState {
    let policy = FrequencyPolicy {
        governor: value("powersave".into()),
        ..FrequencyPolicy::default()
    };
    let mut state = MachineState::default();
    state.processors.model = (0..8).map(|n| (CpuId(n), "Big 9000".to_owned())).collect();
    state.processors.microcode = value((0..8).map(|n| (CpuId(n), "0x1".to_owned())).collect());
    state.processors.frequency = value((0..8).map(|n| (CpuId(n), policy.clone())).collect());
    state.kernel.release = "6.1".into();
    state.kernel.mitigations = value([("mds".to_owned(), "Not affected".to_owned())].into());
    state.interrupts.rows = vec![InterruptRow {
        irq: 30,
        actions: "nvme0q1".into(),
        affinity: value("0-7".parse().unwrap()),
        effective: Reading::Absent,
    }];
    let vmstat = SettingValue {
        path: "/proc/sys/vm/stat_interval".into(),
        files: 1,
        value: value("1".into()),
        ..SettingValue::default()
    };
    let threads = SettingValue {
        value: value("59 threads".into()),
        ..SettingValue::default()
    };
    state.tuning = value(TuningState {
        cpus: "3".parse().unwrap(),
        settings: vec![
            KnobSetting {
                knob: "vmstat".into(),
                values: vec![vmstat],
                omitted: 0,
            },
            KnobSetting {
                knob: "kthread-aff".into(),
                values: vec![threads],
                omitted: 0,
            },
        ],
        findings: vec![KnobFinding {
            knob: "vmstat".into(),
            verdict: KnobVerdict::Wrong,
            ..KnobFinding::default()
        }],
        ..TuningState::default()
    });
    state.load = value(vec![CpuLoad {
        cpu: CpuId(0),
        busy_share: 0.10,
        ..CpuLoad::default()
    }]);
    state
}

fn tuning(state: &mut MachineState) -> &mut TuningState {
    match &mut state.tuning {
        Reading::Value(tuning) => tuning,
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> Option<MachineValue> {
    Some(MachineValue::Text(text.into()))
}

fn only(change: impl FnOnce(&mut MachineState)) -> MachineDifference {
    let mut other = machine();
    change(&mut other);
    let mut found = compare_machines(&machine(), &other);
    assert_eq!(found.len(), 1, "{found:?}");
    let back = compare_machines(&other, &machine());
    let difference = found.remove(0);
    assert_eq!(
        (&back[0].before, &back[0].after),
        (&difference.after, &difference.before)
    );
    difference
}

#[test]
fn a_machine_is_like_itself() {
    assert_eq!(compare_machines(&machine(), &machine()), []);
    assert_eq!(
        compare_machines(&MachineState::default(), &MachineState::default()),
        []
    );
}

#[test]
fn another_processor_makes_runs_incomparable_and_comes_first() {
    let mut other = machine();
    other.kernel.release = "6.2".into();
    other.processors.model = (0..8).map(|n| (CpuId(n), "Small 1".to_owned())).collect();
    let found = compare_machines(&machine(), &other);
    assert_eq!(found[0].class, DifferenceClass::Incomparable);
    assert_eq!(
        (found[0].what.as_str(), found[1].what.as_str()),
        ("processors.model", "kernel.release")
    );
}

#[test]
fn one_cpus_governor_is_seen_and_named() {
    let found = only(|state| {
        let Reading::Value(policies) = &mut state.processors.frequency else {
            return;
        };
        let each: Vec<_> = (0..8)
            .map(|n| {
                let mut policy = policies.of(CpuId(n)).unwrap().clone();
                if n == 7 {
                    policy.governor = value("performance".into());
                }
                (CpuId(n), policy)
            })
            .collect();
        *policies = each.into_iter().collect();
    });
    assert_eq!(
        (found.class, found.what.as_str()),
        (DifferenceClass::Matters, "processors.frequency.governor")
    );
    assert_eq!(found.before, text("powersave"));
    let on = |value, cpus: &str| MachineValue::With {
        value: Box::new(MachineValue::Text(String::from(value))),
        with: cpus.into(),
    };
    let both = vec![on("powersave", "0-6"), on("performance", "7")];
    assert_eq!(found.after, Some(MachineValue::Several(both)));
}

#[test]
fn a_knob_differs_by_its_value_and_words_do_not_count() {
    let found = only(|state| {
        let settings = &mut tuning(state).settings;
        settings[0].values[0].value = value("3600".into());
        settings[1].values[0].value = value("60 threads".into());
    });
    assert_eq!(
        (found.class, found.what.as_str()),
        (DifferenceClass::Matters, "tuning.settings.vmstat")
    );
    assert_eq!((found.before, found.after), (text("1"), text("3600")));
}

#[test]
fn verdicts_are_compared_only_for_the_same_cpus() {
    let found = only(|state| tuning(state).findings[0].verdict = KnobVerdict::Fine);
    assert_eq!(
        (found.class, found.what.as_str()),
        (DifferenceClass::Informational, "tuning.findings.vmstat")
    );
    let mut other = machine();
    tuning(&mut other).findings[0].verdict = KnobVerdict::Fine;
    tuning(&mut other).cpus = "2".parse().unwrap();
    assert_eq!(compare_machines(&machine(), &other), []);
}

#[test]
fn what_tune_applied_is_a_difference() {
    let found = only(|state| {
        let change = AppliedChange {
            knob: "vmstat".into(),
            asked: "3600".into(),
            now: ChangeNow::InForce,
            ..AppliedChange::default()
        };
        tuning(state).applied = value(AppliedTuning {
            changes: vec![change],
            ..AppliedTuning::default()
        });
    });
    assert_eq!(
        (found.what.as_str(), found.before),
        ("tuning.applied.vmstat", None)
    );
    let value = Box::new(MachineValue::Text("3600".into()));
    assert_eq!(
        found.after,
        Some(MachineValue::With {
            value,
            with: "in_force".into()
        })
    );
}

#[test]
fn interrupts_are_known_by_name_not_by_number() {
    let mut renumbered = machine();
    renumbered.interrupts.rows[0].irq = 99;
    assert_eq!(compare_machines(&machine(), &renumbered), []);
    let found = only(|state| state.interrupts.rows[0].affinity = value("0-2".parse().unwrap()));
    assert_eq!(
        (found.class, found.what.as_str()),
        (DifferenceClass::Matters, "interrupts.nvme0q1")
    );
    // Completely different cards do not flood the list.
    let mut many = machine();
    let row = many.interrupts.rows[0].clone();
    many.interrupts.rows = (0..4000)
        .map(|n| InterruptRow {
            actions: format!("dev{n}"),
            ..row.clone()
        })
        .collect();
    assert_eq!(compare_machines(&machine(), &many).len(), 64);
}

#[test]
fn what_was_denied_is_no_known_difference() {
    let found = only(|state| state.kernel.boot_line = Reading::Denied);
    assert_eq!(
        (found.class, found.after),
        (DifferenceClass::Informational, Some(MachineValue::Denied))
    );
    let mut denied = machine();
    denied.kernel.boot_line = Reading::Denied;
    assert_eq!(compare_machines(&denied, &denied), []);
}

#[test]
fn load_differs_beyond_noise() {
    let with = |busy_share| {
        let mut state = machine();
        state.load = value(vec![CpuLoad {
            cpu: CpuId(0),
            busy_share,
            ..CpuLoad::default()
        }]);
        compare_machines(&machine(), &state)
    };
    assert_eq!(with(0.14), []);
    // On either side: the distance matters.
    assert_eq!(with(0.06), []);
    assert_eq!(with(0.04).len(), 1);
    let found = with(0.80);
    assert_eq!(
        (found[0].class, found[0].what.as_str()),
        (DifferenceClass::Matters, "load.busy")
    );
    assert_eq!(found[0].after, Some(MachineValue::Thousandths(800)));
    // All CPUs were measured: there are no others.
    let mut all = machine();
    all.load = value(Vec::new());
    assert_eq!(compare_machines(&all, &all), []);
    let mut idle = machine();
    idle.load = value(vec![CpuLoad {
        cpu: CpuId(0),
        busy_share: 0.99,
        ..CpuLoad::default()
    }]);
    assert_eq!(compare_machines(&idle, &all), []);
}

#[test]
fn mitigations_and_idle_states_are_compared_one_by_one() {
    let found = only(|state| {
        state.kernel.mitigations = value([("mds".to_owned(), "Vulnerable".to_owned())].into());
    });
    assert_eq!(found.what, "kernel.mitigations.mds");
    let states = |disabled| -> PerCpu<Vec<IdleState>> {
        let state = IdleState {
            name: "C6".into(),
            disabled: value(disabled),
            ..IdleState::default()
        };
        (0..2).map(|n| (CpuId(n), vec![state.clone()])).collect()
    };
    let (mut on, mut off) = (machine(), machine());
    on.processors.idle.states = states(false);
    off.processors.idle.states = states(true);
    let found = compare_machines(&on, &off);
    assert_eq!(
        (found[0].what.as_str(), &found[0].before),
        ("processors.idle.states", &text("C6"))
    );
    assert_eq!(found[0].after, text(""));
}

#[test]
fn load_is_the_mean_of_the_other_cpus() {
    let of = |steal: [f64; 2]| {
        let mut state = machine();
        let load = |(cpu, steal_share)| CpuLoad {
            cpu: CpuId(cpu),
            steal_share,
            ..CpuLoad::default()
        };
        state.load = value((0..).zip(steal).map(load).collect());
        state
    };
    // Work that moves from one CPU to another is not a difference.
    assert_eq!(compare_machines(&of([0.2, 0.6]), &of([0.6, 0.2])), []);
    let found = compare_machines(&of([0.2, 0.6]), &of([0.6, 0.8]));
    assert_eq!((found.len(), found[0].what.as_str()), (1, "load.steal"));
    let share = |thousandths| Some(MachineValue::Thousandths(thousandths));
    assert_eq!(
        (&found[0].before, &found[0].after),
        (&share(400), &share(700))
    );
}

/// A change of the machine's state, and the expected difference to a machine without it.
type Set = (
    fn(&mut MachineState),
    &'static str,
    DifferenceClass,
    Option<MachineValue>,
);

#[test]
fn memory_and_placement_are_compared_by_name() {
    use DifferenceClass::{Informational, Matters};
    let number = |number| Some(MachineValue::Number(number));
    let sets: [Set; 11] = [
        (
            |m| m.memory.total_kib = value(1024),
            "memory.total_kib",
            Informational,
            number(1024),
        ),
        (
            |m| m.memory.swap_kib = value(7),
            "memory.swap_kib",
            Matters,
            number(7),
        ),
        (
            |m| m.memory.transparent_huge_pages = value("always".into()),
            "memory.transparent_huge_pages",
            Matters,
            text("always"),
        ),
        (
            |m| {
                m.memory.huge_pages = value(vec![HugePages {
                    size_kib: 2048,
                    pages: value(3),
                }]);
            },
            "memory.huge_pages.2048 KiB",
            Informational,
            number(3),
        ),
        (
            |m| {
                let cpus = "0-3".parse().unwrap();
                m.processors.numa = value(vec![NumaNode {
                    id: 1,
                    cpus,
                    ..NumaNode::default()
                }]);
            },
            "processors.numa.1",
            Matters,
            text("0-3"),
        ),
        (
            |m| m.workqueues.unbound = value("0-2".parse().unwrap()),
            "workqueues.unbound",
            Matters,
            text("0-2"),
        ),
        (
            |m| {
                let cpus = value("0".parse().unwrap());
                m.workqueues.queues = vec![WorkqueueMask {
                    name: "writeback".into(),
                    cpus,
                }];
            },
            "workqueues.writeback",
            Matters,
            text("0"),
        ),
        (
            |m| m.cpusets.own = value("4".parse().unwrap()),
            "cpusets.own",
            Matters,
            text("4"),
        ),
        (
            |m| m.cpusets.groups = vec![group(Reading::Absent)],
            "cpusets.rt",
            Matters,
            text("5-6"),
        ),
        (
            |m| m.cpusets.groups = vec![group(value("member".into()))],
            "cpusets.rt",
            Matters,
            text("5-6"),
        ),
        (
            |m| m.cpusets.groups = vec![group(value("isolated".into()))],
            "cpusets.rt",
            Matters,
            Some(MachineValue::With {
                value: Box::new(MachineValue::Text("5-6".into())),
                with: "isolated".into(),
            }),
        ),
    ];
    for (set, what, class, after) in sets {
        let found = only(set);
        assert_eq!((found.what.as_str(), found.class), (what, class));
        assert_eq!(found.after, after, "{what}");
    }
}

fn group(partition: Reading<String>) -> CpusetGroup {
    let cpus = value("5-6".parse().unwrap());
    CpusetGroup {
        path: "rt".into(),
        cpus,
        partition,
        ..CpusetGroup::default()
    }
}
