//! The cost of a record. Not asserted, because times depend on the machine. Run it by hand, in release: `cargo test
//! --release -p jitterscope-attribute --lib speed -- --ignored --nocapture`.

use super::common::*;
use super::older::Timeline;
use crate::occupancy::{Record, Window};
use jitterscope_model::{Comm, CpuId, EventKind, KernelAddr, KernelEvent, Name, Nanos};
use jitterscope_model::{Stall, StallId, ThreadRef, TickRate, Ticks};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

/// A tick with its functions and a softirq, a worker with an item, a device: 17 records.
fn disturbance(at: u64) -> Vec<KernelEvent> {
    let [entry, exit] = tick(at + 10, at + 90, VICTIM);
    let timer = |n| EventKind::HrtimerEntry {
        hrtimer: n,
        function: KernelAddr(1000 + n),
        now: Nanos(n),
    };
    let worker = |time, kind| super::common::at(time, 50, kind);
    let victim = |time, kind| super::common::at(time, VICTIM, kind);
    vec![
        entry,
        victim(at + 20, timer(1)),
        victim(at + 40, EventKind::HrtimerExit { hrtimer: 1 }),
        victim(at + 50, timer(2)),
        victim(at + 80, EventKind::HrtimerExit { hrtimer: 2 }),
        exit,
        victim(at + 95, EventKind::SoftirqEntry { vec: 1 }),
        victim(at + 120, EventKind::SoftirqExit { vec: 1 }),
        victim(
            at + 130,
            EventKind::IrqEntry {
                irq: 25,
                action: "virtio0".into(),
            },
        ),
        victim(at + 150, EventKind::IrqExit { irq: 25 }),
        switch(at + 200, VICTIM, 50),
        worker(
            at + 210,
            EventKind::WorkStart {
                work: 7,
                function: KernelAddr(1),
            },
        ),
        worker(
            at + 220,
            EventKind::VectorEntry {
                vector: "reschedule".into(),
            },
        ),
        worker(
            at + 230,
            EventKind::VectorExit {
                vector: "reschedule".into(),
            },
        ),
        worker(at + 300, EventKind::WorkEnd { work: 7 }),
        switch(at + 310, 50, 200),
        switch(at + 400, 200, VICTIM),
    ]
}

/// Shares equal texts, as a decoder does.
fn share_text(event: &mut KernelEvent, texts: &mut BTreeSet<Name>) {
    let (EventKind::VectorEntry { vector: text }
    | EventKind::VectorExit { vector: text }
    | EventKind::IrqEntry { action: text, .. }) = &mut event.kind
    else {
        return;
    };
    match texts.get(text) {
        Some(known) => *text = known.clone(),
        None => {
            texts.insert(text.clone());
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    const STALLS: u64 = 100_000;
    let mut texts = BTreeSet::new();
    let mut stalls: Vec<Vec<KernelEvent>> = (0..STALLS).map(|n| disturbance(n * 1000)).collect();
    stalls
        .iter_mut()
        .flatten()
        .for_each(|event| share_text(event, &mut texts));
    let count = stalls.iter().map(Vec::len).sum::<usize>() as u64;
    let timed = |what: &str, begin: Instant| {
        let ns = begin.elapsed().as_nanos() as u64;
        println!("{what}: {:.1} ns a record", ns as f64 / count as f64);
        ns
    };

    let victim = ThreadRef {
        tid: VICTIM,
        comm: Comm::new("victim"),
    };
    let begin = Instant::now();
    for (n, events) in stalls.iter().enumerate() {
        let (start, end) = (Ticks(n as u64 * 1000), Ticks(n as u64 * 1000 + 420));
        let stall = Stall {
            id: StallId(0),
            cpu: CpuId(1),
            victim,
            start,
            end,
        };
        black_box(Timeline::build(&stall, events, TickRate::NANOSECONDS));
    }
    let before = timed("the older reading, stall by stall", begin);

    let mut names = names();
    let begin = Instant::now();
    for event in stalls.iter().flatten() {
        black_box(Record::new(event, &mut names));
    }
    timed("to 32 bytes", begin);
    let records: Vec<_> = stalls
        .iter()
        .map(|events| records_with(events, &mut names))
        .collect();

    let mut quiet = machine();
    let begin = Instant::now();
    records
        .iter()
        .flatten()
        .for_each(|record| quiet.record(record));
    black_box(quiet.turn());
    timed("the machine, nobody asks", begin);

    let (mut asked, mut window) = (machine(), Window::default());
    let begin = Instant::now();
    for (n, records) in records.iter().enumerate() {
        asked.running(VICTIM, Ticks(n as u64 * 1000));
        let mark = asked.open_mark(Ticks(n as u64 * 1000));
        records.iter().for_each(|record| asked.record(record));
        asked.close_mark(mark, Ticks(n as u64 * 1000 + 420), &mut window);
        black_box(&window);
    }
    let now = timed("the machine, each stall asked for", begin);
    println!("ratio {:.2}", before as f64 / now as f64);
}
