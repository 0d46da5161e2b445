//! Traces of Perfetto against the runs that they show, read by a decoder of its own.

use crate::common::{self, recorded};
use crate::perfetto_reader::{self as perfetto, Event, Note, Slice, Trace, number, text};

use jitterscope_export::{Destination, Pace, export_redacted, export_run};
use jitterscope_model::{
    Attribution, Comm, Delivery, EventKind, KernelEvent, RawPage, Row, RunFacts, Stall, StallId,
    Ticks, TraceRole,
};
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, StoredPage, TracePiece};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};

const KINDS: [&str; 5] = ["spin", "wakeup", "attach", "passive", "pipeline"];
/// Fields of `FtraceEvent`.
const SCHED_SWITCH: u64 = 4;

fn exported(run: &RunReader) -> (Trace, Delivery) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let target: Destination = format!("perfetto://{}", path.display()).parse().unwrap();
    let delivery = export_run(run, &[target]).unwrap().remove(0);
    (perfetto::read(&std::fs::read(path).unwrap()), delivery)
}

/// The time of an instant, calculated from the readings of the manifest alone.
fn ns(run: &RunReader, at: Ticks) -> u64 {
    let manifest = run.manifest();
    let start = manifest.clock_start;
    let base = start.boottime_ns.unwrap_or(start.monotonic_raw_ns);
    let delta = i128::from(at.0) - i128::from(start.ticks.0);
    let whole = delta.abs() * 1_000_000_000 / i128::from(manifest.rate.hz);
    (i128::from(base) + delta.signum() * whole) as u64
}

fn stored_stalls(run: &RunReader) -> Vec<(Stall, Option<Attribution>)> {
    let mut own: BTreeMap<StallId, Attribution> = run
        .attributions()
        .unwrap()
        .map(|a| a.unwrap())
        .map(|a| (a.stall, a))
        .collect();
    let stalls = run.stalls().unwrap().map(Result::unwrap);
    stalls.map(|stall| (stall, own.remove(&stall.id))).collect()
}

fn pages(run: &RunReader) -> Vec<StoredPage> {
    let pieces = run.trace_pieces().unwrap().map(Result::unwrap);
    pieces
        .filter_map(|piece| match piece {
            TracePiece::Page(page) => Some(page),
            _ => None,
        })
        .collect()
}

fn stored_events(run: &RunReader) -> Vec<KernelEvent> {
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    let mut decoder = Decoder::new(&context).unwrap();
    let mut events = Vec::new();
    for page in pages(run) {
        decoder
            .page(page.cpu, &page.bytes, |event| events.push(event))
            .unwrap();
    }
    events
}

#[test]
fn each_stall_is_a_slice_and_its_parts_are_the_slices_inside() {
    for kind in KINDS {
        let run = recorded(kind);
        let (trace, delivery) = exported(&run);
        assert_eq!((delivery.lost, &delivery.problem), (0, &None), "{kind}");
        let stalls = stored_stalls(&run);
        assert!(!stalls.is_empty(), "{kind}");
        let of = |slice: &Slice| slice.number("stall_id") as u64;
        let slices: HashMap<u64, &Slice> = trace.slices.iter().map(|s| (of(s), s)).collect();
        assert_eq!(
            (slices.len(), trace.slices.len()),
            (stalls.len(), stalls.len())
        );
        for (stall, own) in &stalls {
            let slice = slices[&stall.id.0];
            let length = run.manifest().rate.nanos(stall.length()).0;
            assert_eq!(slice.name, "stall");
            assert_eq!(
                (slice.begin, slice.end - slice.begin),
                (ns(&run, stall.start), length)
            );
            let comm = stall.victim.comm.to_string();
            assert_eq!(slice.text("victim_comm"), Some(comm.as_str()));
            let (track, _) = &trace.tracks[&slice.track];
            assert!(
                track.starts_with(&format!("CPU {} stalls", stall.cpu)),
                "{track}"
            );
            let parts = own.iter().flat_map(|own| &own.parts);
            let expected: Vec<(String, u64, &str, &str)> = parts
                .map(|part| {
                    let subject = &part.culprit.subject;
                    let name = format!("{} {}", subject.kind_word(), subject.name());
                    (
                        name,
                        part.net.0,
                        part.confidence.as_str(),
                        part.evidence.as_str(),
                    )
                })
                .collect();
            let found: Vec<(String, u64, &str, &str)> = slice
                .inside
                .iter()
                .map(|s| {
                    let word = |name| s.text(name).unwrap();
                    assert_eq!(s.number("culprit_ns") as u64, s.end - s.begin);
                    (
                        s.name.clone(),
                        s.end - s.begin,
                        word("confidence"),
                        word("evidence"),
                    )
                })
                .collect();
            assert_eq!(found, expected, "{kind} {:?}", stall.id);
            if own.is_some() {
                let sum: u64 = found.iter().map(|(_, ns, ..)| ns).sum();
                assert_eq!(sum, length, "{kind} {:?}", stall.id);
            }
        }
        overlap_free(&trace, kind);
    }
}

/// Slices of a track never overlap.
fn overlap_free(trace: &Trace, kind: &str) {
    let mut until: HashMap<u64, u64> = HashMap::new();
    let mut slices: Vec<&Slice> = trace.slices.iter().collect();
    slices.sort_by_key(|slice| slice.begin);
    for slice in slices {
        let end = until.entry(slice.track).or_default();
        assert!(*end <= slice.begin, "{kind}: {slice:?}");
        *end = slice.end;
    }
}

#[test]
fn each_switch_and_each_interrupt_is_an_event_of_its_cpu() {
    for kind in KINDS {
        let run = recorded(kind);
        let (trace, delivery) = exported(&run);
        let events = stored_events(&run);
        let comm = |comm: &jitterscope_model::Comm| comm.to_string();
        let mut expected: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::SchedSwitch {
                    prev,
                    prev_state,
                    next,
                } => Some((
                    ns(&run, event.time),
                    event.cpu.0 as u64,
                    (comm(&prev.comm), prev.tid, prev.prio, *prev_state),
                    (comm(&next.comm), next.tid, next.prio),
                )),
                _ => None,
            })
            .collect();
        let signed = |event: &Event, field| number(&event.message, field).unwrap() as i64 as i32;
        let name = |event: &Event, field| text(&event.message, field).unwrap();
        let mut found: Vec<_> = trace
            .events
            .iter()
            .filter(|event| event.kind == SCHED_SWITCH)
            .map(|e| {
                let state = number(&e.message, 4).unwrap();
                let prev = (name(e, 1), signed(e, 2), signed(e, 3), state);
                (e.ns, e.cpu, prev, (name(e, 5), signed(e, 6), signed(e, 7)))
            })
            .collect();
        assert!(found.len() > 10, "{kind}");
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{kind}");

        let counts = counts(&events);
        for (field, event) in NAMES {
            let written = trace.events.iter().filter(|e| e.kind == field).count();
            assert_eq!(
                Some(written),
                counts.get(event).copied().or(Some(0)),
                "{kind} {event}"
            );
        }
        // What has no message is counted.
        let written = trace.events.len();
        let remark = delivery.remarks.iter().find(|r| r.contains("no message"));
        let left_out: usize = remark.map_or(0, |remark| {
            let list = remark.rsplit_once(": ").unwrap().1;
            let counts = list.split(", ").map(|of| of.split_once(' ').unwrap().0);
            counts.map(|count| count.parse::<usize>().unwrap()).sum()
        });
        assert_eq!(written + left_out, events.len(), "{kind}");
    }
}

/// Some events: the field of their message, and their name.
const NAMES: [(u64, &str); 8] = [
    (20, "sched_waking"),
    (24, "softirq_entry"),
    (25, "softirq_exit"),
    (36, "irq_handler_entry"),
    (37, "irq_handler_exit"),
    (58, "workqueue_execute_start"),
    (559, "local_timer_entry"),
    (560, "local_timer_exit"),
];

fn counts(events: &[KernelEvent]) -> HashMap<&'static str, usize> {
    let mut counts = HashMap::new();
    for event in events {
        let name = match &event.kind {
            EventKind::SchedWaking { .. } => "sched_waking",
            EventKind::SoftirqEntry { .. } => "softirq_entry",
            EventKind::SoftirqExit { .. } => "softirq_exit",
            EventKind::IrqEntry { .. } => "irq_handler_entry",
            EventKind::IrqExit { .. } => "irq_handler_exit",
            EventKind::WorkStart { .. } => "workqueue_execute_start",
            EventKind::VectorEntry { vector } if &**vector == "local_timer" => "local_timer_entry",
            EventKind::VectorExit { vector } if &**vector == "local_timer" => "local_timer_exit",
            _ => continue,
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

#[test]
fn functions_have_names_and_no_address_is_in_the_file() {
    let run = recorded("spin");
    let (trace, _) = exported(&run);
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    let names: HashSet<&str> = context.symbols.values().map(String::as_str).collect();
    let events = stored_events(&run);
    let works = events.iter().filter_map(|event| match &event.kind {
        EventKind::WorkStart { function, .. } => {
            let name = context.symbols.get(function).map(String::as_str);
            Some(name.unwrap_or("unnamed function"))
        }
        _ => None,
    });
    let written = trace.events.iter().filter(|event| event.kind == 58);
    let written = written.map(|event| &*trace.functions[&number(&event.message, 2).unwrap()]);
    assert_eq!(works.collect::<Vec<_>>(), written.collect::<Vec<_>>());
    assert!(trace.functions.keys().all(|number| *number < 1000));
    let mut named = trace.functions.values();
    assert!(named.all(|name| names.contains(name.as_str()) || name == "unnamed function"));
}

#[test]
fn a_handlers_answer_is_the_records_own() {
    let run = recorded("spin");
    let (trace, _) = exported(&run);
    let mut answers = trace
        .events
        .iter()
        .filter(|event| event.kind == 37)
        .peekable();
    assert!(answers.peek().is_some());
    assert!(answers.all(|event| number(&event.message, 2).is_some_and(|answer| answer <= 2)));
}

#[test]
fn arrows_lead_from_a_sender_to_the_part_that_names_it() {
    let mut arrows = 0;
    for kind in KINDS {
        let run = recorded(kind);
        let (trace, _) = exported(&run);
        let mut from: HashMap<u64, &Slice> = HashMap::new();
        for instant in &trace.instants {
            for flow in &instant.flows {
                assert!(from.insert(*flow, instant).is_none());
            }
        }
        for stall in &trace.slices {
            for part in &stall.inside {
                for flow in &part.ended_flows {
                    let sent = from.remove(flow).expect("an arrow begins");
                    assert!(sent.begin <= stall.end);
                    assert_eq!(sent.number("stall_id"), stall.number("stall_id"));
                    let cpu = part.number("sender_cpu");
                    assert_eq!(trace.tracks[&sent.track].0, format!("CPU {cpu} senders"));
                    let tid = part.number("sender_tid");
                    assert!(tid == 0 || tid == sent.number("sender_tid"));
                    arrows += 1;
                }
            }
        }
        assert!(from.is_empty(), "every arrow ends");
    }
    assert!(arrows > 20, "{arrows}");
}

#[test]
fn counters_have_the_stolen_time_of_each_interval() {
    let run = recorded("spin");
    let (trace, _) = exported(&run);
    let mut expected: Vec<(u64, u64)> = run
        .intervals()
        .unwrap()
        .map(|row| row.unwrap())
        .map(|row| (ns(&run, row.start), row.stolen.0))
        .collect();
    let last = run.intervals().unwrap().map(|row| row.unwrap().end).max();
    expected.push((ns(&run, last.unwrap()), 0));
    let found: Vec<(u64, u64)> = trace.counters.iter().map(|(_, at, n)| (*at, *n)).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_file_says_what_it_does_not_show_and_when_it_was() {
    let run = recorded("spin");
    let (trace, delivery) = exported(&run);
    let start = run.manifest().clock_start;
    assert_eq!(trace.clocks[&6], start.monotonic_raw_ns);
    assert_eq!(trace.clocks[&1], start.realtime_ns);
    assert_eq!(trace.release, run.manifest().host.kernel_release);
    assert!(delivery.remarks[0].contains("did not read"), "{delivery:?}");
    let shown: Vec<String> = trace
        .instants
        .iter()
        .filter_map(|instant| instant.text("remark").map(str::to_owned))
        .collect();
    assert_eq!(shown, delivery.remarks);

    // A run without kernel events has its stalls.
    let dir = tempfile::tempdir().unwrap();
    let (trace, delivery) = exported(&common::run(dir.path()));
    assert!(trace.events.is_empty() && !trace.slices.is_empty());
    assert!(
        delivery.remarks[1].contains("kept no kernel events"),
        "{delivery:?}"
    );

    // A doubt is on the run's own track.
    let mut manifest = run.manifest().clone();
    manifest.events_in_gaps.events = 1000;
    manifest.events_in_gaps.inside = 10;
    manifest.events_in_gaps.too_short = 0;
    let (trace, _) = exported(&run.of_manifest(manifest));
    let mut doubts = trace
        .instants
        .iter()
        .filter(|i| i.notes.contains_key("kind"));
    let doubt = doubts.next().unwrap();
    assert_eq!(doubt.text("kind"), Some("events_outside_stalls"));
    assert_eq!(doubt.notes["inside"], Note::Number(10));
    assert_eq!(trace.tracks[&doubt.track].1, None);
}

#[test]
fn a_redacted_trace_has_no_name_and_no_kernel_event() {
    let run = recorded("spin");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let target: Destination = format!("perfetto://{}", path.display()).parse().unwrap();
    let delivery = export_redacted(&run, &[target]).unwrap().remove(0);
    assert!(
        delivery
            .remarks
            .iter()
            .any(|r| r.contains("they hold names")),
        "{delivery:?}"
    );
    let file = std::fs::read(path).unwrap();
    let trace = perfetto::read(&file);
    assert!(trace.events.is_empty());
    assert_eq!(trace.slices.len(), stored_stalls(&run).len());
    let has = |name: &str| file.windows(name.len()).any(|at| at == name.as_bytes());
    let events = stored_events(&run);
    for name in ["rustc", "python3"] {
        let named = |event: &KernelEvent| match &event.kind {
            EventKind::SchedSwitch { next, .. } => next.comm == Comm::new(name),
            _ => false,
        };
        assert!(events.iter().any(named), "the run has {name}");
        assert!(!has(name), "the file does not");
    }
    assert!(has("thread-1"));
}

/// As a recording passes them: pages before their description.
#[test]
fn a_live_trace_has_the_same_events_as_the_stored_one() {
    let run = recorded("spin");
    let (stored, _) = exported(&run);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live");
    let target: Destination = format!("perfetto://{}", path.display()).parse().unwrap();
    let mut sink = target.open(Pace::Live).unwrap();
    sink.begin(&RunFacts::of(run.manifest())).unwrap();
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    // The functions of the turns are named by them; those of the setup by the last description.
    let first = TraceContext {
        symbols: BTreeMap::new(),
        ..context.clone()
    };
    let mut described = false;
    for piece in run.trace_pieces().unwrap() {
        match piece.unwrap() {
            TracePiece::Page(page) => sink.rows(&[Row::Page(raw(&page))]).unwrap(),
            TracePiece::Turn(turn) => {
                sink.rows(&[Row::Turn(&turn)]).unwrap();
                if !std::mem::replace(&mut described, true) {
                    let json = serde_json::to_vec(&first).unwrap();
                    sink.rows(&[Row::Context(&json)]).unwrap();
                }
            }
            TracePiece::Missing => {}
        }
    }
    let mut stalls = stored_stalls(&run);
    sink.stalls(&mut stalls).unwrap();
    let json = serde_json::to_vec(&context).unwrap();
    sink.rows(&[Row::Context(&json)]).unwrap();
    let delivery = sink.end(run.manifest()).unwrap();
    assert_eq!(delivery.lost, 0);
    let live = perfetto::read(&std::fs::read(path).unwrap());
    let named = |trace: &Trace| -> Vec<(u64, u64, u64, Option<String>)> {
        let function = |e: &Event| number(&e.message, if e.kind == 58 { 2 } else { 3 });
        let mut events: Vec<_> = trace
            .events
            .iter()
            .map(|e| {
                let name = function(e).filter(|_| matches!(e.kind, 58 | 553 | 557));
                (
                    e.ns,
                    e.cpu,
                    e.kind,
                    name.map(|id| trace.functions[&id].clone()),
                )
            })
            .collect();
        events.sort();
        events
    };
    assert_eq!(named(&live), named(&stored));
    assert_eq!(live.slices.len(), stored.slices.len());
}

fn raw(page: &StoredPage) -> RawPage<'_> {
    RawPage {
        role: page.role,
        cpu: page.cpu,
        first: page.first,
        last: page.last,
        bytes: &page.bytes,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_page_makes_it_panic(cpu in prop::sample::select(vec![0, 1, 1023, 1024, u32::MAX]),
        noise in prop::collection::vec((0usize..4096, any::<u8>()), 0..60), length in 0usize..4097) {
        let run = recorded("attach");
        let context: TraceContext = run.trace_context().unwrap().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let target: Destination = format!("perfetto://{}", path.display()).parse().unwrap();
        let mut sink = target.open(Pace::Stored).unwrap();
        sink.begin(&RunFacts::of(run.manifest())).unwrap();
        sink.rows(&[Row::Context(&serde_json::to_vec(&context).unwrap())]).unwrap();
        for page in pages(&run).iter().take(4) {
            let mut bytes = page.bytes.clone();
            for (at, byte) in &noise {
                if let Some(own) = bytes.get_mut(*at) {
                    *own = *byte;
                }
            }
            bytes.truncate(length);
            let page = StoredPage { cpu: jitterscope_model::CpuId(cpu), bytes, ..page.clone() };
            sink.rows(&[Row::Page(raw(&page))]).unwrap();
        }
        sink.end(run.manifest()).unwrap();
        perfetto::read(&std::fs::read(path).unwrap());
    }
}

#[test]
fn the_function_graph_is_left_alone() {
    let run = recorded("spin");
    let dir = tempfile::tempdir().unwrap();
    let target = format!("perfetto://{}", dir.path().join("t").display());
    let sink = target
        .parse::<Destination>()
        .unwrap()
        .open(Pace::Stored)
        .unwrap();
    let page = &pages(&run)[0];
    let graph = RawPage {
        role: TraceRole::Graph,
        ..raw(page)
    };
    assert!(sink.takes(&Row::Page(raw(page))) && !sink.takes(&Row::Page(graph)));
}
