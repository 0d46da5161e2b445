//! Files as memory: the pipeline's input and its journal.

use crate::access::{AccessError, HeldDir, OutputPlace, open_regular};
use crate::full_disk::is_full;
use memmap2::{Mmap, MmapMut, MmapOptions};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file that cannot be mapped, made or extended, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}{}", path.display(), advice(source))]
pub struct MapError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl MapError {
    fn of(path: &Path) -> impl FnOnce(io::Error) -> MapError {
        let path = path.to_path_buf();
        move |source| MapError { path, source }
    }

    fn access(path: &Path) -> impl FnOnce(AccessError) -> MapError {
        let path = path.to_path_buf();
        move |error| MapError {
            path,
            source: error.into_io(),
        }
    }

    /// Whether the disk has no room for it.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        is_full(self.source.kind())
    }
}

fn advice(source: &io::Error) -> &'static str {
    match is_full(source.kind()) {
        true => "; make room, or name a file elsewhere",
        false => "",
    }
}

/// A file mapped for reading.
#[derive(Debug)]
pub struct MappedFile {
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a whole file.
    ///
    /// # Errors
    /// It cannot be opened, or is not a regular file.
    pub fn open(path: &Path) -> Result<MappedFile, MapError> {
        MappedFile::of(&open_regular(path).map_err(MapError::access(path))?, path)
    }

    /// Maps a whole open file; `path` is its name for messages.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn of(file: &File, path: &Path) -> Result<MappedFile, MapError> {
        let length = file.metadata().map_err(MapError::of(path))?.len();
        if length == 0 {
            return Ok(MappedFile { map: None });
        }
        // SAFETY: the map is private and read-only. If another process truncates the file meanwhile, reads of it fail
        // with SIGBUS; if it writes to the file, it changes bytes that we only copy and compare: no reference is ever
        // kept to anything but plain bytes.
        let map =
            unsafe { MmapOptions::new().map_copy_read_only(file) }.map_err(MapError::of(path))?;
        Ok(MappedFile { map: Some(map) })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

/// Makes a file of `length` pseudo-random bytes in a folder, the same bytes every time. The file gets its final name
/// only when it is complete.
///
/// # Errors
/// It cannot be written; then nothing is left.
pub fn make_random_file(folder: &HeldDir, name: &str, length: u64) -> Result<(), MapError> {
    let path = folder.path().join(name);
    let partial = format!("{name}.{}.partial", std::process::id());
    // A leftover of an earlier process with our id.
    let _ = folder.remove_file(&partial);
    let file = folder
        .create_new(&partial)
        .map_err(MapError::access(&path))?;
    let written = write_random(file, length)
        .map_err(MapError::of(&path))
        .and_then(|()| {
            folder
                .rename(&partial, name)
                .map_err(MapError::access(&path))
        });
    if written.is_err() {
        // Cleanup is best effort.
        let _ = folder.remove_file(&partial);
    }
    written
}

fn write_random(file: File, length: u64) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    // Marsaglia's xorshift64 with his shifts; any seed but zero.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut left = length;
    while left > 0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bytes = state.to_le_bytes();
        let count = left.min(8);
        file.write_all(&bytes[..count as usize])?;
        left -= count;
    }
    file.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()
}

/// A file that grows piece by piece. Each piece is on disk and in memory before the caller gets it.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    file: File,
    piece: u64,
    length: u64,
    /// The place to remove the file from if it is abandoned; set if we made the file.
    made: Option<OutputPlace>,
    finished: bool,
}

impl GrowingFile {
    /// Makes the file that the user names, or empties it. `piece` is rounded up to whole pages.
    ///
    /// # Errors
    /// It cannot be opened for writing, is not a regular file, or another user can interfere with it.
    pub fn create(path: &Path, piece: u64) -> Result<GrowingFile, MapError> {
        let place = OutputPlace::find(path)
            .map_err(MapError::access(path))?
            .mapped();
        let (place, opened) = place.open().map_err(MapError::access(path))?;
        opened.empty().map_err(MapError::of(path))?;
        let mut file = GrowingFile::of(opened.file, path, piece);
        file.made = opened.made.then_some(place);
        Ok(file)
    }

    /// Grows an empty file that is open for reading and writing; `path` is its name for messages.
    #[must_use]
    pub fn of(file: File, path: &Path, piece: u64) -> GrowingFile {
        let page = rustix::param::page_size() as u64;
        let piece = piece.max(1).div_ceil(page) * page;
        GrowingFile {
            path: path.to_path_buf(),
            file,
            piece,
            length: 0,
            made: None,
            finished: false,
        }
    }

    /// Another handle of the file, for a thread that writes to it from its beginning instead of filling pieces.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn writer(&self) -> Result<File, MapError> {
        self.file.try_clone().map_err(MapError::of(&self.path))
    }

    /// Says how long a writer has made the file, so that [`GrowingFile::finish`] keeps it.
    pub fn grown_to(&mut self, length: u64) {
        self.length = length;
    }

    /// Extends the file by a piece, reserves its room on disk and writes to every page, so that filling it waits for
    /// neither disk nor page faults.
    ///
    /// # Errors
    /// The disk is full ([`MapError::is_disk_full`]) or fails; the earlier pieces stay valid.
    pub fn next_piece(&mut self) -> Result<FilePiece, MapError> {
        self.extend().map_err(MapError::of(&self.path))
    }

    fn extend(&mut self) -> io::Result<FilePiece> {
        let (start, piece) = (self.length, self.piece);
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), start, piece) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(start, piece)?,
            other => other?,
        }
        let length = usize::try_from(piece).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the range was just made part of the file. The map is shared; if another process truncates the file,
        // writes to it fail with SIGBUS, and if it writes to the file, only plain bytes change.
        let mut map = unsafe {
            MmapOptions::new()
                .offset(start)
                .len(length)
                .map_mut(&self.file)
        }?;
        map.fill(0);
        // Pages are resident even if locking fails; later faults are counted and reported.
        let _ = map.lock();
        self.length += piece;
        Ok(FilePiece { map })
    }

    /// For file systems that cannot reserve room: writing zeros allocates it.
    fn write_zeros(&self, start: u64, length: u64) -> io::Result<()> {
        let zeros = [0u8; 64 << 10];
        let mut at = 0;
        while at < length {
            let count = (length - at).min(zeros.len() as u64);
            self.file
                .write_all_at(&zeros[..count as usize], start + at)?;
            at += count;
        }
        Ok(())
    }

    /// Truncates the file to its first `used` bytes and syncs it to disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self, used: u64) -> Result<(), MapError> {
        self.finished = true;
        let closed = self
            .file
            .set_len(used.min(self.length))
            .and_then(|()| self.file.sync_all());
        closed.map_err(MapError::of(&self.path))
    }
}

/// An abandoned file holds only reserved room, which no reader can use. A file that we made is removed, an older one is
/// emptied. The threads that fill pieces must have ended.
impl Drop for GrowingFile {
    fn drop(&mut self) {
        if !self.finished {
            // No caller is left to report an error to; at worst the zeros stay, and readers treat them as unused room.
            let _ = self.file.set_len(0);
            if let Some(place) = &self.made {
                let _ = place.folder().remove_file(place.name());
            }
        }
    }
}

/// A piece of a growing file, mapped and resident.
#[derive(Debug)]
pub struct FilePiece {
    map: MmapMut,
}

impl AsMut<[u8]> for FilePiece {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn pieces_follow_each_other_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut file = GrowingFile::create(&path, 1).unwrap();
        let mut first = file.next_piece().unwrap();
        let mut second = file.next_piece().unwrap();
        let page = first.as_mut().len();
        first.as_mut().fill(1);
        second.as_mut()[..10].fill(2);
        drop((first, second));
        file.finish(page as u64 + 10).unwrap();
        let read = MappedFile::open(&path).unwrap();
        assert_eq!(read.as_ref().len(), page + 10);
        assert!(read.as_ref()[..page].iter().all(|b| *b == 1));
        assert!(read.as_ref()[page..].iter().all(|b| *b == 2));
    }

    #[test]
    fn what_was_given_up_leaves_no_reserved_room_behind() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new"), dir.path().join("old"));
        fs::write(&old, "an earlier one").unwrap();
        for path in [&new, &old] {
            let mut file = GrowingFile::create(path, 1).unwrap();
            let piece = file.next_piece().unwrap();
            assert!(fs::metadata(path).unwrap().len() > 0);
            drop((file, piece));
        }
        assert!(!new.exists());
        assert_eq!(fs::metadata(&old).unwrap().len(), 0);
    }

    #[test]
    fn random_files_are_whole_and_the_same_every_time() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let folder = HeldDir::trusted(dir.path()).unwrap();
        make_random_file(&folder, "a", 1001).unwrap();
        make_random_file(&folder, "b", 1001).unwrap();
        let (a, b) = (MappedFile::open(&a).unwrap(), MappedFile::open(&b).unwrap());
        assert_eq!(a.as_ref(), b.as_ref());
        let distinct: std::collections::HashSet<u8> = a.as_ref().iter().copied().collect();
        assert_eq!((a.as_ref().len(), distinct.len() > 200), (1001, true));
        assert!(make_random_file(&folder, "no/where", 1).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_empty_file_is_no_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        fs::write(&path, "").unwrap();
        assert!(MappedFile::open(&path).unwrap().as_ref().is_empty());
    }

    #[test]
    fn a_full_disk_is_reported_and_what_was_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let Some(small) = SmallDisk::mount(dir.path()) else {
            jitterscope_testing::skip("a small file system cannot be mounted here");
            return;
        };
        let path = dir.path().join("journal");
        let mut file = GrowingFile::create(&path, 64 << 10).unwrap();
        let mut pieces = Vec::new();
        let error = loop {
            match file.next_piece() {
                Ok(mut piece) => {
                    piece.as_mut().fill(7);
                    pieces.push(piece);
                }
                Err(error) => break error,
            }
        };
        assert!(error.is_disk_full(), "{error}");
        assert!(error.to_string().contains("make room"), "{error}");
        let used = pieces.len() as u64 * (64 << 10);
        drop(pieces);
        file.finish(used).unwrap();
        assert!(used >= 64 << 10);
        let read = MappedFile::open(&path).unwrap();
        assert!(read.as_ref().len() as u64 == used && read.as_ref().iter().all(|b| *b == 7));
        drop(read);
        drop(small);
    }

    /// A file system of 512 KiB. Dropping it unmounts it.
    struct SmallDisk(PathBuf);

    impl SmallDisk {
        fn mount(at: &Path) -> Option<SmallDisk> {
            let size = Some(c"size=512k");
            rustix::mount::mount(
                "tmpfs",
                at,
                "tmpfs",
                rustix::mount::MountFlags::empty(),
                size,
            )
            .ok()?;
            Some(SmallDisk(at.to_path_buf()))
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
        }
    }
}
