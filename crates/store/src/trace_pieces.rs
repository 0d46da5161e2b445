//! A stored trace as it is read: segments, and the pages and turns that they hold.

use crate::error::StoreError;
use crate::pages::role_of;
use crate::segment::{self, End};
use jitterscope_model::{CpuId, DrainTurn, Ticks, TraceRole};
use jitterscope_platform::HeldDir;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A segment is closed at 1 MiB; a kernel's sub-buffer has at most 16.
const LARGEST_SEGMENT: u64 = 32 << 20;

/// A raw page of a stored trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPage {
    /// Which side of the recording.
    pub role: TraceRole,
    /// Whose buffer.
    pub cpu: CpuId,
    /// Time of its first record.
    pub first: Ticks,
    /// Time of its last record.
    pub last: Ticks,
    /// The page as the kernel gave it, cut to what is used.
    pub bytes: Vec<u8>,
}

/// A piece of a stored trace, in the order in which it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracePiece {
    /// A page of a kernel buffer.
    Page(StoredPage),
    /// A turn of the recorder has ended: the pages since the one before are its own.
    Turn(Box<DrainTurn>),
    /// What stood here was given up for want of room.
    Missing,
}

/// Names of the segments, in order.
pub(crate) fn segments(folder: &HeldDir) -> Result<Vec<OsString>, StoreError> {
    let entries = folder.entries().map_err(StoreError::reading)?;
    let names = entries.into_iter().map(|entry| entry.name);
    let mut names: Vec<OsString> = names
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == "seg"))
        .collect();
    names.sort();
    Ok(names)
}

/// The pages of a segment with any record between two times.
pub(crate) fn segment_pages(
    folder: &HeldDir,
    name: &OsStr,
    from: Ticks,
    to: Ticks,
) -> Result<Vec<StoredPage>, StoreError> {
    let path = folder.path().join(name);
    let file = open_segment(folder, name)?;
    let wanted = |header: &segment::FrameHeader| header.first <= to && from <= header.last;
    let mut pages = Vec::new();
    let end = segment::read(BufReader::new(file), wanted, |header, bytes| {
        if let Some(role) = role_of(header.role) {
            let segment::FrameHeader {
                cpu, first, last, ..
            } = header;
            pages.push(StoredPage {
                role,
                cpu,
                first,
                last,
                bytes,
            });
        }
    });
    // Whatever else was found: a view that is silently short is worse than none.
    match end.map_err(|e| StoreError::read(&path, e))? {
        End::Damaged(why) => Err(StoreError::damaged(&path, why)),
        End::Clean => Ok(pages),
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

/// What a segment holds, up to where it is damaged.
pub(crate) fn read_pieces(folder: &HeldDir, name: &OsStr) -> Vec<Result<TracePiece, StoreError>> {
    let path = folder.path().join(name);
    let file = match open_segment(folder, name) {
        Ok(file) => file,
        Err(error) => return vec![Err(error)],
    };
    let mut pieces = Vec::new();
    let end = segment::read(
        BufReader::new(file),
        |_| true,
        |header, bytes| {
            let segment::FrameHeader {
                cpu, first, last, ..
            } = header;
            if header.role == segment::TURN {
                let turn =
                    serde_json::from_slice(&bytes).map_err(|e| StoreError::damaged(&path, e));
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
    match end {
        Ok(End::Clean) => {}
        Ok(End::Damaged(why)) => pieces.push(Err(StoreError::damaged(&path, why))),
        Err(error) => pieces.push(Err(StoreError::read(&path, error))),
    }
    pieces
}
