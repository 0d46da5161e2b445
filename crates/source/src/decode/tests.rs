use super::*;
use crate::context::FormatText;
use jitterscope_model::{AskedEvent, ClockKind, EventKind, ExecutionContext, KernelAddr};
use std::collections::BTreeMap;

const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

fn format(system: &str, event: &str, id: u32, fields: &[(&str, u32, u32, u32)]) -> FormatText {
    let mut text = format!(
        "name: {event}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    for (field, offset, size, signed) in fields {
        text += &format!("\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    FormatText {
        system: system.into(),
        event: event.into(),
        text: text + "\nprint fmt: \"\"\n",
    }
}

fn context(formats: Vec<FormatText>) -> TraceContext {
    TraceContext {
        header_page: HEADER.into(),
        formats,
        clock: ClockKind::Tsc,
        symbols: BTreeMap::new(),
        tasks: BTreeMap::new(),
        setup: Vec::new(),
    }
}

/// A page of events, each given as the words after `common_type` and `common_pid` (7).
fn page(events: &[(u32, &[u32])]) -> Vec<u8> {
    let mut words = Vec::new();
    for (id, fields) in events {
        words.push((fields.len() as u32 + 2) | 1 << 5);
        words.extend([*id, 7]);
        words.extend(*fields);
    }
    let mut page = 99u64.to_le_bytes().to_vec();
    page.extend((words.len() as u64 * 4).to_le_bytes());
    page.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    page
}

fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Vec<EventKind> {
    let mut kinds = Vec::new();
    decoder
        .page(CpuId(3), bytes, |event| {
            assert_eq!((event.cpu, event.tid), (CpuId(3), 7));
            kinds.push(event.kind);
        })
        .unwrap();
    kinds
}

#[test]
fn a_csd_without_descriptor_and_a_vector_nobody_knows_still_decode() {
    let mut decoder = Decoder::new(&context(vec![
        format("csd", "csd_function_entry", 10, &[("void * func", 8, 8, 0)]),
        format(
            "irq_vectors",
            "martian_entry",
            11,
            &[("int vector", 8, 4, 1)],
        ),
        format(
            "irq_vectors",
            "vector_alloc",
            12,
            &[("int vector", 8, 4, 1)],
        ),
    ]))
    .unwrap();
    let bytes = page(&[
        (10, &[0x8100_0000, 0xffff_ffff]),
        (11, &[236]),
        (12, &[1]),
        (700, &[1]),
        (10, &[1]),
    ]);
    let kinds = decode(&mut decoder, &bytes);
    assert_eq!(
        kinds,
        [
            EventKind::CsdEntry {
                function: KernelAddr(0xffff_ffff_8100_0000),
                csd: 0
            },
            EventKind::VectorEntry {
                vector: "martian".into()
            },
        ]
    );
    let counts = decoder.counts();
    assert_eq!(
        (
            counts.events,
            counts.unknown,
            counts.malformed,
            counts.pages
        ),
        (2, 2, 1, 1)
    );
}

#[test]
fn an_interrupt_differs_from_the_interrupted_thread() {
    let waking = [
        ("char comm[16]", 8, 16, 0),
        ("pid_t pid", 24, 4, 1),
        ("int target_cpu", 28, 4, 1),
    ];
    let mut decoder =
        Decoder::new(&context(vec![format("sched", "sched_waking", 10, &waking)])).unwrap();
    let event = |flags: u32| (10 | flags << 16, &[0u32, 0, 0, 0, 42, 1][..]);
    let mut contexts = Vec::new();
    let bytes = page(&[event(0), event(0x19), event(0x11)]);
    decoder
        .page(CpuId(3), &bytes, |event| contexts.push(event.context))
        .unwrap();
    assert_eq!(
        contexts,
        [
            ExecutionContext::Thread,
            ExecutionContext::Interrupt,
            ExecutionContext::Softirq
        ]
    );
}

#[test]
fn queued_work_knows_a_bound_cpu_from_any() {
    let fields: &[(&str, u32, u32, u32)] =
        &[("void * work", 8, 8, 0), ("void * function", 16, 8, 0)];
    let with = |extra: &[(&str, u32, u32, u32)]| {
        let format = format(
            "workqueue",
            "workqueue_queue_work",
            5,
            &[fields, extra].concat(),
        );
        Decoder::new(&context(vec![format])).unwrap()
    };
    let target = |decoder: &mut Decoder, words: &[u32]| match decode(decoder, &page(&[(5, words)]))
        .remove(0)
    {
        EventKind::WorkQueued { target, .. } => target,
        other => panic!("{other:?}"),
    };
    let both = [("int req_cpu", 24, 4, 1), ("int cpu", 28, 4, 1)];
    assert_eq!(
        target(&mut with(&both), &[1, 0, 2, 0, 8192, 1]),
        Some(CpuId(1))
    );
    assert_eq!(target(&mut with(&both), &[1, 0, 2, 0, 1, u32::MAX]), None);
    let unsigned = [("unsigned int req_cpu", 24, 4, 0)];
    assert_eq!(
        target(&mut with(&unsigned), &[1, 0, 2, 0, 3]),
        Some(CpuId(3))
    );
    assert_eq!(target(&mut with(&unsigned), &[1, 0, 2, 0, 8192]), None);
    assert_eq!(target(&mut with(&[]), &[1, 0, 2, 0]), None);
}

#[test]
fn names_are_shared_and_masks_are_cut_to_64_bits() {
    let mut decoder = Decoder::new(&context(vec![
        format(
            "irq",
            "irq_handler_entry",
            1,
            &[("int irq", 8, 4, 1), ("__data_loc char[] name", 12, 4, 0)],
        ),
        format(
            "ipi",
            "ipi_send_cpumask",
            2,
            &[
                ("__data_loc cpumask_t cpumask", 8, 4, 0),
                ("void * callback", 16, 8, 0),
            ],
        ),
    ]))
    .unwrap();
    let eth0 = u32::from_le_bytes(*b"eth0");
    let irq: &[u32] = &[24, 16 | 5 << 16, eth0, 0];
    let mask: &[u32] = &[24 | 16 << 16, 0, 9, 0, 0x8000_0002, 1, 7, 7];
    let kinds = decode(&mut decoder, &page(&[(1, irq), (2, mask), (1, irq)]));
    let (EventKind::IrqEntry { irq, action: a }, EventKind::IrqEntry { action: b, .. }) =
        (&kinds[0], &kinds[2])
    else {
        panic!("{kinds:?}");
    };
    assert_eq!((*irq, &**a), (24, "eth0"));
    assert!(std::sync::Arc::ptr_eq(a, b));
    let (callsite, callback) = (KernelAddr(0), KernelAddr(9));
    assert_eq!(
        kinds[1],
        EventKind::IpiSendCpumask {
            targets: 0x1_8000_0002,
            callsite,
            callback
        }
    );
}

#[test]
fn idle_and_negative_lengths() {
    let mut decoder = Decoder::new(&context(vec![
        format(
            "power",
            "cpu_idle",
            1,
            &[("u32 state", 8, 4, 0), ("u32 cpu_id", 12, 4, 0)],
        ),
        format(
            "nmi",
            "nmi_handler",
            2,
            &[("void * handler", 8, 8, 0), ("s64 delta_ns", 16, 8, 1)],
        ),
    ]))
    .unwrap();
    let words = [u32::MAX, 1];
    let kinds = decode(
        &mut decoder,
        &page(&[(1, &[2, 1]), (1, &words), (2, &[1, 0, u32::MAX, u32::MAX])]),
    );
    assert_eq!(
        kinds,
        [
            EventKind::CpuIdle { state: Some(2) },
            EventKind::CpuIdle { state: None },
            EventKind::NmiHandler {
                handler: KernelAddr(1),
                delta_ns: 0
            },
        ]
    );
}

#[test]
fn a_context_without_formats_skips_and_counts_everything() {
    let mut decoder = Decoder::new(&context(vec![])).unwrap();
    assert!(decode(&mut decoder, &page(&[(1, &[]), (2, &[])])).is_empty());
    assert_eq!(decoder.counts().unknown, 2);
    assert_eq!(decoder.layout().page_size(), 4096);
}

#[test]
fn the_fields_of_an_asked_event_are_text_and_other_events_are_skipped() {
    let context = context(vec![
        format(
            "block",
            "block_rq_issue",
            70,
            &[
                ("dev_t dev", 8, 4, 0),
                ("int bytes", 12, 4, 1),
                ("char comm[8]", 16, 8, 0),
            ],
        ),
        format("net", "netif_rx", 71, &[("int len", 8, 4, 1)]),
    ]);
    let block: AskedEvent = "block:block_rq_issue".parse().unwrap();
    let absent: AskedEvent = "block:absent".parse().unwrap();
    let none = AskedDecoder::new(&context, [&absent].into_iter()).unwrap();
    assert!(none.is_none());
    let decoder = AskedDecoder::new(&context, [&absent, &block].into_iter());
    let decoder = decoder.unwrap().unwrap();
    let [a, b] = [*b"flus", *b"h\0zz"].map(u32::from_le_bytes);
    let bytes = page(&[
        (70, &[8 << 20 | 3, -1i32 as u32, a, b]),
        (71, &[9]),
        // Too short for its last field.
        (70, &[0, 4096]),
    ]);
    let mut seen = Vec::new();
    let keep = |record: AskedRecord| {
        assert_eq!((&*record.event, record.tid), ("block:block_rq_issue", 7));
        seen.push(record.fields);
    };
    decoder.page(&bytes, keep).unwrap();
    assert_eq!(seen, ["dev=8:3 bytes=-1 comm=flush", "dev=0:0 bytes=4096"]);
    assert!(decoder.page(&bytes[..3], |_| ()).is_err());
    // An ordinary reader counts them, and hands over none.
    let mut ordinary = Decoder::new(&context).unwrap();
    assert!(decode(&mut ordinary, &bytes).is_empty());
    let counts: Vec<_> = ordinary.seen().collect();
    assert_eq!(counts, [("block:block_rq_issue", 2), ("net:netif_rx", 1)]);
}

#[test]
fn a_field_with_the_address_of_a_known_function_has_its_name() {
    let mut context = context(vec![format(
        "timer",
        "armed",
        90,
        &[("void * function", 8, 8, 0), ("u64 expires", 16, 8, 0)],
    )]);
    context
        .symbols
        .insert(KernelAddr(0x1_0000_0002), "tick".into());
    let armed: AskedEvent = "timer:armed".parse().unwrap();
    let decoder = AskedDecoder::new(&context, [&armed].into_iter());
    let decoder = decoder.unwrap().unwrap();
    let mut seen = Vec::new();
    let bytes = page(&[(90, &[2, 1, 2, 1]), (90, &[3, 0, 7, 0])]);
    decoder
        .page(&bytes, |record| seen.push(record.fields))
        .unwrap();
    assert_eq!(
        seen,
        ["function=tick expires=4294967298", "function=0x3 expires=7"]
    );
}

#[test]
fn a_field_of_any_length_is_a_text_or_a_number() {
    let context = context(vec![format(
        "app",
        "sent",
        91,
        &[
            ("__data_loc char[] name", 8, 4, 0),
            ("__data_loc cpumask_t cpus", 12, 4, 0),
            ("__data_loc cpumask_t none", 16, 4, 0),
        ],
    )]);
    let sent: AskedEvent = "app:sent".parse().unwrap();
    let decoder = AskedDecoder::new(&context, [&sent].into_iter());
    let decoder = decoder.unwrap().unwrap();
    let located = |at: u32, length: u32| length << 16 | at;
    let name = u32::from_le_bytes(*b"eth0");
    let fields = [
        located(20, 5),
        located(28, 8),
        located(36, 4),
        name,
        0,
        0x10,
        0x1,
        0,
    ];
    // The second name ends beyond its record.
    let beyond = [located(20, 900), located(20, 0), located(20, 0)];
    let bytes = page(&[(91, &fields), (91, &beyond)]);
    let mut seen = Vec::new();
    decoder
        .page(&bytes, |record| seen.push(record.fields))
        .unwrap();
    assert_eq!(
        seen,
        ["name=eth0 cpus=0x0100000010 none=0x0", "cpus=0x0 none=0x0"]
    );
}
