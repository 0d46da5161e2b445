//! The tables of a run while they are written, and the log of their rows.

use crate::error::StoreError;
use crate::hlog::Hlog;
use crate::row_log::RowLog;
use crate::sealed::Sealed;
use crate::table::TableWriter;
use crate::tables::{CulpritRows, IntervalRows, PartRows, RemarkRows, StallRows};
use jitterscope_model::{
    Attribution, ClockReading, CulpritTable, IntervalRow, Stall, TickRate, Ticks,
};
use jitterscope_platform::HeldDir;

/// The size, in bytes, at which the first log ends. Later ones may have a quarter of the tables' size: sealing ends a
/// group of rows in each table, so it must happen ever more rarely.
const FIRST_LOG: u64 = 32 << 20;

/// The clock that maps rows to real time.
#[derive(Clone, Copy)]
pub(crate) struct RowClock {
    pub(crate) start: ClockReading,
    pub(crate) rate: TickRate,
}

impl RowClock {
    fn realtime(&self, at: Ticks) -> u64 {
        self.start.realtime_of(at, self.rate)
    }
}

/// Takes rows into the five tables. A row that a table accepted goes to the log too, if there is one.
pub(crate) struct RunTables {
    stalls: TableWriter<StallRows>,
    parts: TableWriter<PartRows>,
    culprits: TableWriter<CulpritRows>,
    remarks: TableWriter<RemarkRows>,
    intervals: TableWriter<IntervalRows>,
    numbers: CulpritTable,
    pub(crate) log: Option<RowLog>,
    /// The size at which the first log ends and the current one does, bytes.
    first_log: u64,
    longest_log: u64,
}

impl RunTables {
    pub(crate) fn create(folder: &HeldDir, log: Option<RowLog>) -> Result<RunTables, StoreError> {
        Ok(RunTables {
            stalls: TableWriter::create(folder)?,
            parts: TableWriter::create(folder)?,
            culprits: TableWriter::create(folder)?,
            remarks: TableWriter::create(folder)?,
            intervals: TableWriter::create(folder)?,
            numbers: CulpritTable::default(),
            log,
            first_log: FIRST_LOG,
            longest_log: FIRST_LOG,
        })
    }

    pub(crate) fn stall(&mut self, stall: &Stall, clock: &RowClock) -> Result<(), StoreError> {
        self.stalls
            .push(|rows| rows.push(stall, clock.rate, &|t| clock.realtime(t)))?;
        if let Some(log) = &mut self.log {
            log.stall(stall);
        }
        Ok(())
    }

    /// Adds all parts, or none if the disk is full.
    pub(crate) fn attribution(&mut self, attribution: &Attribution) -> Result<(), StoreError> {
        self.parts.ready()?;
        self.culprits.ready()?;
        self.remarks.ready()?;
        let log = &mut self.log;
        if let Some(log) = log {
            log.attribution(attribution);
        }
        for part in &attribution.parts {
            let (culprit, remark) = (
                self.numbers.culprit(&part.culprit),
                self.numbers.remark(part),
            );
            if let Some(row) = culprit.new {
                if let Some(log) = log {
                    log.culprit(culprit.id, &row);
                }
                self.culprits.rows().push(culprit.id, row);
            }
            if let Some(row) = remark.new {
                if let Some(log) = log {
                    log.remark(remark.id, &row);
                }
                self.remarks.rows().push(remark.id, row);
            }
            if let Some(log) = log {
                log.part(culprit.id, remark.id, part);
            }
            let rows = self.parts.rows();
            rows.push(attribution.stall, culprit.id, remark.id, part);
        }
        self.culprits.settle()?;
        self.remarks.settle()?;
        self.parts.settle()
    }

    pub(crate) fn interval(
        &mut self,
        row: &IntervalRow,
        clock: &RowClock,
    ) -> Result<(), StoreError> {
        self.intervals
            .push(|rows| rows.push(row, &|t| clock.realtime(t)))?;
        if let Some(log) = &mut self.log {
            log.interval(row);
        }
        Ok(())
    }

    /// Seals all rows so far in the tables, and begins the log anew.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(crate) fn seal(&mut self, folder: &HeldDir) -> Result<(), StoreError> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let sealed = Sealed {
            log: log.next(),
            tables: vec![
                self.stalls.seal()?,
                self.culprits.seal()?,
                self.remarks.seal()?,
                self.parts.seal()?,
                self.intervals.seal()?,
            ],
        };
        sealed.write(folder)?;
        let bytes: u64 = sealed.tables.iter().map(|table| table.bytes).sum();
        self.longest_log = self.first_log.max(bytes / 4);
        self.log = Some(RowLog::create(folder, sealed.log, &self.numbers)?);
        Ok(())
    }

    pub(crate) fn limit_log(&mut self, bytes: u64) {
        (self.first_log, self.longest_log) = (bytes, bytes);
    }

    /// Whether the log has become so long that its rows are to be sealed.
    pub(crate) fn is_log_long(&self) -> bool {
        self.log
            .as_ref()
            .is_some_and(|log| log.bytes() >= self.longest_log)
    }

    pub(crate) fn finish(self, hlog: Hlog) -> Result<(), StoreError> {
        self.stalls.finish()?;
        self.culprits.finish()?;
        self.remarks.finish()?;
        self.parts.finish()?;
        self.intervals.finish()?;
        hlog.finish()
    }
}
