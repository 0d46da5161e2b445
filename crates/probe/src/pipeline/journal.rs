//! The journal as the journaller sees it: pieces of memory, supplied ahead of need, or a file that it writes to.

use super::control::PipelineControl;
use jitterscope_model::JournalEntry;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// Pieces in flight in each direction. Two are enough to stay ahead; the rest covers a late helper.
const PIECES: usize = 8;

/// The controller's side: supplies empty pieces of memory and takes back full ones.
pub struct JournalFeed<S> {
    fresh: Producer<S>,
    full: Consumer<S>,
}

impl<S> JournalFeed<S> {
    /// How many empty pieces the journaller has in stock.
    #[must_use]
    pub fn stock(&self) -> usize {
        self.fresh.buffer().capacity() - self.fresh.slots()
    }

    /// Supplies an empty piece; returns it if there are enough.
    ///
    /// # Errors
    /// The stock is full.
    pub fn supply(&mut self, piece: S) -> Result<(), S> {
        self.fresh
            .push(piece)
            .map_err(|PushError::Full(piece)| piece)
    }

    /// Takes back a full piece.
    pub fn take_full(&mut self) -> Option<S> {
        self.full.pop().ok()
    }
}

pub(super) struct Journal<S> {
    to: To<S>,
    pub(super) account: JournalAccount,
}

enum To<S> {
    Pieces(Pieces<S>),
    /// Each record is a system call. `None` once one failed.
    File(Option<File>),
}

struct Pieces<S> {
    fresh: Consumer<S>,
    full: Producer<S>,
    piece: Option<S>,
    at: usize,
}

/// The result of the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalAccount {
    pub written: u64,
    /// Messages received without a record because there was no room.
    pub unwritten: u64,
    /// How often the journaller waited for an empty piece.
    pub waits: u64,
    /// The number of the system's error that ended the writing to a file.
    pub error: Option<i32>,
}

pub(super) fn journal<S>() -> (Journal<S>, JournalFeed<S>) {
    let (fresh_in, fresh) = RingBuffer::new(PIECES);
    let (full, full_out) = RingBuffer::new(PIECES);
    let journal = Journal {
        to: To::Pieces(Pieces {
            fresh,
            full,
            piece: None,
            at: 0,
        }),
        account: JournalAccount::default(),
    };
    (
        journal,
        JournalFeed {
            fresh: fresh_in,
            full: full_out,
        },
    )
}

impl<S> Journal<S> {
    /// A journal that is written to this file, from its beginning.
    pub(super) fn into(file: File) -> Journal<S> {
        Journal {
            to: To::File(Some(file)),
            account: JournalAccount::default(),
        }
    }
}

impl<S: AsMut<[u8]>> Journal<S> {
    /// Takes the first piece and writes to every page of it.
    pub(super) fn prefault(&mut self) {
        if let To::Pieces(pieces) = &mut self.to {
            pieces.piece = pieces.fresh.pop().ok();
            if let Some(piece) = &mut pieces.piece {
                piece.as_mut().fill(0);
            }
        }
    }

    /// Warm-up version of [`Journal::append`]: writes the same bytes to the same place without keeping them.
    #[inline]
    pub(super) fn rehearse(&mut self, entry: JournalEntry) {
        match &mut self.to {
            To::Pieces(pieces) => {
                if let Some(room) = pieces.room() {
                    room.copy_from_slice(&entry.to_bytes());
                }
            }
            // If it fails, the first record fails, too, and counts.
            To::File(file) => {
                let _ = file
                    .as_ref()
                    .map(|file| file.write_at(&entry.to_bytes(), 0));
            }
        }
    }

    pub(super) fn reset(&mut self) {
        match &mut self.to {
            To::Pieces(pieces) => {
                if let Some(room) = pieces.room() {
                    room.fill(0);
                }
            }
            // Its owner cuts the file to the records that count.
            To::File(_) => {}
        }
        self.account = JournalAccount::default();
    }

    #[inline]
    pub(super) fn append(&mut self, entry: JournalEntry, control: &PipelineControl) {
        let account = &mut self.account;
        let is_written = match &mut self.to {
            To::Pieces(pieces) => pieces.append(entry, control, &mut account.waits),
            To::File(file) => match file.as_mut().map(|file| file.write_all(&entry.to_bytes())) {
                Some(Ok(())) => true,
                Some(Err(error)) => {
                    account.error = error.raw_os_error();
                    *file = None;
                    control.fail_journal();
                    false
                }
                None => false,
            },
        };
        account.written += u64::from(is_written);
        account.unwritten += u64::from(!is_written);
    }

    pub(super) fn finish(&mut self) {
        if let To::Pieces(pieces) = &mut self.to
            && let Some(piece) = pieces.piece.take()
        {
            // The controller takes back full pieces until the thread has ended, and drops the rest with the queue.
            // Either way the piece's memory is the file's.
            let _ = pieces.full.push(piece);
        }
    }
}

impl<S: AsMut<[u8]>> Pieces<S> {
    /// The room of the next record, if the piece has any.
    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        let at = self.at;
        let piece = self.piece.as_mut()?;
        piece.as_mut().get_mut(at..at + JournalEntry::SIZE)
    }

    /// Returns false if there is no room, and none will come.
    #[inline]
    fn append(&mut self, entry: JournalEntry, control: &PipelineControl, waits: &mut u64) -> bool {
        loop {
            if let Some(room) = self.room() {
                room.copy_from_slice(&entry.to_bytes());
                self.at += JournalEntry::SIZE;
                return true;
            }
            if !self.turn_over(control, waits) {
                return false;
            }
        }
    }

    /// Swaps the full piece for an empty one; returns false if none will come.
    #[cold]
    fn turn_over(&mut self, control: &PipelineControl, waits: &mut u64) -> bool {
        let mut full = self.piece.take();
        let mut waited = false;
        loop {
            if let Some(piece) = full.take()
                && let Err(PushError::Full(piece)) = self.full.push(piece)
            {
                full = Some(piece);
            } else if let Ok(piece) = self.fresh.pop() {
                (self.piece, self.at) = (Some(piece), 0);
                *waits += u64::from(waited);
                return true;
            } else if control.journal_closed() {
                return false;
            }
            waited = true;
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::JournalReader;

    fn entry(sequence: i32) -> JournalEntry {
        JournalEntry {
            published_ns: 1,
            journalled_ns: 3,
            delta_ns: 2,
            sequence,
        }
    }

    #[test]
    fn journal_records_span_pieces_and_only_a_full_one_loses_some() {
        let control = PipelineControl::new();
        let (mut journal, mut feed) = journal::<Vec<u8>>();
        for _ in 0..3 {
            feed.supply(vec![1; 64]).unwrap();
        }
        journal.prefault();
        journal.rehearse(entry(99));
        journal.reset();
        control.close_journal();
        for sequence in 0..8 {
            journal.append(entry(sequence), &control);
        }
        journal.finish();
        let mut bytes = Vec::new();
        while let Some(piece) = feed.take_full() {
            bytes.extend(piece);
        }
        let read: Vec<i32> = JournalReader::new(&bytes)
            .map(|e| e.unwrap().sequence)
            .collect();
        assert_eq!(read, [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            journal.account,
            JournalAccount {
                written: 6,
                unwritten: 2,
                ..JournalAccount::default()
            }
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no files")]
    fn records_are_written_to_a_file_and_none_after_a_failure() {
        let control = PipelineControl::new();
        let folder = std::env::temp_dir().join(format!("js-journal-{}", std::process::id()));
        let file = File::create(&folder).unwrap();
        let mut journal = Journal::<Vec<u8>>::into(file);
        journal.prefault();
        journal.rehearse(entry(99));
        journal.reset();
        for sequence in 0..3 {
            journal.append(entry(sequence), &control);
        }
        journal.finish();
        let bytes = std::fs::read(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let read: Vec<i32> = JournalReader::new(&bytes)
            .map(|e| e.unwrap().sequence)
            .collect();
        assert_eq!((read, journal.account.written), (vec![0, 1, 2], 3));
        assert!(!control.journal_failed());
        // Every write to it fails: the disk is full.
        let Ok(full) = File::options().write(true).open("/dev/full") else {
            return;
        };
        let mut journal = Journal::<Vec<u8>>::into(full);
        for sequence in 0..3 {
            journal.append(entry(sequence), &control);
        }
        let account = journal.account;
        assert_eq!((account.written, account.unwritten), (0, 3));
        assert!(account.error.is_some() && control.journal_failed());
    }

    /// Also for Miri, which tries other thread interleavings and checks every access.
    #[test]
    fn pieces_handed_over_between_threads_keep_every_record() {
        const RECORDS: i32 = 40;
        let control = std::sync::Arc::new(PipelineControl::new());
        let (mut journal, mut feed) = journal::<Vec<u8>>();
        feed.supply(vec![1; 96]).unwrap();
        let theirs = std::sync::Arc::clone(&control);
        let writer = std::thread::spawn(move || {
            journal.prefault();
            for sequence in 0..RECORDS {
                journal.append(entry(sequence), &theirs);
            }
            journal.finish();
            theirs.report_warm();
            journal.account
        });
        let mut bytes = Vec::new();
        let mut take = |feed: &mut JournalFeed<Vec<u8>>| {
            while let Some(piece) = feed.take_full() {
                bytes.extend(piece);
            }
        };
        while control.warm() == 0 {
            if feed.stock() < 2 {
                feed.supply(vec![0; 96]).unwrap();
            }
            take(&mut feed);
            std::hint::spin_loop();
        }
        let account = writer.join().unwrap();
        take(&mut feed);
        // The last piece is returned as it is: its unused part stays zero.
        let whole = RECORDS as usize * JournalEntry::SIZE;
        let read: Vec<i32> = JournalReader::new(&bytes[..whole])
            .map(|e| e.unwrap().sequence)
            .collect();
        assert_eq!(read, (0..RECORDS).collect::<Vec<_>>());
        assert_eq!((account.written, account.unwritten), (RECORDS as u64, 0));
    }
}
