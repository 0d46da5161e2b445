//! Writes the log.

use super::numbers::{put, put_difference};
use super::{
    ATTRIBUTION, BATCH, CULPRIT, HAS_GROSS, HAS_REMARK, HAS_TURNS, HEADER, INTERVAL, LARGEST,
    MAGIC, NEXT, PART, REMARK, ROWS, STALL, STALL_OF_OTHER,
};
use crate::error::StoreError;
use jitterscope_model::{
    Attribution, Culprit, CulpritId, CulpritTable, IntervalRow, Name, Nanos, Part, Remark,
    RemarkId, Stall, Subject, ThreadRef,
};
use jitterscope_platform::HeldDir;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};

/// The log while its run is recorded. Rows wait in memory for their batch: a caller flushes it as time passes.
#[derive(Debug)]
pub(crate) struct RowLog {
    file: File,
    number: u32,
    bytes: u64,
    /// Room for the header, then the payload.
    batch: Vec<u8>,
    stall: u64,
    start: u64,
    victim: Option<ThreadRef>,
    attributed: u64,
    remark: Option<RemarkId>,
}

impl RowLog {
    /// Makes the log of this number, in place of the one before. `known`: the numbers that its rows may refer to.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(crate) fn create(
        folder: &HeldDir,
        number: u32,
        known: &CulpritTable,
    ) -> Result<RowLog, StoreError> {
        let _ = folder.remove_file(NEXT);
        let file = folder.create_new(NEXT).map_err(StoreError::writing)?;
        let mut log = RowLog {
            file,
            number,
            bytes: 0,
            batch: Vec::with_capacity(BATCH + BATCH / 4),
            stall: 0,
            start: 0,
            victim: None,
            attributed: 0,
            remark: None,
        };
        let written = log.begin(known);
        written.map_err(|e| StoreError::write(&folder.path().join(NEXT), e))?;
        folder.rename(NEXT, ROWS).map_err(StoreError::writing)?;
        Ok(log)
    }

    fn begin(&mut self, known: &CulpritTable) -> io::Result<()> {
        self.file.write_all(MAGIC)?;
        self.file.write_all(&self.number.to_le_bytes())?;
        self.begin_batch();
        for (id, culprit) in known.culprits() {
            self.culprit(CulpritId(id), &culprit);
            self.settle()?;
        }
        for (id, remark) in known.remarks() {
            self.remark(RemarkId(id), &remark);
            self.settle()?;
        }
        self.flush()
    }

    /// The number of the log that follows this one.
    pub(crate) fn next(&self) -> u32 {
        self.number.saturating_add(1)
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn begin_batch(&mut self) {
        self.batch.clear();
        // What one enormous stall took is given back.
        self.batch.shrink_to(2 * BATCH);
        self.batch.extend_from_slice(&[0; HEADER]);
        (self.stall, self.start, self.attributed) = (0, 0, 0);
        (self.victim, self.remark) = (None, None);
    }

    /// The bytes that the next batch will have.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.batch.len()
    }

    /// Writes the batch once it is large enough. Called between stalls, so that a stall and its parts are kept or lost
    /// together.
    ///
    /// # Errors
    /// As [`RowLog::flush`].
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.batch.len() < BATCH {
            return Ok(());
        }
        self.flush()
    }

    /// Writes the batch.
    ///
    /// # Errors
    /// The disk is full or fails, or a stall is too large for a batch. The log must not be continued.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let payload = &self.batch[HEADER..];
        if payload.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if payload.len() > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let sum = crc32fast::hash(payload);
        self.batch[..4].copy_from_slice(&length.to_le_bytes());
        self.batch[4..HEADER].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&self.batch)?;
        self.bytes += self.batch.len() as u64;
        self.begin_batch();
        Ok(())
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        let known = self.victim == Some(stall.victim);
        self.batch.push(if known { STALL } else { STALL_OF_OTHER });
        put_difference(&mut self.batch, stall.id.0, self.stall);
        put_difference(&mut self.batch, stall.start.0, self.start);
        put(&mut self.batch, stall.cpu.0.into());
        put(&mut self.batch, stall.length().0);
        if !known {
            let name = stall.victim.comm.as_bytes();
            put_difference(
                &mut self.batch,
                i64::from(stall.victim.tid).cast_unsigned(),
                0,
            );
            put(&mut self.batch, name.len() as u64);
            self.batch.extend_from_slice(name);
            self.victim = Some(stall.victim);
        }
        (self.stall, self.start) = (stall.id.0, stall.start.0);
    }

    /// Begins an attribution; its parts follow.
    pub(crate) fn attribution(&mut self, of: &Attribution) {
        self.batch.push(ATTRIBUTION);
        put_difference(&mut self.batch, of.stall.0, self.attributed);
        self.attributed = of.stall.0;
    }

    pub(crate) fn part(&mut self, culprit: CulpritId, remark: RemarkId, part: &Part) {
        let flag = |has: bool, flag| if has { flag } else { 0 };
        let (other, nested) = (self.remark != Some(remark), part.gross != part.net);
        self.batch.push(
            PART | flag(other, HAS_REMARK)
                | flag(nested, HAS_GROSS)
                | flag(part.turns != 1, HAS_TURNS),
        );
        put(&mut self.batch, culprit.0.into());
        put(&mut self.batch, part.net.0);
        if other {
            put(&mut self.batch, remark.0.into());
            self.remark = Some(remark);
        }
        if nested {
            put_difference(&mut self.batch, part.gross.0, part.net.0);
        }
        if part.turns != 1 {
            put(&mut self.batch, part.turns.into());
        }
    }

    pub(crate) fn culprit(&mut self, id: CulpritId, culprit: &Culprit) {
        self.document(CULPRIT, id.0, culprit);
    }

    /// Gives a remark its number. It is stored as a part that has it, because parts have a form in JSON.
    pub(crate) fn remark(&mut self, id: RemarkId, remark: &Remark) {
        let of = remark.clone();
        let part = Part {
            culprit: Subject::Call(Name::default()).into(),
            phase: of.phase,
            moved_from: of.moved_from,
            net: Nanos::ZERO,
            gross: Nanos::ZERO,
            turns: 1,
            placement: of.placement,
            confidence: of.confidence,
            evidence: of.evidence,
            others_stalled: of.others_stalled,
        };
        self.document(REMARK, id.0, &part);
    }

    fn document(&mut self, kind: u8, number: u32, value: &impl Serialize) {
        // These types always become JSON. Without it the reader stops at the first part that has the number.
        let json = serde_json::to_vec(value).unwrap_or_default();
        self.batch.push(kind);
        put(&mut self.batch, number.into());
        put(&mut self.batch, json.len() as u64);
        self.batch.extend_from_slice(&json);
    }

    pub(crate) fn interval(&mut self, row: &IntervalRow) {
        self.batch.push(INTERVAL);
        for number in [
            u64::from(row.cpu.0),
            row.start.0,
            row.end.since(row.start).0,
            row.count,
            row.max.0,
            row.stolen.0,
        ] {
            put(&mut self.batch, number);
        }
    }
}
