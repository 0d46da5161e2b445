//! Supplies the journaller with room in its file.

use super::error::PipelineRecordError;
use jitterscope_model::{JournalEnd, JournalEntry, JournalFault, Nanos, PipelineJournal};
use jitterscope_platform::{FilePiece, GrowingFile, MapError, open_regular};
use jitterscope_probe::pipeline::{JournalAccount, JournalFeed};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How long a piece lasts at the requested rate: twice the time between two checks of the stock.
const PIECE_LASTS: Nanos = Nanos(100_000_000);
const SMALLEST_PIECE: u64 = 256 << 10;
const LARGEST_PIECE: u64 = 4 << 20;
const STOCK: usize = 4;
/// Full pieces stay mapped up to this many bytes: unmapping changes the page tables, and the kernel then interrupts
/// every CPU that runs this process, including the pipeline's.
const KEPT: u64 = 64 << 20;

/// The journal's file, and the pieces that the journaller holds.
pub(crate) struct JournalKeeper {
    file: GrowingFile,
    /// Supplies pieces; `None` if the journaller writes to the file itself.
    feed: Option<JournalFeed<FilePiece>>,
    full: VecDeque<FilePiece>,
    kept: usize,
    /// Pieces handed out and not yet returned full.
    out: usize,
    path: String,
    end: Option<JournalEnd>,
}

pub(crate) enum JournalPlace {
    /// In the run's folder, under this name.
    InRun(File, &'static str),
    /// At the user's path, made absolute for readers elsewhere.
    Named(PathBuf),
}

impl JournalPlace {
    /// The place of a file that the user names.
    pub(crate) fn named(path: &Path) -> JournalPlace {
        JournalPlace::Named(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()))
    }
}

/// Bytes of a piece, for messages at this interval.
fn piece_length(interval: Nanos) -> u64 {
    let messages = PIECE_LASTS.0 / interval.0.max(1);
    (messages.saturating_mul(JournalEntry::SIZE as u64)).clamp(SMALLEST_PIECE, LARGEST_PIECE)
}

/// Refuses to overwrite a file that is not a journal.
pub(crate) fn check_replaceable(path: &Path) -> Result<(), PipelineRecordError> {
    // Creating the file reports every other problem.
    let Ok(mut file) = open_regular(path) else {
        return Ok(());
    };
    let mut head = [0; JournalEntry::SIZE];
    let mut have = 0;
    while have < head.len() {
        match file.read(&mut head[have..]) {
            Ok(0) | Err(_) => break,
            Ok(n) => have += n,
        }
    }
    // A journal that was cut short before its first record contains zeros.
    let fine =
        have == 0 || head.iter().all(|b| *b == 0) || JournalEntry::from_bytes(&head).is_some();
    if fine {
        Ok(())
    } else {
        Err(PipelineRecordError::NotAJournal(path.to_path_buf()))
    }
}

impl JournalKeeper {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn open(place: JournalPlace, interval: Nanos) -> Result<JournalKeeper, MapError> {
        let piece = piece_length(interval);
        let (file, shown) = match place {
            JournalPlace::Named(path) => (
                GrowingFile::create(&path, piece)?,
                path.display().to_string(),
            ),
            JournalPlace::InRun(file, name) => {
                (GrowingFile::of(file, Path::new(name), piece), name.into())
            }
        };
        Ok(JournalKeeper {
            file,
            feed: None,
            full: VecDeque::new(),
            kept: usize::try_from(KEPT / piece).unwrap_or(1),
            out: 0,
            path: shown,
            end: None,
        })
    }

    /// The file for a journaller that writes to it.
    ///
    /// # Errors
    /// The process has too many open files.
    pub(crate) fn writer(&self) -> Result<File, MapError> {
        self.file.writer()
    }

    /// Supplies the first pieces of mapped memory.
    ///
    /// # Errors
    /// The disk has no room for one piece.
    pub(crate) fn supplying(
        mut self,
        feed: JournalFeed<FilePiece>,
    ) -> Result<JournalKeeper, MapError> {
        let first = self.file.next_piece()?;
        self.feed = Some(feed);
        self.supply(first);
        self.tend();
        Ok(self)
    }

    fn supply(&mut self, piece: FilePiece) {
        let Some(feed) = &mut self.feed else { return };
        // The stock was just checked, and only this thread fills it. An extra piece would leave a hole of zeros in the
        // file, so it ends the journal instead of being dropped silently.
        self.out += 1;
        if feed.supply(piece).is_err() {
            self.end = Some(JournalEnd {
                disk_full: false,
                why: JournalFault::StockOverfilled.into(),
            });
        }
    }

    /// Takes back full pieces and refills the stock.
    pub(crate) fn tend(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        while let Some(piece) = feed.take_full() {
            self.full.push_back(piece);
            self.out -= 1;
        }
        while self.full.len() > self.kept {
            self.full.pop_front();
        }
        while self.end.is_none() && self.feed.as_ref().is_some_and(|feed| feed.stock() < STOCK) {
            match self.file.next_piece() {
                Ok(piece) => self.supply(piece),
                Err(error) => {
                    let why = JournalFault::System {
                        system: error.to_string(),
                    }
                    .into();
                    self.end = Some(JournalEnd {
                        disk_full: error.is_disk_full(),
                        why,
                    });
                }
            }
        }
    }

    /// Whether no more room will come: the journaller has only the pieces that it holds.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether those pieces are full, too.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.end.is_some() && self.out == 0
    }

    /// Truncates the file to what was written. The journaller has ended.
    pub(crate) fn finish(mut self, account: JournalAccount) -> PipelineJournal {
        while let Some(piece) = self.feed.as_mut().and_then(JournalFeed::take_full) {
            drop(piece);
        }
        self.full.clear();
        let length = account.written * JournalEntry::SIZE as u64;
        if self.feed.is_none() {
            self.file.grown_to(length);
        }
        let JournalKeeper {
            file,
            path,
            mut end,
            ..
        } = self;
        if let Some(number) = account.error {
            let error = std::io::Error::from_raw_os_error(number);
            end.get_or_insert(JournalEnd {
                disk_full: error.kind() == std::io::ErrorKind::StorageFull,
                why: JournalFault::System {
                    system: format!("{path} cannot be written: {error}"),
                }
                .into(),
            });
        }
        if let Err(error) = file.finish(length) {
            let disk_full = error.is_disk_full();
            end.get_or_insert(JournalEnd {
                disk_full,
                why: JournalFault::System {
                    system: error.to_string(),
                }
                .into(),
            });
        }
        let JournalAccount {
            written,
            unwritten,
            waits,
            ..
        } = account;
        PipelineJournal {
            path,
            written,
            unwritten,
            waits,
            ended: end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_last_at_any_rate_within_bounds() {
        assert_eq!(piece_length(Nanos(10_000)), 320_000);
        assert_eq!(piece_length(Nanos(0)), LARGEST_PIECE);
        assert_eq!(piece_length(Nanos(1_000_000_000)), SMALLEST_PIECE);
    }

    #[test]
    fn only_journals_are_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(check_replaceable(&path).is_ok());
        let entry = JournalEntry {
            published_ns: 1,
            journalled_ns: 2,
            delta_ns: 1,
            sequence: 0,
        };
        for (bytes, fine) in [
            (entry.to_bytes().to_vec(), true),
            (Vec::new(), true),
            (vec![0; 4096], true),
            (b"a letter that somebody would miss".to_vec(), false),
            (b"short".to_vec(), false),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(check_replaceable(&path).is_ok(), fine, "{bytes:?}");
        }
    }
}
