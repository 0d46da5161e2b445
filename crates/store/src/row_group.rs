//! The row group that a table's writer fills: all its columns are encoded at the same time, and their pages stay in
//! memory until the group ends.

use crate::tables::Cells;
use bytes::{Buf, Bytes};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A row group while it is filled.
pub(crate) struct RowGroup(Vec<Open>);

/// A column of it.
struct Open {
    encoder: ColumnWriter<'static>,
    pages: Pages,
    /// Bytes of its values, before they are encoded: those not in a page yet, and all of them.
    waiting: u64,
    all: u64,
}

impl RowGroup {
    pub(crate) fn new(schema: &SchemaDescriptor, properties: &WriterPropertiesPtr) -> RowGroup {
        let open = |column: &Arc<_>| {
            let (pages, properties) = (Pages::default(), Arc::clone(properties));
            let encoder =
                get_column_writer(Arc::clone(column), properties, Box::new(pages.clone()));
            Open {
                encoder,
                pages,
                waiting: 0,
                all: 0,
            }
        };
        RowGroup(schema.columns().iter().map(open).collect())
    }

    /// Encodes rows, given by column in the order of the schema.
    ///
    /// # Errors
    /// A column has another type.
    pub(crate) fn write(&mut self, columns: &[Cells]) -> Result<(), ParquetError> {
        for (open, cells) in self.0.iter_mut().zip(columns) {
            let before = open.pages.bytes();
            cells.write(&mut open.encoder)?;
            let bytes = cells.bytes() as u64;
            open.all += bytes;
            open.waiting = if open.pages.bytes() > before {
                bytes
            } else {
                open.waiting + bytes
            };
        }
        Ok(())
    }

    /// Bytes that the group has in memory and will write at most, with dictionaries of up to `dictionary` bytes. The
    /// encoder keeps the pages of a column with a dictionary until the end, so that column counts with its values.
    pub(crate) fn bytes(&self, dictionary: u64) -> u64 {
        let of = |open: &Open| open.pages.bytes() + open.waiting + open.all.min(dictionary);
        self.0.iter().map(of).sum()
    }

    /// Writes the group into a file.
    ///
    /// # Errors
    /// The columns have different numbers of rows, or the file cannot be written.
    pub(crate) fn finish<W: Write + Send>(
        self,
        into: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = into.next_row_group()?;
        for Open { encoder, pages, .. } in self.0 {
            let closed = encoder.close()?;
            group.append_column(&pages, closed)?;
        }
        group.close().map(drop)
    }
}

/// The encoded pages of a column.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<(Vec<Bytes>, u64)>>);

impl Pages {
    fn held(&self) -> MutexGuard<'_, (Vec<Bytes>, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> u64 {
        self.held().1
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let mut one = TrackedWrite::new(Vec::new());
        let mut written = SerializedPageWriter::new(&mut one).write_page(page)?;
        let one = one.into_inner()?;
        let mut held = self.held();
        written.offset += held.1;
        held.1 += one.len() as u64;
        held.0.push(one.into());
        Ok(written)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.bytes()
    }
}

/// The library copies a finished column from here into the file.
impl ChunkReader for Pages {
    type T = Rest;

    fn get_read(&self, start: u64) -> Result<Rest, ParquetError> {
        let mut rest = Rest(self.held().0.iter().cloned().collect());
        rest.skip(start);
        Ok(rest)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Pages not read yet.
struct Rest(VecDeque<Bytes>);

impl Rest {
    /// Skips bytes, up to the end.
    fn skip(&mut self, mut bytes: u64) {
        while let Some(page) = self.0.front_mut() {
            if let Some(length) = usize::try_from(bytes).ok().filter(|n| *n < page.len()) {
                page.advance(length);
                return;
            }
            bytes -= page.len() as u64;
            self.0.pop_front();
        }
    }
}

impl Read for Rest {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(page) = self.0.front() else {
            return Ok(0);
        };
        let count = into.len().min(page.len());
        into[..count].copy_from_slice(&page[..count]);
        self.skip(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_from_any_byte_on() {
        let pages = Pages::default();
        let (first, second) = (Bytes::from_static(b"abc"), Bytes::from_static(b"de"));
        *pages.held() = (vec![first, second], 5);
        for start in 0..=6u8 {
            let mut text = String::new();
            let mut rest = pages.get_read(u64::from(start)).unwrap();
            rest.read_to_string(&mut text).unwrap();
            assert_eq!(text, "abcde".get(usize::from(start)..).unwrap_or_default());
        }
        assert_eq!(pages.get_bytes(2, 2).unwrap(), "cd");
        assert!(pages.get_bytes(4, 2).is_err());
    }
}
