//! The buffers of a file: where each CPU's pages are.

use super::bytes::{Cursor, ReadAt};
use super::error::TraceDatError;
use super::options::chosen;
use jitterscope_model::CpuId;

/// No kernel has a CPU beyond this.
const MOST_CPUS: u32 = 8192;
const LONGEST_NAME: usize = 256;
const LARGEST_PAGE: u32 = 1 << 20;
/// The section of a buffer, and the flag of a compressed one.
const FLYRECORD: u16 = 3;
const COMPRESSED: u16 = 1;

/// A buffer of the kernel: its own one, or a tracing instance's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The name of its instance; empty for the kernel's own buffer.
    pub name: String,
    /// The kernel's name of its clock; `None` if it is that of the file.
    pub clock: Option<String>,
    /// Bytes of a page.
    pub page_size: u32,
    /// CPUs with pages.
    pub cpus: Vec<CpuData>,
    /// Whether the pages are in compressed chunks.
    pub(super) compressed: bool,
}

/// A CPU's pages in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuData {
    pub cpu: CpuId,
    pub(super) at: u64,
    /// Bytes that they take in the file.
    pub size: u64,
}

impl CpuData {
    /// A CPU's pages at a place of the file, bytes.
    pub(crate) fn new(cpu: CpuId, at: u64, size: u64) -> CpuData {
        CpuData { cpu, at, size }
    }
}

impl Buffer {
    /// The only buffer of a file, of uncompressed pages.
    pub(crate) fn of_pages(page_size: u32, cpus: Vec<CpuData>) -> Buffer {
        Buffer {
            page_size,
            cpus,
            ..Buffer::default()
        }
    }
}

/// The table of version 6, after its mark.
pub(super) fn table(
    from: &mut Cursor<'_>,
    cpus: u32,
    page_size: u32,
) -> Result<Buffer, TraceDatError> {
    if cpus > MOST_CPUS {
        return Err(from.damaged("it has more CPUs than there can be"));
    }
    let mut own = Vec::new();
    for cpu in 0..cpus {
        let (at, size) = (from.u64()?, from.u64()?);
        let cpu = CpuId(cpu);
        own.push(CpuData { cpu, at, size });
    }
    own.retain(|data| data.size > 0);
    Ok(Buffer {
        page_size,
        cpus: own,
        ..Buffer::default()
    })
}

/// Where the table of a version 6 buffer is, and the buffer's name.
pub(super) fn place_and_name(value: &[u8]) -> Result<(u64, String), TraceDatError> {
    let value = value.to_vec();
    let mut from = Cursor::new(&value, 0, "option of another buffer")?;
    Ok((from.u64()?, from.text(LONGEST_NAME)?))
}

/// The buffer that an option of version 7 describes.
pub(super) fn of_option(file: &dyn ReadAt, value: &[u8]) -> Result<Buffer, TraceDatError> {
    let value = value.to_vec();
    let mut from = Cursor::new(&value, 0, "option of a buffer")?;
    let place = from.u64()?;
    let name = from.text(LONGEST_NAME)?;
    let clock = from.text(LONGEST_NAME)?;
    let page_size = from.u32()?;
    let cpus = from.u32()?;
    if cpus > MOST_CPUS || page_size > LARGEST_PAGE {
        return Err(from.damaged("its page size or its number of CPUs cannot be"));
    }
    let mut own = Vec::new();
    for _ in 0..cpus {
        let (cpu, at, size) = (CpuId(from.u32()?), from.u64()?, from.u64()?);
        if cpu.0 >= MOST_CPUS {
            return Err(from.damaged("it has more CPUs than there can be"));
        }
        own.push(CpuData { cpu, at, size });
    }
    own.retain(|data| data.size > 0);
    let mut head = Cursor::new(file, place, "section of a buffer")?;
    if head.u16()? != FLYRECORD {
        return Err(head.damaged("another section is in its place"));
    }
    Ok(Buffer {
        name,
        clock: chosen(&clock),
        page_size,
        cpus: own,
        compressed: head.u16()? & COMPRESSED != 0,
    })
}
