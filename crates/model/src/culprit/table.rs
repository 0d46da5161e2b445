//! The culprits of a recording. Each is written once, and then referred to by number.
//!
//! A number names an immutable row: a later discovery about the same thread makes another row. Numbers are local to a
//! run; comparing runs needs [`CulpritKey`](super::CulpritKey).
//!
//! Numbers come in segments of [`CulpritTable::SEGMENT`]. The writer forgets a full segment, and gives a culprit that
//! comes again a second number. A reader of rows in order keeps one segment. So neither needs more memory for a longer
//! recording.

use super::{Culprit, Evidence, Phase, Subject};
use crate::{Confidence, CpuId, KeyedMap, Part, Placement, PutInOrder};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

/// See [`CulpritTable::SEGMENT`].
const SEGMENT: u32 = 1 << 14;

/// Culprits to remember by their address; beyond it all are forgotten.
const MOST_MET: usize = SEGMENT as usize;

/// Number of a culprit within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CulpritId(pub u32);

/// Number of a remark within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemarkId(pub u32);

/// The facts about a part other than its culprit and its times. Few combinations occur.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remark {
    /// What the victim was waiting for; `None` for a spinning victim.
    pub phase: Option<Phase>,
    /// The CPU that the victim was moved away from meanwhile.
    pub moved_from: Option<CpuId>,
    pub placement: Placement,
    pub confidence: Confidence,
    /// The evidence for the verdict.
    pub evidence: Evidence,
    /// Other measured CPUs that stalled at the same instant.
    pub others_stalled: Option<u32>,
}

impl Remark {
    #[must_use]
    pub fn of(part: &Part) -> Remark {
        Remark {
            phase: part.phase.clone(),
            moved_from: part.moved_from,
            placement: part.placement,
            confidence: part.confidence,
            evidence: part.evidence.clone(),
            others_stalled: part.others_stalled,
        }
    }
}

/// Gives equal values one number, as long as it remembers them.
#[derive(Debug)]
struct Numbered<T> {
    known: KeyedMap<T, u32>,
    next: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered {
            known: KeyedMap::default(),
            next: 0,
        }
    }
}

impl<T: Hash + Eq + Clone> Numbered<T> {
    /// What it remembers, by number.
    fn rows(&self) -> Vec<(u32, T)> {
        let known = self.known.iter();
        let mut rows: Vec<(u32, T)> = known
            .map(|(value, number)| (*number, value.clone()))
            .collect();
        rows.order_by_key(|(number, _)| *number);
        rows
    }

    /// The number of a value, and whether it is new.
    fn number(&mut self, value: T) -> (u32, bool) {
        if let Some(number) = self.known.get(&value) {
            return (*number, false);
        }
        let number = self.next;
        if number.is_multiple_of(SEGMENT) {
            self.known.clear();
        }
        self.known.insert(value, number);
        self.next = number.saturating_add(1);
        (number, true)
    }
}

/// A number, and its row if that is not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<I, R> {
    pub id: I,
    pub new: Option<R>,
}

/// Numbers the culprits of a recording, and the remarks on their parts.
#[derive(Debug)]
pub struct CulpritTable {
    culprits: Numbered<Arc<Culprit>>,
    /// The limit of numbers for single culprits. Further culprits share one row per kind, so that numbers never run
    /// out.
    end: u32,
    remarks: Numbered<Remark>,
    /// Parts of equal culprits mostly share one value. This maps its address to its number, and keeps the value alive,
    /// so that no other can get its address.
    met: FxHashMap<usize, (Arc<Culprit>, u32)>,
    /// The remark of the previous part.
    last: Option<(Remark, RemarkId)>,
}

impl Default for CulpritTable {
    fn default() -> CulpritTable {
        CulpritTable {
            culprits: Numbered::default(),
            end: u32::MAX - SEGMENT,
            remarks: Numbered::default(),
            met: FxHashMap::default(),
            last: None,
        }
    }
}

impl CulpritTable {
    /// Numbers per segment.
    pub const SEGMENT: u32 = SEGMENT;

    /// The number of a culprit.
    pub fn culprit(&mut self, culprit: &Arc<Culprit>) -> Given<CulpritId, Arc<Culprit>> {
        let place = Arc::as_ptr(culprit).addr();
        if let Some((_, number)) = self.met.get(&place) {
            let id = CulpritId(*number);
            return Given { id, new: None };
        }
        let row = if self.culprits.next < self.end {
            Arc::clone(culprit)
        } else {
            Subject::Others(culprit.kind()).into()
        };
        let (number, new) = self.culprits.number(Arc::clone(&row));
        if self.met.len() >= MOST_MET || (new && number.is_multiple_of(SEGMENT)) {
            self.met.clear();
        }
        self.met.insert(place, (Arc::clone(culprit), number));
        Given {
            id: CulpritId(number),
            new: new.then_some(row),
        }
    }

    /// The culprits of the current segment, by number.
    #[must_use]
    pub fn culprits(&self) -> Vec<(u32, Arc<Culprit>)> {
        self.culprits.rows()
    }

    /// The remarks of the current segment, by number.
    #[must_use]
    pub fn remarks(&self) -> Vec<(u32, Remark)> {
        self.remarks.rows()
    }

    /// The number of a part's remark.
    pub fn remark(&mut self, part: &Part) -> Given<RemarkId, Remark> {
        let remark = Remark::of(part);
        if let Some((last, id)) = &self.last
            && *last == remark
        {
            return Given { id: *id, new: None };
        }
        let (number, new) = self.remarks.number(remark.clone());
        let id = RemarkId(number);
        self.last = Some((remark.clone(), id));
        Given {
            id,
            new: new.then_some(remark),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CulpritKind, Nanos};

    fn culprit(n: u32) -> Arc<Culprit> {
        Subject::Softirq(n).into()
    }

    #[test]
    fn equal_culprits_have_one_number_and_are_written_once() {
        let mut table = CulpritTable::default();
        let shared = culprit(1);
        for (of, id, is_new) in [
            (&shared, 0, true),
            (&shared, 0, false),
            (&culprit(1), 0, false),
            (&culprit(2), 1, true),
            (&shared, 0, false),
        ] {
            let given = table.culprit(of);
            assert_eq!((given.id, given.new.is_some()), (CulpritId(id), is_new));
            assert!(given.new.is_none_or(|row| row == *of));
        }
    }

    #[test]
    fn a_full_segment_is_forgotten_and_what_comes_again_has_a_second_number() {
        let mut table = CulpritTable::default();
        let first = culprit(0);
        for n in 0..SEGMENT {
            assert_eq!(table.culprit(&culprit(n)).id, CulpritId(n));
        }
        assert_eq!(table.culprit(&first).id, CulpritId(0), "it is known");
        assert_eq!(table.culprit(&culprit(SEGMENT)).id, CulpritId(SEGMENT));
        let again = table.culprit(&first);
        assert_eq!(again.id, CulpritId(SEGMENT + 1));
        assert_eq!(again.new, Some(first));
        for n in 0..10 * SEGMENT {
            table.culprit(&culprit(n));
            assert!(table.met.len() <= MOST_MET);
            assert!(table.culprits.known.len() <= SEGMENT as usize);
        }
        for (at, (number, row)) in (0..).zip(table.culprits()) {
            assert_eq!(number % SEGMENT, at);
            assert_eq!(table.culprit(&row).id, CulpritId(number));
        }
    }

    #[test]
    fn culprits_that_lie_where_another_lay_have_their_own_numbers() {
        let mut table = CulpritTable::default();
        for n in 0..3 * MOST_MET as u32 {
            let given = table.culprit(&culprit(n % 100));
            assert_eq!(given.id, CulpritId(n % 100));
        }
    }

    #[test]
    fn numbers_never_run_out() {
        let mut table = CulpritTable {
            end: 2,
            ..CulpritTable::default()
        };
        let (a, b, c, d) = (culprit(0), culprit(1), culprit(2), culprit(3));
        let given = [&a, &b, &c, &d, &a].map(|of| table.culprit(of));
        assert_eq!(given.each_ref().map(|of| of.id.0), [0, 1, 2, 2, 0]);
        let others = Subject::Others(CulpritKind::Softirq);
        assert_eq!(given[2].new.as_ref().map(|row| &row.subject), Some(&others));
        assert_eq!(given[3].new, None);
        table.culprits.next = u32::MAX;
        table.remarks.next = u32::MAX;
        let call = Part::inside(Subject::Call("f".into()), Nanos(1), Evidence::LostRecords);
        let nmi = Part::inside(Subject::Nmi("f".into()), Nanos(1), Evidence::NmiRecord);
        assert_eq!(table.culprit(&call.culprit).id, CulpritId(u32::MAX));
        assert_eq!(table.culprit(&nmi.culprit).id, CulpritId(u32::MAX));
        assert_eq!(table.remark(&call).id, RemarkId(u32::MAX));
        assert_eq!(table.remark(&nmi).id, RemarkId(u32::MAX));
    }

    #[test]
    fn equal_remarks_have_one_number() {
        let mut table = CulpritTable::default();
        let part = |cpu| Part {
            moved_from: Some(CpuId(cpu)),
            ..Part::inside(Subject::Softirq(1), Nanos(cpu.into()), Evidence::Lead)
        };
        let given = [1, 1, 2, 1].map(|cpu| table.remark(&part(cpu)));
        assert_eq!(given.each_ref().map(|of| of.id.0), [0, 0, 1, 0]);
        assert_eq!(given.map(|of| of.new.is_some()), [true, false, true, false]);
        let remarks = [1, 2].map(|cpu| Remark::of(&part(cpu)));
        assert_eq!(table.remarks(), (0..).zip(remarks).collect::<Vec<_>>());
    }
}
