//! A file with disk space reserved ahead of its content.
//!
//! A disk can fill up between two writes. The bytes still in memory then, and the footer that makes the file readable,
//! must still find room: the writer reserves it before it accepts the rows that need it.

use crate::error::StoreError;
use jitterscope_platform::HeldDir;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The step of a reservation, bytes, so that one call serves many writes.
pub(crate) const STEP: u64 = 256 << 10;
/// The largest number of bytes kept in memory when the disk is full despite the reservation. No more rows are accepted
/// then: only the rest of a row group and a footer follow.
const MOST_KEPT: usize = 64 << 20;

/// A file of a run while it is written.
pub(crate) struct ReservedFile {
    path: PathBuf,
    file: File,
    /// Bytes on disk, and the end of the reserved space.
    written: u64,
    reserved: u64,
    /// Whether the file system cannot reserve room.
    cannot: bool,
    /// Bytes that found no room on a file system without reservations, in order.
    kept: Vec<u8>,
}

impl ReservedFile {
    /// Makes the file.
    ///
    /// # Errors
    /// The file exists already, or cannot be made.
    pub(crate) fn create(folder: &HeldDir, name: &str) -> Result<ReservedFile, StoreError> {
        let file = folder.create_new(name).map_err(StoreError::writing)?;
        let path = folder.path().join(name);
        Ok(ReservedFile {
            path,
            file,
            written: 0,
            reserved: 0,
            cannot: false,
            kept: Vec::new(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reserves room for this many more bytes, where the file system can.
    ///
    /// # Errors
    /// The disk is full, or has less room than the waiting bytes need.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.put_kept()
            .map_err(|e| StoreError::write(&self.path, e))?;
        let end = self.written.saturating_add(bytes);
        if end <= self.reserved || self.cannot {
            return Ok(());
        }
        // Tries a whole step first, then exactly what is needed.
        for end in [end.next_multiple_of(STEP), end] {
            match self.allocate(end) {
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    // A recording goes on without reservations.
                    self.cannot = true;
                    return Ok(());
                }
                Err(error) => return Err(StoreError::write(&self.path, error.into())),
                Ok(()) => return Ok(()),
            }
        }
        Err(StoreError::Full {
            path: self.path.clone(),
        })
    }

    /// Whether this many more bytes fit into the reserved space.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.kept.is_empty() && (self.cannot || self.written.saturating_add(bytes) <= self.reserved)
    }

    /// The number of bytes on disk; `None` if some found no room.
    pub(crate) fn on_disk(&self) -> Option<u64> {
        self.kept.is_empty().then_some(self.written)
    }

    fn allocate(&mut self, end: u64) -> Result<(), Errno> {
        let from = self.reserved.max(self.written);
        loop {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, end - from) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        }
        self.reserved = end;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn put_kept(&mut self) -> io::Result<()> {
        let (done, result) = write_as_far(&mut self.file, &self.kept);
        self.written += done as u64;
        self.kept.drain(..done);
        result
    }

    /// Releases unused reserved space and syncs the file. A caller may repeat it after an error.
    ///
    /// # Errors
    /// The disk fails, or has no room for the waiting bytes.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        let closed = self
            .put_kept()
            // Setting the current length releases only the space behind it.
            .and_then(|()| self.file.set_len(self.written))
            .and_then(|()| self.file.sync_all());
        closed.map_err(|e| StoreError::write(&self.path, e))
    }
}

impl Write for ReservedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.kept.is_empty() {
            match self.put(bytes) {
                Err(error) if is_full(&error) => {}
                other => return other,
            }
        }
        if self.kept.len() + bytes.len() > MOST_KEPT {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes as much of `bytes` as possible. Returns the number written and the error that ended it.
fn write_as_far(to: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while done < bytes.len() {
        match to.write(&bytes[done..]) {
            Ok(0) => return (done, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

/// Whether the error means a full disk or quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    jitterscope_platform::is_full(error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_is_reserved_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldDir::trusted(dir.path()).unwrap();
        let mut file = ReservedFile::create(&folder, "x").unwrap();
        file.reserve(3 << 20).unwrap();
        assert!(file.has_room(3 << 20) && !file.has_room(4 << 20));
        file.write_all(b"four").unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().len(), 4);
        let path = file.path().to_path_buf();
        file.finish().unwrap();
        let found = fs::metadata(path).unwrap();
        assert!(
            found.len() == 4 && found.blocks() * 512 <= 64 << 10,
            "{} blocks",
            found.blocks()
        );
    }

    #[test]
    fn room_is_taken_in_whole_steps_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldDir::trusted(dir.path()).unwrap();
        let mut file = ReservedFile::create(&folder, "x").unwrap();
        let on_disk = |file: &ReservedFile| fs::metadata(file.path()).unwrap().blocks() * 512;
        for (bytes, steps) in [
            (1, 1),
            (1, 1),
            (STEP, 1),
            (STEP + 1, 2),
            (2 * STEP, 2),
            (9 * STEP, 9),
        ] {
            file.reserve(bytes).unwrap();
            // A block of the file system may be larger than a sector.
            let found = on_disk(&file);
            assert!(
                (steps * STEP..steps * STEP + (64 << 10)).contains(&found),
                "{bytes}: {found} on disk"
            );
            assert!(!file.cannot);
        }
        // The written bytes used up part of the reservation.
        file.write_all(&vec![1; STEP as usize]).unwrap();
        assert!(file.has_room(8 * STEP) && !file.has_room(8 * STEP + 1));
        file.cannot = true;
        assert!(file.has_room(u64::MAX));
    }

    /// A file on a device that is always full.
    fn full() -> ReservedFile {
        let file = File::options().write(true).open("/dev/full").unwrap();
        ReservedFile {
            path: "/dev/full".into(),
            file,
            written: 0,
            reserved: 0,
            cannot: true,
            kept: Vec::new(),
        }
    }

    #[test]
    fn a_full_disks_refusals_are_kept_up_to_a_bound_and_reported() {
        let mut file = full();
        let half = vec![1; MOST_KEPT / 2];
        file.write_all(&half).unwrap();
        file.write_all(&half).unwrap();
        assert_eq!(file.kept.len(), MOST_KEPT);
        assert_eq!(
            file.write_all(b"x").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert!(file.reserve(1).unwrap_err().is_full());
        assert_eq!((file.kept.len(), file.written), (MOST_KEPT, 0));
        assert!(file.finish().unwrap_err().is_full());
    }

    /// The answer of a file that accepts no more.
    type End = fn() -> io::Result<usize>;

    /// Accepts at most three bytes at a time, is interrupted before each write, and answers with `end` after `room`
    /// bytes.
    struct Halting {
        taken: Vec<u8>,
        room: usize,
        interrupted: bool,
        end: End,
    }

    impl Write for Halting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = bytes.len().min(3).min(self.room - self.taken.len());
            if count == 0 {
                return (self.end)();
            }
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_as_far_as_can_be_is_counted_whatever_ends_it() {
        let ends: [(End, io::ErrorKind); 2] = [
            (|| Ok(0), io::ErrorKind::WriteZero),
            (
                || Err(io::ErrorKind::StorageFull.into()),
                io::ErrorKind::StorageFull,
            ),
        ];
        for (end, kind) in ends {
            for room in [0, 1, 3, 4, 9, 10, 11] {
                let mut to = Halting {
                    taken: Vec::new(),
                    room,
                    interrupted: false,
                    end,
                };
                let (done, result) = write_as_far(&mut to, b"0123456789");
                assert_eq!(
                    (done, &*to.taken),
                    (room.min(10), &b"0123456789"[..room.min(10)])
                );
                assert_eq!(
                    result.err().map(|error| error.kind()),
                    (room < 10).then_some(kind),
                    "{room}"
                );
            }
        }
    }

    #[test]
    fn another_failure_than_a_full_disk_is_reported_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "").unwrap();
        let file = File::open(&path).unwrap();
        let mut file = ReservedFile { file, ..full() };
        let error = file.write_all(b"x").unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(Errno::BADF.raw_os_error()),
            "it is open for reading alone"
        );
        assert!(file.kept.is_empty());
    }

    #[test]
    fn what_finds_no_room_waits_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldDir::trusted(dir.path()).unwrap();
        let mut file = ReservedFile::create(&folder, "x").unwrap();
        file.write_all(b"one ").unwrap();
        file.kept.extend(b"two ");
        file.write_all(b"three").unwrap();
        assert!(!file.has_room(0));
        let path = file.path().to_path_buf();
        file.finish().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"one two three");
    }
}
