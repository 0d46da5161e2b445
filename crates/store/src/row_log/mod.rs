//! The log of a run's rows while it is recorded: what a killed recorder leaves of them.
//!
//! Tables are unreadable until their footers are written, so the rows go here too, in batches that need no footer. The
//! log is a magic `JSROWS01` and the number of the log u32, then batches: length u32, CRC-32 u32 (both little-endian, of the payload), payload. A
//! batch stands for itself, except that it names culprits and remarks of earlier batches by their numbers. A reader
//! stops at the first batch that is not whole.
//!
//! A log that has become long is replaced: once all of its rows are [sealed](crate::sealed) in the tables, the log of
//! the next number begins, with the culprits and remarks that its rows may refer to.
//!
//! A payload is a list of records. Each is a byte that says what it is, then numbers as LEB128. Signed numbers are
//! zigzag. The numbers of a batch's first stall count from 0.
//!
//! | record | content |
//! |---|---|
//! | stall | id and start, as differences to the previous stall; CPU; length; with its flag, a new victim: tid, name |
//! | attribution | its stall, as the difference to the previous attribution; the parts follow |
//! | part | culprit, net; with their flags: remark if not that of the previous part, gross if not net, turns if not 1 |
//! | culprit | number, length, JSON; before the first part that has it |
//! | remark | number, length, JSON of a part that has it; before that part |
//! | interval | CPU, start, length, count, longest, sum |

mod numbers;
mod reader;
mod writer;

pub(crate) use reader::RowLogReader;
pub(crate) use writer::RowLog;

/// The file of the log, in the folder of an unfinished run.
pub(crate) const ROWS: &str = "rows.log";
/// Its name until it replaces the log before it.
const NEXT: &str = ".rows.log";

const MAGIC: &[u8; 8] = b"JSROWS01";
/// Length and checksum before a payload, bytes.
const HEADER: usize = 8;
/// The largest payload, bytes: one stall of 65,536 parts, each with a new culprit.
const LARGEST: usize = 64 << 20;
/// Bytes gathered for one batch, unless time passes before.
const BATCH: usize = 64 << 10;

const STALL: u8 = 0;
const ATTRIBUTION: u8 = 1;
const CULPRIT: u8 = 2;
const REMARK: u8 = 3;
const INTERVAL: u8 = 4;
/// A stall with a victim other than that of the previous stall.
const STALL_OF_OTHER: u8 = 5;
/// A part, with flags in the lowest bits.
const PART: u8 = 0x80;
const HAS_REMARK: u8 = 1;
const HAS_GROSS: u8 = 2;
const HAS_TURNS: u8 = 4;

#[cfg(test)]
mod tests;
