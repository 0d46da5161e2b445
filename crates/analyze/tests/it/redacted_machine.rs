//! A redacted machine: hardware and settings stay, the owner's names go.

use jitterscope_analyze::Redactor;
use jitterscope_model::*;

fn word(text: &str) -> Reading<String> {
    Reading::Value(text.to_owned())
}

fn left_out<T>() -> Reading<T> {
    Reading::Newer("left_out".into())
}

/// A machine with only common words, in every setting.
fn common() -> MachineState {
    let mut state = MachineState::default();
    for setting in MACHINE_SETTINGS {
        let text = match setting.kept {
            KeptText::Nothing => "",
            KeptText::Words => "intel_pstate",
            KeptText::Date => "2024-05-17",
            KeptText::Hexadecimal => "0xd0003f5",
            KeptText::Makers => "Dell Inc.",
            KeptText::Hypervisors => "KVMKVMKVM",
            KeptText::Architectures => "x86_64",
            KeptText::Processors => "AMD EPYC 7763",
            KeptText::Releases => "6.1.0-rt12",
            KeptText::KernelVersions => "SMP PREEMPT_RT",
            KeptText::Mitigations => "Not affected",
        };
        let name = match setting.names {
            KeptNames::Nothing => None,
            KeptNames::Numbers => Some("2048kB"),
            KeptNames::Words => Some("C1E"),
            KeptNames::BuildOptions => Some("HZ"),
            KeptNames::Flaws => Some("mds"),
            KeptNames::Devices => Some("nvme"),
            KeptNames::Queues => Some("writeback"),
            KeptNames::Groups => Some("group-1"),
        };
        let entry = |is: Reading<Scalar>| MachineEntry {
            of: name.map(str::to_owned),
            number: Some(44),
            cpus: Some("2-3".parse().unwrap()),
            is,
            with: Some("isolated".into()),
        };
        let mut entries = vec![entry(Reading::Denied), entry(Reading::Absent)];
        if setting.kept != KeptText::Nothing {
            let words = Scalar::Words(vec!["tsc".into(), "hpet".into()]);
            let all = [
                text.into(),
                words,
                7u64.into(),
                true.into(),
                Scalar::Share(0.5),
            ];
            entries.extend(all.map(|value| entry(Reading::Value(value))));
        }
        state.settings.put(setting.name, entries);
    }
    state.tuning = Reading::Value(tuning());
    state
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

/// What a redacted run has of this text.
fn redacted(setting: &str, text: &str) -> Reading<Scalar> {
    let mut machine = MachineState::default();
    machine.settings.put(setting, [MachineEntry::new(text)]);
    let out = Redactor::new().machine(&machine);
    out.settings.get(setting)[0].is.clone()
}

#[test]
fn texts_stay_where_they_are_numbers_or_words_that_many_have() {
    let digits = |length: usize| "1".repeat(length);
    let (longest, longer) = (digits(256), digits(257));
    let odd: CpuSet = (0..256).map(|n| CpuId(2 * n + 1)).collect();
    let (many, boost) = (odd.to_string(), "processors.boost");
    assert!(many.len() > 256);
    for (setting, text, stays) in [
        (boost, "performance", true),
        (boost, "0-3,8:2 1.5\n", true),
        (boost, longest.as_str(), true),
        (boost, longer.as_str(), false),
        (boost, "performance2", false),
        (boost, "acme", false),
        (boost, "0x10", false),
        ("processors.isolated", many.as_str(), true),
        ("processors.microcode", "0xd0003f5", true),
        ("processors.microcode", "0x1234567890abcdef", true),
        ("processors.microcode", "0x1234567890abcdef0", false),
        ("processors.microcode", "d0003f5", false),
        ("processors.microcode", "0xacmeg", false),
        ("processors.microcode", "0xABC", false),
        // Clouds and appliances put their customers' names here.
        ("firmware.product", "performance", false),
        ("firmware.board", "performance", false),
        ("kernel.boot_line", "performance", false),
        ("firmware.vendor", "acme", false),
        ("kernel.hypervisor", "acme", false),
        ("kernel.arch", "acme", false),
    ] {
        let expected = if stays {
            Reading::Value(text.into())
        } else {
            left_out()
        };
        assert_eq!(redacted(setting, text), expected, "{setting}: {text:?}");
    }
}

#[test]
fn what_an_owner_may_have_named_is_left_out() {
    let mut machine = MachineState::default();
    let named = |all: &[(&str, &str)]| -> Vec<MachineEntry> {
        let entry = |(name, text): &(&str, &str)| MachineEntry::new(*text).of(*name);
        all.iter().map(entry).collect()
    };
    let mut put = |name: &str, entries| machine.settings.put(name, entries);
    put("kernel.config", named(&[("HZ", "acme"), ("ACME", "y")]));
    let flaws = [
        ("mds", "Mitigation: acme"),
        ("l1tf", "Vulnerable: acme"),
        ("srbds", "acme"),
        ("acme", "Not affected"),
    ];
    put("kernel.mitigations", named(&flaws));
    put("workqueues", named(&[("acme_wq", "0")]));
    put(
        "processors.numa",
        named(&[("1", "0-7"), ("acme1", "0-7"), ("1acme", "0")]),
    );
    put("processors.idle.latency_us", named(&[("acme", "1")]));
    let words = Scalar::Words(vec!["acme".into(), "tsc".into()]);
    put("kernel.clocksources", vec![MachineEntry::new(words)]);
    put("processors.boost", named(&[("acme", "on")]));
    let partition = MachineEntry {
        with: Some("acme".into()),
        ..MachineEntry::new("2-3").of("/acme")
    };
    put("cpusets", vec![partition]);
    let mut knobs = tuning();
    knobs.competitors.push("acmetuned".into());
    knobs.findings[0].knob = "Acme Knob".into();
    knobs.settings[0].values[0].in_force = Some("acme".into());
    machine.tuning = Reading::Value(knobs);
    let out = Redactor::new().machine(&machine);
    let mut config = named(&[("HZ", "")]);
    config[0].is = left_out();
    assert_eq!(out.settings.get("kernel.config"), config);
    let mut known = named(&[("mds", "Mitigation"), ("l1tf", "Vulnerable"), ("srbds", "")]);
    known[2].is = left_out();
    assert_eq!(out.settings.get("kernel.mitigations"), known);
    for (setting, expected) in [
        ("workqueues", &[("workqueue-1", "0")]),
        ("processors.numa", &[("1", "0-7")]),
        ("processors.idle.latency_us", &[("left_out", "1")]),
    ] {
        assert_eq!(out.settings.get(setting), named(expected), "{setting}");
    }
    assert_eq!(
        out.settings.value("kernel.clocksources"),
        Some(&Scalar::Words(vec!["left_out".into(), "tsc".into()]))
    );
    // A name where no setting has one.
    assert_eq!(out.settings.get("processors.boost"), []);
    let group = &out.settings.get("cpusets")[0];
    assert_eq!(
        (group.of.as_deref(), group.with.as_deref()),
        (Some("group-1"), Some("left_out"))
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
        (Reading::Denied, Reading::Denied),
        (
            Reading::refused(system),
            Reading::Unreadable(AnyVersion::left_out()),
        ),
        (Reading::Newer("acme".into()), left_out()),
    ] {
        let mut machine = MachineState::default();
        let clock = "kernel.clocksource";
        machine.settings.put(clock, [reading.into()]);
        let out = Redactor::new().machine(&machine);
        assert_eq!(out.settings.get(clock)[0].is, expected);
    }
}
