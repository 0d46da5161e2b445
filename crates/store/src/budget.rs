//! A bound on the memory that reading a run takes. A run may come from an untrusted source.

use crate::error::StoreError;
use jitterscope_platform::{AccessError, allocated};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The default bound for reading one thing, bytes.
const USUAL: usize = 32 << 20;
/// Bytes of a document between two checks of the memory.
const PIECE: usize = 16 << 10;

/// The error kind that reports an exhausted budget.
const TOO_MUCH: io::ErrorKind = io::ErrorKind::OutOfMemory;

static MOST: AtomicUsize = AtomicUsize::new(USUAL);

/// Sets the bound, for a user who trusts the run.
pub fn allow_memory(bytes: usize) {
    MOST.store(bytes, Ordering::Relaxed);
}

/// The part of the bound that a document may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Half = 2,
    /// For a document from which its reader builds tables as large.
    Quarter = 4,
}

/// The memory that this thread may still take. Programs that do not count their allocations have no bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    began: isize,
    most: usize,
}

impl Budget {
    pub(crate) fn begin() -> Budget {
        Budget {
            began: allocated(),
            most: most(),
        }
    }

    /// The budget of one document: a part of the bound, because a growing list needs room for the old and the new
    /// copy.
    fn of_document(part: Part) -> Budget {
        Budget {
            most: most() / part as usize,
            ..Budget::begin()
        }
    }

    /// A budget of which `taken` bytes are used already.
    pub(crate) fn carrying(taken: isize) -> Budget {
        Budget {
            began: allocated() - taken,
            ..Budget::begin()
        }
    }

    /// Bytes taken so far.
    pub(crate) fn taken(self) -> isize {
        allocated().saturating_sub(self.began)
    }

    /// # Errors
    /// The thread took more than the budget.
    pub(crate) fn check(self, path: &Path) -> Result<(), StoreError> {
        if self.is_kept() {
            return Ok(());
        }
        Err(self.too_much(path))
    }

    pub(crate) fn is_kept(self) -> bool {
        self.taken() <= self.most.cast_signed()
    }

    fn too_much(self, path: &Path) -> StoreError {
        StoreError::Memory {
            path: path.to_path_buf(),
            mib: self.most >> 20,
        }
    }
}

/// Bytes that may be taken.
pub(crate) fn most() -> usize {
    MOST.load(Ordering::Relaxed).min(isize::MAX as usize)
}

/// Parses a document of at most `limit` bytes within half the bound.
///
/// # Errors
/// The document is longer, takes too much memory, cannot be read or does not parse.
pub(crate) fn document<T: DeserializeOwned>(
    file: &File,
    path: &Path,
    limit: u64,
) -> Result<T, StoreError> {
    document_within(Part::Half, file, path, limit)
}

/// As [`document`], within a part of the bound.
pub(crate) fn document_within<T: DeserializeOwned>(
    part: Part,
    file: &File,
    path: &Path,
    limit: u64,
) -> Result<T, StoreError> {
    let read = |error: io::Error| StoreError::read(path, error);
    let length = file.metadata().map_err(read)?.len();
    if length > limit {
        let path = path.to_path_buf();
        return Err(StoreError::Access(AccessError::TooLarge { path, limit }));
    }
    parse_within(part, &mut file.take(limit), path)
}

/// Parses the text of a document.
///
/// # Errors
/// As [`document`].
pub(crate) fn parse<T: DeserializeOwned>(
    text: &mut dyn Read,
    path: &Path,
) -> Result<T, StoreError> {
    parse_within(Part::Half, text, path)
}

fn parse_within<T: DeserializeOwned>(
    part: Part,
    text: &mut dyn Read,
    path: &Path,
) -> Result<T, StoreError> {
    let budget = Budget::of_document(part);
    let watched = Watched { text, budget };
    let parsed = serde_json::from_reader(BufReader::with_capacity(PIECE, watched));
    parsed.map_err(|error| match error.io_error_kind() {
        Some(TOO_MUCH) => budget.too_much(path),
        Some(_) => StoreError::read(path, error.into()),
        None => StoreError::damaged(path, error),
    })
}

/// A text that ends in an error when the budget is used up.
struct Watched<'t> {
    text: &'t mut dyn Read,
    budget: Budget,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.budget.is_kept() {
            self.text.read(into)
        } else {
            Err(TOO_MUCH.into())
        }
    }
}
