//! Checks an untrusted table before the Parquet library reads it. The library trusts a file's own sizes: it allocates a
//! page of any claimed size before it reads a byte of it. So this module checks the footer and each page header first,
//! and refuses whatever no table of this program has.

use crate::compact::{Walked, walk};
use crate::error::StoreError;
use crate::tables::{Batch, Column, columns};
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows decoded at a time.
const BATCH: usize = 1024;
/// The largest footer, bytes. The footer of a day-long run has less than 1 MiB.
const FOOTER: u64 = 8 << 20;
/// The largest number of items in a footer: columns of row groups and their statistics. A day-long run has about
/// 10,000.
const DESCRIBED: u64 = 40_000;
/// A file may have this many rows, plus `ROWS_OF_BYTE` for each of its bytes: where all stalls are alike, sixteen parts
/// take one byte.
const ROWS: u64 = 1 << 16;
const ROWS_OF_BYTE: u64 = 32;
/// The largest row group, rows. The writer ends a group after 262,144 rows.
const ROWS_OF_GROUP: u64 = 2 << 20;
/// The largest page header, bytes. It may hold the page's largest and smallest value.
const PAGE_HEADER: usize = 8 << 10;
/// The largest page, bytes. The writer ends a page after 16 KiB and a few hundred values.
const PAGE: u64 = 256 << 10;
const DICTIONARY: u64 = 64 << 10;
/// The largest number of values in a page.
const VALUES: u64 = 1 << 20;
/// The largest number of bytes for each value of a page: the longest texts are paths of at most 512 bytes.
const VALUE: u64 = 640;

/// Page types of Parquet's `PageType`.
const INDEX_PAGE: i64 = 1;
const DICTIONARY_PAGE: i64 = 2;
/// The accepted encodings: plain, dictionary (two variants), run length, and delta of numbers. Delta encodings of text
/// are refused: such texts could be of any length.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];

/// A table's file and the columns to read.
pub(crate) struct GuardedTable {
    pub(crate) file: GuardedFile,
    metadata: ParquetMetaData,
    columns: Vec<Known>,
}

/// A column that this version knows and the file has.
#[derive(Clone, Copy)]
struct Known {
    name: &'static str,
    /// Its place in the file.
    at: usize,
    /// Its type; `None` if the file's is another.
    column: Option<Column>,
}

impl GuardedTable {
    /// Checks the footer of a table.
    ///
    /// # Errors
    /// The file is not a table, or claims more than any table of this program has.
    pub(crate) fn open(file: File, path: &Path, name: &str) -> Result<GuardedTable, StoreError> {
        let read = |e: io::Error| StoreError::read(path, e);
        let length = file.metadata().map_err(read)?.len();
        check_footer(&file, length, path)?;
        let parsed = || ParquetMetaDataReader::new().parse_and_finish(&file);
        let metadata = guarded(|| parsed().map_err(text));
        let metadata = metadata.map_err(|why| StoreError::damaged(path, why))?;
        check_rows(&metadata, length, path)?;
        let columns = known(&metadata, name);
        let exceeded = Exceeded(Arc::default(), path.to_path_buf());
        Ok(GuardedTable {
            file: GuardedFile {
                file: Arc::new(file),
                length,
                exceeded,
            },
            metadata,
            columns,
        })
    }

    /// All rows.
    pub(crate) fn all_rows(&self) -> Rows {
        let groups = self.metadata.row_groups();
        Rows {
            groups: (0..groups.len()).collect(),
            first: 0,
            count: usize::MAX,
        }
    }

    /// The rows whose `column` has the value `wanted`. Skips row groups whose statistics in the footer exclude the
    /// value.
    ///
    /// # Errors
    /// The column cannot be read.
    pub(crate) fn rows_with(&self, column: &str, wanted: u64) -> Result<Rows, String> {
        let only = self.columns.iter().find(|known| known.name == column);
        let only = only.ok_or_else(|| format!("it has no column '{column}'"))?;
        let may_have = |group: &RowGroupMetaData| match group.column(only.at).statistics() {
            Some(Statistics::Int64(of)) => {
                let bound =
                    |bound: Option<&i64>, none| bound.map_or(none, |bound| bound.cast_unsigned());
                bound(of.min_opt(), 0) <= wanted && wanted <= bound(of.max_opt(), u64::MAX)
            }
            _ => true,
        };
        let groups = self.metadata.row_groups().iter().enumerate();
        let groups: Vec<usize> = groups
            .filter(|(_, group)| may_have(group))
            .map(|(at, _)| at)
            .collect();
        let rows = Rows {
            groups: groups.clone(),
            ..self.all_rows()
        };
        let mut batches = Batches::of(vec![*only], rows);
        let (mut read, mut first, mut end) = (0, None, 0);
        while let Some(batch) = batches.read(self)? {
            let numbers = batch.column::<u64>(column)?;
            for (row, number) in numbers.into_iter().enumerate() {
                if number == wanted {
                    first.get_or_insert(read + row);
                    end = read + row + 1;
                }
            }
            read += batch.rows;
        }
        let first = first.unwrap_or(0);
        Ok(Rows {
            groups,
            first,
            count: end - first,
        })
    }
}

/// A range of a table's rows.
pub(crate) struct Rows {
    groups: Vec<usize>,
    /// The first row, counted within the groups.
    first: usize,
    count: usize,
}

/// Rows read a batch at a time.
pub(crate) struct Batches {
    columns: Vec<Known>,
    groups: std::vec::IntoIter<usize>,
    /// The columns of the current group, and its rows that were not read.
    readers: Vec<Option<ColumnReader>>,
    in_group: usize,
    /// Rows to skip before the first, and to read from there on.
    skip: usize,
    left: usize,
}

impl Batches {
    /// Reads the known columns of these rows.
    pub(crate) fn new(table: &GuardedTable, rows: Rows) -> Batches {
        Batches::of(table.columns.clone(), rows)
    }

    /// Reads one column of all rows; nothing if the table lacks it.
    pub(crate) fn of_column(table: &GuardedTable, name: &str) -> Batches {
        let columns = table.columns.iter().filter(|of| of.name == name);
        Batches::of(columns.copied().collect(), table.all_rows())
    }

    fn of(columns: Vec<Known>, rows: Rows) -> Batches {
        Batches {
            columns,
            groups: rows.groups.into_iter(),
            readers: Vec::new(),
            in_group: 0,
            skip: rows.first,
            left: rows.count,
        }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The library refuses the file. No more rows can be read then.
    pub(crate) fn read(&mut self, table: &GuardedTable) -> Result<Option<Batch>, String> {
        guarded(|| self.read_next(table).map_err(text))
    }

    fn read_next(&mut self, table: &GuardedTable) -> Result<Option<Batch>, ParquetError> {
        while self.in_group == 0 && self.left > 0 {
            let Some(group) = self.groups.next() else {
                return Ok(None);
            };
            self.begin(table, group)?;
        }
        let rows = self.in_group.min(self.left).min(BATCH);
        if rows == 0 {
            return Ok(None);
        }
        self.in_group -= rows;
        self.left -= rows;
        let columns = self.columns.iter().zip(&mut self.readers);
        let columns = columns.map(|(known, reader)| {
            let (Some(column), Some(reader)) = (known.column, reader) else {
                return Ok((known.name, None));
            };
            let cells = column.read(reader, rows)?;
            if cells.len() < rows {
                return Err(fewer(known));
            }
            Ok((known.name, Some(cells)))
        });
        let columns = columns.collect::<Result<_, ParquetError>>()?;
        Ok(Some(Batch { rows, columns }))
    }

    fn begin(&mut self, table: &GuardedTable, group: usize) -> Result<(), ParquetError> {
        let of = table.metadata.row_group(group);
        let rows = usize::try_from(of.num_rows()).unwrap_or_default();
        let skip = self.skip.min(rows);
        self.skip -= skip;
        self.in_group = rows - skip;
        self.readers.clear();
        if self.in_group == 0 {
            return Ok(());
        }
        let file = Arc::new(table.file.clone());
        for known in &self.columns {
            if known.column.is_none() {
                self.readers.push(None);
                continue;
            }
            let chunk = of.column(known.at);
            let pages = SerializedPageReader::new(Arc::clone(&file), chunk, rows, None)?;
            let mut reader = get_column_reader(chunk.column_descr_ptr(), Box::new(pages));
            let skipped = match &mut reader {
                ColumnReader::Int32ColumnReader(reader) => reader.skip_records(skip)?,
                ColumnReader::Int64ColumnReader(reader) => reader.skip_records(skip)?,
                ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(skip)?,
                _ => 0,
            };
            if skipped < skip {
                return Err(fewer(known));
            }
            self.readers.push(Some(reader));
        }
        Ok(())
    }
}

fn fewer(column: &Known) -> ParquetError {
    ParquetError::General(format!(
        "column '{}' has fewer rows than its group",
        column.name
    ))
}

/// Runs a piece of the Parquet library, which panics on some damaged files (a negative length in the footer, for one).
/// The reader must not be used after a panic.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(result) => result,
        Err(_) => Err("it makes no sense to the parquet reader".into()),
    }
}

fn text(error: ParquetError) -> String {
    error.to_string()
}

fn cap(path: &Path, what: &'static str, found: u64, most: u64) -> Result<(), StoreError> {
    if found <= most {
        return Ok(());
    }
    Err(StoreError::Cap {
        path: path.to_path_buf(),
        what,
        found,
        most,
    })
}

/// Checks the footer: the library reads it whole, at any claimed length and any nesting depth.
fn check_footer(file: &File, length: u64, path: &Path) -> Result<(), StoreError> {
    let read = |e: io::Error| StoreError::read(path, e);
    let mut tail = [0; 8];
    let end = length.checked_sub(tail.len() as u64);
    let end = end.ok_or_else(|| StoreError::damaged(path, "it is too short for a table"))?;
    file.read_exact_at(&mut tail, end).map_err(read)?;
    let claimed = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    // The last bytes of a truncated file are arbitrary.
    let impossible = || StoreError::damaged(path, "its footer claims an impossible length");
    let start = end.checked_sub(claimed).ok_or_else(impossible)?;
    cap(path, "bytes of footer", claimed, FOOTER)?;
    let mut footer = vec![0; usize::try_from(claimed).unwrap_or_default()];
    file.read_exact_at(&mut footer, start).map_err(read)?;
    let mut nested = 0u64;
    let mut see = |way: &[i16], number: i64| {
        // The fields of a column's description: the number of nested columns.
        nested += u64::from(way == [2, 5] && number > 0);
    };
    let Some(Walked { structs, .. }) = walk(&footer, &mut see) else {
        return Err(StoreError::damaged(path, "its footer is none"));
    };
    cap(
        path,
        "descriptions in its footer",
        structs as u64,
        DESCRIBED,
    )?;
    // The one level is the row itself.
    cap(path, "levels of columns", nested, 1)
}

fn check_rows(metadata: &ParquetMetaData, length: u64, path: &Path) -> Result<(), StoreError> {
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        let of_group = u64::try_from(group.num_rows())
            .map_err(|_| StoreError::damaged(path, "a group has less than no rows"))?;
        cap(path, "rows in a group", of_group, ROWS_OF_GROUP)?;
        rows = rows.saturating_add(of_group);
    }
    let most = length.saturating_mul(ROWS_OF_BYTE).saturating_add(ROWS);
    cap(path, "rows for its size", rows, most)
}

/// The columns of a table that this version knows.
fn known(metadata: &ParquetMetaData, table: &str) -> Vec<Known> {
    let found = metadata.file_metadata().schema_descr().columns();
    let column = |(name, column, _): &(&'static str, Column, &str)| {
        let at = found.iter().position(|of| of.path().parts() == [*name])?;
        let column = Some(*column).filter(|column| column.matches(&found[at]));
        Some(Known { name, at, column })
    };
    columns(table).iter().filter_map(column).collect()
}

/// The first exceeded bound. The library's errors carry only text, so the error is kept here.
#[derive(Clone)]
pub(crate) struct Exceeded(Arc<Mutex<Option<StoreError>>>, PathBuf);

impl Exceeded {
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn or<T>(&self, result: Result<T, StoreError>) -> io::Result<T> {
        result.map_err(|error| {
            let text = error.to_string();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            io::Error::other(text)
        })
    }
}

/// The pages of a table. Every read begins at a page header, which is checked then, or inside a page whose header was
/// checked.
#[derive(Clone)]
pub(crate) struct GuardedFile {
    file: Arc<File>,
    length: u64,
    exceeded: Exceeded,
}

impl GuardedFile {
    pub(crate) fn exceeded(&self) -> Exceeded {
        self.exceeded.clone()
    }
}

impl Length for GuardedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for GuardedFile {
    type T = PageStart;

    fn get_read(&self, start: u64) -> Result<PageStart, ParquetError> {
        Ok(PageStart {
            of: self.clone(),
            start,
            header: None,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.exceeded.or(cap(
            &self.exceeded.1,
            "bytes in a page",
            length as u64,
            PAGE,
        ))?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// The start of a page. The header is read on the first read.
pub(crate) struct PageStart {
    of: GuardedFile,
    start: u64,
    /// The header, and the number of its bytes that were handed out.
    header: Option<(Vec<u8>, usize)>,
}

impl Read for PageStart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.header.is_none() {
            let mut bytes = vec![0; PAGE_HEADER];
            let mut filled = 0;
            while filled < bytes.len() {
                let start = self.start.saturating_add(filled as u64);
                match self.of.file.read_at(&mut bytes[filled..], start) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            bytes.truncate(filled);
            let exceeded = &self.of.exceeded;
            let length = exceeded.or(check_page(&bytes, &exceeded.1))?;
            bytes.truncate(length);
            self.header = Some((bytes, 0));
        }
        let Some((bytes, read)) = &mut self.header else {
            return Ok(0);
        };
        let count = into.len().min(bytes.len() - *read);
        into[..count].copy_from_slice(&bytes[*read..*read + count]);
        *read += count;
        Ok(count)
    }
}

/// Checks a page header and returns its length in bytes.
fn check_page(bytes: &[u8], path: &Path) -> Result<usize, StoreError> {
    let (mut sort, mut inflated, mut stored) = (0, 0, 0);
    let (mut values, mut encoding) = (0, 0);
    let mut see = |way: &[i16], number: i64| match way {
        [1] => sort = number,
        [2] => inflated = number,
        [3] => stored = number,
        [5, 1] | [7, 1] | [8, 1] => values = number,
        [5, 2] | [7, 2] | [8, 4] => encoding = number,
        _ => {}
    };
    let Some(Walked { length, .. }) = walk(bytes, &mut see) else {
        return Err(StoreError::damaged(path, "the header of a page is none"));
    };
    let damaged = |_| StoreError::damaged(path, "a page has less than nothing");
    let [inflated, stored, values] = [
        u64::try_from(inflated).map_err(damaged)?,
        u64::try_from(stored).map_err(damaged)?,
        u64::try_from(values).map_err(damaged)?,
    ];
    cap(path, "bytes in a page", stored.max(inflated), PAGE)?;
    if sort == INDEX_PAGE {
        return Ok(length);
    }
    if sort == DICTIONARY_PAGE {
        cap(path, "bytes in a dictionary", inflated, DICTIONARY)?;
        cap(path, "values in a dictionary", values, inflated)?;
    } else {
        cap(path, "values in a page", values, VALUES)?;
        // Repetition and definition levels take up to one more value.
        let most = values.saturating_add(1).saturating_mul(VALUE);
        cap(path, "bytes in a page of few values", inflated, most)?;
    }
    if !ENCODINGS.contains(&encoding) {
        return Err(StoreError::damaged(
            path,
            "a page is encoded as none of ours is",
        ));
    }
    Ok(length)
}
