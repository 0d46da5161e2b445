//! What each rule keeps and removes, at its border.

use super::*;
use jitterscope_model::{CpuId, EventPrice, Mover, Nanos};
use serde_json::{Map, Value};

/// Those of `texts` that a rule keeps.
fn passing<'t>(rule: impl Fn(&str) -> bool, texts: &[&'t str]) -> Vec<&'t str> {
    texts.iter().copied().filter(|text| rule(text)).collect()
}

#[test]
fn a_name_is_the_same_throughout_and_the_rest_share_one() {
    let mut names = Pseudonyms::default();
    let reported: Vec<String> = ["a", "b", "a", "a", "c", "a", "b"]
        .map(|name| names.of(name, "sort"))
        .into();
    assert_eq!(
        reported,
        [
            "sort-1", "sort-2", "sort-1", "sort-1", "sort-3", "sort-1", "sort-2"
        ]
    );
    for n in 4..=MOST {
        assert_eq!(names.of(&format!("name {n}"), "sort"), format!("sort-{n}"));
    }
    assert_eq!(
        [names.of("one more", "sort"), names.of("another", "sort")],
        ["sort-more", "sort-more"]
    );
    assert_eq!(names.0.len(), MOST, "no more are remembered");
    assert_eq!(
        [
            names.of("a", "sort"),
            names.of(&format!("name {MOST}"), "sort")
        ],
        ["sort-1", "sort-65536"]
    );
}

#[test]
fn numbers_are_digits_of_limited_length() {
    let texts = ["0", "1234567890", "", "12345678901", "12a", "-1", "1.5"];
    assert_eq!(passing(is_number, &texts), ["0", "1234567890"]);
}

#[test]
fn stable_ids_are_short_and_of_lower_case() {
    let (longest, longer) = ("a".repeat(40), "a".repeat(41));
    let texts = [
        "a",
        "9",
        "-",
        "no-kernel-events2",
        &longest,
        &longer,
        "Acme",
        "a_b",
        "a b",
        "grün",
    ];
    assert_eq!(
        passing(is_slug, &texts),
        ["a", "9", "-", "no-kernel-events2", &longest]
    );
}

#[test]
fn only_an_id_that_the_recorder_makes_up_stays() {
    let texts = [
        "k3x9ab", "aaaaaa", "000000", "", "k3x9a", "k3x9abc", "K3x9ab", "k3-9ab",
    ];
    assert_eq!(
        passing(|text| id(text) == text && !text.is_empty(), &texts),
        ["k3x9ab", "aaaaaa", "000000"]
    );
    assert!(texts[3..].iter().all(|text| id(text).is_empty()));
}

#[test]
fn of_a_version_its_numbers_stay() {
    let cases = [
        ("0.1.0", "0.1.0"),
        ("0.1.0-acme", "0.1.0"),
        ("6.1.", "6.1"),
        ("6.1.acme.2", "6.1"),
        ("12 of acme", "12"),
        ("acme 12", ""),
        ("", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(version(text), expected, "{text:?}");
    }
    let cases = [
        ("6.1.0-18-amd64", "6.1.0"),
        ("6.1.0-rt12-acme", "6.1.0-rt12"),
        ("6.1.0+rt7", "6.1.0-rt7"),
        ("6.1.0-rtacme", "6.1.0"),
        ("6.1.0-rt", "6.1.0"),
    ];
    for (text, expected) in cases {
        assert_eq!(release(text), expected, "{text:?}");
    }
    assert_eq!(
        kernel_version("#12 SMP PREEMPT_DYNAMIC builder@acme SMPX"),
        "SMP PREEMPT_DYNAMIC"
    );
}

#[test]
fn of_a_processor_makers_words_and_models_numbers_stay() {
    for whole in [
        "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz",
        "AMD EPYC 7763 64-Core Processor",
        "i7-8700",
        "123456789",
    ] {
        assert_eq!(processor(whole), whole);
    }
    let cases = [
        // Too long, no digit, other characters.
        ("AMD 1234567890 EPYC", "AMD EPYC"),
        ("Acme EPYC", "EPYC"),
        ("AMD a_1 b/2 7763", "AMD 7763"),
        ("Acme.Corp-X", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(processor(text), expected, "{text:?}");
    }
}

#[test]
fn tags_of_the_recorders_histograms_stay() {
    let mut redactor = Redactor::new();
    for known in [
        "spin-cpu1",
        "wakeup-cpu127",
        "pipeline-producer-lateness",
        "pipeline-accumulator-from-intended",
    ] {
        assert_eq!(redactor.tag(known), known);
    }
    let others = [
        "spin-cpu",
        "spin-cpux1",
        "acme-cpu1",
        "spin-acme",
        "pipeline-acme-inter",
        "spin-cpu",
    ];
    let reported = others.map(|tag| redactor.tag(tag));
    let expected = [1, 2, 3, 4, 5, 1].map(|n| format!("histogram-{n}"));
    assert_eq!(reported, expected);
}

#[test]
fn a_function_stays_where_any_list_has_it() {
    let mut redactor = Redactor::new();
    for known in [
        "",
        "try_to_wake_up",
        "NET_RX",
        "LOC",
        "ksmd",
        "vmstat_update",
    ] {
        assert_eq!(redactor.function(known), known);
    }
    assert_eq!(redactor.function("acme_timer_fn"), "function-1");
    assert_eq!(
        [
            redactor.thread(""),
            redactor.thread("ksmd"),
            redactor.thread("acme")
        ],
        ["", "ksmd", "thread-1"]
    );
    let devices =
        ["nvme0q7", "virtio3-input.0", "acme0", "acme1", "acme0"].map(|name| redactor.device(name));
    assert_eq!(
        devices,
        ["nvme", "virtio", "device-1", "device-2", "device-1"]
    );
}

#[test]
fn of_a_counter_the_code_stays_where_it_is_known() {
    let mut redactor = Redactor::new();
    let mut reported = |name: &str| {
        let counter = CounterTotal {
            cpu: CpuId(2),
            name: name.into(),
            total: 7,
            correlation: Some(0.5),
        };
        let out = redactor.counter(&counter);
        assert_eq!(
            (out.cpu, out.total, out.correlation),
            (CpuId(2), 7, Some(0.5))
        );
        out.name
    };
    assert_eq!(
        reported("interrupt LOC (Local timer interrupts)"),
        "interrupt LOC"
    );
    assert_eq!(reported("softirq NET_RX"), "softirq NET_RX");
    assert_eq!(reported("stat steal (clock ticks of 10 ms)"), "stat steal");
    assert_eq!(reported("interrupt 44 (acme-card)"), "counter-1");
    assert_eq!(reported("acme LOC"), "counter-2");
    assert_eq!(reported("interrupt"), "counter-3");
    assert_eq!(reported("interrupt 44 (acme-card)"), "counter-1");
}

#[test]
fn why_something_ended_stays_but_for_who_and_in_whose_words() {
    let by = Some(Mover {
        comm: "acme".into(),
        tid: 1,
    });
    let moved = |because| EndedEarly::Moved {
        cpu: CpuId(1),
        to_cpu: CpuId(0),
        because,
    };
    let newer = Map::from_iter([("id".to_owned(), Value::from("acme"))]);
    for (of, expected) in [
        (EndedEarly::Offline.into(), EndedEarly::Offline.into()),
        (moved(None).into(), moved(None).into()),
        (
            moved(Some(MovedBecause { offline: true, by })).into(),
            moved(Some(MovedBecause {
                offline: true,
                by: None,
            }))
            .into(),
        ),
        (AnyVersion::Unknown(newer.clone()), AnyVersion::left_out()),
    ] {
        assert_eq!(ended_early(&of), expected);
    }
    let kept = JournalFault::StockOverfilled.into();
    assert_eq!(journal_fault(&kept), kept);
    assert_eq!(
        journal_fault(&AnyVersion::Unknown(newer)),
        AnyVersion::left_out()
    );
    assert_eq!(
        journal_fault(
            &JournalFault::System {
                system: "acme".into()
            }
            .into()
        ),
        AnyVersion::left_out()
    );
}

#[test]
fn records_are_counted_by_classes_that_are_known() {
    let events = [
        (EventClass::Switches, 7),
        (EventClass::Other("acme".into()), 3),
    ]
    .into();
    let price = EventPrice {
        events,
        on_measured: 9,
        ..EventPrice::default()
    };
    let noise = SelfNoise {
        events: Some(price),
        helper_cpu_ns: Nanos(5),
        ..SelfNoise::default()
    };
    let out = self_noise(&noise);
    assert_eq!(out.helper_cpu_ns, Nanos(5));
    let reported = out.events.map(|price| (price.events, price.on_measured));
    assert_eq!(reported, Some(([(EventClass::Switches, 7)].into(), 9)));
    assert_eq!(self_noise(&SelfNoise::default()), SelfNoise::default());
}

#[test]
fn the_hypervisor_is_named_where_its_signature_is_known() {
    let reported = |signature: Option<&str>| {
        host(&HostFacts {
            hypervisor: signature.map(str::to_owned),
            ..HostFacts::default()
        })
        .hypervisor
    };
    assert_eq!(reported(None), None);
    assert_eq!(reported(Some("KVMKVMKVM")).as_deref(), Some("KVMKVMKVM"));
    assert_eq!(reported(Some("AcmeAcmeAcme")).as_deref(), Some("unknown"));
}
