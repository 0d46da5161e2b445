//! `trace.dat`, the file of trace-cmd: its descriptions, and each CPU's pages one after another.
//!
//! Version 6 is one sequence: descriptions, options, a table of each buffer's pages. Version 7 has sections, which its
//! options name, and may be compressed. Only the descriptions are in memory; pages are read as they are needed.
//!
//! The file is foreign: every length in it is checked against the file and against a limit, and what is cut off or
//! damaged costs no more than itself.

mod buffers;
mod bytes;
mod compressed;
mod descriptions;
mod error;
mod events;
mod initial;
mod options;
mod pages;
mod retimed;
mod sections;
mod tracing;

pub use buffers::{Buffer, CpuData};
pub use bytes::ReadAt;
pub(crate) use bytes::{Cursor, text_of};
pub use compressed::Compression;
pub use error::TraceDatError;
pub(crate) use events::is_read;
pub use events::missing;
pub use options::{Options, TscScale};
pub use pages::{CpuPages, least_memory};
pub use retimed::{Measured, RetimeError, Retimed};
pub(crate) use tracing::Tracing;

use crate::context::FormatText;
use crate::symbols::{Symbols, SymbolsError};
use buffers::{of_option, table};
use initial::Initial;
use jitterscope_model::{Comm, Imported};
use sections::Section;
use std::io;

/// An open file, with what it says of its pages.
pub struct TraceDat {
    file: Box<dyn ReadAt>,
    /// The format of the file, as [`Imported`] names it.
    pub format: &'static str,
    /// The version of that format.
    pub version: u32,
    pub compression: Compression,
    /// Text of `events/header_page`.
    pub header_page: String,
    /// Formats of the events that we read.
    pub formats: Vec<FormatText>,
    /// The kernel's functions, or why there are none.
    pub functions: Result<Symbols, SymbolsError>,
    /// The names of threads when the recording ended.
    pub threads: Vec<(i32, Comm)>,
    pub options: Options,
    /// The buffers, the kernel's own one first. Its name is empty.
    pub buffers: Vec<Buffer>,
}

impl TraceDat {
    /// Reads the descriptions.
    ///
    /// # Errors
    /// It is not a `trace.dat` that we read, or its descriptions are cut off or damaged.
    pub fn open(file: impl ReadAt + 'static) -> Result<TraceDat, TraceDatError> {
        let file: Box<dyn ReadAt> = Box::new(file);
        let mut from = Cursor::new(&*file, 0, "beginning")?;
        let initial = Initial::read(&mut from)?;
        let described = match initial.version {
            6 => of_version_6(&*file, from, &initial)?,
            _ => of_version_7(&*file, from, &initial)?,
        };
        let Described {
            header_page,
            formats,
            functions,
            threads,
            options,
            buffers,
        } = described;
        if buffers.is_empty() && options.has_text {
            return Err(TraceDatError::Text);
        }
        Ok(TraceDat {
            format: Imported::TRACE_DAT,
            version: initial.version,
            compression: initial.compression,
            header_page,
            formats,
            functions,
            threads,
            options,
            buffers,
            file,
        })
    }

    /// Pages made of the records of another format and its version, which `file` holds uncompressed, and what that says
    /// of them.
    pub(crate) fn of_pages(
        (format, version): (&'static str, u32),
        file: impl ReadAt + 'static,
        tracing: Tracing,
        options: Options,
        buffer: Buffer,
    ) -> TraceDat {
        TraceDat {
            file: Box::new(file),
            format,
            version,
            compression: Compression::None,
            header_page: tracing.header_page,
            formats: tracing.formats,
            functions: tracing.functions,
            threads: tracing.threads,
            options,
            buffers: vec![buffer],
        }
    }

    /// The last page of a CPU that can be read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_page(&self, buffer: &Buffer, cpu: &CpuData) -> io::Result<Option<Vec<u8>>> {
        pages::last(&*self.file, buffer, cpu, self.compression)
    }

    /// The pages of a CPU, from the first one. `memory`: what it may hold at a time, bytes.
    #[must_use]
    pub fn pages(&self, buffer: &Buffer, cpu: &CpuData, memory: usize) -> CpuPages<'_> {
        CpuPages::new(&*self.file, buffer, cpu, self.compression, memory)
    }
}

/// The longest list of clocks, bytes.
const LONGEST_CLOCKS: usize = 1 << 12;

/// What a file says of its pages.
struct Described {
    header_page: String,
    formats: Vec<FormatText>,
    functions: Result<Symbols, SymbolsError>,
    threads: Vec<(i32, Comm)>,
    options: Options,
    buffers: Vec<Buffer>,
}

fn of_version_6(
    file: &dyn ReadAt,
    mut from: Cursor<'_>,
    initial: &Initial,
) -> Result<Described, TraceDatError> {
    let from = &mut from;
    let header_page = descriptions::header_page(from)?;
    descriptions::skip_own_formats(from)?;
    let formats = descriptions::formats(from, events::is_read)?;
    from.next("list of kernel functions");
    let length = u64::from(from.u32()?);
    let at = from.skip(length)?;
    let functions = descriptions::functions(file, at, length);
    from.next("list of texts");
    let length = from.u32()?;
    from.skip(length.into())?;
    let threads = descriptions::threads(from)?;
    from.next("options");
    let cpus = from.u32()?;
    let mut options = Options::default();
    let mut mark = from.array::<10>()?;
    if mark == *b"options  \0" {
        options.read(from, false)?;
        from.next("table of pages");
        mark = from.array()?;
    }
    let mut buffers = Vec::new();
    match &mark {
        b"latency  \0" => options.has_text = true,
        b"flyrecord\0" => {
            let mut own = table(from, cpus, initial.page_size)?;
            if options.has_clock && options.clock.is_none() {
                let length = from.u64()?;
                own.clock = options::chosen(&text_of(&from.bytes(length, LONGEST_CLOCKS)?));
            }
            buffers.push(own);
        }
        _ => return Err(from.damaged("its mark is missing")),
    }
    for value in std::mem::take(&mut options.buffers) {
        let (place, name) = buffers::place_and_name(&value)?;
        let mut from = Cursor::new(file, place, "table of another buffer")?;
        from.expect(b"flyrecord\0")?;
        buffers.push(Buffer {
            name,
            ..table(&mut from, cpus, initial.page_size)?
        });
    }
    Ok(Described {
        header_page,
        formats,
        functions,
        threads,
        options,
        buffers,
    })
}

fn of_version_7(
    file: &dyn ReadAt,
    mut from: Cursor<'_>,
    initial: &Initial,
) -> Result<Described, TraceDatError> {
    let compression = initial.compression;
    from.next("place of its options");
    let options = sections::options(file, from.u64()?, compression)?;
    let places = options.places;
    let missing = |what| TraceDatError::Damaged {
        what,
        why: "the file has none",
    };
    let section = |place, id, what| Section::read(file, place, id, what, compression);
    let place = places
        .header_info
        .ok_or_else(|| missing("description of its pages"))?;
    let of_pages = section(place, sections::HEADER_INFO, "description of its pages")?;
    let header_page = descriptions::header_page(&mut of_pages.cursor(file)?)?;
    let place = places
        .event_formats
        .ok_or_else(|| missing("list of event formats"))?;
    let of_events = section(place, sections::EVENT_FORMATS, "list of event formats")?;
    let formats = descriptions::formats(&mut of_events.cursor(file)?, events::is_read)?;
    let functions = match places.kallsyms {
        Some(place) => {
            let of_functions = section(place, sections::KALLSYMS, "list of kernel functions")?;
            let mut from = of_functions.cursor(file)?;
            let length = from.u32()?;
            let at = from.at;
            of_functions.with(file, |bytes| {
                descriptions::functions(bytes, at, length.into())
            })
        }
        None => Err(SymbolsError::Empty),
    };
    let threads = match places.cmdlines {
        Some(place) => {
            let of_threads = section(place, sections::CMDLINES, "list of threads")?;
            descriptions::threads(&mut of_threads.cursor(file)?)?
        }
        None => Vec::new(),
    };
    let mut buffers = Vec::new();
    for value in &options.buffers {
        buffers.push(of_option(file, value)?);
    }
    Ok(Described {
        header_page,
        formats,
        functions,
        threads,
        options,
        buffers,
    })
}

#[cfg(test)]
mod tests;
