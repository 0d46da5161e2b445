//! All rows of a run in the order that a reader needs.

use crate::error::StoreError;
use crate::reader::RunReader;
use jitterscope_model::{Attribution, IntervalRow, Stall};

/// A row of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredRow {
    Stall(Stall),
    /// The attribution of a stall that came before.
    Attribution(Attribution),
    /// An interval of one CPU.
    Interval(IntervalRow),
}

impl RunReader {
    /// Passes all rows to `each`: stalls in order of their ids, each attribution after its stall, then intervals. The
    /// tables are read in step, so no whole table is in memory.
    ///
    /// # Errors
    /// A table cannot be read. The rows before the damage were passed on.
    pub fn rows(&self, mut each: impl FnMut(StoredRow)) -> Result<(), StoreError> {
        let mut attributions = self.attributions()?.peekable();
        for stall in self.stalls()? {
            let stall = stall?;
            let id = stall.id;
            each(StoredRow::Stall(stall));
            // An error counts as due, so that it is returned.
            let due = |next: &Result<Attribution, StoreError>| {
                next.as_ref()
                    .map_or(true, |attribution| attribution.stall <= id)
            };
            while let Some(attribution) = attributions.next_if(due) {
                each(StoredRow::Attribution(attribution?));
            }
        }
        for attribution in attributions {
            each(StoredRow::Attribution(attribution?));
        }
        for row in self.intervals()? {
            each(StoredRow::Interval(row?));
        }
        Ok(())
    }
}
