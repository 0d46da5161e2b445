//! The descriptions of tracepoints that other files hold in the form of `trace.dat`'s own.

use super::bytes::{Cursor, ReadAt};
use super::error::TraceDatError;
use super::{descriptions, events};
use crate::context::FormatText;
use crate::symbols::{Symbols, SymbolsError};
use jitterscope_model::Comm;

const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
const LONGEST_VERSION: usize = 15;

/// The descriptions.
pub(crate) struct Tracing {
    /// Text of `events/header_page`.
    pub(crate) header_page: String,
    /// Formats of the events that we read.
    pub(crate) formats: Vec<FormatText>,
    /// The kernel's functions, or why there are none.
    pub(crate) functions: Result<Symbols, SymbolsError>,
    /// The names of threads when the recording ended.
    pub(crate) threads: Vec<(i32, Comm)>,
}

impl Tracing {
    /// Reads descriptions of `size` bytes at `at`; `what` names them.
    ///
    /// # Errors
    /// They are cut off, damaged, or big-endian.
    pub(crate) fn read(
        file: &dyn ReadAt,
        at: u64,
        size: u64,
        what: &'static str,
    ) -> Result<Tracing, TraceDatError> {
        let mut from = Cursor::within(file, at, size, what)?;
        from.expect(MAGIC)?;
        from.text(LONGEST_VERSION)?;
        if from.u8()? != 0 {
            return Err(from.damaged("it is big-endian, unlike the file"));
        }
        from.u8()?;
        from.u32()?;
        let header_page = descriptions::header_page(&mut from)?;
        descriptions::skip_own_formats(&mut from)?;
        let formats = descriptions::formats(&mut from, events::is_read)?;
        // What follows are names, without which records can be read.
        let functions = names(&mut from).map_err(|_| SymbolsError::Empty);
        let functions =
            functions.and_then(|(at, length)| descriptions::functions(file, at, length));
        let threads = texts(&mut from).and_then(|()| descriptions::threads(&mut from));
        Ok(Tracing {
            header_page,
            formats,
            functions,
            threads: threads.unwrap_or_default(),
        })
    }
}

/// Where the kernel's functions are, and how many bytes.
fn names(from: &mut Cursor<'_>) -> Result<(u64, u64), TraceDatError> {
    let length = from.u32()?.into();
    Ok((from.skip(length)?, length))
}

/// Passes over the kernel's texts.
fn texts(from: &mut Cursor<'_>) -> Result<(), TraceDatError> {
    let length = from.u32()?;
    from.skip(length.into()).map(drop)
}
