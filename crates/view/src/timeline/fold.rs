//! Merges repetitions in a timeline into one line with a count.

use crate::words;
use jitterscope_model::{CpuId, Nanos, PutInOrder, TimelineItem, TimelineRow};
use std::collections::BTreeMap;

/// Fewer repetitions than this are all shown.
const FEWEST: usize = 4;
/// The longest repeated sequence, in frames with everything nested in them.
const LONGEST: usize = 3;

/// A line of a timeline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A frame or an instant.
    Row(&'a TimelineRow),
    /// Further repetitions of the lines before.
    More {
        times: usize,
        /// The number of frames in one repetition.
        frames: usize,
        /// The nesting of the frames.
        depth: usize,
        /// The start of the first omitted one.
        start: Nanos,
        /// The total length of the omitted ones.
        total: Nanos,
    },
    /// Several different short frames.
    Short {
        cpu: Option<CpuId>,
        /// Their number, including nested ones.
        rows: usize,
        /// The nesting of the outermost.
        depth: usize,
        /// The start of the first.
        start: Nanos,
        /// The end of the last.
        end: Nanos,
        /// The total length of the outermost.
        total: Nanos,
        /// The largest of them by time: name, length, count. At most [`NAMED`].
        most: Vec<(String, Nanos, usize)>,
    },
}

/// The number of named short frames.
const NAMED: usize = 3;
/// A line of short frames covers at most this fraction (one over it) of the stall, so that important frames stay
/// visible.
const LARGEST: u64 = 8;

/// A frame is short below this fraction (one over it) of the stall, and this many short neighbours are merged. Tried in
/// turn until there are few enough lines.
const SHORT: [(u64, usize); 10] = [
    (3000, FEWEST),
    (1000, FEWEST),
    (300, FEWEST),
    (100, FEWEST),
    (30, FEWEST),
    (100, 2),
    (30, 2),
    (10, 2),
    (5, 2),
    (2, 2),
];

/// At most this many records that the user asked for are all shown; more are merged like others.
const MOST_ASKED: usize = 6;

/// The lines of a CPU-by-CPU timeline of a stall of this length. Above `most` lines, short neighbours are merged, the
/// shortest first.
pub(super) fn fold(rows: &[TimelineRow], stall: Nanos, most: usize) -> Vec<Line<'_>> {
    let keeps_asked = rows.iter().filter(|row| is_asked(row)).count() <= MOST_ASKED;
    let lines_with = |short: Nanos, fewest: usize| {
        let mut lines = Vec::new();
        level(
            rows,
            Limits {
                short,
                fewest,
                together: Nanos(stall.0 / LARGEST),
                keeps_asked,
            },
            &mut lines,
        );
        lines
    };
    let mut lines = lines_with(Nanos::ZERO, FEWEST);
    for (part, fewest) in SHORT {
        if lines.len() <= most {
            break;
        }
        lines = lines_with(Nanos(stall.0 / part), fewest);
    }
    lines
}

/// The limits of merging.
#[derive(Clone, Copy)]
struct Limits {
    /// Only frames below this length.
    short: Nanos,
    /// Only this many neighbours or more.
    fewest: usize,
    /// Only this much time in a line.
    together: Nanos,
    /// No record that the user asked for.
    keeps_asked: bool,
}

/// Whether the user asked for this record.
fn is_asked(row: &TimelineRow) -> bool {
    matches!(
        row.item,
        TimelineItem::Asked { .. } | TimelineItem::Mark { .. }
    )
}

/// The number of leading groups that are short, in one place, and together within the limit of a line.
fn brief(groups: &[&[TimelineRow]], limits: Limits) -> usize {
    let mut total = Nanos::ZERO;
    let fits = |group: &&&[TimelineRow]| {
        total += length(&group[0]);
        length(&group[0]) < limits.short
            && !(limits.keeps_asked && group.iter().any(is_asked))
            && same_place_as(&groups[0][0], &group[0])
            && total <= limits.together.max(limits.short)
    };
    groups.iter().take_while(fits).count()
}

/// Rows of one depth, each followed by its nested rows.
fn level<'a>(rows: &'a [TimelineRow], limits: Limits, lines: &mut Vec<Line<'a>>) {
    let groups = groups(rows);
    let shapes: Vec<Vec<(usize, String)>> = groups.iter().map(|group| shape(group)).collect();
    let same_place = |a: usize, b: usize| same_place_as(&groups[a][0], &groups[b][0]);
    let mut at = 0;
    while at < groups.len() {
        let brief = brief(&groups[at..], limits);
        if brief >= limits.fewest {
            lines.push(together(&groups[at..at + brief], &shapes[at..at + brief]));
            at += brief;
            continue;
        }
        let repeats = |period: usize| {
            let is_again = |n: usize| {
                let (one, other) = (at + n % period, at + n);
                other < groups.len() && shapes[one] == shapes[other] && same_place(one, other)
            };
            // The repetitions must be in one place, too.
            if !(0..period).all(|n| at + n < groups.len() && same_place(at, at + n)) {
                return 0;
            }
            (0..).take_while(|n| is_again(*n)).count() / period
        };
        let best = (1..=LONGEST)
            .map(|period| (repeats(period), period))
            .find(|(times, _)| *times >= FEWEST);
        let (times, period) = best.unwrap_or((1, 1));
        for group in &groups[at..at + period] {
            lines.push(Line::Row(&group[0]));
            level(&group[1..], limits, lines);
        }
        if times > 1 {
            let left_out = &groups[at + period..at + period * times];
            let total = left_out.iter().map(|group| length(&group[0]));
            lines.push(Line::More {
                times: times - 1,
                frames: period,
                depth: groups[at][0].depth,
                start: left_out[0][0].start,
                total: total.sum(),
            });
        }
        at += period * times;
    }
}

fn same_place_as(a: &TimelineRow, b: &TimelineRow) -> bool {
    a.cpu == b.cpu && a.depth == b.depth
}

/// The length of a frame; an instant has none.
fn length(row: &TimelineRow) -> Nanos {
    row.end
        .map_or(Nanos::ZERO, |end| end.saturating_sub(row.start))
}

/// Short neighbours as one line.
fn together<'a>(groups: &[&[TimelineRow]], shapes: &[Vec<(usize, String)>]) -> Line<'a> {
    let mut kinds: BTreeMap<&str, (Nanos, usize)> = BTreeMap::new();
    for (group, shape) in groups.iter().zip(shapes) {
        if let Some((_, what)) = shape.first() {
            let kind = kinds.entry(what.as_str()).or_default();
            *kind = (kind.0 + length(&group[0]), kind.1 + 1);
        }
    }
    let mut most: Vec<(String, Nanos, usize)> = kinds
        .into_iter()
        .map(|(what, (time, times))| (what.to_owned(), time, times))
        .collect();
    most.order_by_key(|(_, time, times)| std::cmp::Reverse((*time, *times)));
    most.truncate(NAMED);
    Line::Short {
        rows: groups.iter().map(|group| group.len()).sum(),
        cpu: groups[0][0].cpu,
        depth: groups[0][0].depth,
        start: groups[0][0].start,
        end: groups
            .iter()
            .map(|group| group[0].start + length(&group[0]))
            .max()
            .unwrap_or_default(),
        total: groups.iter().map(|group| length(&group[0])).sum(),
        most,
    }
}

/// Each outer row with its nested rows.
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

/// The content of a group, without times.
fn shape(group: &[TimelineRow]) -> Vec<(usize, String)> {
    let base = group[0].depth;
    group
        .iter()
        .map(|row| (row.depth - base, words::timeline_item(&row.item).0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Culprit, Subject};
    use proptest::prelude::*;

    /// Everything here is longer than the shortest merged frames.
    const WHOLE: Nanos = Nanos(100);
    const MOST: usize = 1000;

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
        TimelineRow {
            item: TimelineItem::IdleEnds,
            ..row(0, 0, start, 0)
        }
    }

    fn mark(start: u64) -> TimelineRow {
        let item = TimelineItem::Mark {
            name: "order".into(),
            length_ns: Nanos(7),
            ends: false,
        };
        TimelineRow {
            end: None,
            item,
            ..row(0, 1, start, 0)
        }
    }

    #[test]
    fn a_few_records_that_the_user_asked_for_stay_whatever_is_merged_around_them() {
        let marks = |every: u64| {
            let mut rows = Vec::new();
            for n in 0..200 {
                rows.push(row(0, 0, 100 * n, (n % 7) as i64));
                if n % every == 50 {
                    rows.push(mark(100 * n + 1));
                }
            }
            rows
        };
        let shown = |rows: &[TimelineRow]| {
            let lines = fold(rows, Nanos(20_000), 20);
            let is_mark = |line: &&Line<'_>| matches!(line, Line::Row(row) if is_asked(row));
            (lines.iter().filter(is_mark).count(), lines.len())
        };
        let (few, lines) = shown(&marks(100));
        assert!(few == 2 && lines < 30, "{few} of 2, {lines} lines");
        let (many, lines) = shown(&marks(55));
        assert!(many == 3 && lines < 40, "{many} of 3, {lines} lines");
        let mut crowd = marks(100);
        crowd.splice(0..0, (0..50).map(mark));
        assert!(shown(&crowd).1 < 30, "{:?}", shown(&crowd));
    }

    #[test]
    fn repeats_are_counted_and_what_is_nested_goes_with_them() {
        let mut rows = Vec::new();
        for n in 0..50 {
            rows.push(row(0, 0, 100 * n, 1));
            rows.push(row(0, 1, 100 * n + 1, 2));
        }
        rows.push(idle(9000));
        let lines = fold(&rows, WHOLE, MOST);
        let more = Line::More {
            times: 49,
            frames: 1,
            depth: 0,
            start: Nanos(100),
            total: Nanos(245),
        };
        assert_eq!(
            lines,
            [
                Line::Row(&rows[0]),
                Line::Row(&rows[1]),
                more,
                Line::Row(&rows[100])
            ]
        );
    }

    #[test]
    fn two_that_take_turns_are_folded_together() {
        let rows: Vec<TimelineRow> = (0..12)
            .map(|n| if n % 2 == 0 { row(0, 0, n, 1) } else { idle(n) })
            .collect();
        let lines = fold(&rows, WHOLE, MOST);
        assert_eq!(lines.len(), 3);
        assert!(
            matches!(
                lines[2],
                Line::More {
                    times: 5,
                    frames: 2,
                    ..
                }
            ),
            "{lines:?}"
        );
    }

    #[test]
    fn a_few_repeats_and_other_cpus_are_all_shown() {
        let few: Vec<TimelineRow> = (0..3).map(|n| row(0, 0, n, 1)).collect();
        assert_eq!(fold(&few, WHOLE, MOST).len(), 3);
        let other: Vec<TimelineRow> = (0..8).map(|n| row((n / 3) as u32, 0, n, 1)).collect();
        assert_eq!(fold(&other, WHOLE, MOST).len(), 8);
        assert!(fold(&[], WHOLE, MOST).is_empty());
    }

    #[test]
    fn of_very_many_lines_the_shortest_neighbours_are_counted_together() {
        // Frames of 5 ns without four repetitions, around one of 600 ns.
        let called = |at: u64, n: u64| {
            let subject = Subject::Call(format!("f{}", n * n % 7).into());
            let culprit = Culprit {
                subject,
                sender: None,
            };
            let item = TimelineItem::Frame {
                culprit,
                ended: true,
                named_inside: false,
            };
            TimelineRow {
                item,
                ..row(0, 0, at, 0)
            }
        };
        let mut rows: Vec<TimelineRow> = (0..100).map(|n| called(10 * n, n)).collect();
        rows.push(TimelineRow {
            end: Some(Nanos(1700)),
            ..row(0, 0, 1100, -1)
        });
        rows.push(row(0, 1, 1200, 7));
        rows.extend((0..100).map(|n| called(2000 + 10 * n, n)));
        let all = fold(&rows, Nanos(6000), usize::MAX);
        assert_eq!(all.len(), rows.len());
        let lines = fold(&rows, Nanos(6000), 20);
        // Squares modulo 7 are 0, 1, 2 and 4, and 0 half as often.
        let Line::Short { most, .. } = &lines[0] else {
            panic!("{lines:?}")
        };
        assert_eq!(most.len(), 3);
        assert!(
            most.iter()
                .all(|(what, time, times)| !what.ends_with("f0") && time.0 == 5 * *times as u64)
        );
        let short = |start| {
            let most = most.clone();
            Line::Short {
                cpu: Some(CpuId(0)),
                rows: 100,
                depth: 0,
                start: Nanos(start),
                end: Nanos(start + 995),
                total: Nanos(500),
                most,
            }
        };
        let expected = [
            short(0),
            Line::Row(&rows[100]),
            Line::Row(&rows[101]),
            short(2000),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn culprits_are_named_by_time_before_frequency() {
        // Of two neighbours one is ten times as long, and one comes three times as often.
        let rows: Vec<TimelineRow> = (0..400)
            .map(|n| {
                let (what, length) = if n % 4 == 0 {
                    (Subject::Call("long".into()), 40)
                } else {
                    (Subject::Call(format!("often{}", n % 4).into()), 4)
                };
                let item = TimelineItem::Frame {
                    culprit: Culprit {
                        subject: what,
                        sender: None,
                    },
                    ended: true,
                    named_inside: false,
                };
                TimelineRow {
                    item,
                    end: Some(Nanos(50 * n + length)),
                    ..row(0, 0, 50 * n, 0)
                }
            })
            // Without repetition.
            .enumerate()
            .filter(|(at, _)| at % 7 != 3)
            .map(|(_, row)| row)
            .collect();
        let lines = fold(&rows, Nanos(6000), 20);
        assert!(lines.len() > 1 && lines.len() <= 20, "{lines:?}");
        for line in &lines {
            let Line::Short { total, most, .. } = line else {
                continue;
            };
            assert!(total.0 <= 6000 / LARGEST, "{line:?}");
            assert!(most[0].0.contains("long"), "{line:?}");
        }
        assert!(lines.iter().any(|line| matches!(line, Line::Short { .. })));
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
            let lines = fold(&rows, WHOLE, MOST);
            let shown = lines.iter().filter(|line| matches!(line, Line::Row(_))).count();
            prop_assert!(shown <= rows.len());
            let left_out: usize = lines
                .iter()
                .map(|line| match line {
                    Line::Row(_) => 0,
                    Line::Short { rows, .. } => *rows,
                    Line::More { times, frames, .. } => times * frames,
                })
                .sum();
            // The omitted rows may have nested ones.
            prop_assert!(shown + left_out <= rows.len());
            prop_assert!(left_out > 0 || shown == rows.len());
        }
    }
}
