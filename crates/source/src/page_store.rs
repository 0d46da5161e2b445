//! Pages of a ring buffer made of single records, in a file of our own.

use crate::ring::{PageLayout, PageWriter};
use crate::tracedat::{Buffer, CpuData, ReadAt};
use jitterscope_model::{CpuId, PutInOrder, Ticks};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// No kernel has a CPU beyond this.
pub(crate) const MOST_CPUS: u32 = 8192;
/// A page of this file, bytes, unless the file's description allows only smaller ones.
const PAGE: usize = 4096;
/// Pages take less room than the records do in their file, unless a CPU lost records again and again: each loss ends a
/// page. So many times the room is accepted, and some pages for each CPU of the largest machine.
const PAGES_OF_RECORDS: u64 = 4;
const SPARE: u64 = 64 << 20;
/// The pages of a CPU are read as if they were together: each CPU has a range of its own.
const RANGE_BITS: u32 = 48;

/// Why no page is taken.
#[derive(Debug)]
pub(crate) enum PagesError {
    Io(io::Error),
    /// There are more losses than records could have.
    Losses,
}

/// The pages of the CPUs, one after another as they were filled.
pub(crate) struct PageStore {
    file: File,
    layout: PageLayout,
    page_size: usize,
    /// The number of pages in the file.
    written: u32,
    cpus: Vec<OfCpu>,
    /// The CPUs of the current buffer, and how many entries of `cpus` belong to earlier ones.
    slots: BTreeMap<CpuId, usize>,
    earlier: usize,
    /// The most bytes that it takes.
    most: u64,
    /// Records whose time was before that of the previous one of their CPU.
    pub(crate) disordered: u64,
    /// Records of a CPU that no kernel has, or longer than a page.
    pub(crate) unplaced: u64,
}

struct OfCpu {
    cpu: CpuId,
    /// The numbers of its pages, in order.
    pages: Vec<u32>,
    filling: PageWriter,
}

impl PageStore {
    /// Pages of records that take `records` bytes in their own file.
    pub(crate) fn new(file: File, layout: PageLayout, records: u64) -> PageStore {
        PageStore {
            file,
            page_size: PAGE.min(layout.page_size()),
            layout,
            written: 0,
            cpus: Vec::new(),
            slots: BTreeMap::new(),
            earlier: 0,
            most: records
                .saturating_mul(PAGES_OF_RECORDS)
                .saturating_add(SPARE),
            disordered: 0,
            unplaced: 0,
        }
    }

    /// Accepts more records, so many bytes in their own file.
    pub(crate) fn make_room(&mut self, records: u64) {
        let more = records.saturating_mul(PAGES_OF_RECORDS);
        self.most = self.most.saturating_add(more);
    }

    fn slot(&mut self, cpu: CpuId) -> Option<usize> {
        if cpu.0 >= MOST_CPUS {
            return None;
        }
        let (layout, size) = (self.layout, self.page_size);
        let slot = *self.slots.entry(cpu).or_insert(self.cpus.len());
        if slot == self.cpus.len() {
            self.cpus.push(OfCpu {
                cpu,
                pages: Vec::new(),
                filling: PageWriter::new(&layout, size),
            });
        }
        Some(slot)
    }

    /// Adds a record. One of a CPU that no kernel has, or longer than a page, is a loss.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn put(&mut self, time: u64, cpu: CpuId, bytes: &[u8]) -> Result<(), PagesError> {
        let Some(slot) = self.slot(cpu) else {
            self.unplaced += 1;
            return Ok(());
        };
        let filling = &mut self.cpus[slot].filling;
        if !filling.fits_any(bytes) {
            self.unplaced += 1;
            return self.lost(cpu, 1);
        }
        let time = Ticks(time);
        if time < filling.last() {
            self.disordered += 1;
        }
        if filling.put(time, bytes) {
            return Ok(());
        }
        self.write(slot)?;
        self.cpus[slot].filling.put(time, bytes);
        Ok(())
    }

    /// Notes that records of a CPU were lost here.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn lost(&mut self, cpu: CpuId, count: u64) -> Result<(), PagesError> {
        let Some(slot) = self.slot(cpu) else {
            return Ok(());
        };
        // A loss is before a page.
        self.write(slot)?;
        self.cpus[slot].filling.lost(count);
        Ok(())
    }

    fn write(&mut self, slot: usize) -> Result<(), PagesError> {
        let of = &mut self.cpus[slot];
        if of.filling.is_empty() {
            return Ok(());
        }
        let at = u64::from(self.written) * self.page_size as u64;
        if at >= self.most {
            return Err(PagesError::Losses);
        }
        let page = of.filling.take();
        self.file.write_all_at(&page, at).map_err(PagesError::Io)?;
        of.pages.push(self.written);
        let next = self.written.checked_add(1);
        self.written = next.ok_or_else(|| PagesError::Io(io::ErrorKind::FileTooLarge.into()))?;
        Ok(())
    }

    /// Writes what is left. Returns the buffer of the pages; the records after that are of another one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(&mut self) -> Result<Buffer, PagesError> {
        let earlier = std::mem::replace(&mut self.earlier, self.cpus.len());
        self.slots.clear();
        for slot in earlier..self.cpus.len() {
            self.write(slot)?;
        }
        let data = |(slot, of): (usize, &OfCpu)| {
            let size = of.pages.len() as u64 * self.page_size as u64;
            CpuData::new(of.cpu, (slot as u64) << RANGE_BITS, size)
        };
        let own = self.cpus.iter().enumerate().skip(earlier);
        let mut cpus: Vec<CpuData> = own.map(data).collect();
        cpus.retain(|data| data.size > 0);
        cpus.order_by_key(|data| data.cpu);
        Ok(Buffer::of_pages(self.page_size as u32, cpus))
    }
}

impl ReadAt for PageStore {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let slot = usize::try_from(at >> RANGE_BITS).unwrap_or(usize::MAX);
        let Some(of) = self.cpus.get(slot) else {
            return Ok(0);
        };
        let size = self.page_size as u64;
        let mut within = at & ((1 << RANGE_BITS) - 1);
        let mut read = 0;
        while read < into.len() {
            let number = usize::try_from(within / size).unwrap_or(usize::MAX);
            let Some(page) = of.pages.get(number) else {
                break;
            };
            let inside = within % size;
            let rest = usize::try_from(size - inside).unwrap_or(0);
            let length = rest.min(into.len() - read);
            let place = u64::from(*page) * size + inside;
            self.file
                .read_exact_at(&mut into[read..read + length], place)?;
            read += length;
            within += length as u64;
        }
        Ok(read)
    }

    fn length(&self) -> io::Result<u64> {
        Ok((self.cpus.len() as u64) << RANGE_BITS)
    }
}
