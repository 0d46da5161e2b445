//! Stalls and records on one scale, and the offsets that they allow.

use super::locate::Visit;
use super::{ClockMap, CpuTimes, FEWEST, Guess, Rates};
use jitterscope_model::{Nanos, Ticks};

/// Times on the scale are below this, so that their sums are times, too.
const FARTHEST: i64 = i64::MAX >> 3;
/// The control shifts records by this part of the measured time, around its end: no period divides it.
const CONTROL_SHIFT: f64 = 0.381_966_011;

/// Stalls and records of the measured CPUs in ticks of the probe's clock: stalls since the first one began, records
/// since the first one, at the stated rates. The offset of a record is what its time must be raised by.
pub(super) struct Known<'a> {
    cpus: &'a [CpuTimes],
    stop: &'a dyn Fn() -> bool,
    pub(super) rates: Rates,
    pub(super) of: Vec<OfCpu>,
    first_stall: u64,
    first_record: u64,
    /// The last stall's end, and the last record.
    pub(super) stalls_end: i64,
    pub(super) records_end: i64,
}

pub(super) struct OfCpu {
    pub(super) stalls: Vec<(i64, i64)>,
    pub(super) records: Vec<i64>,
}

/// How many records of the measured time lie in stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) records: u64,
    pub(super) inside: u64,
    pub(super) by_chance: u64,
}

impl<'a> Known<'a> {
    /// `None` if no CPU has both.
    pub(super) fn new(
        cpus: &'a [CpuTimes],
        rates: Rates,
        stop: &'a dyn Fn() -> bool,
    ) -> Option<Known<'a>> {
        let both = |cpu: &&CpuTimes| !cpu.stalls.is_empty() && !cpu.records.is_empty();
        let with_both = || cpus.iter().filter(both);
        let first_stall = with_both().filter_map(|cpu| cpu.stalls.first()).min()?.0.0;
        let first_record = with_both().filter_map(|cpu| cpu.records.first()).min()?.0;
        let scaled = |record: &Ticks| {
            let since = i128::from(record.0.saturating_sub(first_record));
            let at = since * i128::from(rates.probe.hz) / i128::from(rates.file.hz.max(1));
            i64::try_from(at).unwrap_or(FARTHEST).min(FARTHEST)
        };
        let since = |at: Ticks| {
            let since = at.0.saturating_sub(first_stall);
            i64::try_from(since).unwrap_or(FARTHEST).min(FARTHEST)
        };
        let of: Vec<OfCpu> = with_both()
            .map(|cpu| OfCpu {
                stalls: cpu
                    .stalls
                    .iter()
                    .map(|(start, end)| (since(*start), since(*end)))
                    .collect(),
                records: cpu.records.iter().map(scaled).collect(),
            })
            .collect();
        let last = |of: &dyn Fn(&OfCpu) -> i64, cpus: &[OfCpu]| cpus.iter().map(of).max();
        Some(Known {
            cpus,
            stop,
            rates,
            first_stall,
            first_record,
            stalls_end: last(&|cpu| cpu.stalls.last().map_or(0, |stall| stall.1), &of)?,
            records_end: last(&|cpu| cpu.records.last().copied().unwrap_or(0), &of)?,
            of,
        })
    }

    pub(super) fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    /// A time of the scale of records, on the file's clock.
    pub(super) fn file_time(&self, at: i64) -> Ticks {
        let (hz, file_hz) = (self.rates.probe.hz.max(1), self.rates.file.hz);
        let file = i128::from(at) * i128::from(file_hz) / i128::from(hz);
        let file = (file + i128::from(self.first_record)).clamp(0, i128::from(u64::MAX));
        Ticks(u64::try_from(file).unwrap_or(u64::MAX))
    }

    /// The probe's ticks in a time.
    pub(super) fn ticks(&self, time: Nanos) -> i64 {
        let ticks = i64::try_from(self.rates.probe.ticks(time).0);
        ticks.unwrap_or(FARTHEST).min(FARTHEST)
    }

    /// The offsets to look at: those near a guess, or all at which stalls and records overlap.
    pub(super) fn offsets(&self, guess: Option<Guess>) -> (i64, i64) {
        let Some(guess) = guess else {
            return (-self.records_end, self.stalls_end);
        };
        let (file, probe) = (i128::from(guess.file.0), i128::from(guess.probe.0));
        let since = file - i128::from(self.first_record);
        let (hz, file_hz) = (self.rates.probe.hz, self.rates.file.hz.max(1));
        let at = since * i128::from(hz) / i128::from(file_hz);
        let offset = probe - i128::from(self.first_stall) - at;
        let bound = i128::from(FARTHEST);
        let offset = i64::try_from(offset.clamp(-bound, bound)).unwrap_or(0);
        let within = self.ticks(guess.within);
        (offset - within, offset + within)
    }

    /// Knots on the clocks themselves: a record's time on this scale, and its offset.
    pub(super) fn knots(&self, knots: &[(i64, i64)]) -> Vec<(u64, u64)> {
        let on_clocks = |(at, offset): &(i64, i64)| {
            let file = self.file_time(*at).0;
            // The exact place of the rounded time.
            let since = i128::from(file) - i128::from(self.first_record);
            let (hz, file_hz) = (self.rates.probe.hz, self.rates.file.hz.max(1));
            let exact = since * i128::from(hz) / i128::from(file_hz);
            let probe = exact + i128::from(*offset) + i128::from(self.first_stall);
            Some((file, u64::try_from(probe).ok()?))
        };
        knots.iter().filter_map(on_clocks).collect()
    }

    /// How many of all records lie in stalls, at their mapped times and shifted.
    pub(super) fn share(&self, map: &ClockMap) -> Share {
        let mut share = Share::default();
        for cpu in self.cpus {
            let (Some((from, _)), Some((_, to))) = (cpu.stalls.first(), cpu.stalls.last()) else {
                continue;
            };
            let whole = to.since(*from).0.max(1);
            let shift = (whole as f64 * CONTROL_SHIFT) as u64;
            let within = |at: Ticks| {
                let before = cpu.stalls.partition_point(|(start, _)| *start <= at);
                before > 0 && at <= cpu.stalls[before - 1].1
            };
            for record in &cpu.records {
                let at = map.probe_time(*record);
                if at < *from || at > *to {
                    continue;
                }
                share.records += 1;
                share.inside += u64::from(within(at));
                let shifted = *from + Ticks((at.since(*from).0 + shift) % whole);
                share.by_chance += u64::from(within(shifted));
            }
        }
        share
    }
}

impl OfCpu {
    /// Adds the offsets between these bounds at which a visit, moved by `moved`, lies in a stall.
    pub(super) fn allowed(
        &self,
        visit: &Visit,
        moved: i64,
        (least, most): (i64, i64),
        into: &mut Vec<(i64, i64)>,
    ) {
        let (first, last) = (visit.first + moved, visit.last + moved);
        let from = self.stalls.partition_point(|(_, end)| *end < last + least);
        let met = self.stalls[from..]
            .iter()
            .take_while(|(start, _)| *start <= first + most);
        let range =
            |(start, end): &(i64, i64)| ((start - first).max(least), (end - last).min(most));
        into.extend(met.map(range).filter(|(from, to)| from <= to));
    }

    /// Adds the offsets between these bounds at which a record comes at most `entry` after a stall that begins at
    /// `start`.
    pub(super) fn begun(
        &self,
        start: i64,
        entry: i64,
        (least, most): (i64, i64),
        into: &mut Vec<(i64, i64)>,
    ) {
        let from = self.records.partition_point(|at| *at < start - most);
        let near = self.records[from..]
            .iter()
            .take_while(|at| **at <= start + entry - least);
        // One range for records that are close together: a stall begins once.
        let mut open: Option<(i64, i64)> = None;
        let mut close = |range: Option<(i64, i64)>| {
            let within = range.map(|(from, to)| (from.max(least), to.min(most)));
            into.extend(within.filter(|(from, to)| from <= to));
        };
        for at in near {
            open = match open {
                Some((from, to)) if start + entry - at >= from => Some((start - at, to)),
                other => {
                    close(other);
                    Some((start - at, start + entry - at))
                }
            };
        }
        close(open);
    }

    /// Whether a visit lies in a stall at this offset.
    pub(super) fn holds(&self, visit: &Visit, offset: i64) -> bool {
        let (first, last) = (visit.first + offset, visit.last + offset);
        let before = self.stalls.partition_point(|(start, _)| *start <= first);
        before > 0 && last <= self.stalls[before - 1].1
    }

    /// The time in stalls between two times.
    pub(super) fn stalled(&self, from: i64, to: i64) -> i64 {
        let begin = self.stalls.partition_point(|(_, end)| *end < from);
        let met = self.stalls[begin..]
            .iter()
            .take_while(|(start, _)| *start < to);
        met.map(|(start, end)| (*end).min(to) - (*start).max(from))
            .sum()
    }

    /// The time between two times of the file that has a record at most `entry` later.
    pub(super) fn near_records(&self, from: i64, to: i64, entry: i64) -> i64 {
        let begin = self.records.partition_point(|at| *at < from);
        let own = self.records[begin..].iter().take_while(|at| **at <= to);
        let (mut sum, mut last) = (0, i64::MIN >> 1);
        for at in own {
            sum += entry.min(at - last);
            last = *at;
        }
        sum
    }
}

/// The offsets that most ranges contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Best {
    pub(super) count: u64,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Best {
    pub(super) fn middle(&self) -> i64 {
        self.from + (self.to - self.from) / 2
    }

    pub(super) fn width(&self) -> u64 {
        self.to.abs_diff(self.from)
    }
}

/// Calls `each` with every range of offsets that more of `ranges` contain than contain the offsets beside it.
pub(super) fn peaks(
    ranges: &[(i64, i64)],
    edges: &mut Vec<(i64, bool)>,
    mut each: impl FnMut(Best),
) {
    edges.clear();
    edges.extend(
        ranges
            .iter()
            .flat_map(|(from, to)| [(*from, false), (*to, true)]),
    );
    // A range contains its ends: beginnings come first.
    edges.sort_unstable();
    let (mut count, mut rising) = (0u64, None);
    for (at, ends) in edges.iter() {
        if *ends {
            if let Some(from) = rising.take() {
                each(Best {
                    count,
                    from,
                    to: *at,
                });
            }
            count -= 1;
        } else {
            count += 1;
            rising = Some(*at);
        }
    }
}

/// The peak that most ranges contain; the narrower one of two.
pub(super) fn best(ranges: &[(i64, i64)], edges: &mut Vec<(i64, bool)>) -> Best {
    let mut best = Best::default();
    peaks(ranges, edges, |peak| {
        let is_better =
            peak.count > best.count || (peak.count == best.count && peak.width() < best.width());
        if is_better {
            best = peak;
        }
    });
    best
}

/// Whether there is enough to compare.
pub(super) fn is_enough(records: usize) -> bool {
    records >= FEWEST
}
