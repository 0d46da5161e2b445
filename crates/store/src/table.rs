//! A table of a run being written.

use crate::error::StoreError;
use crate::page_spill::PageSpill;
use crate::reserved::ReservedFile;
use crate::tables::{TableRows, schema};
use arrow_schema::{DataType, Schema};
use jitterscope_platform::HeldDir;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows gathered before they are handed to the encoder; they stay in memory until then.
const BATCH: usize = 1024;
/// Pages of a column, bytes: each column has one in memory.
const PAGE: usize = 16 << 10;
/// Rows of a page: what has few values repeats them in next to no bytes, and the numbers of all rows of a page, eight bytes
/// each, are in memory until it is full.
const ROWS_OF_PAGE: usize = 8 << 10;
/// Room kept for the rows of a table that are taken in next and not encoded yet, bytes; twice the largest
/// batch so far where that is more.
const ROWS_AHEAD: u64 = 1 << 20;
/// Rows of a row group.
const SMALLEST_GROUP: usize = 16 << 10;
const LARGEST_GROUP: usize = 4 << 20;
/// The same where the end of a group needs room that nobody promised: on a disk that cannot reserve any, or in memory
/// where pages cannot wait on disk.
const LARGEST_UNPROMISED: usize = 128 << 10;
/// Description of a row group in the footer, bytes.
const OF_ROW_GROUP: u64 = 4 << 10;

/// One parquet file being written.
///
/// Rows are in memory until their group is written, and the file cannot be read without its footer. So
/// there is always room on disk for both, and for the batch to come; where there is none, no more rows are
/// taken in.
pub(crate) struct TableWriter<R> {
    path: PathBuf,
    schema: Arc<Schema>,
    rows: R,
    writer: ArrowWriter<ReservedFile>,
    /// Where the pages of a group wait.
    pages: PageSpill,
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
        let pages = PageSpill::beside(folder, R::FILE);
        let options = ArrowWriterOptions::new()
            .with_properties(properties(&schema))
            // The schema of the arrays that rows are handed over in: readers need Parquet's own alone.
            .with_skip_arrow_metadata(true)
            .with_page_store_factory(Arc::new(pages.clone()));
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)
            .map_err(|e| parquet_error(&path, e))?;
        let mut table = TableWriter {
            path,
            schema,
            rows: R::default(),
            writer,
            pages,
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
        let batch = self
            .rows
            .batch(&self.schema)
            .map_err(|e| StoreError::damaged(&self.path, e))?;
        self.largest_batch = self.largest_batch.max(batch.get_array_memory_size() as u64);
        self.writer
            .write(&batch)
            .map_err(|e| parquet_error(&self.path, e))?;
        self.in_group += rows;
        self.written += rows;
        let promised = self.writer.inner().can_reserve() && self.pages.is_on_disk();
        if self.in_group >= row_group(self.written, promised) {
            self.in_group = 0;
            self.writer
                .flush()
                .map_err(|e| parquet_error(&self.path, e))?;
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
        let (encoded, groups) = (
            self.writer.in_progress_size(),
            self.writer.flushed_row_groups().len(),
        );
        let needed = room_for(encoded as u64, self.largest_batch, groups as u64);
        self.writer.inner_mut().reserve(needed)
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        // `into_inner` writes the footer.
        self.writer
            .into_inner()
            .map_err(|e| parquet_error(&self.path, e))?
            .finish()
    }
}

/// How the columns of a table are encoded.
///
/// Every column of a row group is open at the same time, so what a column's compressor keeps is there as often
/// as there are columns, and made anew for each group. Encodings that know what the numbers are have next to no
/// state: times and ids as differences, what repeats as numbers of a dictionary. They cost room on disk: stalls that
/// repeat exactly, which zstd does best, took 20 bytes each with it and take 35.
fn properties(schema: &Schema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("jitterscope ", env!("CARGO_PKG_VERSION")).into())
        // Of each page in the footer: that would grow with the run, in memory too.
        .set_offset_index_disabled(true)
        .set_dictionary_page_size_limit(PAGE)
        .set_data_page_size_limit(PAGE)
        .set_data_page_row_count_limit(ROWS_OF_PAGE)
        .set_write_batch_size(256);
    for field in schema.fields() {
        let column = ColumnPath::from(field.name().as_str());
        let is_text = matches!(field.data_type(), DataType::Dictionary(..));
        if !is_text {
            // Where there are too many for a dictionary, too.
            properties =
                properties.set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        // Ids, times and lengths: they ascend or hardly repeat, and readers look for ranges of them.
        properties = if *field.data_type() == DataType::UInt64 {
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

/// Bytes that the file of a table may still need: for what is encoded and in memory, for the batch to come, of which the
/// largest so far is given, and for the footer, which describes the groups that are written, the one under way and the
/// next.
fn room_for(encoded: u64, largest_batch: u64, groups: u64) -> u64 {
    // Incompressible bytes grow a little.
    encoded + encoded / 4 + ROWS_AHEAD.max(2 * largest_batch) + (groups + 2) * OF_ROW_GROUP
}

/// Rows of the row group under way after so many rows, its own among them: as many as there were before it. The
/// pages of a large group wait on disk ([`PageSpill`]), and few groups are described in memory: some 30 for the hundred
/// million rows of a day.
fn row_group(written: usize, promised: bool) -> usize {
    (written / 2).clamp(
        SMALLEST_GROUP,
        if promised {
            LARGEST_GROUP
        } else {
            LARGEST_UNPROMISED
        },
    )
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
    use crate::tables::GapRows;
    use jitterscope_model::{Comm, CpuId, Stall, StallId, ThreadRef, TickRate, Ticks};

    #[test]
    fn groups_grow_with_the_file_so_that_their_descriptions_stay_few() {
        let (mut written, mut in_group, mut groups) = (0, 0, 0);
        while written < 100_000_000 {
            (written, in_group) = (written + BATCH, in_group + BATCH);
            if in_group >= row_group(written, true) {
                assert!(
                    (SMALLEST_GROUP..=LARGEST_GROUP).contains(&in_group),
                    "{in_group} rows of {written}"
                );
                (in_group, groups) = (0, groups + 1);
            }
        }
        // Some 60 KiB each.
        assert!((20..40).contains(&groups), "{groups}");
    }

    fn table(dir: &Path) -> TableWriter<GapRows> {
        TableWriter::create(&HeldDir::open(dir).unwrap()).unwrap()
    }

    fn push(table: &mut TableWriter<GapRows>, n: u64) {
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
        for (written, promised, rows) in [
            (0, true, 16 << 10),
            (40 << 10, true, 20 << 10),
            (1 << 20, true, 512 << 10),
            (100 << 20, true, 4 << 20),
            (100 << 20, false, 128 << 10),
        ] {
            assert_eq!(
                row_group(written, promised),
                rows,
                "{written} rows, promised: {promised}"
            );
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
    fn room_is_for_what_is_encoded_and_a_quarter_more_for_a_batch_and_for_the_footer() {
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
            let (encoded, groups) = (
                table.writer.in_progress_size(),
                table.writer.flushed_row_groups().len(),
            );
            let needed = room_for(encoded as u64, 0, groups as u64);
            let file = table.writer.inner();
            assert!(file.has_room(needed), "{n}: {needed} bytes");
            // Not much more either: others write to that disk, too.
            assert!(!file.has_room(needed + ROWS_AHEAD), "{n}: {needed} bytes");
        }
        assert_eq!(table.writer.flushed_row_groups().len(), 1);
    }

    #[test]
    fn columns_are_encoded_so_that_ranges_are_found_and_compressors_keep_little() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = table(dir.path());
        (0..BATCH as u64).for_each(|n| push(&mut table, n));
        table.writer.flush().unwrap();
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

    #[test]
    fn a_group_is_small_where_its_end_could_find_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = table(dir.path());
        table.writer.inner_mut().cannot_reserve();
        (0..600_000).for_each(|n| push(&mut table, n));
        let groups: Vec<i64> = table
            .writer
            .flushed_row_groups()
            .iter()
            .map(|group| group.num_rows())
            .collect();
        assert_eq!(
            groups.iter().max(),
            Some(&(LARGEST_UNPROMISED as i64)),
            "{groups:?}"
        );
    }
}
