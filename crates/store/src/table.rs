//! Writes one table of a run.

use crate::error::StoreError;
use crate::reserved::ReservedFile;
use crate::row_group::RowGroup;
use crate::sealed::SealedTable;
use crate::tables::{Cells, TableRows, columns, schema};
use jitterscope_platform::HeldDir;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescPtr};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows gathered in memory for one call of the encoder.
const BATCH: usize = 1024;
/// The size of a column's page, bytes. Each column has one page in memory.
const PAGE: usize = 16 << 10;
/// The largest number of rows in a page. A repetitive column takes next to no bytes, but the row numbers of its page,
/// eight bytes each, stay in memory until the page is full.
const ROWS_OF_PAGE: usize = 8 << 10;
/// Room reserved for rows that are accepted and not yet encoded, bytes; twice the largest batch so far if that is more.
const ROWS_AHEAD: u64 = 1 << 20;
/// The smallest row group, rows.
const SMALLEST_GROUP: usize = 16 << 10;
const LARGEST_GROUP: usize = 256 << 10;
/// The description of a row group in the footer, bytes.
const OF_ROW_GROUP: u64 = 4 << 10;

/// One Parquet file while it is written.
///
/// Rows stay in memory until their group is written, and the file is unreadable without its footer. So the writer
/// always reserves room for both and for the next batch, and refuses rows when it cannot.
pub(crate) struct TableWriter<R> {
    path: PathBuf,
    schema: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    rows: R,
    writer: SerializedFileWriter<ReservedFile>,
    group: RowGroup,
    in_group: usize,
    written: usize,
    largest_batch: u64,
    /// Whether the last reservation failed because the disk is full.
    pressed: bool,
}

impl<R: TableRows> TableWriter<R> {
    pub(crate) fn create(folder: &HeldDir) -> Result<TableWriter<R>, StoreError> {
        let path = folder.path().join(R::FILE);
        let mut file = ReservedFile::create(folder, R::FILE)?;
        file.reserve(ROWS_AHEAD)?;
        let error = |e| parquet_error(&path, e);
        let schema = schema(R::FILE).map_err(error)?;
        let properties = Arc::new(properties(R::FILE));
        let (root, of_file) = (schema.root_schema_ptr(), Arc::clone(&properties));
        let writer = SerializedFileWriter::new(file, root, of_file).map_err(error)?;
        let mut table = TableWriter {
            group: RowGroup::new(&schema, &properties),
            path,
            schema,
            properties,
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

    /// Accepts a row, or refuses it when the disk is full.
    pub(crate) fn push(&mut self, push: impl FnOnce(&mut R)) -> Result<(), StoreError> {
        self.ready()?;
        push(&mut self.rows);
        self.settle()
    }

    /// Refuses when the disk is full.
    pub(crate) fn ready(&mut self) -> Result<(), StoreError> {
        if self.pressed {
            // Space may have become free.
            self.make_sure()?;
            self.pressed = false;
        }
        Ok(())
    }

    /// The rows not encoded yet, for rows that go to several tables at once. Call it after [`TableWriter::ready`] of
    /// all of them and before [`TableWriter::settle`].
    pub(crate) fn rows(&mut self) -> &mut R {
        &mut self.rows
    }

    /// Encodes the gathered rows once they fill a batch.
    pub(crate) fn settle(&mut self) -> Result<(), StoreError> {
        if self.rows.len() >= BATCH {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        let rows = self.rows.len();
        let columns = self.rows.columns();
        let bytes: usize = columns.iter().map(Cells::bytes).sum();
        self.largest_batch = self.largest_batch.max(bytes as u64);
        self.group
            .write(&columns)
            .map_err(|e| parquet_error(&self.path, e))?;
        self.in_group += rows;
        self.written += rows;
        if self.in_group >= row_group(self.written) {
            self.end_group()?;
        }
        match self.make_sure() {
            // The room for these rows is already reserved.
            Err(error) if error.is_full() => self.pressed = true,
            other => other?,
        }
        Ok(())
    }

    /// Writes the current row group, if it has rows.
    fn end_group(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.in_group) == 0 {
            return Ok(());
        }
        let next = RowGroup::new(&self.schema, &self.properties);
        let group = std::mem::replace(&mut self.group, next);
        group
            .finish(&mut self.writer)
            .map_err(|e| parquet_error(&self.path, e))
    }

    /// Bytes of the current row group, in memory.
    fn encoded(&self) -> u64 {
        self.group.bytes(PAGE as u64)
    }

    /// Writes all rows so far. Returns how long the file is, and the footer that makes a table of so much of it.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(crate) fn seal(&mut self) -> Result<SealedTable, StoreError> {
        self.flush()?;
        self.end_group()?;
        let error = |e: ParquetError| parquet_error(&self.path, e);
        self.writer
            .flush()
            .map_err(|e| StoreError::write(&self.path, e))?;
        let bytes = self.writer.inner().on_disk();
        let bytes = bytes.ok_or_else(|| StoreError::Full {
            path: self.path.clone(),
        })?;
        let rows = i64::try_from(self.written).unwrap_or(i64::MAX);
        let of_file = FileMetaData::new(1, rows, None, None, Arc::clone(&self.schema), None);
        let groups = self.writer.flushed_row_groups().to_vec();
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(of_file, groups))
            .finish()
            .map_err(error)?;
        Ok(SealedTable {
            file: R::FILE.into(),
            bytes,
            footer,
        })
    }

    /// Reserves room for everything in memory, the next batch and the footer.
    fn make_sure(&mut self) -> Result<(), StoreError> {
        let groups = self.writer.flushed_row_groups().len();
        let needed = room_for(self.encoded(), self.largest_batch, groups as u64);
        self.writer.inner_mut().reserve(needed)
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.end_group()?;
        // `into_inner` writes the footer.
        self.writer
            .into_inner()
            .map_err(|e| parquet_error(&self.path, e))?
            .finish()
    }
}

/// The encodings of a table's columns.
///
/// All columns of a row group are open at the same time, so each column's compressor keeps its own state, newly made
/// for each group. Encodings that fit the numbers need next to no state: differences for times and ids, a dictionary
/// for values that repeat.
pub(crate) fn properties(file: &str) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("jitterscope ", env!("CARGO_PKG_VERSION")).into())
        // The offset index describes each page in the footer: it would grow with the run, in memory too.
        .set_offset_index_disabled(true)
        .set_dictionary_page_size_limit(PAGE)
        .set_data_page_size_limit(PAGE)
        .set_data_page_row_count_limit(ROWS_OF_PAGE)
        .set_write_batch_size(256);
    for (name, kind, _) in columns(file) {
        let column = ColumnPath::from(*name);
        if !kind.is_text() {
            // The encoding for values that outgrow the dictionary.
            properties =
                properties.set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        // Ids, times and lengths ascend or hardly repeat, and readers look for ranges of them.
        properties = if kind.is_ranged() {
            properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_compression(column.clone(), Compression::UNCOMPRESSED)
                .set_column_statistics_enabled(column, EnabledStatistics::Chunk)
        } else {
            properties
                .set_column_dictionary_enabled(column.clone(), true)
                .set_column_compression(column.clone(), Compression::SNAPPY)
                .set_column_statistics_enabled(column, EnabledStatistics::None)
        };
    }
    properties.build()
}

/// Bytes that the file of a table may still need: for the encoded rows in memory, the next batch, and the footer, which
/// describes the `groups` written, the current one and the next.
fn room_for(encoded: u64, largest_batch: u64, groups: u64) -> u64 {
    // Incompressible bytes grow a little.
    encoded + encoded / 4 + ROWS_AHEAD.max(2 * largest_batch) + (groups + 2) * OF_ROW_GROUP
}

/// The size of the current row group, in rows, after `written` rows: as many as precede it. A group's pages stay in
/// memory until it is written (about 5 MiB of stalls), and the descriptions of all groups until the file is closed:
/// about 400 for the hundred million rows of a day.
fn row_group(written: usize) -> usize {
    (written / 2).clamp(SMALLEST_GROUP, LARGEST_GROUP)
}

/// Extracts the system's error from the library's, if there is one.
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
    use crate::tables::StallRows;
    use jitterscope_model::{Comm, CpuId, Stall, StallId, ThreadRef, TickRate, Ticks};

    #[test]
    fn groups_grow_with_the_file_so_that_their_descriptions_stay_few() {
        let (mut written, mut in_group, mut groups) = (0, 0, 0);
        while written < 100_000_000 {
            (written, in_group) = (written + BATCH, in_group + BATCH);
            if in_group >= row_group(written) {
                assert!(
                    (SMALLEST_GROUP..=LARGEST_GROUP).contains(&in_group),
                    "{in_group} rows of {written}"
                );
                (in_group, groups) = (0, groups + 1);
            }
        }
        // About 8 KiB each.
        assert!((380..400).contains(&groups), "{groups}");
    }

    fn table(dir: &Path) -> TableWriter<StallRows> {
        TableWriter::create(&HeldDir::open(dir).unwrap()).unwrap()
    }

    fn push(table: &mut TableWriter<StallRows>, n: u64) {
        let victim = ThreadRef {
            tid: 1,
            comm: Comm::new("js-spin/1"),
        };
        let (start, end) = (Ticks(n << 20), Ticks((n << 20) + 1));
        let stall = Stall {
            id: StallId(n),
            cpu: CpuId(1),
            victim,
            start,
            end,
        };
        table
            .push(|rows| rows.push(&stall, TickRate::NANOSECONDS, &|_| 0))
            .unwrap();
    }

    #[test]
    fn a_group_is_as_large_as_all_that_came_before_it_within_bounds() {
        for (written, rows) in [
            (0, 16 << 10),
            (40 << 10, 20 << 10),
            (256 << 10, 128 << 10),
            (100 << 20, 256 << 10),
        ] {
            assert_eq!(row_group(written), rows, "{written} rows");
        }
    }

    #[test]
    fn rows_are_encoded_a_batch_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = table(dir.path());
        (0..BATCH as u64 - 1).for_each(|n| push(&mut table, n));
        assert_eq!((table.rows.len(), table.written), (BATCH - 1, 0));
        push(&mut table, BATCH as u64);
        assert_eq!((table.rows.len(), table.written), (0, BATCH));
    }

    #[test]
    fn reserved_room_covers_encoding_batch_and_footer() {
        let least = (1 << 20) + 2 * 4096;
        for (encoded, largest_batch, groups, bytes) in [
            (0, 0, 0, least),
            (1_000, 0, 0, least + 1_250),
            (0, 512 << 10, 0, least),
            (0, 3 << 20, 0, least + (5 << 20)),
            (0, 0, 3, least + 3 * 4096),
        ] {
            assert_eq!(room_for(encoded, largest_batch, groups), bytes);
        }
    }

    #[test]
    fn there_is_room_for_what_is_in_memory_and_the_footer_at_any_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = table(dir.path());
        for n in 0..20_000 {
            push(&mut table, n);
            let groups = table.writer.flushed_row_groups().len();
            let needed = room_for(table.encoded(), 0, groups as u64);
            let file = table.writer.inner();
            assert!(file.has_room(needed), "{n}: {needed} bytes");
            // The file must not reserve much more either: the disk serves other writers, too.
            assert!(!file.has_room(needed + ROWS_AHEAD), "{n}: {needed} bytes");
        }
        assert_eq!(table.writer.flushed_row_groups().len(), 1);
    }

    #[test]
    fn columns_have_ranges_and_small_compressors() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = table(dir.path());
        (0..BATCH as u64).for_each(|n| push(&mut table, n));
        table.end_group().unwrap();
        let groups = table.writer.flushed_row_groups();
        for column in groups[0].columns() {
            let name = column.column_path().string();
            let of_numbers = column.column_type() == parquet::basic::Type::INT64;
            let (compression, has_range) = (column.compression(), column.statistics().is_some());
            let wanted = if of_numbers {
                Compression::UNCOMPRESSED
            } else {
                Compression::SNAPPY
            };
            assert_eq!((compression, has_range), (wanted, of_numbers), "{name}");
            let has = |encoding| column.encodings().any(|of| of == encoding);
            assert_eq!(has(Encoding::RLE_DICTIONARY), !of_numbers, "{name}");
            assert_eq!(has(Encoding::DELTA_BINARY_PACKED), of_numbers, "{name}");
        }
    }
}
