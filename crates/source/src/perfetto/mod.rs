//! Perfetto's traces: their kernel events, as the pages of a ring buffer.
//!
//! A trace is a list of packets. Those of the data source `linux.ftrace` hold the events of one CPU as messages, most of
//! them with the kernel's own fields; switches and wake-ups may be in compact lists. Each event that is read becomes a
//! record as the kernel's own buffer has it, in pages of our own, so all further stages are those of a `trace.dat`. The
//! pages are in a file that the caller provides: memory does not grow with the trace.
//!
//! Perfetto names kernel functions by a number of its own instead of their address.
//!
//! The file is foreign: every length in it is checked against the file and against a limit.

mod bundle;
mod error;
mod events;
pub mod numbers;
mod packets;
mod wire;

pub use error::{HOW_TO_RECORD, PerfettoError};
pub use events::IPI_VECTORS;
pub use packets::is_perfetto;

use crate::own_record::{FLAGS, Flags, HEADER_PAGE};
use crate::page_store::{MOST_CPUS, PageStore};
use crate::ring::{LayoutError, PageLayout};
use crate::sorted::Sorted;
use crate::symbols::{Symbols, SymbolsError};
use crate::tracedat::{Options, ReadAt, TraceDat, Tracing};
use bundle::{Bundle, Cpus, Made};
use events::Plans;
use jitterscope_model::{Comm, CpuId, Imported, KernelAddr};
use numbers::{clock, packet, stats, system, tree};
use packets::Packets;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::atomic::AtomicBool;
use wire::{all, bytes, int};

/// Names of functions and threads that are kept, and buffers of CPUs.
const MOST_NAMES: usize = 1 << 18;
const MOST_BUFFERS: usize = 1 << 16;
/// The program whose traces name all functions at the end.
const OURS: &str = "jitterscope";
/// The longest text that a trace states of its machine, bytes.
const LONGEST: usize = 256;
/// Addresses for functions that have only a number.
const FIRST_FUNCTION: u64 = 0xffff_ffff_8000_0000;
const MOST_FUNCTIONS: u64 = 1 << 24;
/// A compact event has a few bytes; its record has up to seventy.
const LARGER: u64 = 16;

/// What a file holds.
pub struct Perfetto {
    /// Its pages, with what it says of them.
    pub dat: TraceDat,
    /// Whether it ends within a packet, or is damaged.
    pub cut: bool,
    /// Records out of order; each has the time of the one before it.
    pub disordered: u64,
    /// Events that no verdict uses.
    pub unread: u64,
}

/// Reads a file, and writes its events into `pages`.
///
/// # Errors
/// It has no kernel events that we read, or no clock that we know; `pages` cannot be written; `stop` became true.
pub fn open(file: &dyn ReadAt, pages: File, stop: &AtomicBool) -> Result<Perfetto, PerfettoError> {
    let layout =
        PageLayout::parse(HEADER_PAGE).map_err(|_: LayoutError| PerfettoError::NoEvents)?;
    let mut packets = Packets::new(file, stop)?;
    let mut trace = Trace {
        store: PageStore::new(pages, layout, 0),
        sorted: Sorted::new(),
        flags: HashMap::new(),
        plans: Plans::default(),
        cpus: Cpus::default(),
        functions: Functions::default(),
        threads: BTreeMap::new(),
        clock: None,
        about: About::default(),
        lost: 0,
        unread: 0,
        damaged: false,
    };
    packets.all(&mut |packet| trace.packet(packet))?;
    let cut = packets.cut | trace.damaged;
    trace.finish(cut)
}

/// A trace while it is read.
struct Trace {
    store: PageStore,
    /// Bundles of one buffer are in order of time. Those of several buffers of a CPU overlap: of two data sources, or of
    /// the two sides of a recording of ours.
    sorted: Sorted<What>,
    flags: HashMap<CpuId, Flags>,
    plans: Plans,
    cpus: Cpus,
    functions: Functions,
    threads: BTreeMap<i32, Comm>,
    /// The number of the clock of kernel events.
    clock: Option<u64>,
    about: About,
    /// Losses that bundles report; each counts as one record.
    lost: u64,
    unread: u64,
    damaged: bool,
}

/// What waits for its turn.
enum What {
    Record(Made),
    /// Records were lost before.
    Lost,
}

/// Takes what comes next.
fn take(
    store: &mut PageStore,
    flags: &mut HashMap<CpuId, Flags>,
    (time, cpu, what): (u64, CpuId, What),
) -> Result<(), PerfettoError> {
    let flags = flags.entry(cpu).or_default();
    match what {
        What::Record(mut made) => {
            let around = flags.of_next(made.edge, false);
            if !made.has_flags {
                made.bytes[FLAGS] = around;
            }
            store.put(time, cpu, &made.bytes)?;
        }
        What::Lost => {
            flags.of_next(None, true);
            store.lost(cpu, 1)?;
        }
    }
    Ok(())
}

/// What a trace states of its machine and of itself.
#[derive(Default)]
struct About {
    /// The first reading of the clocks, by their numbers.
    clocks: BTreeMap<u64, u64>,
    uname: [String; 4],
    service: Option<String>,
    cpus: Option<u32>,
    /// The kernel's count of overwritten records of each CPU, at the start and at the end.
    overrun: [BTreeMap<u64, u64>; 2],
}

impl Trace {
    fn packet(&mut self, whole: &[u8]) -> Result<(), PerfettoError> {
        let records = (whole.len() as u64).saturating_mul(LARGER);
        self.store.make_room(records);
        // Another machine's events have another machine's clock.
        if int(whole, packet::MACHINE).is_some_and(|machine| machine != 0) {
            let bundles = all(whole, packet::FTRACE_EVENTS);
            self.unread += bundles
                .flat_map(|bundle| all(bundle, numbers::bundle::EVENT))
                .count() as u64;
            return Ok(());
        }
        self.about.packet(whole);
        let service = self.about.service.as_deref();
        self.functions.may_follow = service.is_some_and(|service| service.starts_with(OURS));
        let sequence = int(whole, packet::SEQUENCE).unwrap_or(0);
        let flags = int(whole, packet::SEQUENCE_FLAGS).unwrap_or(0);
        let cleared = flags & u64::from(packet::CLEARED) != 0
            || int(whole, packet::STATE_CLEARED).is_some_and(|cleared| cleared != 0);
        let dropped = int(whole, packet::DROPPED_BEFORE).is_some_and(|dropped| dropped != 0);
        if cleared || dropped {
            self.functions.clear(sequence);
        }
        if dropped {
            // Those that were dropped may have been of any CPU. The first packet of a sequence says so, too.
            let known = self.cpus.iter_mut().filter(|((of, _), _)| *of == sequence);
            known.for_each(|(_, state)| state.lose());
        }
        for (number, name) in packets::kernel_symbols(whole) {
            self.functions.name((sequence, number), name);
        }
        for found in all(whole, packet::FTRACE_EVENTS) {
            self.bundle(found, sequence)?;
        }
        for found in all(whole, packet::PROCESS_TREE) {
            self.threads(found);
        }
        Ok(())
    }

    fn bundle(&mut self, message: &[u8], sequence: u64) -> Result<(), PerfettoError> {
        let read = Bundle::read(message, &mut self.plans);
        self.damaged |= read.damaged;
        let place = (sequence, read.cpu);
        let is_one_more = self.cpus.len() >= MOST_BUFFERS && !self.cpus.contains_key(&place);
        let clock = *self.clock.get_or_insert(read.clock);
        if read.cpu >= MOST_CPUS || is_one_more || clock != read.clock {
            self.store.unplaced += read.events();
            return Ok(());
        }
        let cpu = CpuId(read.cpu);
        let Trace {
            store,
            sorted,
            flags,
            plans,
            cpus,
            functions,
            ..
        } = self;
        let state = cpus.entry(place).or_default();
        if read.lost {
            state.lose();
        }
        if let Some(begin) = read.begin()
            && std::mem::take(&mut state.after_loss)
        {
            sorted.put(begin, cpu, What::Lost, 0);
            self.lost += 1;
        }
        let mut function = |number| functions.address((sequence, number));
        self.unread += state.records(&read, plans, &mut function, &mut |time, made| {
            let length = made.bytes.len();
            sorted.put(time, cpu, What::Record(made), length);
            sorted.relieve(&mut |time, cpu, what| take(store, flags, (time, cpu, what)))
        })?;
        if read.skipped {
            state.lose();
        }
        Ok(())
    }

    fn threads(&mut self, found: &[u8]) {
        for thread in all(found, tree::THREADS) {
            let tid = int(thread, tree::TID).map(|tid| tid as i32);
            let (Some(tid @ 1..), Some(name)) = (tid, bytes(thread, tree::NAME)) else {
                continue;
            };
            if self.threads.len() < MOST_NAMES {
                self.threads.insert(tid, Comm::from_bytes(name));
            }
        }
    }

    fn finish(mut self, cut: bool) -> Result<Perfetto, PerfettoError> {
        if self.plans.is_empty() {
            return Err(PerfettoError::NoEvents);
        }
        let name = match self.clock.unwrap_or(0) {
            // Perfetto chooses the kernel's trace clock boot, and states only another one.
            0 => "boot",
            2 => "global",
            3 => "local",
            4 => "mono_raw",
            clock => return Err(PerfettoError::Clock { clock }),
        };
        let (store, flags) = (&mut self.store, &mut self.flags);
        self.sorted
            .all(&mut |time, cpu, what| take(store, flags, (time, cpu, what)))?;
        let lost = self.lost.saturating_add(self.store.unplaced);
        let disordered = self.store.disordered;
        let buffer = self.store.finish()?;
        let mut options = self.about.options(name);
        options.overrun = options.overrun.max(lost);
        let tracing = Tracing {
            header_page: HEADER_PAGE.to_owned(),
            formats: std::mem::take(&mut self.plans.formats),
            functions: self.functions.symbols(),
            threads: self.threads.into_iter().collect(),
        };
        Ok(Perfetto {
            dat: TraceDat::of_pages(
                (Imported::PERFETTO, 0),
                self.store,
                tracing,
                options,
                buffer,
            ),
            cut,
            disordered,
            unread: self.unread,
        })
    }
}

/// Kernel functions: a sequence of packets gives each name a number, until it begins anew.
#[derive(Default)]
struct Functions {
    /// The addresses of each sequence's numbers, and how many there are.
    addresses: HashMap<u64, HashMap<u64, KernelAddr>>,
    kept: usize,
    names: BTreeMap<KernelAddr, String>,
    /// The address of each name: a name has one in all sequences.
    of_names: HashMap<Vec<u8>, KernelAddr>,
    /// Whether names may follow the events. Without names in time, a number tells nothing: Perfetto begins anew without
    /// saying so if it has no names.
    may_follow: bool,
    next: u64,
}

impl Functions {
    fn clear(&mut self, sequence: u64) {
        let cleared = self.addresses.remove(&sequence);
        self.kept -= cleared.map_or(0, |of| of.len());
    }

    fn fresh(&mut self) -> Option<KernelAddr> {
        self.next = (self.next + 1).min(MOST_FUNCTIONS);
        (self.next < MOST_FUNCTIONS).then(|| KernelAddr(FIRST_FUNCTION + self.next * 16))
    }

    /// Notes the address of a number, unless there are too many.
    fn keep(&mut self, (sequence, number): (u64, u64), address: KernelAddr) -> Option<()> {
        (self.kept < MOST_NAMES).then_some(())?;
        let of = self.addresses.entry(sequence).or_default();
        self.kept += usize::from(of.insert(number, address).is_none());
        Some(())
    }

    fn known(&self, (sequence, number): (u64, u64)) -> Option<KernelAddr> {
        self.addresses.get(&sequence)?.get(&number).copied()
    }

    /// The address of a number; zero if the function is unknown.
    fn address(&mut self, place: (u64, u64)) -> u64 {
        let new = |own: &mut Functions| {
            (own.may_follow && place.1 != 0).then_some(())?;
            let address = own.fresh()?;
            own.keep(place, address)?;
            Some(address)
        };
        let address = self.known(place).or_else(|| new(self));
        address.map_or(0, |address| address.0)
    }

    /// Names a number.
    fn name(&mut self, place: (u64, u64), name: &[u8]) -> Option<()> {
        let name = &name[..name.len().min(LONGEST)];
        let known = match self.may_follow {
            true => self.known(place),
            false => None,
        };
        let known = known.or_else(|| self.of_names.get(name).copied());
        let address = match known {
            Some(known) => known,
            None => self.fresh()?,
        };
        self.keep(place, address)?;
        if self.names.len() < MOST_NAMES && !self.names.contains_key(&address) {
            self.names.insert(address, crate::tracedat::text_of(name));
            self.of_names.entry(name.to_vec()).or_insert(address);
        }
        Some(())
    }

    fn symbols(&self) -> Result<Symbols, SymbolsError> {
        if self.names.is_empty() {
            return Err(SymbolsError::Empty);
        }
        let named = self.names.iter();
        Ok(Symbols::from_resolved(
            named.map(|(address, name)| (*address, name.as_str())),
        ))
    }
}

impl About {
    fn packet(&mut self, whole: &[u8]) {
        if self.clocks.is_empty()
            && let Some(snapshot) = bytes(whole, packet::CLOCK_SNAPSHOT)
        {
            let read = all(snapshot, clock::CLOCKS)
                .take(64)
                .filter_map(|of| Some((int(of, clock::ID)?, int(of, clock::TIMESTAMP)?)));
            self.clocks = read.collect();
        }
        if let Some(info) = bytes(whole, packet::SYSTEM_INFO) {
            let text = |message, field| {
                let text = bytes(message, field).unwrap_or_default();
                crate::tracedat::text_of(&text[..text.len().min(LONGEST)])
            };
            let uname = bytes(info, system::UTSNAME).unwrap_or_default();
            self.uname = [
                text(info, system::HOSTNAME),
                text(uname, system::RELEASE),
                text(uname, system::VERSION),
                text(uname, system::MACHINE),
            ];
            self.service = Some(text(info, system::SERVICE)).filter(|text| !text.is_empty());
            self.cpus = int(info, system::CPUS).and_then(|cpus| u32::try_from(cpus).ok());
        }
        if let Some(found) = bytes(whole, packet::FTRACE_STATS) {
            let place = match int(found, stats::PHASE) {
                Some(stats::AT_START) => 0,
                Some(stats::AT_END) => 1,
                _ => return,
            };
            for (cpu, of) in all(found, stats::CPUS).take(MOST_CPUS as usize).enumerate() {
                let cpu = int(of, stats::CPU).unwrap_or(cpu as u64);
                let count = |field| int(of, field).unwrap_or(0);
                let lost = count(stats::OVERRUN).saturating_add(count(stats::DROPPED));
                self.overrun[place].insert(cpu, lost);
            }
        }
    }

    fn options(&self, name: &str) -> Options {
        let mut options = Options::default();
        options.clock = Some(name.to_owned());
        options.hz = Some(1_000_000_000);
        let own = match name {
            "mono_raw" => clock::MONOTONIC_RAW,
            "boot" => clock::BOOTTIME,
            _ => 0,
        };
        let of = |number: u32| self.clocks.get(&u64::from(number)).copied();
        options.date_us = of(clock::REALTIME)
            .zip(of(own))
            .and_then(|(day, own)| i64::try_from((i128::from(day) - i128::from(own)) / 1000).ok());
        // A blank hostname keeps its place.
        let [host, release, version, machine] = &self.uname;
        let host = if host.is_empty() { "unknown" } else { host };
        options.uname = Some(format!("Linux {host} {release} {version} {machine}"));
        options.program.clone_from(&self.service);
        options.cpus = self.cpus;
        let [before, after] = &self.overrun;
        let more = after
            .iter()
            .map(|(cpu, lost)| lost.saturating_sub(before.get(cpu).copied().unwrap_or(*lost)));
        options.overrun = more.fold(0, u64::saturating_add);
        options
    }
}

#[cfg(test)]
mod tests;
