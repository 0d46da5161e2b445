//! The first bytes of a file: what it is, and how its numbers are written.

use super::bytes::{Cursor, text_of};
use super::compressed::Compression;
use super::error::TraceDatError;

const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// A version has a digit, or a few.
const LONGEST_VERSION: usize = 15;
const LONGEST_NAME: usize = 64;
/// Page sizes of any machine, bytes.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=1 << 20;

pub(super) struct Initial {
    /// 6 or 7.
    pub(super) version: u32,
    /// Bytes of a page of the recording machine.
    pub(super) page_size: u32,
    pub(super) compression: Compression,
}

impl Initial {
    pub(super) fn read(from: &mut Cursor<'_>) -> Result<Initial, TraceDatError> {
        let begins = from.at;
        match from.array() {
            Ok(magic) if magic == *MAGIC => {}
            _ => {
                from.at = begins;
                return Err(TraceDatError::Other {
                    recognised: recognised(from),
                });
            }
        }
        let version = from.text(LONGEST_VERSION)?;
        let version = match version.as_str() {
            "6" => 6,
            "7" => 7,
            _ => return Err(TraceDatError::Version { version }),
        };
        let implausible = |field, value: u32| TraceDatError::Implausible {
            version,
            field,
            value: value.into(),
        };
        match from.u8()? {
            0 => {}
            1 => return Err(TraceDatError::BigEndian { version }),
            other => return Err(implausible("byte order", other.into())),
        }
        match from.u8()? {
            4 | 8 => {}
            other => return Err(implausible("size of a long", other.into())),
        }
        let page_size = from.u32()?;
        if !PAGE_SIZES.contains(&page_size) {
            return Err(implausible("page size", page_size));
        }
        let compression = match version {
            6 => Compression::None,
            _ => {
                let name = from.text(LONGEST_NAME)?;
                from.text(LONGEST_NAME)?;
                Compression::of(name)?
            }
        };
        Ok(Initial {
            version,
            page_size,
            compression,
        })
    }
}

/// What the file seems to be instead.
fn recognised(from: &mut Cursor<'_>) -> &'static str {
    let mut begins = [0; 32];
    let read = (0..begins.len())
        .take_while(|at| from.u8().map(|byte| begins[*at] = byte).is_ok())
        .count();
    let begins = &begins[..read];
    let is = |mark: &[u8]| begins.starts_with(mark);
    if begins.is_empty() {
        "it is empty"
    } else if is(b"PERFILE2") || is(b"2ELIFREP") {
        "it is a perf.data"
    } else if is(b"\xc1\x1f\xfc\xc1") || is(b"\xc1\xfc\x1f\xc1") || is(b"/* CTF") {
        "it is a part of a CTF trace (LTTng, babeltrace)"
    } else if is(b"# tracer:") {
        "it is the text of the kernel's trace file, which has no pages"
    } else if is(b"\x1f\x8b") || is(b"\x28\xb5\x2f\xfd") || is(b"\xfd7zXZ") || is(b"PK\x03\x04") {
        "it is a compressed file or archive; unpack it first"
    } else if is(b"\x0a") && begins.len() > 2 {
        "it may be a trace of Perfetto that is cut off within its first packet"
    } else if is(b"PAR1") {
        "it is a Parquet table"
    } else if text_of(begins).chars().all(|c| !c.is_control()) && begins.is_ascii() {
        "it is a text"
    } else {
        "its first bytes are not of a format that is known here"
    }
}
