//! What repeats itself in a timeline is shown once and counted.

use crate::words;
use jitterscope_model::{Nanos, TimelineRow};

/// Fewer repeats than this are all shown.
const FEWEST: usize = 4;
/// Frames, each with what is nested in it, that may repeat together.
const LONGEST: usize = 3;

/// A line of a timeline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A frame or an instant.
    Row(&'a TimelineRow),
    /// What came before came so many times more.
    More {
        /// How often.
        times: usize,
        /// How many frames stand for one time.
        frames: usize,
        /// Nesting of the frames.
        depth: usize,
        /// Start of the first that is left out.
        start: Nanos,
        /// Lengths of those that are left out.
        total: Nanos,
    },
}

/// The lines of a CPU-by-CPU timeline.
pub(super) fn fold(rows: &[TimelineRow]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    level(rows, &mut lines);
    lines
}

/// Rows of one depth, each followed by what is nested in it.
fn level<'a>(rows: &'a [TimelineRow], lines: &mut Vec<Line<'a>>) {
    let groups = groups(rows);
    let shapes: Vec<Vec<(usize, String)>> = groups.iter().map(|group| shape(group)).collect();
    let same_place = |a: usize, b: usize| {
        let (a, b) = (&groups[a][0], &groups[b][0]);
        a.cpu == b.cpu && a.depth == b.depth
    };
    let mut at = 0;
    while at < groups.len() {
        let repeats = |length: usize| {
            let is_again = |n: usize| {
                let (one, other) = (at + n % length, at + n);
                other < groups.len() && shapes[one] == shapes[other] && same_place(one, other)
            };
            // Together they must be in one place, too.
            if !(0..length).all(|n| at + n < groups.len() && same_place(at, at + n)) {
                return 0;
            }
            (0..).take_while(|n| is_again(*n)).count() / length
        };
        let best = (1..=LONGEST).map(|length| (repeats(length), length)).find(|(times, _)| *times >= FEWEST);
        let (times, length) = best.unwrap_or((1, 1));
        for group in &groups[at..at + length] {
            lines.push(Line::Row(&group[0]));
            level(&group[1..], lines);
        }
        if times > 1 {
            let left_out = &groups[at + length..at + length * times];
            let total = left_out.iter().map(|group| {
                let row = &group[0];
                row.end.map_or(Nanos::ZERO, |end| end.saturating_sub(row.start))
            });
            lines.push(Line::More {
                times: times - 1,
                frames: length,
                depth: groups[at][0].depth,
                start: left_out[0][0].start,
                total: total.sum(),
            });
        }
        at += length * times;
    }
}

/// Each row that is not nested in the one before, with those that are nested in it.
fn groups(rows: &[TimelineRow]) -> Vec<&[TimelineRow]> {
    let mut groups = Vec::new();
    let mut begin = 0;
    for at in 1..=rows.len() {
        let ends = rows.get(at).is_none_or(|row| {
            let head = &rows[begin];
            row.depth <= head.depth || row.cpu != head.cpu
        });
        if ends {
            groups.push(&rows[begin..at]);
            begin = at;
        }
    }
    if rows.is_empty() { Vec::new() } else { groups }
}

/// What it is made of, whenever that was and however long it took.
fn shape(group: &[TimelineRow]) -> Vec<(usize, String)> {
    let base = group[0].depth;
    group.iter().map(|row| (row.depth - base, words::timeline_item(&row.item).0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, TimelineItem};
    use proptest::prelude::*;

    fn row(cpu: u32, depth: usize, start: u64, what: i64) -> TimelineRow {
        TimelineRow {
            cpu: Some(CpuId(cpu)),
            depth,
            start: Nanos(start),
            end: Some(Nanos(start + 5)),
            item: TimelineItem::TlbFlush { pages: Some(what) },
        }
    }

    fn idle(start: u64) -> TimelineRow {
        TimelineRow { item: TimelineItem::IdleEnds, ..row(0, 0, start, 0) }
    }

    #[test]
    fn repeats_are_counted_and_what_is_nested_goes_with_them() {
        let mut rows = Vec::new();
        for n in 0..50 {
            rows.push(row(0, 0, 100 * n, 1));
            rows.push(row(0, 1, 100 * n + 1, 2));
        }
        rows.push(idle(9000));
        let lines = fold(&rows);
        let more = Line::More { times: 49, frames: 1, depth: 0, start: Nanos(100), total: Nanos(245) };
        assert_eq!(lines, [Line::Row(&rows[0]), Line::Row(&rows[1]), more, Line::Row(&rows[100])]);
    }

    #[test]
    fn two_that_take_turns_are_folded_together() {
        let rows: Vec<TimelineRow> =
            (0..12).map(|n| if n % 2 == 0 { row(0, 0, n, 1) } else { idle(n) }).collect();
        let lines = fold(&rows);
        assert_eq!(lines.len(), 3);
        assert!(matches!(lines[2], Line::More { times: 5, frames: 2, .. }), "{lines:?}");
    }

    #[test]
    fn a_few_repeats_and_other_cpus_are_all_shown() {
        let few: Vec<TimelineRow> = (0..3).map(|n| row(0, 0, n, 1)).collect();
        assert_eq!(fold(&few).len(), 3);
        let other: Vec<TimelineRow> = (0..8).map(|n| row((n / 3) as u32, 0, n, 1)).collect();
        assert_eq!(fold(&other).len(), 8);
        assert!(fold(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn every_row_is_shown_or_counted(depths in prop::collection::vec((0usize..4, 0u32..2), 0..80)) {
            let mut last = 0;
            let rows: Vec<TimelineRow> = depths
                .iter()
                .enumerate()
                .map(|(at, (depth, cpu))| {
                    last = (*depth).min(last + 1);
                    row(*cpu, last, at as u64, 1)
                })
                .collect();
            let lines = fold(&rows);
            let shown = lines.iter().filter(|line| matches!(line, Line::Row(_))).count();
            prop_assert!(shown <= rows.len());
            let left_out: usize = lines
                .iter()
                .map(|line| match line {
                    Line::Row(_) => 0,
                    Line::More { times, frames, .. } => times * frames,
                })
                .sum();
            // Those that are left out may have others nested in them.
            prop_assert!(shown + left_out <= rows.len());
            prop_assert!(left_out > 0 || shown == rows.len());
        }
    }
}
