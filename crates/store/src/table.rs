//! A table of a run being written.

use crate::error::StoreError;
use crate::reserved::ReservedFile;
use crate::tables::{TableRows, schema};
use arrow_schema::DataType;
use jitterscope_platform::HeldDir;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::io;
use std::path::{Path, PathBuf};

/// Rows gathered before they are handed to the encoder; they stay in memory until then.
const BATCH: usize = 1024;
/// Pages of a column, bytes: each column has one in memory.
const PAGE: usize = 16 << 10;
/// Room kept for the rows of a table that are taken in next and not encoded yet, bytes; twice the largest
/// batch so far where that is more.
const ROWS_AHEAD: u64 = 1 << 20;
/// Description of a row group in the footer, bytes.
const OF_ROW_GROUP: u64 = 4 << 10;

/// One parquet file being written.
///
/// Rows are in memory until their group is written, and the file cannot be read without its footer. So
/// there is always room on disk for both, and for the batch to come; where there is none, no more rows are
/// taken in.
pub(crate) struct TableWriter<R> {
    path: PathBuf,
    rows: R,
    writer: ArrowWriter<ReservedFile>,
    in_group: usize,
    written: usize,
    largest_batch: u64,
    /// Whether the disk had no room for what comes next.
    pressed: bool,
}

impl<R: TableRows> TableWriter<R> {
    pub(crate) fn create(folder: &HeldDir) -> Result<TableWriter<R>, StoreError> {
        let path = folder.path().join(R::FILE);
        let mut file = ReservedFile::create(folder, R::FILE)?;
        file.reserve(ROWS_AHEAD)?;
        let schema = schema(R::FILE);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("jitterscope ", env!("CARGO_PKG_VERSION")).into())
            // Of each page in the footer: that would grow with the run, in memory too.
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_page_size_limit(PAGE)
            .set_data_page_size_limit(PAGE)
            .set_write_batch_size(256)
            .set_dictionary_enabled(false);
        for field in schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8) {
            // Names repeat, numbers hardly do.
            properties =
                properties.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), true);
        }
        let writer = ArrowWriter::try_new(file, schema, Some(properties.build()))
            .map_err(|e| parquet_error(&path, e))?;
        let mut table = TableWriter {
            path,
            rows: R::default(),
            writer,
            in_group: 0,
            written: 0,
            largest_batch: 0,
            pressed: false,
        };
        table.make_sure()?;
        Ok(table)
    }

    /// Takes a row in, or refuses it when the disk is full.
    pub(crate) fn push(&mut self, push: impl FnOnce(&mut R)) -> Result<(), StoreError> {
        if self.pressed {
            // Somebody may have made room.
            self.make_sure()?;
            self.pressed = false;
        }
        push(&mut self.rows);
        if self.rows.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        let rows = self.rows.len();
        let batch = self.rows.batch().map_err(|e| StoreError::damaged(&self.path, e))?;
        self.largest_batch = self.largest_batch.max(batch.get_array_memory_size() as u64);
        self.writer.write(&batch).map_err(|e| parquet_error(&self.path, e))?;
        self.in_group += rows;
        self.written += rows;
        if self.in_group >= row_group(self.written) {
            self.in_group = 0;
            self.writer.flush().map_err(|e| parquet_error(&self.path, e))?;
        }
        match self.make_sure() {
            // These rows still have their room.
            Err(error) if error.is_full() => self.pressed = true,
            other => other?,
        }
        Ok(())
    }

    /// Sees to room for all that is in memory, the batch to come, and the footer.
    fn make_sure(&mut self) -> Result<(), StoreError> {
        let encoded = self.writer.in_progress_size() as u64;
        let groups = self.writer.flushed_row_groups().len() as u64 + 2;
        // Incompressible bytes grow a little.
        let needed = encoded + encoded / 4 + ROWS_AHEAD.max(2 * self.largest_batch) + groups * OF_ROW_GROUP;
        self.writer.inner_mut().reserve(needed)
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        // `into_inner` writes the footer.
        self.writer.into_inner().map_err(|e| parquet_error(&self.path, e))?.finish()
    }
}

/// Rows of the next row group after so many rows. A group is in memory, compressed, until it is written,
/// and its description (some 3 KiB) until the file is closed: groups that grow with the file keep both
/// small, under 10 MiB together for the hundred million rows of a day.
fn row_group(written: usize) -> usize {
    match written {
        0..=262_143 => 8_192,
        262_144..=4_194_303 => 32_768,
        _ => 131_072,
    }
}

/// The system's error inside the library's, where there is one.
fn parquet_error(path: &Path, error: ParquetError) -> StoreError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => StoreError::write(path, *io),
            Err(other) => StoreError::damaged(path, other),
        },
        other => StoreError::damaged(path, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_with_the_file_so_that_their_descriptions_stay_few() {
        let (mut written, mut groups) = (0, 0);
        while written < 100_000_000 {
            let group = row_group(written);
            assert!((8_192..=131_072).contains(&group), "{group} rows behind {written}");
            written += group;
            groups += 1;
        }
        // Some 3 KiB each.
        assert!((800..1_000).contains(&groups), "{groups}");
    }
}
