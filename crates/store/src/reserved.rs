//! A file that has room on disk ahead of what is written to it.
//!
//! A disk can fill up from one write to the next. What is in memory then, and what closes a file so that
//! it can be read, must still find room: it is reserved before rows are taken in that will need it.

use crate::error::StoreError;
use jitterscope_platform::HeldDir;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Room is taken in steps, so that there is a call for many writes.
pub(crate) const STEP: u64 = 256 << 10;
/// Bytes kept in memory when the disk has no room for them in spite of the reservation. No rows are taken
/// in any more by then, so what comes is the rest of a row group and a footer.
const MOST_KEPT: usize = 64 << 20;

/// A file of a run being written.
pub(crate) struct ReservedFile {
    path: PathBuf,
    file: File,
    /// Bytes on disk, and up to where there is room.
    written: u64,
    reserved: u64,
    /// Whether the file system cannot reserve room.
    cannot: bool,
    /// What found no room on a file system that cannot reserve any, in order.
    kept: Vec<u8>,
}

impl ReservedFile {
    /// Makes the file.
    ///
    /// # Errors
    /// There is one, or it cannot be made.
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

    /// Makes sure that so many bytes more can be written, as far as the file system can promise it.
    ///
    /// # Errors
    /// There is no room, or less than what is already waiting needs.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.put_kept()
            .map_err(|e| StoreError::write(&self.path, e))?;
        let end = self.written.saturating_add(bytes);
        if end <= self.reserved || self.cannot {
            return Ok(());
        }
        // A whole step if there is one, and what is needed if there is not.
        for end in [end.next_multiple_of(STEP), end] {
            match self.allocate(end) {
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    // A file system that cannot reserve is no reason not to record.
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

    /// Whether so many bytes more fit into what is reserved already.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.kept.is_empty() && (self.cannot || self.written.saturating_add(bytes) <= self.reserved)
    }

    /// Whether the file system has promised all that was asked of it.
    pub(crate) fn can_reserve(&self) -> bool {
        !self.cannot
    }

    /// As on a file system that cannot.
    #[cfg(test)]
    pub(crate) fn cannot_reserve(&mut self) {
        self.cannot = true;
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

    /// Gives back what was reserved and not needed, and makes the file safe on disk.
    ///
    /// # Errors
    /// The disk fails, or there is no room for what waits.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let closed = self
            .put_kept()
            // Of the same length: only the room behind it goes.
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

/// Writes all of `bytes`, or as much as can be. Returns how much that was, and why it was not all.
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

/// Whether there is no room on the disk, or none left for this user.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
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
            // The file system's own blocks may be larger than a sector.
            let found = on_disk(&file);
            assert!(
                (steps * STEP..steps * STEP + (64 << 10)).contains(&found),
                "{bytes}: {found} on disk"
            );
            assert!(file.can_reserve());
        }
        // What is written has taken its share of it.
        file.write_all(&vec![1; STEP as usize]).unwrap();
        assert!(file.has_room(8 * STEP) && !file.has_room(8 * STEP + 1));
        file.cannot_reserve();
        assert!(!file.can_reserve() && file.has_room(u64::MAX));
    }

    /// On a device that is always full.
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
    fn what_a_full_disk_refuses_is_kept_up_to_a_bound_and_told_at_the_end() {
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

    /// What a file answers that takes no more.
    type End = fn() -> io::Result<usize>;

    /// Takes at most three bytes at a time, is interrupted before each, and answers as `end` says once it has `room` bytes.
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
    fn another_failure_than_a_full_disk_is_told_at_once() {
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
