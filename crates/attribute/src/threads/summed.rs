//! Waits that are reported as sums instead of in order: if very many threads want a CPU, each of them waits for turns
//! of all the others, so the total number of slices would grow with the square of the number of threads.

use crate::windows::Slice;
use jitterscope_model::{
    Culprit, Evidence, KeyedMap, Nanos, PutInOrder, Subject, Task, TickRate, Ticks,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Distinct culprits in a summed wait: for few threads, and for very many.
pub(super) const MOST_CULPRITS: usize = 256;
pub(super) const FEWEST_CULPRITS: usize = 8;
/// Maximum of slices for all waits that end within [`SPAN`].
const MOST_SLICES: usize = 1 << 15;
/// A second by the records' timestamps, so that a replay gives the same result.
const SPAN: Nanos = Nanos(1_000_000_000);

/// The remaining capacity for slices in order.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Beginning of the current span.
    since: Ticks,
    reported: usize,
}

impl Room {
    /// Whether a wait that ends now may be reported with this many slices.
    pub(super) fn takes(&mut self, at: Ticks, slices: usize, rate: TickRate) -> bool {
        if at.since(self.since) >= rate.ticks(SPAN) {
            (self.since, self.reported) = (at, 0);
        }
        let takes = slices <= FEWEST_CULPRITS || self.reported + slices <= MOST_SLICES;
        self.reported += if takes { slices } else { FEWEST_CULPRITS };
        takes
    }
}

/// The total time of a culprit in a wait.
pub(super) struct Sum<'a> {
    pub(super) culprit: &'a Culprit,
    pub(super) evidence: &'a Evidence,
    pub(super) length: Ticks,
    /// The number of stretches that it sums.
    pub(super) turns: u32,
}

/// A sum, and its index in order of appearance.
type Numbered<'a> = (usize, Sum<'a>);

/// Converts a wait's slices to sums, end to end.
pub(super) fn summed(slices: &[Slice]) -> Vec<Slice> {
    let Some(first) = slices.first() else {
        return Vec::new();
    };
    // A sum of several turns has no single sender.
    let mut places: KeyedMap<(&Subject, &Evidence), usize> = KeyedMap::default();
    let mut sums: Vec<(Culprit, &Evidence, Ticks, u32)> = Vec::new();
    for slice in slices {
        let (culprit, evidence) = (&slice.culprit, &slice.evidence);
        let place = *places
            .entry((&culprit.subject, evidence))
            .or_insert(sums.len());
        if place == sums.len() {
            sums.push((
                Culprit {
                    subject: culprit.subject.clone(),
                    sender: None,
                },
                evidence,
                Ticks(0),
                0,
            ));
        }
        sums[place].2 = sums[place].2 + slice.end.since(slice.start);
        sums[place].3 = sums[place].3.saturating_add(slice.turns());
    }
    let sums = sums.iter().map(|(culprit, evidence, length, turns)| Sum {
        culprit,
        evidence,
        length: *length,
        turns: *turns,
    });
    laid_out(first.start, sums, FEWEST_CULPRITS)
}

/// Puts sums end to end, from `start` on: the `most` largest threads, everything that is not a thread, and the other
/// threads by process.
pub(super) fn laid_out<'a>(
    start: Ticks,
    sums: impl Iterator<Item = Sum<'a>>,
    most: usize,
) -> Vec<Slice> {
    let is_thread = |(_, sum): &Numbered<'_>| matches!(sum.culprit.subject, Subject::Thread(_));
    let some = sums.enumerate().filter(|(_, sum)| sum.length > Ticks(0));
    let (mut threads, others): (Vec<Numbered<'_>>, Vec<Numbered<'_>>) = some.partition(is_thread);
    let larger = |(number, sum): &Numbered<'_>| (Reverse(sum.length), *number);
    if threads.len() > most {
        threads.select_nth_unstable_by_key(most, larger);
    }
    let rest = threads.split_off(most.min(threads.len()));
    let all = others.into_iter().chain(threads);
    let mut found: Vec<(Culprit, Evidence, (Ticks, u32))> = all
        .map(|(_, sum)| {
            let whole = (sum.length, sum.turns);
            (sum.culprit.clone(), sum.evidence.clone(), whole)
        })
        .collect();
    let rest = by_process(rest.into_iter().map(|(_, sum)| sum), most);
    found.extend(
        rest.into_iter()
            .map(|(subject, sum)| (subject.into(), Evidence::ThreadRecords, sum)),
    );
    let mut start = start;
    let slice = |(turn, found): (usize, (Culprit, Evidence, (Ticks, u32)))| {
        let (culprit, evidence, (length, turns)) = found;
        let (end, culprit) = (start + length, Arc::new(culprit.into()));
        Slice {
            start: std::mem::replace(&mut start, end),
            end,
            culprit,
            evidence,
            turn,
            sums: turns,
        }
    };
    found.into_iter().enumerate().map(slice).collect()
}

/// Sums threads by process, longest first: the `most` largest, and all others in one. Each with its length and number
/// of stretches.
fn by_process<'a>(
    threads: impl Iterator<Item = Sum<'a>>,
    most: usize,
) -> Vec<(Subject, (Ticks, u32))> {
    let plus =
        |sum: (Ticks, u32), more: (Ticks, u32)| (sum.0 + more.0, sum.1.saturating_add(more.1));
    let mut sums: BTreeMap<Subject, (Ticks, u32)> = BTreeMap::new();
    for thread in threads {
        let sum = sums.entry(several(&thread.culprit.subject)).or_default();
        *sum = plus(*sum, (thread.length, thread.turns));
    }
    let mut sums: Vec<(Subject, (Ticks, u32))> = sums.into_iter().collect();
    sums.order_by_key(|(_, (length, _))| Reverse(*length));
    let others = sums.split_off(most.min(sums.len()));
    if !others.is_empty() {
        let rest = Subject::Thread(Task {
            comm: "<...>".into(),
            ..Task::default()
        });
        sums.push((
            rest,
            others
                .iter()
                .fold((Ticks(0), 0), |all, (_, sum)| plus(all, *sum)),
        ));
    }
    sums
}

/// A thread as one of several of its process.
fn several(subject: &Subject) -> Subject {
    match subject {
        Subject::Thread(task) => {
            let comm = task.program().clone();
            Subject::Thread(Task {
                tid: None,
                comm,
                process: None,
                ..task.clone()
            })
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(turn: usize, tid: i32, comm: &str, length: u64) -> Slice {
        let start = Ticks(turn as u64 * 1000);
        let task = Task {
            tid: Some(tid),
            comm: comm.into(),
            ..Task::default()
        };
        let culprit = Culprit::from(Subject::Thread(task));
        let evidence = Evidence::ThreadRecords;
        Slice {
            start,
            end: start + Ticks(length),
            culprit: Arc::new(culprit.into()),
            evidence,
            turn,
            sums: 0,
        }
    }

    #[test]
    fn sums_keep_the_length_and_the_largest() {
        // Each of 100 threads has two turns; later turns are longer.
        let slices: Vec<Slice> = (0..200)
            .map(|n| turn(n, n as i32 % 100, "worker", 1 + n as u64 % 100))
            .collect();
        let result = summed(&slices);
        assert!(result.len() <= 2 * FEWEST_CULPRITS + 1, "{}", result.len());
        let length =
            |slices: &[Slice]| -> u64 { slices.iter().map(|one| one.end.since(one.start).0).sum() };
        assert_eq!(length(&result), length(&slices));
        assert!(
            result.windows(2).all(|pair| pair[0].end == pair[1].start),
            "they touch"
        );
        let of = |tid| {
            result
                .iter()
                .find(|one| one.culprit.subject.task().and_then(|task| task.tid) == tid)
        };
        assert_eq!(
            of(Some(99)).map(|one| one.end.since(one.start)),
            Some(Ticks(200))
        );
        assert_eq!(of(Some(99)).map(|one| one.sums), Some(2));
        let turns = |slices: &[Slice]| slices.iter().map(Slice::turns).sum::<u32>();
        assert_eq!(turns(&result), turns(&slices));
        assert!(
            of(Some(0)).is_none() && of(None).is_some(),
            "the others are one row of their process"
        );
    }

    #[test]
    fn there_is_room_for_few_slices_always_and_for_many_once_a_second() {
        let (mut room, rate) = (Room::default(), TickRate::NANOSECONDS);
        assert!(room.takes(Ticks(0), MOST_SLICES, rate));
        assert!(!room.takes(Ticks(1), FEWEST_CULPRITS + 1, rate));
        assert!(room.takes(Ticks(2), FEWEST_CULPRITS, rate));
        assert!(
            room.takes(Ticks(SPAN.0), FEWEST_CULPRITS + 1, rate),
            "another second"
        );
    }

    #[test]
    fn as_many_threads_as_are_told_apart_all_are() {
        let few = i32::try_from(FEWEST_CULPRITS).unwrap();
        let slices: Vec<Slice> = (0..few).map(|n| turn(n as usize, n + 1, "x", 10)).collect();
        let tids = summed(&slices)
            .iter()
            .map(|one| one.culprit.subject.task()?.tid)
            .collect::<Vec<_>>();
        assert_eq!(tids, (1..=few).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn programs_above_the_limit_share_a_row_and_lengths_are_kept() {
        // The eight longest threads have ids, eight programs of the others have names.
        let slices: Vec<Slice> = (0..30)
            .map(|n| turn(n, n as i32 + 1, &format!("c{}", n % 20), 1 + n as u64))
            .collect();
        let result = summed(&slices);
        let task = |one: &Slice| one.culprit.subject.task().cloned().unwrap();
        let length = |one: &Slice| one.end.since(one.start).0;
        let (threads, programs): (Vec<&Slice>, Vec<&Slice>) =
            result.iter().partition(|one| task(one).tid.is_some());
        let longest: BTreeMap<Option<i32>, u64> = threads
            .iter()
            .map(|one| (task(one).tid, length(one)))
            .collect();
        assert_eq!(
            longest,
            (22..30)
                .map(|n| (Some(n + 1), 1 + n as u64))
                .collect::<BTreeMap<_, _>>()
        );
        // The rest of each program is reported completely, or is part of the last row.
        let left = |n: u64| if n < 2 { 1 + n + 21 + n } else { 1 + n };
        let mut all: BTreeMap<String, u64> = (0..20).map(|n| (format!("c{n}"), left(n))).collect();
        let (rest, listed): (Vec<&Slice>, Vec<&Slice>) = programs
            .into_iter()
            .partition(|one| &*task(one).comm == "<...>");
        assert_eq!((listed.len(), rest.len()), (FEWEST_CULPRITS, 1));
        for one in &listed {
            assert_eq!(all.remove(&*task(one).comm), Some(length(one)));
        }
        let lengths: Vec<u64> = listed.into_iter().map(length).collect();
        assert_eq!(
            lengths,
            [24, 22, 20, 19, 18, 17, 16, 15],
            "those that took longest"
        );
        assert_eq!(length(rest[0]), all.values().sum::<u64>());
    }
}
