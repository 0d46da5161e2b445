//! The records of a file at the times of another clock.

use super::buffers::CpuData;
use super::compressed::Compression;
use super::{Buffer, TraceDat};
use crate::page_store::{PageStore, PagesError};
use crate::ring::{Page, PageLayout, PageLoss};
use jitterscope_model::{CpuId, CpuSet, Ticks};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a stream may hold in memory, bytes.
const MEMORY: usize = 1 << 20;
/// A record of no event.
const NO_EVENT: [u8; 4] = [0; 4];

/// What was measured, on the other clock.
#[derive(Clone, Debug)]
pub struct Measured {
    /// CPUs whose records must cover the measurement, in the first of the buffers.
    pub cpus: CpuSet,
    pub from: Ticks,
    pub until: Ticks,
    /// Records so much before and after are kept, too: they show the state at the ends.
    pub around: Ticks,
    /// Times of the file, in order, at which its records have no known time on the other clock: they count as lost.
    pub without: Vec<(Ticks, Ticks)>,
}

/// A file with its records at other times.
pub struct Retimed {
    pub dat: TraceDat,
    /// Losses that were added, each with a count of one: where records do not cover the measurement.
    pub added_losses: u64,
    /// Records of no event that were added: each ends a loss.
    pub added_records: u64,
    /// The measured time that the records cover, the sum over the CPUs.
    pub covered: Ticks,
    /// CPUs of which pages are missing or damaged.
    pub cut: CpuSet,
    /// Pages that were left out because they are out of order.
    pub disordered: u64,
}

/// Why a file is not copied.
#[derive(Debug, thiserror::Error)]
pub enum RetimeError {
    #[error("reading the file: {0}")]
    Read(io::Error),
    #[error("{0}")]
    Write(io::Error),
    #[error("its tables are damaged: several CPUs share their pages")]
    Tables,
    #[error("it has more losses than records could have")]
    Losses,
    #[error("interrupted")]
    Stopped,
}

impl From<PagesError> for RetimeError {
    fn from(error: PagesError) -> RetimeError {
        match error {
            PagesError::Io(error) => RetimeError::Write(error),
            PagesError::Losses => RetimeError::Losses,
        }
    }
}

impl TraceDat {
    /// The records of these buffers, in this order, at the times that `time` makes of theirs; `time` must ascend. Pages
    /// are written into `file`. Where the records of a measured CPU do not cover the measurement, a loss says so.
    ///
    /// # Errors
    /// The files cannot be read or written, the file's tables are damaged, or `stop` became true.
    pub fn retimed(
        self,
        buffers: &[usize],
        layout: &PageLayout,
        (measured, time): (&Measured, &dyn Fn(Ticks) -> Ticks),
        file: File,
        stop: &AtomicBool,
    ) -> Result<Retimed, RetimeError> {
        let chosen = buffers.iter().filter_map(|at| self.buffers.get(*at));
        let length = self.file.length().map_err(RetimeError::Read)?;
        // A file that is cut off has less than its tables name.
        let there = |data: &CpuData| data.size.min(length.saturating_sub(data.at));
        let bytes = chosen.clone().flat_map(|buffer| &buffer.cpus).map(there);
        let bytes = bytes.fold(0u64, u64::saturating_add);
        // CPUs that share their pages would take their room many times.
        if bytes > length {
            return Err(RetimeError::Tables);
        }
        let mut retiming = Retiming {
            dat: &self,
            layout,
            measured,
            time,
            store: PageStore::new(file, *layout, bytes),
            stop,
            losses: 0,
            records: 0,
            covered: Ticks(0),
            cut: CpuSet::new(),
            disordered: 0,
        };
        let mut made = Vec::new();
        for (number, buffer) in chosen.enumerate() {
            for data in &buffer.cpus {
                let covers = number == 0 && measured.cpus.contains(data.cpu);
                retiming.stream(buffer, data, covers)?;
            }
            if number == 0 {
                let has = |cpu: &CpuId| buffer.cpus.iter().any(|data| data.cpu == *cpu);
                for cpu in measured.cpus.iter().filter(|cpu| !has(cpu)) {
                    retiming.end(cpu, None)?;
                }
            }
            let pages = retiming.store.finish()?;
            made.push(Buffer {
                name: buffer.name.clone(),
                ..pages
            });
        }
        let Retiming {
            store,
            losses,
            records,
            covered,
            cut,
            disordered,
            ..
        } = retiming;
        Ok(Retimed {
            dat: TraceDat {
                file: Box::new(store),
                compression: Compression::None,
                buffers: made,
                ..self
            },
            added_losses: losses,
            added_records: records,
            covered,
            cut,
            disordered,
        })
    }
}

struct Retiming<'a> {
    dat: &'a TraceDat,
    layout: &'a PageLayout,
    measured: &'a Measured,
    time: &'a dyn Fn(Ticks) -> Ticks,
    store: PageStore,
    stop: &'a AtomicBool,
    losses: u64,
    records: u64,
    covered: Ticks,
    cut: CpuSet,
    disordered: u64,
}

/// One CPU on the way.
#[derive(Default)]
struct Stream {
    /// The last record, on the file's clock and on the other one.
    last: Option<(Ticks, Ticks)>,
    /// Records that were lost since.
    lost: u64,
    /// How many of these losses we added.
    added: u64,
}

impl Retiming<'_> {
    /// Copies the records of a CPU. `covers`: whether they must cover the measurement.
    fn stream(&mut self, buffer: &Buffer, data: &CpuData, covers: bool) -> Result<(), RetimeError> {
        let mut pages = self.dat.pages(buffer, data, MEMORY);
        let (mut stream, mut gaps) = (Stream::default(), 0);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(RetimeError::Stopped);
            }
            let is_there = pages.peek().map_err(RetimeError::Read)?.is_some();
            if std::mem::replace(&mut gaps, pages.gaps()) < pages.gaps() {
                self.cut.insert(data.cpu);
                stream.lost = stream.lost.saturating_add(1);
            }
            if !is_there {
                break;
            }
            let bytes = pages.peeked();
            // Compressed pages are longer than their part of the file.
            self.store.make_room(bytes.len() as u64);
            // What is cut off within its head has no record.
            if let Ok(page) = Page::parse(self.layout, bytes) {
                self.page(&page, data.cpu, covers, &mut stream)?;
            }
            pages.pass();
        }
        match covers {
            true => self.end(data.cpu, Some(stream)),
            false => Ok(()),
        }
    }

    fn page(
        &mut self,
        page: &Page<'_>,
        cpu: CpuId,
        covers: bool,
        stream: &mut Stream,
    ) -> Result<(), RetimeError> {
        // The number is the file's.
        stream.lost = stream.lost.saturating_add(match page.loss() {
            PageLoss::None => 0,
            PageLoss::Lost(count) => count,
            PageLoss::LostUnknown => 1,
        });
        let mut records = page.records();
        let first = records.clone().next().map(|record| record.time);
        if first < stream.last.map(|(at, _)| at) && first.is_some() {
            self.disordered += 1;
            stream.lost = stream.lost.saturating_add(1);
            return Ok(());
        }
        let Measured {
            from,
            until,
            around,
            ..
        } = *self.measured;
        for record in records.by_ref() {
            if self.is_without(record.time) {
                stream.added = 1;
                continue;
            }
            let at = (self.time)(record.time);
            if at + around < from {
                // What was lost before does not matter.
                (stream.lost, stream.added) = (0, 0);
                stream.last = Some((record.time, at));
                continue;
            }
            if covers && stream.last.is_none() && at > from {
                stream.added = 1;
            }
            if at <= until + around {
                let lost = std::mem::take(&mut stream.lost).saturating_add(stream.added);
                self.losses += std::mem::take(&mut stream.added);
                if lost > 0 {
                    self.store.lost(cpu, lost)?;
                } else if covers {
                    let before = stream.last.map_or(at, |(_, before)| before);
                    self.covered = self.covered + at.min(until).since(before.max(from));
                }
                self.store.put(at.0, cpu, record.data)?;
            } else {
                // Beyond what is kept: only what was lost within the measurement matters.
                let before = stream.last.map_or(from, |(_, before)| before);
                let is_lossy = stream.lost > 0 || stream.added > 0;
                if covers && before < until {
                    match is_lossy {
                        true => self.lost_until_the_end(cpu, stream.lost)?,
                        false => self.covered = self.covered + until.since(before.max(from)),
                    }
                }
                (stream.lost, stream.added) = (0, 0);
            }
            stream.last = Some((record.time, at));
        }
        if records.is_damaged() {
            self.cut.insert(cpu);
            stream.lost = stream.lost.saturating_add(1);
        }
        Ok(())
    }

    fn is_without(&self, at: Ticks) -> bool {
        let without = &self.measured.without;
        let after = without.partition_point(|(from, _)| *from <= at);
        after > 0 && at <= without[after - 1].1
    }

    /// Ends a measured CPU: what its records do not cover is lost.
    fn end(&mut self, cpu: CpuId, stream: Option<Stream>) -> Result<(), RetimeError> {
        let Measured { from, until, .. } = *self.measured;
        let stream = stream.unwrap_or_default();
        let last = stream.last.map_or(from, |(_, at)| at);
        match last < until || stream.last.is_none() {
            true => self.lost_until_the_end(cpu, stream.lost),
            false => Ok(()),
        }
    }

    /// Marks the rest of a measured CPU as lost.
    fn lost_until_the_end(&mut self, cpu: CpuId, lost: u64) -> Result<(), RetimeError> {
        self.losses += 1;
        self.records += 1;
        self.store.lost(cpu, lost.saturating_add(1))?;
        let at = self.measured.until + self.measured.around;
        Ok(self.store.put(at.0, cpu, &NO_EVENT)?)
    }
}
