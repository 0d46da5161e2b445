//! Reads a stored trace: segments, their pages and turns.

use crate::budget::{self, Budget};
use crate::error::StoreError;
use crate::pages::role_of;
use crate::segment::{self, End};
use jitterscope_model::{CpuId, DrainTurn, PutInOrder, Ticks, TraceRole};
use jitterscope_platform::HeldDir;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The largest accepted segment, bytes. The writer closes a segment at 1 MiB; a kernel's sub-buffer has at most 16 MiB.
const LARGEST_SEGMENT: u64 = 32 << 20;

/// The largest size of the pages of a moment, bytes. A second of a loaded CPU takes about three million.
const MOST_PAGES: usize = 16 << 20;

/// A raw page of a stored trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPage {
    /// The side of the recording.
    pub role: TraceRole,
    pub cpu: CpuId,
    /// Time of its first record.
    pub first: Ticks,
    /// Time of its last record.
    pub last: Ticks,
    /// The page as the kernel returned it, cut to its used length.
    pub bytes: Vec<u8>,
}

/// A piece of a stored trace. Pieces come in the order of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracePiece {
    /// A page of a kernel buffer.
    Page(StoredPage),
    /// The end of a recorder's turn: the pages since the previous turn belong to it.
    Turn(Box<DrainTurn>),
    /// The writer removed what was here because the limit or the disk left no room.
    Missing,
}

/// The names of the segments, in order.
pub(crate) fn segments(folder: &HeldDir) -> Result<Vec<OsString>, StoreError> {
    let entries = folder.entries().map_err(StoreError::reading)?;
    let names = entries.into_iter().map(|entry| entry.name);
    let mut names: Vec<OsString> = names
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == "seg"))
        .collect();
    names.put_in_order();
    Ok(names)
}

/// The number of a segment, from its name.
pub(crate) fn number_of(segment: &OsStr) -> Option<u32> {
    Path::new(segment).file_stem()?.to_str()?.parse().ok()
}

/// The pages of a moment, up to a bound.
#[derive(Default)]
pub(crate) struct MomentsPages {
    pub(crate) pages: Vec<StoredPage>,
    bytes: usize,
}

impl MomentsPages {
    /// Adds a segment's pages with any record between two times.
    ///
    /// # Errors
    /// The segment is damaged or cannot be read, or there are more pages than the bound.
    pub(crate) fn add(
        &mut self,
        folder: &HeldDir,
        name: &OsStr,
        from: Ticks,
        to: Ticks,
    ) -> Result<(), StoreError> {
        let path = folder.path().join(name);
        let file = open_segment(folder, name)?;
        let wanted = |header: &segment::FrameHeader| header.first <= to && from <= header.last;
        let most = MOST_PAGES.max(budget::most() / 2);
        let end = segment::read(BufReader::new(file), wanted, |header, bytes| {
            self.bytes += bytes.len();
            if let Some(role) = role_of(header.role)
                && self.bytes <= most
            {
                let segment::FrameHeader {
                    cpu, first, last, ..
                } = header;
                self.pages.push(StoredPage {
                    role,
                    cpu,
                    first,
                    last,
                    bytes,
                });
            }
        });
        // Reported even if pages were found: a view that silently misses pages is worse than none.
        match end.map_err(|e| StoreError::read(&path, e))? {
            End::Damaged(why) => Err(StoreError::damaged(&path, why)),
            End::Clean if self.bytes > most => Err(StoreError::Memory {
                path,
                mib: most >> 20,
            }),
            End::Clean => Ok(()),
        }
    }
}

/// The first and the last record of a segment's pages. The last is before the first if it has no pages.
///
/// # Errors
/// The segment is damaged or cannot be read.
pub(crate) fn span_of(folder: &HeldDir, name: &OsStr) -> Result<(Ticks, Ticks), StoreError> {
    let path = folder.path().join(name);
    let file = open_segment(folder, name)?;
    let (mut first, mut last) = (Ticks(u64::MAX), Ticks(0));
    let look = |header: &segment::FrameHeader| {
        if role_of(header.role).is_some() {
            (first, last) = (first.min(header.first), last.max(header.last));
        }
        false
    };
    match segment::read(BufReader::new(file), look, |_, _| {})
        .map_err(|e| StoreError::read(&path, e))?
    {
        End::Damaged(why) => Err(StoreError::damaged(&path, why)),
        End::Clean => Ok((first, last)),
    }
}

fn open_segment(folder: &HeldDir, name: &OsStr) -> Result<File, StoreError> {
    let path = folder.path().join(name);
    let file = folder.open_file(name).map_err(StoreError::reading)?;
    if file
        .metadata()
        .map_err(|e| StoreError::read(&path, e))?
        .len()
        > LARGEST_SEGMENT
    {
        return Err(StoreError::damaged(&path, "no segment is so large"));
    }
    Ok(file)
}

/// The pieces of a segment, up to any damage.
pub(crate) fn read_pieces(folder: &HeldDir, name: &OsStr) -> Vec<Result<TracePiece, StoreError>> {
    let path = folder.path().join(name);
    let file = match open_segment(folder, name) {
        Ok(file) => file,
        Err(error) => return vec![Err(error)],
    };
    let mut pieces = Vec::new();
    let budget = Budget::begin();
    let mut kept = Ok(());
    let end = segment::read(
        BufReader::new(file),
        |_| true,
        |header, bytes| {
            if kept.is_ok() {
                kept = budget.check(&path);
            }
            if kept.is_err() {
                return;
            }
            let segment::FrameHeader {
                cpu, first, last, ..
            } = header;
            if header.role == segment::TURN {
                let turn = budget::parse(&mut bytes.as_slice(), &path);
                pieces.push(turn.map(|turn| TracePiece::Turn(Box::new(turn))));
            } else if let Some(role) = role_of(header.role) {
                pieces.push(Ok(TracePiece::Page(StoredPage {
                    role,
                    cpu,
                    first,
                    last,
                    bytes,
                })));
            }
        },
    );
    if let Err(error) = kept {
        return vec![Err(error)];
    }
    match end {
        Ok(End::Clean) => {}
        Ok(End::Damaged(why)) => pieces.push(Err(StoreError::damaged(&path, why))),
        Err(error) => pieces.push(Err(StoreError::read(&path, error))),
    }
    pieces
}
