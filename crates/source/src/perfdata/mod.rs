//! `perf.data`, the file of perf: its tracepoints, as the pages of a ring buffer.
//!
//! A sample of a tracepoint holds the same bytes as the kernel's own buffer does, and the file describes them as a
//! `trace.dat` does. So the samples are put into pages of our own, CPU by CPU and in order of time, and all further
//! stages are those of a `trace.dat`. The pages are in a file that the caller provides: memory does not grow with the
//! trace.
//!
//! The file is foreign: every length in it is checked against the file and against a limit. The crate `linux-perf-data`
//! is not used: it reserves memory by lengths of the file, and does not read a file whose last descriptions are cut off.

mod error;
mod header;
mod records;
mod sample;

use crate::page_store::{MOST_CPUS, PageStore};
use crate::ring::PageLayout;
use crate::sorted::Sorted;
use crate::tracedat::{ReadAt, TraceDat};
pub use error::PerfDataError;
use header::Header;
use jitterscope_model::CpuId;
use records::{Found, Records};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::AtomicBool;

/// The first bytes of a file.
pub const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same on a big-endian machine.
pub const MAGIC_BIG_ENDIAN: &[u8; 8] = b"2ELIFREP";
/// Names of threads that are kept.
const MOST_THREADS: usize = 1 << 16;

/// What a file holds.
pub struct PerfData {
    /// Its pages, with what it says of them.
    pub dat: TraceDat,
    /// Whether its records end before its header says so.
    pub cut: bool,
    /// Records that are later in the file than they may be; each has the time of the one before it.
    pub disordered: u64,
    /// Samples without the bytes of a tracepoint.
    pub without_bytes: u64,
}

/// Reads a file, and writes its records into `pages`.
///
/// # Errors
/// It is not a `perf.data` that we read, its descriptions are cut off or damaged, or its samples lack what places them;
/// `pages` cannot be written; `stop` became true.
pub fn open(file: &dyn ReadAt, pages: File, stop: &AtomicBool) -> Result<PerfData, PerfDataError> {
    let header = Header::read(file)?;
    let layout = PageLayout::parse(&header.header_page)?;
    let mut store = PageStore::new(pages, layout, header.data.size);
    let mut sorted = Sorted::new();
    let mut threads = BTreeMap::new();
    // Of each CPU, what was lost since its last sample, and when.
    let mut losses = BTreeMap::new();
    let mut records = Records::new(file, &header, stop);
    let (mut without_bytes, mut lost, mut lost_in_all) = (0u64, 0u64, 0u64);
    while let Some(found) = records.next()? {
        match found {
            Found::Sample(sample) => {
                // Older kernels read the clock for the loss after that for the sample behind it.
                if let Some((_, count)) = losses.remove(&sample.cpu) {
                    sorted.put(sample.time, sample.cpu, What::Lost(count), 0);
                }
                let length = sample.bytes.len();
                let bytes = What::Record(sample.bytes.into());
                sorted.put(sample.time, sample.cpu, bytes, length);
            }
            Found::Round => {
                sorted.round(&mut |time, cpu, what| take(&mut store, time, cpu, what))?
            }
            Found::Lost { at, count } => {
                lost = lost.saturating_add(count);
                if let Some((time, cpu)) = at.filter(|(_, cpu)| cpu.0 < MOST_CPUS) {
                    let of = losses.entry(cpu).or_insert((time, 0u64));
                    of.1 = of.1.saturating_add(count);
                }
            }
            Found::LostInAll { count } => lost_in_all = lost_in_all.saturating_add(count),
            Found::Name { tid, comm } => {
                if threads.len() < MOST_THREADS || threads.contains_key(&tid) {
                    threads.insert(tid, comm);
                }
            }
            Found::NoBytes => without_bytes += 1,
        }
        sorted.relieve(&mut |time, cpu, what| take(&mut store, time, cpu, what))?;
    }
    for (cpu, (time, count)) in losses {
        sorted.put(time, cpu, What::Lost(count), 0);
    }
    sorted.all(&mut |time, cpu, what| take(&mut store, time, cpu, what))?;
    let disordered = store.disordered;
    let lost = lost.max(lost_in_all).saturating_add(store.unplaced);
    let buffer = store.finish()?;
    let cut = records.is_cut();
    Ok(PerfData {
        dat: header.into_dat(store, buffer, threads, lost),
        cut,
        disordered,
        without_bytes,
    })
}

/// What waits for its turn.
enum What {
    Record(Box<[u8]>),
    /// So many records were lost before.
    Lost(u64),
}

/// Takes what comes next.
fn take(store: &mut PageStore, time: u64, cpu: CpuId, what: What) -> Result<(), PerfDataError> {
    match what {
        What::Record(bytes) => store.put(time, cpu, &bytes)?,
        What::Lost(count) => store.lost(cpu, count)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests;
