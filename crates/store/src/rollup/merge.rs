//! Files of many host-hours as one.

use super::ROLLUP_TABLE;
use super::encode::RollupFile;
use crate::error::StoreError;
use crate::guarded_table::{Batches, GuardedTable};
use crate::tables::{Batch, Cells, Text, columns};
use parquet::errors::ParquetError;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

/// The order of records in a compacted file: engines skip groups that a view does not ask for.
const RECORDS: [&str; 5] = ["hour", "culprit", "bucket", "stall", "part"];
/// The column that names the host-hour of a row.
const BATCH: &str = "batch";
/// Rows of a group.
const GROUP: usize = 128 << 10;

/// A compacted file.
#[derive(Debug)]
pub struct Merged {
    /// Its bytes.
    pub file: Vec<u8>,
    /// The host-hours whose rows it has.
    pub batches: BTreeSet<String>,
    pub rows: u64,
}

/// Merges files without the batches that are known. The sources may come from anywhere: they are checked as any foreign
/// file. Rows of one record, then of one batch, follow one another.
///
/// # Errors
/// A source is no file of rollups; the error names it.
pub fn merge(
    sources: Vec<(File, &Path)>,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<Merged, StoreError> {
    let mut by_record: [Gathered; RECORDS.len()] = std::array::from_fn(|_| Gathered::new());
    let mut batches = BTreeSet::new();
    for (file, path) in sources {
        // Rows of a batch that two sources have count once.
        let before = batches.clone();
        let table = GuardedTable::open(file, path, ROLLUP_TABLE)?;
        let mut rows = Batches::new(&table, table.all_rows());
        let damaged = |why: String| StoreError::damaged(path, why);
        while let Some(batch) = rows.read(&table).map_err(damaged)? {
            take(&batch, &mut by_record, &mut batches, |name| {
                is_known(name) || before.contains(name)
            })
            .map_err(damaged)?;
        }
    }
    let failed = |error: ParquetError| StoreError::damaged(Path::new(ROLLUP_TABLE), error);
    let mut file = RollupFile::new().map_err(failed)?;
    let mut rows = 0;
    for gathered in by_record {
        rows += gathered.rows as u64;
        for group in gathered.groups() {
            file.group(&group).map_err(failed)?;
        }
    }
    let file = file.finish().map_err(failed)?;
    Ok(Merged {
        file,
        batches,
        rows,
    })
}

/// The host-hours whose rows a file has.
///
/// # Errors
/// It is no file of rollups.
pub fn batches(file: File, path: &Path) -> Result<BTreeSet<String>, StoreError> {
    let damaged = |why: String| StoreError::damaged(path, why);
    let table = GuardedTable::open(file, path, ROLLUP_TABLE)?;
    let mut rows = Batches::of_column(&table, BATCH);
    let mut found = BTreeSet::new();
    while let Some(batch) = rows.read(&table).map_err(damaged)? {
        for name in batch.column::<Text>(BATCH).map_err(damaged)? {
            if !found.contains(name.as_str()) {
                found.insert(name.as_str().to_owned());
            }
        }
    }
    Ok(found)
}

/// Rows of one record.
struct Gathered {
    columns: Vec<Cells>,
    rows: usize,
}

impl Gathered {
    fn new() -> Gathered {
        let empty = |column: &(&str, crate::Column, &str)| column.1.empty();
        Gathered {
            columns: columns(ROLLUP_TABLE).iter().map(empty).collect(),
            rows: 0,
        }
    }

    fn groups(mut self) -> Vec<Vec<Cells>> {
        let mut groups = Vec::new();
        while self.rows > 0 {
            let count = self.rows.min(GROUP);
            let first = |cells: &mut Cells| cells.split_front(count);
            groups.push(self.columns.iter_mut().map(first).collect());
            self.rows -= count;
        }
        groups
    }
}

/// Moves the rows of a batch to those of their records.
fn take(
    batch: &Batch,
    by_record: &mut [Gathered; RECORDS.len()],
    batches: &mut BTreeSet<String>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let record = batch.column::<Text>("record")?;
    let name = batch.column::<Text>(BATCH)?;
    for (number, wanted) in RECORDS.iter().enumerate() {
        let rows: Vec<usize> = (0..batch.rows)
            .filter(|row| record[*row].as_str() == *wanted && !is_known(name[*row].as_str()))
            .collect();
        for row in &rows {
            if !batches.contains(name[*row].as_str()) {
                batches.insert(name[*row].as_str().to_owned());
            }
        }
        let to = &mut by_record[number];
        for (at, (column, kind, _)) in columns(ROLLUP_TABLE).iter().enumerate() {
            let found = batch.columns.iter().find(|(known, _)| known == column);
            let from = match found {
                Some((_, Some(cells))) => Some(cells),
                Some((_, None)) => return Err(format!("column '{column}' has another type")),
                None if kind.is_nullable() => None,
                None => return Err(format!("it has no column '{column}'")),
            };
            to.columns[at]
                .extend_from(from, &rows, kind.is_nullable())
                .ok_or_else(|| format!("column '{column}' is null in some row"))?;
        }
        to.rows += rows.len();
    }
    Ok(())
}
