//! The rows that parts refer to by number, read in step with the parts.

use crate::budget::Budget;
use crate::error::StoreError;
use crate::table_reader::Table;
use crate::tables::{self, Batch, CULPRITS, REMARKS, StoredPart};
use jitterscope_model::{Culprit, CulpritTable, Part, Remark, StallId};
use jitterscope_platform::HeldDir;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows between two checks of the memory that they take.
const LOOK: u32 = 256;

/// Resolves stored parts into parts.
pub(crate) struct Culprits {
    culprits: Numbered<Arc<Culprit>>,
    remarks: Numbered<Remark>,
}

impl Culprits {
    pub(crate) fn open(run: &HeldDir) -> Result<Culprits, StoreError> {
        Ok(Culprits {
            culprits: Numbered::open(run, CULPRITS, tables::culprits)?,
            remarks: Numbered::open(run, REMARKS, tables::remarks)?,
        })
    }

    /// The next part. Parts come in the order in which they are stored.
    pub(crate) fn part(&mut self, stored: &StoredPart) -> Result<(StallId, Part), StoreError> {
        let culprit = Arc::clone(self.culprits.get(stored.culprit.0)?);
        let remark = self.remarks.get(stored.remark.0)?.clone();
        let part = Part {
            culprit,
            phase: remark.phase,
            moved_from: remark.moved_from,
            net: stored.net,
            gross: stored.gross,
            turns: stored.turns,
            placement: remark.placement,
            confidence: remark.confidence,
            evidence: remark.evidence,
            others_stalled: remark.others_stalled,
        };
        Ok((stored.stall, part))
    }
}

/// The rows of a batch with their numbers.
type Convert<T> = fn(&Batch) -> Result<Vec<(u32, T)>, String>;

/// Rows numbered from 0. One segment of them is in memory.
struct Numbered<T> {
    rows: Table<(u32, T), Convert<T>>,
    path: PathBuf,
    /// The number of rows read.
    read: u32,
    /// The rows of the current segment.
    held: Vec<T>,
    /// The memory of `held`, bytes.
    taken: isize,
}

impl<T> Numbered<T> {
    fn open(run: &HeldDir, file: &str, convert: Convert<T>) -> Result<Numbered<T>, StoreError> {
        Ok(Numbered {
            rows: Table::open(run, file, convert)?,
            path: run.path().join(file),
            read: 0,
            held: Vec::new(),
            taken: 0,
        })
    }

    fn get(&mut self, number: u32) -> Result<&T, StoreError> {
        if number >= self.read {
            self.read_up_to(number)?;
        }
        // The number of the first held row.
        let first = self.read - self.held.len() as u32;
        let at = number.checked_sub(first).map(|at| at as usize);
        at.and_then(|at| self.held.get(at)).ok_or_else(|| {
            StoreError::damaged(
                &self.path,
                format!("row {number} is needed after its segment"),
            )
        })
    }

    fn read_up_to(&mut self, number: u32) -> Result<(), StoreError> {
        let mut budget = Budget::carrying(self.taken);
        while self.read <= number {
            let row = self.rows.next().unwrap_or_else(|| {
                Err(StoreError::damaged(
                    &self.path,
                    format!("it has no row {number}"),
                ))
            });
            let (found, row) = row?;
            // The largest number is reserved: it never names a row.
            if found != self.read || found == u32::MAX {
                let why = format!("row {} has the number {found}", self.read);
                return Err(StoreError::damaged(&self.path, why));
            }
            if found.is_multiple_of(CulpritTable::SEGMENT) {
                self.held.clear();
                budget = Budget::begin();
            }
            self.held.push(row);
            self.read = found + 1;
            if found.is_multiple_of(LOOK) {
                budget.check(&self.path)?;
            }
        }
        self.taken = budget.taken();
        Ok(())
    }
}
