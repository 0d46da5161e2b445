//! A redacted machine: hardware and settings stay, the owner's names go.

use jitterscope_analyze::Redactor;
use jitterscope_model::*;

fn word(text: &str) -> Reading<String> {
    Reading::Value(text.to_owned())
}

fn left_out<T>() -> Reading<T> {
    Reading::Newer("left_out".into())
}

fn one<T: PartialEq>(value: T) -> PerCpu<T> {
    [(CpuId(0), value)].into_iter().collect()
}

fn names(all: &[(&str, &str)]) -> Reading<std::collections::BTreeMap<String, String>> {
    Reading::Value(
        all.iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
    )
}

fn cpus(list: &str) -> Reading<CpuSet> {
    Reading::Value(list.parse().unwrap())
}

/// A machine with only common words.
fn common() -> MachineState {
    let policy = FrequencyPolicy {
        driver: word("intel_pstate"),
        governor: word("performance"),
        min_khz: Reading::Value(800_000),
        max_khz: Reading::Value(3_500_000),
        energy_preference: word("balance_power"),
    };
    let state = IdleState {
        name: "C1E".into(),
        latency_us: Reading::Value(10),
        disabled: Reading::Value(true),
    };
    MachineState {
        firmware: Firmware {
            vendor: word("Dell Inc."),
            product: Reading::Denied,
            board: Reading::Absent,
            bios_vendor: word("Dell Inc."),
            bios_version: word("2.19.1"),
            bios_date: word("2024-05-17"),
        },
        processors: Processors {
            model: one("AMD EPYC 7763".to_owned()),
            microcode: Reading::Value(one("0xd0003f5".to_owned())),
            online: "0-7".parse().unwrap(),
            isolated: "2-3".parse().unwrap(),
            nohz_full: "3".parse().unwrap(),
            sockets: Reading::Value(2),
            cores: Reading::Value(4),
            smt: Smt {
                control: word("off"),
                active: Reading::Value(false),
            },
            numa: Reading::Value(vec![NumaNode {
                id: 1,
                cpus: "0-7".parse().unwrap(),
                memory_kib: Reading::Value(65_536),
            }]),
            frequency: Reading::Value(one(policy)),
            boost: word("1"),
            idle: IdlePolicy {
                driver: word("intel_idle"),
                governor: word("menu"),
                states: one(vec![state]),
            },
        },
        kernel: KernelState {
            release: "6.1.0-rt12".into(),
            version: "SMP PREEMPT_RT".into(),
            arch: "x86_64".into(),
            boot_line: Reading::Absent,
            hypervisor: word("KVMKVMKVM"),
            preemption: word("voluntary"),
            realtime: Reading::Value(true),
            config: names(&[("HZ", "250"), ("KASAN", "n")]),
            clocksource: word("tsc"),
            clocksources: Reading::Value(vec!["tsc".into(), "hpet".into()]),
            mitigations: names(&[("mds", "Mitigation"), ("l1tf", "Not affected")]),
        },
        memory: MemoryState {
            total_kib: Reading::Value(131_072),
            swap_kib: Reading::Value(0),
            huge_pages: Reading::Value(vec![HugePages {
                size_kib: 2048,
                pages: Reading::Value(16),
            }]),
            transparent_huge_pages: word("madvise"),
            transparent_defrag: word("defer+madvise"),
            same_page_merging: word("0"),
        },
        interrupts: Interrupts {
            default_affinity: cpus("0-7"),
            rows: vec![InterruptRow {
                irq: 44,
                actions: "nvme".into(),
                affinity: cpus("1"),
                effective: cpus("1"),
            }],
            omitted: 3,
        },
        workqueues: Workqueues {
            unbound: cpus("0-1"),
            queues: vec![WorkqueueMask {
                name: "writeback".into(),
                cpus: cpus("0"),
            }],
        },
        cpusets: Cpusets {
            own: cpus("0-7"),
            groups: vec![CpusetGroup {
                path: "group-1".into(),
                hierarchy: Hierarchy::V2,
                cpus: cpus("2-3"),
                effective: cpus("2-3"),
                partition: word("isolated"),
                exclusive: Reading::Value(true),
                balanced: Reading::Value(false),
            }],
            omitted: 5,
        },
        load: Reading::Value(Vec::new()),
        tuning: Reading::Value(tuning()),
    }
}

fn tuning() -> TuningState {
    TuningState {
        cpus: "2-3".parse().unwrap(),
        settings: vec![KnobSetting {
            knob: "cpu-governor".into(),
            values: vec![SettingValue {
                cpus: Some("2-3".parse().unwrap()),
                files: 2,
                value: word("performance"),
                in_force: Some("powersave".into()),
                ..SettingValue::default()
            }],
            omitted: 7,
        }],
        findings: vec![KnobFinding {
            knob: "smt".into(),
            verdict: KnobVerdict::Wrong,
            ..KnobFinding::default()
        }],
        competitors: vec!["irqbalance".into()],
        applied: Reading::Value(AppliedTuning {
            applies: vec![TuningApply {
                at_realtime_ns: 9,
                isolated: "2-3".parse().unwrap(),
                finished: true,
                before_reboot: true,
                ..TuningApply::default()
            }],
            changes: vec![AppliedChange {
                knob: "smt".into(),
                what: String::new(),
                original: "on".into(),
                asked: "off".into(),
                now: ChangeNow::InForce,
                since_realtime_ns: 8,
            }],
            omitted: 1,
        }),
    }
}

#[test]
fn a_machine_of_common_words_stays_as_it_is() {
    let machine = common();
    assert_eq!(Redactor::new().machine(&machine), machine);
    assert_eq!(
        Redactor::new().machine(&MachineState::default()),
        MachineState::default()
    );
}

#[test]
fn a_setting_stays_where_it_is_a_number_or_a_word_that_many_have() {
    let digits = |length: usize| "1".repeat(length);
    let (longest, longer) = (digits(256), digits(257));
    for (text, stays) in [
        ("performance", true),
        ("0-3,8:2 1.5\n", true),
        (longest.as_str(), true),
        (longer.as_str(), false),
        ("performance2", false),
        ("acme", false),
        ("0x10", false),
    ] {
        let mut machine = MachineState::default();
        machine.processors.boost = word(text);
        let found = Redactor::new().machine(&machine).processors.boost;
        assert_eq!(
            found,
            if stays { word(text) } else { left_out() },
            "{text:?}"
        );
    }
}

#[test]
fn a_microcode_stays_where_it_is_a_hexadecimal_number() {
    for (text, stays) in [
        ("0xd0003f5", true),
        ("0x1234567890abcdef", true),
        ("0x1234567890abcdef0", false),
        ("d0003f5", false),
        ("0xacmeg", false),
        ("0xABC", false),
    ] {
        let mut machine = MachineState::default();
        machine.processors.microcode = Reading::Value(one(text.to_owned()));
        let found = Redactor::new().machine(&machine).processors.microcode;
        let expected = if stays { text } else { "left_out" };
        assert_eq!(found, Reading::Value(one(expected.to_owned())), "{text}");
    }
}

#[test]
fn what_an_owner_may_have_named_is_left_out() {
    let mut machine = common();
    machine.firmware.product = word("acme trading appliance");
    machine.firmware.board = word("acme");
    machine.firmware.vendor = word("acme");
    machine.kernel.boot_line = word("root=/dev/acme");
    machine.kernel.hypervisor = word("acme");
    machine.kernel.arch = "acme".into();
    machine.kernel.config = names(&[("HZ", "acme"), ("ACME", "y")]);
    machine.kernel.clocksources = Reading::Value(vec!["acme".into(), "tsc".into()]);
    machine.kernel.mitigations = names(&[
        ("mds", "Mitigation: acme"),
        ("l1tf", "Vulnerable: acme"),
        ("srbds", "acme"),
        ("acme", "Not affected"),
    ]);
    machine.workqueues.queues[0].name = "acme_wq".into();
    machine.processors.idle.states = one(vec![IdleState {
        name: "acme".into(),
        ..IdleState::default()
    }]);
    let mut knobs = tuning();
    knobs.competitors.push("acmetuned".into());
    knobs.findings[0].knob = "Acme Knob".into();
    knobs.settings[0].values[0].in_force = Some("acme".into());
    machine.tuning = Reading::Value(knobs);
    let out = Redactor::new().machine(&machine);
    let firmware = &out.firmware;
    assert_eq!(
        [&firmware.product, &firmware.board, &firmware.vendor],
        [&left_out(), &left_out(), &left_out()]
    );
    assert_eq!(
        [&out.kernel.boot_line, &out.kernel.hypervisor],
        [&left_out(), &left_out()]
    );
    assert_eq!(out.kernel.arch, "");
    assert_eq!(out.kernel.config, names(&[("HZ", "left_out")]));
    assert_eq!(out.kernel.clocksources, Reading::Value(vec!["tsc".into()]));
    let known = names(&[
        ("mds", "Mitigation"),
        ("l1tf", "Vulnerable"),
        ("srbds", "left_out"),
    ]);
    assert_eq!(out.kernel.mitigations, known);
    assert_eq!(out.workqueues.queues[0].name, "workqueue-1");
    assert_eq!(
        out.processors.idle.states.of(CpuId(0)).unwrap()[0].name,
        "left_out"
    );
    let reported = out.tuning.value().unwrap();
    assert_eq!(reported.competitors, ["irqbalance"]);
    assert_eq!(
        (
            reported.findings[0].knob.as_str(),
            reported.settings[0].knob.as_str()
        ),
        ("left_out", "cpu-governor")
    );
    assert_eq!(reported.settings[0].values[0].in_force, None);
}

#[test]
fn why_a_reading_is_missing_stays_but_for_the_systems_own_words() {
    let system = "/acme: no such file".to_owned();
    for (reading, expected) in [
        (Reading::Absent, Reading::Absent),
        (Reading::Denied, Reading::Denied),
        (
            Reading::refused(system),
            Reading::Unreadable(AnyVersion::left_out()),
        ),
        (Reading::Newer("acme".into()), left_out()),
    ] {
        let mut machine = MachineState::default();
        machine.kernel.clocksource = reading;
        assert_eq!(
            Redactor::new().machine(&machine).kernel.clocksource,
            expected
        );
    }
}
