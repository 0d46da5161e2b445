//! Reads the log as far as it is whole.

use super::numbers::Rest;
use super::{
    ATTRIBUTION, CULPRIT, HAS_GROSS, HAS_REMARK, HAS_TURNS, HEADER, INTERVAL, LARGEST, MAGIC, PART,
    REMARK, STALL, STALL_OF_OTHER,
};
use crate::budget::Budget;
use crate::rows::StoredRow;
use jitterscope_model::{
    Attribution, Comm, CpuId, Culprit, CulpritTable, IntervalRow, Nanos, Part, Remark, Stall,
    StallId, ThreadRef, Ticks,
};
use std::io::Read;
use std::sync::Arc;

/// Rows between two checks of the memory that they take.
const LOOK: usize = 256;

/// The rows of a log, in the order in which they were written. It ends at the first batch that is cut off or damaged,
/// and where the file cannot be read: the rows before are whole. One batch and one segment of culprits are in memory.
pub(crate) struct RowLogReader<R> {
    from: R,
    rows: std::vec::IntoIter<StoredRow>,
    culprits: Numbered<Arc<Culprit>>,
    remarks: Numbered<Remark>,
    ended: bool,
}

impl<R: Read> RowLogReader<R> {
    /// Reads the log of this number. The rows of an earlier one are sealed.
    pub(crate) fn new(mut from: R, number: u32) -> RowLogReader<R> {
        let (mut magic, mut found) = ([0; MAGIC.len()], [0; 4]);
        let begins = from.read_exact(&mut magic).is_ok()
            && magic == *MAGIC
            && from.read_exact(&mut found).is_ok()
            && u32::from_le_bytes(found) == number;
        RowLogReader {
            from,
            rows: Vec::new().into_iter(),
            culprits: Numbered::default(),
            remarks: Numbered::default(),
            ended: !begins,
        }
    }

    /// The rows of the next batch; `None` if it is not whole.
    fn batch(&mut self) -> Option<Vec<StoredRow>> {
        let mut header = [0; HEADER];
        self.from.read_exact(&mut header).ok()?;
        let [l0, l1, l2, l3, s0, s1, s2, s3] = header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > LARGEST {
            return None;
        }
        // Grows with the bytes that are there, not with those that the header claims.
        let mut payload = Vec::new();
        let read = self
            .from
            .by_ref()
            .take(length as u64)
            .read_to_end(&mut payload)
            .ok()?;
        let sum = u32::from_le_bytes([s0, s1, s2, s3]);
        if read < length || crc32fast::hash(&payload) != sum {
            return None;
        }
        self.decode(Rest(&payload))
    }

    fn decode(&mut self, mut rest: Rest<'_>) -> Option<Vec<StoredRow>> {
        let mut rows = Vec::new();
        let (mut stall, mut start, mut attributed) = (0, 0, 0);
        let (mut victim, mut remark) = (None, None);
        let budget = Budget::begin();
        while let Some(record) = rest.byte() {
            // A row takes more memory than bytes.
            if rows.len().is_multiple_of(LOOK) && !budget.is_kept() {
                return None;
            }
            match record {
                STALL | STALL_OF_OTHER => {
                    stall = rest.after(stall)?;
                    start = rest.after(start)?;
                    let cpu = CpuId(rest.small()?);
                    let end = start.checked_add(rest.number()?)?;
                    if record == STALL_OF_OTHER {
                        let tid = i32::try_from(rest.after(0)?.cast_signed()).ok()?;
                        let length = rest.number()?;
                        let comm = Comm::from_bytes(rest.bytes(length)?);
                        victim = Some(ThreadRef { tid, comm });
                    }
                    rows.push(StoredRow::Stall(Stall {
                        id: StallId(stall),
                        cpu,
                        victim: victim?,
                        start: Ticks(start),
                        end: Ticks(end),
                    }));
                }
                ATTRIBUTION => {
                    attributed = rest.after(attributed)?;
                    rows.push(StoredRow::Attribution(Attribution {
                        stall: StallId(attributed),
                        parts: Vec::new(),
                    }));
                }
                CULPRIT => {
                    let (number, json) = document(&mut rest)?;
                    let culprit = serde_json::from_slice(json).ok()?;
                    self.culprits.add(number, Arc::new(culprit))?;
                }
                REMARK => {
                    let (number, json) = document(&mut rest)?;
                    let part: Part = serde_json::from_slice(json).ok()?;
                    self.remarks.add(number, Remark::of(&part))?;
                }
                INTERVAL => rows.push(StoredRow::Interval(interval(&mut rest)?)),
                part if part & PART != 0 => {
                    let culprit = Arc::clone(self.culprits.get(rest.small()?)?);
                    let net = rest.number()?;
                    if part & HAS_REMARK != 0 {
                        remark = Some(self.remarks.get(rest.small()?)?.clone());
                    }
                    let gross = match part & HAS_GROSS {
                        0 => net,
                        _ => rest.after(net)?,
                    };
                    let turns = match part & HAS_TURNS {
                        0 => 1,
                        _ => rest.small()?,
                    };
                    let Some(StoredRow::Attribution(attribution)) = rows.last_mut() else {
                        return None;
                    };
                    let of = remark.as_ref()?;
                    attribution.parts.push(Part {
                        culprit,
                        phase: of.phase.clone(),
                        moved_from: of.moved_from,
                        net: Nanos(net),
                        gross: Nanos(gross),
                        turns,
                        placement: of.placement,
                        confidence: of.confidence,
                        evidence: of.evidence.clone(),
                        others_stalled: of.others_stalled,
                    });
                }
                _ => return None,
            }
        }
        Some(rows)
    }
}

impl<R: Read> Iterator for RowLogReader<R> {
    type Item = StoredRow;

    fn next(&mut self) -> Option<StoredRow> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(row);
            }
            if self.ended {
                return None;
            }
            match self.batch() {
                Some(rows) => self.rows = rows.into_iter(),
                None => self.ended = true,
            }
        }
    }
}

/// A number and its JSON.
fn document<'b>(rest: &mut Rest<'b>) -> Option<(u32, &'b [u8])> {
    let number = rest.small()?;
    let length = rest.number()?;
    Some((number, rest.bytes(length)?))
}

fn interval(rest: &mut Rest<'_>) -> Option<IntervalRow> {
    let cpu = CpuId(rest.small()?);
    let start = rest.number()?;
    let end = start.checked_add(rest.number()?)?;
    Some(IntervalRow {
        cpu,
        start: Ticks(start),
        end: Ticks(end),
        count: rest.number()?,
        max: Nanos(rest.number()?),
        stolen: Nanos(rest.number()?),
    })
}

/// The values of the current segment of numbers.
struct Numbered<T> {
    held: Vec<T>,
    /// The number of the first.
    first: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered {
            held: Vec::new(),
            first: 0,
        }
    }
}

impl<T> Numbered<T> {
    /// Adds the next number; `None` if it is another one.
    fn add(&mut self, number: u32, value: T) -> Option<()> {
        if number.is_multiple_of(CulpritTable::SEGMENT) {
            self.held.clear();
            self.first = number;
        }
        if number.checked_sub(self.first)? as usize != self.held.len() {
            return None;
        }
        self.held.push(value);
        Some(())
    }

    fn get(&self, number: u32) -> Option<&T> {
        self.held.get(number.checked_sub(self.first)? as usize)
    }
}
