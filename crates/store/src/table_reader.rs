//! Reads the rows of a table, a batch at a time.

use crate::error::StoreError;
use crate::guarded_table::{Batches, Exceeded, GuardedTable};
use crate::tables::Batch;
use jitterscope_model::StallId;
use jitterscope_platform::HeldDir;
use std::path::{Path, PathBuf};

/// The column that all rows of a stall share.
const STALL_ID: &str = "stall_id";

/// Rows of a parquet file, a batch at a time.
pub(crate) struct Table<T, F> {
    path: PathBuf,
    table: GuardedTable,
    batches: Batches,
    convert: F,
    rows: std::vec::IntoIter<T>,
    failed: bool,
}

impl<T, F: Fn(&Batch) -> Result<Vec<T>, String>> Table<T, F> {
    pub(crate) fn open(run: &HeldDir, file: &str, convert: F) -> Result<Table<T, F>, StoreError> {
        Table::open_only(run, file, convert, None)
    }

    /// Opens a table; with `only`, for the rows of one stall.
    pub(crate) fn open_only(
        run: &HeldDir,
        file: &str,
        convert: F,
        only: Option<StallId>,
    ) -> Result<Table<T, F>, StoreError> {
        let path = run.path().join(file);
        let opened = run.open_file(file).map_err(StoreError::reading)?;
        let table = GuardedTable::open(opened, &path, file)?;
        let rows = match only {
            None => Ok(table.all_rows()),
            Some(StallId(id)) => table.rows_with(STALL_ID, id),
        };
        let rows = rows.map_err(|why| failed(&table.file.exceeded(), &path, why))?;
        Ok(Table {
            batches: Batches::new(&table, rows),
            path,
            table,
            convert,
            rows: Vec::new().into_iter(),
            failed: false,
        })
    }
}

/// The error that ended the reading of a table.
fn failed(exceeded: &Exceeded, path: &Path, why: String) -> StoreError {
    exceeded
        .take()
        .unwrap_or_else(|| StoreError::damaged(path, why))
}

impl<T, F: Fn(&Batch) -> Result<Vec<T>, String>> Iterator for Table<T, F> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            if self.failed {
                return None;
            }
            let (batches, table, convert) = (&mut self.batches, &self.table, &self.convert);
            let batch = batches.read(table);
            let rows = batch.and_then(|batch| batch.map(|batch| convert(&batch)).transpose());
            match rows {
                Ok(None) => return None,
                Ok(Some(rows)) => self.rows = rows.into_iter(),
                Err(why) => {
                    self.failed = true;
                    return Some(Err(failed(&self.table.file.exceeded(), &self.path, why)));
                }
            }
        }
    }
}
