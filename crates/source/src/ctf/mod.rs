//! CTF 1.8, the format of LTTng: its kernel events, as the pages of a ring buffer.
//!
//! A trace is a folder: `metadata` describes the events, and each other file holds those of one CPU and channel. Each
//! event that is read becomes a record as the kernel's own buffer has it, in pages of our own, so all further stages are
//! those of a `trace.dat`. The pages are in a file that the caller provides: memory does not grow with the trace.
//!
//! An event of LTTng does not state the running thread, unless its user asked for it: it is the one that the CPU's last
//! switch names.
//!
//! The folder is foreign: every length in it is checked against the file and against a limit.

mod bits;
mod error;
mod lexer;
mod merged;
mod metadata;
mod names;
mod parser;
mod plan;
mod stream;
mod types;
mod values;

pub use error::CtfError;
pub use metadata::LONGEST as LONGEST_METADATA;
pub use names::{event_of, field_of};
pub use plan::{FUNCTION, NAMED_THREAD};

use crate::own_record::HEADER_PAGE;
use crate::page_store::{MOST_CPUS, PageStore};
use crate::ring::{LayoutError, PageLayout};
use crate::symbols::{Symbols, SymbolsError};
use crate::tracedat::{Options, ReadAt, TraceDat, Tracing};
use jitterscope_model::{Comm, CpuId, Imported, KernelAddr};
use merged::Merged;
use plan::{Places, Plans};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::AtomicBool;
use stream::{Named, Stream};
use types::{Clock, Trace};

/// The name of the file with the descriptions.
pub const METADATA: &str = "metadata";
/// The most files of events.
pub const MOST_STREAMS: usize = 1 << 14;
/// The keys of `env` that our own exports add.
pub const BOOTTIME: &str = "boottime_offset";
pub const KERNEL_CLOCK: &str = "kernel_clock";
/// Names of functions and threads that are kept.
const MOST_NAMES: usize = 1 << 18;
/// What a folder holds.
pub struct Ctf {
    /// Its pages, with what it says of them.
    pub dat: TraceDat,
    /// The CPUs of whose files something is cut off or damaged.
    pub cut: jitterscope_model::CpuSet,
    /// Records that are later in a file than they may be; each has the time of the one before it.
    pub disordered: u64,
    /// Events that no verdict uses.
    pub unread: u64,
}

/// Reads the events of a folder, and writes them into `pages`. `streams`: its files besides `metadata`.
///
/// # Errors
/// It is not a CTF trace that we read, its metadata are damaged, or its events lack what places them; `pages` cannot be
/// written; `stop` became true.
pub fn open(
    metadata: &[u8],
    streams: &[Box<dyn ReadAt>],
    pages: File,
    stop: &AtomicBool,
) -> Result<Ctf, CtfError> {
    if streams.len() > MOST_STREAMS {
        return Err(CtfError::Streams { most: MOST_STREAMS });
    }
    let trace = parser::parse(&metadata::text(metadata)?)?;
    let plans = Plans::of(&trace);
    if plans.is_empty() {
        return Err(CtfError::NoEvents);
    }
    if !trace.streams.values().any(|stream| stream.has_time()) {
        return Err(CtfError::NoClock);
    }
    let mut options = options(&trace)?;
    let mut names = Names::default();
    let places = Places::of(&trace);
    let mut by_cpu: BTreeMap<u32, Vec<Stream<'_>>> = BTreeMap::new();
    let (mut size, mut nowhere, mut unread) = (0_u64, 0_u64, 0);
    for file in streams {
        let mut stream = Stream::open(&**file, &trace, &plans, places)?;
        stream.rest();
        let length = file.length()?;
        size = size.saturating_add(length);
        match stream.cpu.filter(|cpu| *cpu < MOST_CPUS) {
            Some(cpu) => by_cpu.entry(cpu).or_default().push(stream),
            None if length > 0 => nowhere += 1,
            None => {}
        }
    }
    if by_cpu.is_empty() && nowhere > 0 {
        return Err(CtfError::NoCpu);
    }
    let layout = PageLayout::parse(HEADER_PAGE).map_err(|_: LayoutError| CtfError::NoEvents)?;
    // A record is larger than its compact event.
    let mut store = PageStore::new(pages, layout, size.saturating_mul(4));
    let (mut cut, mut lost) = (jitterscope_model::CpuSet::new(), 0_u64);
    for (cpu, streams) in by_cpu {
        let cpu = CpuId(cpu);
        let mut merged = Merged::new(cpu, streams, stop);
        merged.all(&mut store, &mut |named| names.take(named))?;
        if merged.cut() {
            cut.insert(cpu);
        }
        lost = lost.saturating_add(merged.lost);
        unread += merged.unread();
    }
    let disordered = store.disordered;
    let lost = lost.saturating_add(store.unplaced);
    let buffer = store.finish()?;
    options.overrun = lost;
    let tracing = Tracing {
        header_page: HEADER_PAGE.to_owned(),
        formats: plans.formats.clone(),
        functions: names.functions(),
        threads: names.threads.into_iter().collect(),
    };
    Ok(Ctf {
        dat: TraceDat::of_pages((Imported::CTF, 1), store, tracing, options, buffer),
        cut,
        disordered,
        unread,
    })
}

/// Names that events state.
#[derive(Default)]
struct Names {
    functions: BTreeMap<KernelAddr, String>,
    threads: BTreeMap<i32, Comm>,
}

impl Names {
    fn take(&mut self, named: Named) {
        if self.functions.len() + self.threads.len() >= MOST_NAMES {
            return;
        }
        match named {
            Named::Function(address, name) => drop(self.functions.insert(address, name)),
            Named::Thread(tid, comm) if tid > 0 => drop(self.threads.insert(tid, comm)),
            Named::Thread(..) => {}
        }
    }

    fn functions(&self) -> Result<Symbols, SymbolsError> {
        if self.functions.is_empty() {
            return Err(SymbolsError::Empty);
        }
        let named = self.functions.iter();
        Ok(Symbols::from_resolved(
            named.map(|(address, name)| (*address, name.as_str())),
        ))
    }
}

/// What the trace says of itself.
fn options(trace: &Trace) -> Result<Options, CtfError> {
    let env = |key: &str| trace.env.get(key).map(String::as_str).unwrap_or_default();
    let clock = trace.clocks.first();
    let hz = clock.map_or(1_000_000_000, |clock| clock.hz);
    if !(1_000_000..=100_000_000_000).contains(&hz) {
        return Err(CtfError::Clock { hz });
    }
    let kernels = env(KERNEL_CLOCK);
    let name = match clock.map_or("", |clock| clock.name.as_str()) {
        _ if hz != 1_000_000_000 => Imported::TSC_CLOCK,
        _ if Imported::NANOSECOND_CLOCKS.contains(&kernels) => kernels,
        "monotonic" => "mono",
        other => other,
    };
    let offset = env(BOOTTIME).parse().unwrap_or(0_i64);
    let program = format!("{} {}", env("tracer_name"), version(trace));
    let uname = [
        "hostname",
        "kernel_release",
        "kernel_version",
        "architecture",
    ]
    .map(env);
    let mut options = Options::default();
    options.clock = Some(name.to_owned());
    options.hz = Some(hz);
    options.offset = offset;
    options.date_us = clock.and_then(|clock| date(clock, offset));
    options.uname = Some(format!("Linux {}", uname.join(" ")));
    options.program = Some(program.trim().to_owned()).filter(|program| !program.is_empty());
    Ok(options)
}

fn version(trace: &Trace) -> String {
    let parts = ["tracer_major", "tracer_minor", "tracer_patchlevel"];
    let parts = parts.iter().filter_map(|key| trace.env.get(*key));
    parts.cloned().collect::<Vec<_>>().join(".")
}

/// What is added to the clock, beside `offset` nanoseconds, so that it is the time of day, microseconds.
fn date(clock: &Clock, offset: i64) -> Option<i64> {
    if (clock.offset_s, clock.offset) == (0, 0) {
        return None;
    }
    let ticks = i128::from(clock.offset) * 1_000_000_000 / i128::from(clock.hz.max(1));
    let ns = i128::from(clock.offset_s) * 1_000_000_000 + ticks - i128::from(offset);
    i64::try_from(ns / 1000).ok()
}

#[cfg(test)]
mod tests;
