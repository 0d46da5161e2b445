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
}

/// A file with its records at other times.
pub struct Retimed {
    pub dat: TraceDat,
    /// Losses that were added, each with a count of one: before the first record of a measured CPU, and after its last.
    pub added_losses: u64,
    /// Records of no event that were added: each ends a loss.
    pub added_records: u64,
    /// The measured time that the records cover, the sum over the CPUs.
    pub covered: Ticks,
}

/// The first and the last record of a CPU.
struct Ends {
    first: Ticks,
    last: Ticks,
}

impl TraceDat {
    /// The records of these buffers, in this order, at the times that `time` makes of theirs; `time` must ascend. Pages
    /// are written into `file`. Where the records of a measured CPU do not cover the measurement, a loss says so.
    ///
    /// # Errors
    /// The files cannot be read or written, or `stop` became true ([`io::ErrorKind::Interrupted`]).
    pub fn retimed(
        self,
        buffers: &[usize],
        layout: &PageLayout,
        (measured, time): (&Measured, &dyn Fn(Ticks) -> Ticks),
        file: File,
        stop: &AtomicBool,
    ) -> io::Result<Retimed> {
        let chosen = buffers.iter().filter_map(|at| self.buffers.get(*at));
        let bytes = chosen.clone().flat_map(|buffer| &buffer.cpus);
        let bytes = bytes.fold(0u64, |sum, data| sum.saturating_add(data.size));
        let mut retiming = Retiming {
            dat: &self,
            layout,
            measured,
            time,
            store: PageStore::new(file, *layout, bytes),
            stop,
            added: (0, 0),
            covered: Ticks(0),
        };
        let mut made = Vec::new();
        for (number, buffer) in chosen.enumerate() {
            for data in &buffer.cpus {
                let ends = retiming.stream(buffer, data, number == 0)?;
                if number == 0 && measured.cpus.contains(data.cpu) {
                    retiming.end(data.cpu, ends)?;
                }
            }
            if number == 0 {
                let has = |cpu: &CpuId| buffer.cpus.iter().any(|data| data.cpu == *cpu);
                for cpu in measured.cpus.iter().filter(|cpu| !has(cpu)) {
                    retiming.end(cpu, None)?;
                }
            }
            let pages = retiming.store.finish().map_err(of_pages)?;
            made.push(Buffer {
                name: buffer.name.clone(),
                ..pages
            });
        }
        let Retiming {
            store,
            added: (added_losses, added_records),
            covered,
            ..
        } = retiming;
        Ok(Retimed {
            dat: TraceDat {
                file: Box::new(store),
                compression: Compression::None,
                buffers: made,
                ..self
            },
            added_losses,
            added_records,
            covered,
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
    /// Losses and records that were added.
    added: (u64, u64),
    covered: Ticks,
}

impl Retiming<'_> {
    /// Copies the records of a CPU. `covers`: whether they must cover the measurement.
    fn stream(
        &mut self,
        buffer: &Buffer,
        data: &CpuData,
        covers: bool,
    ) -> io::Result<Option<Ends>> {
        let Measured {
            from,
            until,
            around,
            ..
        } = *self.measured;
        let covers = covers && self.measured.cpus.contains(data.cpu);
        let mut pages = self.dat.pages(buffer, data, MEMORY);
        let (mut ends, mut gaps): (Option<Ends>, u64) = (None, 0);
        while let Some(bytes) = pages.peek()? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // What is cut off within its head has no record.
            let Ok(page) = Page::parse(self.layout, bytes) else {
                pages.pass();
                continue;
            };
            match page.loss() {
                PageLoss::None => {}
                PageLoss::Lost(count) => self.lost(data.cpu, count)?,
                PageLoss::LostUnknown => self.lost(data.cpu, 1)?,
            }
            let mut records = page.records();
            for record in records.by_ref() {
                let at = (self.time)(record.time);
                let ends = match &mut ends {
                    Some(ends) => ends,
                    None => {
                        if covers && at > from {
                            self.added.0 += 1;
                            self.lost(data.cpu, 1)?;
                        }
                        ends.insert(Ends {
                            first: at,
                            last: at,
                        })
                    }
                };
                ends.last = at;
                if at + around >= from && at <= until + around {
                    self.store
                        .put(at.0, data.cpu, record.data)
                        .map_err(of_pages)?;
                }
            }
            if records.is_damaged() {
                self.lost(data.cpu, 1)?;
            }
            pages.pass();
            if std::mem::replace(&mut gaps, pages.gaps()) < pages.gaps() {
                self.lost(data.cpu, 1)?;
            }
        }
        Ok(ends)
    }

    /// Ends a measured CPU: what its records do not cover is lost.
    fn end(&mut self, cpu: CpuId, ends: Option<Ends>) -> io::Result<()> {
        let Measured { from, until, .. } = *self.measured;
        let last = ends.as_ref().map_or(from, |ends| ends.last);
        if let Some(ends) = &ends {
            let covered = ends.last.min(until).since(ends.first.max(from));
            self.covered = self.covered + covered;
        }
        if last < until {
            self.added = (self.added.0 + 1, self.added.1 + 1);
            self.lost(cpu, 1)?;
            let at = until + self.measured.around;
            self.store.put(at.0, cpu, &NO_EVENT).map_err(of_pages)?;
        }
        Ok(())
    }

    fn lost(&mut self, cpu: CpuId, count: u64) -> io::Result<()> {
        self.store.lost(cpu, count).map_err(of_pages)
    }
}

fn of_pages(error: PagesError) -> io::Error {
    match error {
        PagesError::Io(error) => error,
        PagesError::Losses => io::Error::other("the file has more losses than records could have"),
    }
}
