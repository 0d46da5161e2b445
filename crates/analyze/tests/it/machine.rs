//! Two machines compared.

use jitterscope_analyze::{DifferenceClass, MachineDifference, MachineValue, compare_machines};
use jitterscope_model::*;

fn value<T>(value: T) -> Reading<T> {
    Reading::Value(value)
}

fn set(state: &mut MachineState, name: &str, value: impl Into<Scalar>) {
    state.settings.put(name, [MachineEntry::new(value)]);
}

fn interrupt(number: u32, actions: &str, cpus: &str) -> MachineEntry {
    MachineEntry {
        number: Some(number),
        ..MachineEntry::new(cpus).of(actions)
    }
}

fn share(cpu: u32, share: f64) -> MachineEntry {
    MachineEntry::new(Scalar::Share(share)).on([CpuId(cpu)].into_iter().collect())
}

fn machine() -> MachineState {
    let mut state = MachineState::default();
    let all = || Some("0-7".parse().unwrap());
    for (name, value) in [
        ("processors.model", "Big 9000"),
        ("processors.microcode", "0x1"),
        ("processors.frequency.governor", "powersave"),
    ] {
        let entry = MachineEntry {
            cpus: all(),
            ..MachineEntry::new(value)
        };
        state.settings.put(name, [entry]);
    }
    set(&mut state, "kernel.release", "6.1");
    let mitigation = MachineEntry::new("Not affected").of("mds");
    state.settings.put("kernel.mitigations", [mitigation]);
    state
        .settings
        .put("interrupts", [interrupt(30, "nvme0q1", "0-7")]);
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
    state.settings.put("load.busy", [share(0, 0.10)]);
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
    set(&mut other, "kernel.release", "6.2");
    set(&mut other, "processors.model", "Small 1");
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
        let on = |value, cpus: &str| MachineEntry::new(value).on(cpus.parse().unwrap());
        let both = [on("powersave", "0-6"), on("performance", "7")];
        state.settings.put("processors.frequency.governor", both);
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
    renumbered
        .settings
        .put("interrupts", [interrupt(99, "nvme0q1", "0-7")]);
    assert_eq!(compare_machines(&machine(), &renumbered), []);
    let found = only(|state| {
        state
            .settings
            .put("interrupts", [interrupt(30, "nvme0q1", "0-2")]);
    });
    assert_eq!(
        (found.class, found.what.as_str()),
        (DifferenceClass::Matters, "interrupts.nvme0q1")
    );
    // Completely different cards do not flood the list.
    let mut many = machine();
    let all: Vec<_> = (0..4000)
        .map(|n| interrupt(n, &format!("dev{n}"), "0-7"))
        .collect();
    many.settings.put("interrupts", all);
    assert_eq!(compare_machines(&machine(), &many).len(), 64);
}

#[test]
fn what_was_denied_is_no_known_difference() {
    let found = only(|state| {
        state
            .settings
            .put("kernel.boot_line", [Reading::Denied.into()]);
    });
    assert_eq!(
        (found.class, found.after),
        (DifferenceClass::Informational, Some(MachineValue::Denied))
    );
    let mut denied = machine();
    denied
        .settings
        .put("kernel.boot_line", [Reading::Denied.into()]);
    assert_eq!(compare_machines(&denied, &denied), []);
}

#[test]
fn load_differs_beyond_noise() {
    let with = |busy_share| {
        let mut state = machine();
        state.settings.put("load.busy", [share(0, busy_share)]);
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
    all.settings.put("load.busy", []);
    assert_eq!(compare_machines(&all, &all), []);
    let mut idle = machine();
    idle.settings.put("load.busy", [share(0, 0.99)]);
    assert_eq!(compare_machines(&idle, &all), []);
}

#[test]
fn mitigations_and_idle_states_are_compared_one_by_one() {
    let found = only(|state| {
        let mitigation = MachineEntry::new("Vulnerable").of("mds");
        state.settings.put("kernel.mitigations", [mitigation]);
    });
    assert_eq!(found.what, "kernel.mitigations.mds");
    let (mut on, mut off) = (machine(), machine());
    for (state, enabled) in [(&mut on, vec!["C6".to_owned()]), (&mut off, Vec::new())] {
        set(state, "processors.idle.states", Scalar::Words(enabled));
    }
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
        let shares = [share(0, steal[0]), share(1, steal[1])];
        state.settings.put("load.steal", shares);
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

#[test]
fn memory_and_placement_are_compared_by_name() {
    use DifferenceClass::{Informational, Matters};
    let group = |with: Option<&str>| MachineEntry {
        with: with.map(str::to_owned),
        ..MachineEntry::new("5-6").of("rt")
    };
    let isolated = MachineValue::With {
        value: Box::new(MachineValue::Text("5-6".into())),
        with: "isolated".into(),
    };
    let of = |value: &str, name: &str| MachineEntry::new(value).of(name);
    let number = |number: u64| MachineEntry::new(number);
    let sets = [
        ("memory.total_kib", number(1024), "", Informational),
        ("memory.swap_kib", number(7), "", Matters),
        (
            "memory.transparent_huge_pages",
            MachineEntry::new("always"),
            "",
            Matters,
        ),
        (
            "memory.huge_pages",
            number(3).of("2048kB"),
            ".2048kB",
            Informational,
        ),
        ("processors.numa", of("0-3", "1"), ".1", Matters),
        ("workqueues.unbound", MachineEntry::new("0-2"), "", Matters),
        ("workqueues", of("0", "writeback"), ".writeback", Matters),
        ("cpusets.own", MachineEntry::new("4"), "", Matters),
        ("cpusets", group(None), ".rt", Matters),
        ("cpusets", group(Some("isolated")), ".rt", Matters),
    ];
    for (setting, entry, name, class) in sets {
        let expected = match (&entry.with, entry.is.value()) {
            (Some(_), _) => Some(isolated.clone()),
            (None, Some(Scalar::Number(number))) => Some(MachineValue::Number(*number)),
            (None, _) => text(entry.text().unwrap()),
        };
        let found = only(|state| state.settings.put(setting, [entry]));
        assert_eq!(
            (found.what, found.class),
            (format!("{setting}{name}"), class)
        );
        assert_eq!(found.after, expected, "{setting}");
    }
}
