//! Sections of a file of version 7: a head, and bytes that may be compressed.

use super::bytes::{Cursor, ReadAt};
use super::compressed::{Compression, Expander};
use super::error::TraceDatError;
use super::options::Options;

const OPTIONS: u16 = 0;
pub(super) const HEADER_INFO: u16 = 16;
pub(super) const EVENT_FORMATS: u16 = 18;
pub(super) const KALLSYMS: u16 = 19;
pub(super) const CMDLINES: u16 = 21;
/// The flag of a compressed section.
const COMPRESSED: u16 = 1;
/// The largest section, bytes: the kernel's functions have a dozen MiB.
const LARGEST: u32 = 96 << 20;
/// A file has a section of options, or a few.
const MOST_OPTIONS: usize = 64;

/// A section's bytes: in the file, or expanded.
pub(super) enum Section {
    InFile(u64, &'static str),
    Expanded(Vec<u8>, &'static str),
}

impl Section {
    /// Reads the section at `place`, which must have this id.
    pub(super) fn read(
        file: &dyn ReadAt,
        place: u64,
        id: u16,
        what: &'static str,
        compression: Compression,
    ) -> Result<Section, TraceDatError> {
        let mut from = Cursor::new(file, place, what)?;
        if from.u16()? != id {
            return Err(from.damaged("another section is in its place"));
        }
        let flags = from.u16()?;
        from.u32()?;
        let size = from.u64()?;
        if flags & COMPRESSED == 0 {
            return Ok(Section::InFile(from.at, what));
        }
        let (packed, expanded) = (from.u32()?, from.u32()?);
        if expanded > LARGEST || u64::from(packed) > size {
            return Err(from.damaged("it is longer than it can be"));
        }
        let packed = from.bytes(packed.into(), LARGEST as usize)?;
        // Compressed a thousandfold, a small file would take much memory.
        let mut bytes = vec![0; expanded as usize];
        match Expander::new(compression).expand(&packed, &mut bytes) {
            true => Ok(Section::Expanded(bytes, what)),
            false => Err(from.damaged("it cannot be expanded")),
        }
    }

    pub(super) fn cursor<'f>(&'f self, file: &'f dyn ReadAt) -> Result<Cursor<'f>, TraceDatError> {
        match self {
            Section::InFile(at, what) => Cursor::new(file, *at, what),
            Section::Expanded(bytes, what) => Cursor::new(bytes, 0, what),
        }
    }

    /// Calls `read` with the bytes that a cursor of it reads.
    pub(super) fn with<T>(&self, file: &dyn ReadAt, read: impl FnOnce(&dyn ReadAt) -> T) -> T {
        match self {
            Section::InFile(..) => read(file),
            Section::Expanded(bytes, _) => read(bytes),
        }
    }
}

/// All options of the file, from the first section of them on.
pub(super) fn options(
    file: &dyn ReadAt,
    mut place: u64,
    compression: Compression,
) -> Result<Options, TraceDatError> {
    let mut options = Options::default();
    for _ in 0..MOST_OPTIONS {
        if place == 0 {
            break;
        }
        let section = Section::read(file, place, OPTIONS, "options", compression)?;
        place = options.read(&mut section.cursor(file)?, true)?;
    }
    Ok(options)
}
