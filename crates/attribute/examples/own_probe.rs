//! Another program's use of these crates: its own probe finds gaps, `jitterscope-source` records the kernel's events
//! meanwhile and decodes their pages, `jitterscope-attribute` splits each gap among its culprits.
//!
//! As root: `cargo run --release -p jitterscope-attribute --example own_probe`. It measures the last CPU for a second.

use jitterscope_attribute::{Attributor, AttributorSettings, NameResolver, OutsideHints};
use jitterscope_model::{
    ClockKind, Comm, CpuId, CpuSet, EventGrain, KernelAddr, Name, Nanos, Stall, StallId, ThreadRef,
    TickRate, Ticks,
};
use jitterscope_platform::{Machine, Topology};
use jitterscope_source::{Decoder, Recorder, RecorderSettings, Role, Symbols, Tasks, Tracefs};
use rustix::thread::{CpuSet as Mask, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::error::Error;

/// A gap between two clock reads from which on the thread counts as stalled.
const THRESHOLD: u64 = 20_000;
const MEASURE: u64 = 1_000_000_000;

/// The clock of probe and trace: one tick is a nanosecond.
fn now() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The probe: reads the clock again and again, and keeps the gaps.
fn spin() -> Vec<(u64, u64)> {
    let mut gaps = Vec::with_capacity(100_000);
    let begun = now();
    let mut last = begun;
    while last - begun < MEASURE {
        let read = now();
        if read - last >= THRESHOLD && gaps.len() < gaps.capacity() {
            gaps.push((last, read));
        }
        last = read;
    }
    gaps
}

/// Names for what events mention.
struct Names {
    symbols: Symbols,
    tasks: Tasks,
}

impl NameResolver for Names {
    fn function(&self, address: KernelAddr) -> Name {
        match self.symbols.name(address) {
            Some(name) => name.into(),
            None => format!("{:#x}", address.0).into(),
        }
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        self.tasks.name(tid).map(|comm| comm.to_string().into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Machine::host();
    let online = Topology::read(&machine).online;
    let cpu = online.last().ok_or("no CPU is online")?;
    let mut mask = Mask::new();
    mask.set(cpu.0 as usize);
    sched_setaffinity(None, &mask)?;

    let tracefs = Tracefs::open(&machine)?;
    let mut recorder = Recorder::start(
        &tracefs,
        &RecorderSettings {
            measured: CpuSet::from_iter([cpu]),
            online,
            clock: ClockKind::MonotonicRaw,
            buffer_kb_per_cpu: 8192,
            follow_threads: false,
            charges_later: false,
            grain: EventGrain::All,
            asked: Vec::new(),
        },
    )?;
    let gaps = spin();
    recorder.stop()?;

    let mut names = Names {
        symbols: Symbols::load(&machine).unwrap_or_else(|_| Symbols::from_resolved([])),
        tasks: recorder.context().task_table(),
    };
    let mut attributor = Attributor::new(AttributorSettings {
        rate: TickRate::NANOSECONDS,
        virtual_machine: false,
        measured: 1,
    });
    // Senders first: a stall's events name what they caused.
    for role in [Role::Senders, Role::Local] {
        for cpu in recorder.cpus(role).iter() {
            let mut pages = Vec::new();
            recorder.drain(role, cpu, &mut |page| pages.push(page.to_vec()))?;
            let mut decoder = Decoder::new(recorder.context())?;
            for page in &pages {
                let info = decoder.page(cpu, page, |event| match role {
                    Role::Local => {
                        names.tasks.learn(&event);
                        attributor.event(&event);
                    }
                    _ => attributor.sender_event(&event),
                })?;
                if let (Some((from, _)), true) = (info.range, info.damaged) {
                    attributor.lost(cpu, from, Ticks(u64::MAX));
                }
            }
        }
    }

    let victim = ThreadRef {
        tid: rustix::thread::gettid().as_raw_nonzero().get(),
        comm: Comm::new("own_probe"),
    };
    let stolen = split(&mut attributor, &names, &gaps, cpu, victim);
    println!("CPU {cpu}: {} gaps of at least {THRESHOLD} ns", gaps.len());
    for (culprit, time) in stolen {
        println!("{:>12} ns  {culprit}", time.0);
    }
    Ok(())
}

/// What each culprit took of all gaps, the largest first.
fn split(
    attributor: &mut Attributor,
    names: &Names,
    gaps: &[(u64, u64)],
    cpu: CpuId,
    victim: ThreadRef,
) -> Vec<(String, Nanos)> {
    let mut stolen: HashMap<String, Nanos> = HashMap::new();
    for (number, (start, end)) in gaps.iter().enumerate() {
        let stall = Stall {
            id: StallId(number as u64),
            cpu,
            victim,
            start: Ticks(*start),
            end: Ticks(*end),
        };
        let split = attributor.attribute(&stall, &OutsideHints::default(), names);
        // The parts are the whole gap, to the nanosecond.
        assert_eq!(split.total(), Nanos(end - start));
        for part in split.parts {
            let subject = &part.culprit.subject;
            let name = format!("{} {}", subject.kind_word(), subject.name());
            let sum = stolen.entry(name).or_default();
            *sum = Nanos(sum.0 + part.net.0);
        }
    }
    let mut stolen: Vec<_> = stolen.into_iter().collect();
    stolen.sort_by_key(|(_, time)| std::cmp::Reverse(time.0));
    stolen
}
