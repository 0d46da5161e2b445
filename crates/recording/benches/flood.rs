//! Whether a recorder's memory stays flat in floods that are meant to fill it:
//! `cargo bench -p jitterscope-recording --bench flood -- [SECONDS]`.
//!
//! The records are synthetic. Each sort of flood lasts for a while, and all take turns: threads that begin, end and
//! rename themselves, wake-ups of threads that never run, interrupts and work items that never end and have names used
//! only once, calls, moves, switches, losses and disturbances. They are attributed as a probe's stalls, as followed
//! threads and as a watched CPU; the rows are stored and summed up. SECONDS seconds of the clock pass. Prints one line
//! of JSON: the memory of the process, and of each part of the recorder.

use hdrhistogram::Histogram;
use jitterscope_analyze::{RowSummer, RowsOf};
use jitterscope_attribute::{
    Attributor, AttributorSettings, FollowerSettings, NameResolver, OutsideHints, PassiveSettings,
    PassiveWatch, ThreadFollower,
};
use jitterscope_model::{
    Attribution, Comm, CpuId, CpuSet, EventKind, ExecutionContext, Gap, IntervalRow, KernelAddr,
    KernelEvent, Name, Nanos, Row, RunFacts, Sink, Stall, StallId, TaskRef, ThreadRef, Ticks,
    Verdict,
};
use jitterscope_platform::{allocated, keep_freed_memory, resident_bytes};
use jitterscope_store::{RunReader, RunWriter, StoreSink};
use jitterscope_testing::SplitMix64;
use serde::Serialize;
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: jitterscope_platform::Allocator = jitterscope_platform::Allocator;

const SECONDS: u64 = 60;
/// Ticks between two records: 500,000 records a second.
const APART: u64 = 5_000;
/// Records per turn of the drain; the next is turns per sort of flood.
const TURN: u64 = 5_000;
const TURNS: u64 = 40;
const SORTS: u64 = 10;
/// Records of a stall.
const OF_STALL: u64 = 25;
const CPUS: u64 = 4;

/// Bytes that each part of the recorder has allocated and not freed.
#[derive(Clone, Copy, Default, Serialize)]
struct Held {
    follower: isize,
    watch: isize,
    attributor: isize,
    store: isize,
    sums: isize,
}

/// Adds to `part` what it allocates in this call.
fn holds<T>(part: &mut isize, call: impl FnOnce() -> T) -> T {
    let before = allocated();
    let result = call();
    *part += allocated() - before;
    result
}

/// Names every thread by its id.
struct Numbers;

impl NameResolver for Numbers {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("f{:x}", addr.0 % 1000).into()
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        Some(format!("t{tid}").into())
    }
}

struct Flood {
    random: SplitMix64,
    now: Ticks,
}

impl Flood {
    fn below(&mut self, most: u64) -> u64 {
        self.random.below(most)
    }

    fn tid(&mut self) -> i32 {
        i32::try_from(2 + self.below(4_000_000)).unwrap_or(2)
    }

    fn comm(&mut self) -> Comm {
        Comm::new(&format!("{:x}", self.random.bits()))
    }

    fn name(&mut self) -> Name {
        format!("{:x}", self.random.bits()).into()
    }

    fn task(&mut self) -> TaskRef {
        TaskRef {
            tid: self.tid(),
            comm: self.comm(),
            prio: 120,
        }
    }

    fn addr(&mut self) -> u64 {
        self.random.bits() | 1 << 63
    }

    fn switch(&mut self) -> EventKind {
        EventKind::SchedSwitch {
            prev: self.task(),
            prev_state: self.below(3) * 8,
            next: self.task(),
        }
    }

    /// The next record of a sort of flood, and whether it is a sender's record.
    fn record(&mut self, sort: u64) -> (KernelEvent, bool) {
        self.now = self.now + Ticks(1 + self.below(2 * APART));
        let cpu = CpuId(self.below(CPUS) as u32);
        let (target, work, function) = (cpu, self.addr(), KernelAddr(self.addr()));
        let other = self.below(3);
        let (kind, sender) = match (sort, other) {
            (0, 0) => {
                let (tid, comm) = (self.tid(), self.comm());
                let thread = self.below(2) == 0;
                (
                    EventKind::TaskNew {
                        tid,
                        comm,
                        thread,
                        into_cgroup: false,
                    },
                    true,
                )
            }
            (1, 0 | 1) => {
                let (tid, old, comm) = (self.tid(), self.comm(), self.comm());
                (EventKind::TaskRename { tid, old, comm }, true)
            }
            (2, 0 | 1) => {
                let task = self.task();
                (EventKind::SchedWaking { task, target }, true)
            }
            (3, 0 | 1) => {
                let (task, from) = (self.task(), CpuId(self.below(CPUS) as u32));
                let to = target;
                (EventKind::SchedMigrate { task, from, to }, true)
            }
            (4, 0 | 1) => {
                let (irq, action) = (self.below(1000) as u32, self.name());
                (EventKind::IrqEntry { irq, action }, false)
            }
            (5, 0) => (
                EventKind::WorkQueued {
                    work,
                    function,
                    workqueue: self.name(),
                    target: None,
                },
                true,
            ),
            (5, 1) => (EventKind::WorkStart { work, function }, false),
            (6, 0) => (
                EventKind::CsdQueued {
                    target,
                    function,
                    csd: work,
                    callsite: function,
                },
                true,
            ),
            (6, 1) => (
                EventKind::CsdEntry {
                    function,
                    csd: work,
                },
                false,
            ),
            (7, 0 | 1) => {
                let vector = self.name();
                (EventKind::VectorEntry { vector }, false)
            }
            (8, 0 | 1) => (
                EventKind::PageFault {
                    user: true,
                    address: work,
                    ip: work,
                },
                false,
            ),
            _ => (self.switch(), false),
        };
        let event = KernelEvent {
            time: self.now,
            cpu,
            tid: self.tid(),
            context: ExecutionContext::Thread,
            kind,
        };
        (event, sender)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let lasts = Duration::from_secs(seconds.unwrap_or(SECONDS));
    // Only the manifest is used, no record.
    let run = RunReader::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spin"))?;
    let manifest = run.manifest().clone();
    drop(run);
    let rate = manifest.rate;
    let cpus: CpuSet = (0..CPUS as u32).map(CpuId).collect();
    let mut attributor = Attributor::new(AttributorSettings {
        rate,
        virtual_machine: true,
        measured: cpus.len(),
    });
    attributor.measure(Ticks(0), Ticks(u64::MAX));
    let mut follower = ThreadFollower::new(FollowerSettings {
        rate,
        join_within: Ticks(2600),
        remember: rate.ticks(Nanos(1_000_000_000)),
        new_threads: true,
        children: true,
        names: ["a", "b", "1", "2"].map(Comm::new).to_vec(),
        user: None,
        most_threads: 1 << 12,
        virtual_machine: true,
        stacks: false,
        switches: None,
    });
    follower.measure(Ticks(0), Ticks(u64::MAX));
    let mut watch = PassiveWatch::new(PassiveSettings {
        rate,
        cpus: cpus.clone(),
        join_within: Ticks(2600),
        threshold: Ticks(2600),
        new_threads: true,
        children: false,
        names: ["a", "b", "1", "2"].map(Comm::new).to_vec(),
    });
    watch.measure(Ticks(0), Ticks(u64::MAX));
    let folder = tempfile::tempdir()?;
    let begun_ns = manifest.clock_start.realtime_ns;
    let mut store = StoreSink::new(RunWriter::create(folder.path(), "FLOOD", begun_ns)?);
    store.begin(&RunFacts {
        id: store.id().to_owned(),
        label: "FLOOD".into(),
        ..RunFacts::of(&manifest)
    })?;
    let mut sums = RowSummer::stored(RowsOf {
        attributed: true,
        ..RowsOf::run(&manifest)
    });
    keep_freed_memory();
    let mut flood = Flood {
        random: SplitMix64(7),
        now: Ticks(1_000_000),
    };
    let begun = Instant::now();
    let (mut events, mut stalls, mut turn) = (0u64, 0u64, 0u64);
    // The maximum of each twentieth of the time.
    let mut greatest = [0u64; 20];
    let mut held = Held::default();
    let mut held_by_twentieth = [held; 20];
    let mut lengths: Histogram<u64> = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?;
    while begun.elapsed() < lasts {
        let sort = turn / TURNS % SORTS;
        let from = flood.now;
        let mut batch: Vec<(Stall, Attribution)> = Vec::new();
        let mut since = [from; CPUS as usize];
        for number in 0..TURN {
            let (event, sender) = flood.record(sort);
            events += 1;
            holds(&mut held.follower, || follower.event(&event, &Numbers));
            holds(&mut held.watch, || watch.event(&event, &Numbers));
            holds(&mut held.attributor, || {
                if sender {
                    attributor.sender_event(&event);
                } else {
                    attributor.event(&event);
                }
            });
            if number % OF_STALL == OF_STALL - 1 {
                let cpu = event.cpu;
                let start = std::mem::replace(&mut since[cpu.0 as usize], event.time + Ticks(1));
                let stall = Stall {
                    id: StallId(stalls),
                    cpu,
                    victim: ThreadRef {
                        tid: 1,
                        comm: Comm::new("victim"),
                    },
                    start,
                    end: event.time,
                };
                let length = stall.length();
                let hints = OutsideHints::default();
                holds(&mut held.attributor, || {
                    attributor.announce(cpu, Gap { start, length });
                    batch.push((stall, attributor.attribute(&stall, &hints, &Numbers)));
                });
                lengths.saturating_record(rate.nanos(length).0);
                stalls += 1;
            }
        }
        let to = flood.now;
        if sort == SORTS - 1 {
            attributor.disturbed(&cpus, to, to + Ticks(1000));
            for cpu in cpus.iter() {
                follower.lost(
                    cpu,
                    (to, to + Ticks(1000)),
                    Verdict::TraceDisturbed,
                    &Numbers,
                );
                watch.lost(
                    cpu,
                    (to, to + Ticks(1000)),
                    Verdict::TraceDataLost,
                    &Numbers,
                );
            }
            flood.now = to + Ticks(1000);
        }
        holds(&mut held.attributor, || attributor.forget_names());
        let watched = holds(&mut held.watch, || {
            let taken = watch.take_stalls();
            let ids = stalls..;
            let stalls = ids.zip(taken);
            stalls
                .map(|(id, stall)| stall.into_stall(StallId(id), rate))
                .collect::<Vec<_>>()
        });
        stalls += watched.len() as u64;
        holds(&mut held.follower, || drop(follower.take_episodes()));
        let row = IntervalRow {
            cpu: CpuId(0),
            start: from,
            end: to,
            count: (batch.len() + watched.len()) as u64,
            max: Nanos(lengths.max()),
            stolen: Nanos(1),
        };
        let rows = batch
            .iter()
            .chain(&watched)
            .map(|(stall, own)| Row::Stall(stall, Some(own)));
        let rows: Vec<Row<'_>> = rows.chain([Row::Interval(&row, &lengths)]).collect();
        holds(&mut held.store, || {
            store.rows(&rows)?;
            store.tick()
        })?;
        holds(&mut held.sums, || sums.rows(&rows))?;
        drop(rows);
        holds(&mut held.attributor, || drop(batch));
        holds(&mut held.watch, || drop(watched));
        lengths.reset();
        turn += 1;
        let part = begun.elapsed().as_nanos() * 20 / lasts.as_nanos().max(1);
        let part = usize::try_from(part).unwrap_or(19).min(19);
        greatest[part] = greatest[part].max(resident_bytes());
        held_by_twentieth[part] = held;
    }
    println!(
        "{}",
        json!({
            "seconds": lasts.as_secs(),
            "events": events,
            "stalls": stalls,
            "rounds": turn / TURNS / SORTS,
            "peak_bytes_by_twentieth": greatest,
            "held_bytes_by_twentieth": held_by_twentieth,
        })
    );
    Ok(())
}
