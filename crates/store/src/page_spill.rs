//! Encoded pages of a row group that wait for its end, in a file without a name once there are many.
//!
//! A parquet file wants all pages of a column together, so the pages of a group wait until it is over; and the
//! description of every group (some 60 KiB for 42 columns) stays in memory until the file is closed. Few groups
//! mean large ones: so that neither grows with the run, pages of a large group wait on disk.

use bytes::Bytes;
use jitterscope_platform::HeldDir;
use parquet::arrow::arrow_writer::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::errors::{ParquetError, Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of pages that a table keeps in memory before it writes any to disk.
const MOST_RESIDENT: usize = 256 << 10;
/// Bytes that are written at once.
const WRITE: usize = 64 << 10;

/// Where the pages of all columns of one table wait.
#[derive(Clone, Debug)]
pub(crate) struct PageSpill(Arc<Mutex<Waiting>>);

#[derive(Debug)]
struct Waiting {
    /// `None` where it cannot be had: all pages stay in memory.
    file: Option<File>,
    /// Bytes in the file, and those that go there next.
    written: u64,
    next: Vec<u8>,
    /// Bytes of pages in memory.
    resident: usize,
    /// Pages in the file that were not taken back yet.
    spilled: usize,
}

impl PageSpill {
    /// For a table of this name in `folder`. Nobody else can open the file, and it goes with the process.
    pub(crate) fn beside(folder: &HeldDir, table: &str) -> PageSpill {
        let name = format!("{table}.pages");
        // Without it a large group is kept in memory: no reason not to record.
        let file = folder.create_new(&name).ok();
        let file = file.filter(|_| folder.remove_file(&name).is_ok());
        let next = Vec::new();
        PageSpill(Arc::new(Mutex::new(Waiting {
            file,
            written: 0,
            next,
            resident: 0,
            spilled: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Whoever panicked holding it has ended the recording.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether pages can wait on disk at all.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.lock().file.is_some()
    }

    /// Bytes of pages that wait in memory, and on disk.
    #[cfg(test)]
    fn held(&self) -> (usize, u64) {
        let waiting = self.lock();
        (waiting.resident + waiting.next.len(), waiting.written)
    }
}

impl PageStoreFactory for PageSpill {
    fn create(&self, _: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        Ok(Box::new(ColumnPages {
            of: self.clone(),
            pages: Vec::new(),
        }))
    }
}

/// The pages of one column of a group.
struct ColumnPages {
    of: PageSpill,
    pages: Vec<Place>,
}

/// Where a page is.
enum Place {
    Memory(Bytes),
    /// Offset and length.
    File(u64, usize),
    Taken,
}

impl PageStore for ColumnPages {
    fn put(&mut self, page: Bytes) -> Result<PageKey> {
        let place = self.of.lock().put(page);
        self.pages.push(place);
        Ok(PageKey::new(self.pages.len() as u64 - 1))
    }

    fn take(&mut self, key: PageKey) -> Result<Bytes> {
        let place = usize::try_from(key.get())
            .ok()
            .and_then(|at| self.pages.get_mut(at));
        let unknown = || ParquetError::General(format!("no page {} waits", key.get()));
        match std::mem::replace(place.ok_or_else(unknown)?, Place::Taken) {
            Place::Memory(page) => {
                self.of.lock().resident -= page.len();
                Ok(page)
            }
            Place::File(offset, length) => {
                let page = self.of.lock().take(offset, length);
                Ok(page
                    .map_err(|error| ParquetError::External(Box::new(error)))?
                    .into())
            }
            Place::Taken => Err(unknown()),
        }
    }

    fn memory_size(&self) -> usize {
        let resident = self.pages.iter().map(|place| match place {
            Place::Memory(page) => page.len(),
            Place::File(..) | Place::Taken => 0,
        });
        resident.sum()
    }
}

impl Drop for ColumnPages {
    fn drop(&mut self) {
        let mut waiting = self.of.lock();
        for place in &self.pages {
            match place {
                Place::Memory(page) => waiting.resident -= page.len(),
                Place::File(..) => waiting.gone(),
                Place::Taken => {}
            }
        }
    }
}

impl Waiting {
    fn put(&mut self, page: Bytes) -> Place {
        let fits = self.resident + page.len() <= MOST_RESIDENT;
        // Where the disk is full a page waits in memory: the table takes no more rows in then.
        if fits || self.file.is_none() || (self.next.len() >= WRITE && self.write().is_err()) {
            self.resident += page.len();
            return Place::Memory(page);
        }
        let place = Place::File(self.written + self.next.len() as u64, page.len());
        self.next.extend_from_slice(&page);
        self.spilled += 1;
        place
    }

    fn write(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.as_ref().filter(|_| !self.next.is_empty()) {
            file.write_all_at(&self.next, self.written)?;
            self.written += self.next.len() as u64;
            self.next.clear();
        }
        Ok(())
    }

    fn take(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let page = match offset.checked_sub(self.written).map(|at| at as usize) {
            Some(at) => self.next.get(at..at + length).map(<[u8]>::to_vec),
            None => None,
        };
        let page = match (page, &self.file) {
            (Some(page), _) => page,
            (None, Some(file)) => {
                let mut page = vec![0; length];
                file.read_exact_at(&mut page, offset)?;
                page
            }
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        self.gone();
        Ok(page)
    }

    /// A page of the file is no longer needed. With the last of them the file begins anew.
    fn gone(&mut self) {
        self.spilled -= 1;
        if self.spilled == 0 {
            self.written = 0;
            self.next.clear();
            if let Some(file) = &self.file {
                // What stays is written over.
                let _ = file.set_len(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column's store without a writer.
    fn column(of: &PageSpill) -> ColumnPages {
        ColumnPages {
            of: of.clone(),
            pages: Vec::new(),
        }
    }

    fn page(n: usize) -> Bytes {
        (0..10_000)
            .map(|at| (at * 7 + n) as u8)
            .collect::<Vec<u8>>()
            .into()
    }

    #[test]
    fn pages_come_back_from_memory_and_disk_and_neither_keeps_them() {
        let dir = tempfile::tempdir().unwrap();
        let spill = PageSpill::beside(&HeldDir::trusted(dir.path()).unwrap(), "x");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            0,
            "the file has no name"
        );
        for _ in 0..3 {
            let mut columns = [column(&spill), column(&spill)];
            let mut keys = Vec::new();
            for n in 0..100 {
                keys.push(columns[n % 2].put(page(n)).unwrap());
            }
            // 26 pages fit into memory; of the others seven at a time go to disk, when the next comes.
            assert_eq!(spill.held(), (26 * 10_000 + 4 * 10_000, 70 * 10_000));
            let sizes: usize = columns.iter().map(ColumnPages::memory_size).sum();
            assert_eq!(sizes, 26 * 10_000);
            for (n, key) in keys.iter().enumerate() {
                assert_eq!(columns[n % 2].take(*key).unwrap(), page(n));
                assert!(columns[n % 2].take(*key).is_err(), "it was taken");
            }
            assert_eq!(spill.held(), (0, 0));
        }
    }

    #[test]
    fn a_page_that_is_taken_or_given_up_leaves_the_others_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let spill = PageSpill::beside(&HeldDir::trusted(dir.path()).unwrap(), "x");
        assert!(spill.is_on_disk());
        let (mut kept, mut given_up) = (column(&spill), column(&spill));
        let keys: Vec<PageKey> = (0..3).map(|n| kept.put(page(n)).unwrap()).collect();
        given_up.put(page(3)).unwrap();
        assert_eq!(kept.take(keys[1]).unwrap(), page(1));
        assert_eq!((spill.held(), kept.memory_size()), ((30_000, 0), 20_000));
        drop(given_up);
        assert_eq!(spill.held(), (20_000, 0));
        assert_eq!(
            [kept.take(keys[0]).unwrap(), kept.take(keys[2]).unwrap()],
            [page(0), page(2)]
        );
    }

    #[test]
    fn pages_of_a_column_that_is_given_up_are_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let spill = PageSpill::beside(&HeldDir::trusted(dir.path()).unwrap(), "x");
        let mut given_up = column(&spill);
        assert!((0..100).all(|n| given_up.put(page(n)).is_ok()));
        drop(given_up);
        assert_eq!(spill.held(), (0, 0));
    }

    #[test]
    fn where_no_file_can_be_had_pages_wait_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.pages"), "somebody's").unwrap();
        let spill = PageSpill::beside(&HeldDir::trusted(dir.path()).unwrap(), "x");
        assert!(!spill.is_on_disk());
        let mut pages = column(&spill);
        let keys: Vec<PageKey> = (0..100).map(|n| pages.put(page(n)).unwrap()).collect();
        assert_eq!(spill.held(), (1_000_000, 0));
        assert!((0..100).all(|n| pages.take(keys[n]).unwrap() == page(n)));
        assert_eq!(
            std::fs::read(dir.path().join("x.pages")).unwrap(),
            b"somebody's"
        );
    }
}
