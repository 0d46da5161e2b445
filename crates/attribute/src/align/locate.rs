//! The offset of a first stretch, wherever it may be.

use super::overlap::{Best, Known, best, is_enough, peaks};
use super::{AlignError, CHANCE, SHARE_INSIDE};
use jitterscope_model::{Nanos, Ticks};

/// Clocks that drift apart faster are not aligned, parts per million: NTP corrects a clock by up to 500, and a
/// calibrated rate is off by some tens.
const MOST_DRIFT: f64 = 600.0;
/// Half of a stretch: the first one, and the longest one where records are rare.
const SHORTEST: Nanos = Nanos(250_000_000);
const LONGEST: Nanos = Nanos(8_000_000_000);
/// Visits of a stretch that are wanted, and taken at most.
const WANTED: usize = 100;
const MOST: usize = 400;
/// Visits that find the candidates: the longest ones, because few stalls hold them.
const LANDMARKS: usize = 64;
const CANDIDATES: usize = 24;
/// Records of a CPU that are closer together are one visit of the kernel: at most this, and no more than this part of
/// the time from stall to stall.
const SAME_VISIT: Nanos = Nanos(30_000);
const PART_BETWEEN: i64 = 20;
/// A stall's first record comes so soon: the way into the kernel.
const ENTRY: Nanos = Nanos(3_000);
/// Beginnings of stalls that are compared: to find candidates, and to judge one.
const FEW_BEGINNINGS: usize = 64;
const BEGINNINGS: usize = 200;
/// How far visits at the ends of a stretch may be misplaced by a wrong drift.
const MISPLACED: Nanos = Nanos(600);
/// Drifts are first tried in steps that are longer by this.
const COARSE: i64 = 8;
/// Offsets that are closer together are one, found less exactly.
const APART: Nanos = Nanos(150_000);
/// An offset beside the best one may be the right one if chance makes the difference with at least this probability.
const UNCERTAIN: f64 = 1e-3;
/// The offsets of a search are looked at in pieces of this length.
const PIECE: Nanos = Nanos(1_000_000_000);

/// Records of one visit of the kernel, on a CPU of [`Known`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) cpu: usize,
    pub(super) first: i64,
    pub(super) last: i64,
}

/// Visits around a time.
pub(super) struct Stretch {
    pub(super) centre: i64,
    half: i64,
    visits: Vec<Visit>,
}

/// What was found of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    pub(super) centre: i64,
    pub(super) half: i64,
    /// The offsets at the centre.
    pub(super) range: Best,
    /// The width of the offsets that fit nearly as well.
    pub(super) uncertain: u64,
    pub(super) offset: i64,
    /// How fast the offset grows, and how far that may be off.
    pub(super) slope: f64,
    pub(super) slope_error: f64,
    pub(super) score: Score,
    /// The best one elsewhere, and how far away it is.
    pub(super) elsewhere: Score,
    apart: u64,
    /// How likely chance puts a visit into a stall, and a record to the beginning of one.
    by_chance: (f64, f64),
}

/// How well an offset fits a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    /// Visits of the kernel within the measured time, and those within a stall.
    pub(super) visits: u64,
    pub(super) inside: u64,
    /// Stalls that were compared, and those that begin with a record.
    stalls: u64,
    begun: u64,
}

impl Score {
    pub(super) fn fits(&self) -> u64 {
        self.inside + self.begun
    }

    pub(super) fn compared(&self) -> u64 {
        self.visits + self.stalls
    }
}

/// The visits between two times, at most so many, evenly thinned out.
pub(super) fn visits(known: &Known<'_>, (from, to): (i64, i64), most: usize) -> Vec<Visit> {
    let mut visits = Vec::new();
    for (cpu, of) in known.of.iter().enumerate() {
        let number = of.stalls.len().max(1) as i64;
        let between = known.stalls_end / number;
        let same = known.ticks(SAME_VISIT).min(between / PART_BETWEEN);
        let begin = of.records.partition_point(|at| *at < from);
        let end = of.records.partition_point(|at| *at <= to);
        for chunk in of.records[begin..end].chunk_by(|a, b| b - a < same) {
            if let (Some(first), Some(last)) = (chunk.first(), chunk.last()) {
                visits.push(Visit {
                    cpu,
                    first: *first,
                    last: *last,
                });
            }
        }
    }
    let every = visits.len().div_ceil(most.max(1)).max(1);
    visits.into_iter().step_by(every).collect()
}

impl Stretch {
    pub(super) fn of(centre: i64, half: i64, visits: Vec<Visit>) -> Stretch {
        Stretch {
            centre,
            half,
            visits,
        }
    }

    /// A stretch at this place, 0 to 1, of the records that can lie in the measured time. `None` with too few of them.
    pub(super) fn at(known: &Known<'_>, (least, most): (i64, i64), place: f64) -> Option<Stretch> {
        let surely = (
            (-least).max(0),
            known.records_end.min(known.stalls_end - most),
        );
        let maybe = (
            (-most).max(0),
            known.records_end.min(known.stalls_end - least),
        );
        let (from, to) = if surely.0 < surely.1 { surely } else { maybe };
        if from >= to {
            return None;
        }
        let centre = from + ((to - from) as f64 * place) as i64;
        let mut half = known.ticks(SHORTEST);
        loop {
            let within = ((centre - half).max(from), (centre + half).min(to));
            let found = visits(known, within, MOST);
            let is_all = within == (from, to) || half >= known.ticks(LONGEST);
            if found.len() >= WANTED || (is_all && is_enough(found.len())) {
                // The centre of what was taken.
                let centre = within.0 + (within.1 - within.0) / 2;
                return Some(Stretch {
                    centre,
                    half: (within.1 - within.0) / 2 + 1,
                    visits: found,
                });
            }
            if is_all {
                return None;
            }
            half *= 2;
        }
    }

    /// The beginnings of stalls in the stretch at these offsets: the CPU and the time.
    fn beginnings(
        &self,
        known: &Known<'_>,
        (least, most): (i64, i64),
        number: usize,
    ) -> Vec<(usize, i64)> {
        let (from, to) = (
            self.centre - self.half + least,
            self.centre + self.half + most,
        );
        let mut all = Vec::new();
        let number = number.div_ceil(known.of.len().max(1));
        for (cpu, of) in known.of.iter().enumerate() {
            let begin = of.stalls.partition_point(|(start, _)| *start < from);
            let end = of.stalls.partition_point(|(start, _)| *start <= to);
            let every = (end - begin).div_ceil(number).max(1);
            let own = of.stalls[begin..end].iter().step_by(every);
            all.extend(own.map(|(start, _)| (cpu, *start)));
        }
        all
    }

    /// The offsets at the centre at which each visit lies in a stall, and at which each stall begins with a record, if
    /// the offset grows by `slope`.
    fn ranges(
        &self,
        known: &Known<'_>,
        beginnings: &[(usize, i64)],
        (slope, bounds): (f64, (i64, i64)),
        into: &mut Vec<(i64, i64)>,
    ) {
        into.clear();
        for visit in &self.visits {
            let moved = ((visit.first - self.centre) as f64 * slope) as i64;
            known.of[visit.cpu].allowed(visit, moved, bounds, into);
        }
        let entry = known.ticks(ENTRY);
        let middle = bounds.0 + (bounds.1 - bounds.0) / 2;
        for (cpu, start) in beginnings {
            let moved = ((start - middle - self.centre) as f64 * slope) as i64;
            known.of[*cpu].begun(start - moved, entry, bounds, into);
        }
    }

    /// How well an offset at the centre fits.
    fn score(&self, known: &Known<'_>, slope: f64, offset: i64) -> Score {
        let mut score = Score::default();
        for visit in &self.visits {
            let moved = offset + ((visit.first - self.centre) as f64 * slope) as i64;
            if visit.first + moved >= 0 && visit.last + moved <= known.stalls_end {
                score.visits += 1;
                score.inside += u64::from(known.of[visit.cpu].holds(visit, moved));
            }
        }
        let mut ranges = Vec::new();
        let entry = known.ticks(ENTRY);
        for (cpu, start) in self.beginnings(known, (offset, offset), BEGINNINGS) {
            let moved = ((start - offset - self.centre) as f64 * slope) as i64;
            ranges.clear();
            known.of[cpu].begun(start - moved, entry, (offset, offset), &mut ranges);
            score.stalls += 1;
            score.begun += u64::from(!ranges.is_empty());
        }
        score
    }

    /// The share of time in stalls, of the busiest CPU; and the share of time that has a record soon after it.
    fn by_chance(&self, known: &Known<'_>, offset: i64) -> (f64, f64) {
        let (from, to) = (self.centre - self.half, self.centre + self.half);
        let whole = (to - from).max(1) as f64;
        let stalled = known
            .of
            .iter()
            .map(|of| of.stalled(from + offset, to + offset) as f64 / whole);
        let entry = known.ticks(ENTRY);
        let begun = known
            .of
            .iter()
            .map(|of| of.near_records(from, to, entry) as f64 / whole);
        let most = |shares: &mut dyn Iterator<Item = f64>| shares.fold(1e-3, f64::max).min(0.999);
        (most(&mut stalled.into_iter()), most(&mut begun.into_iter()))
    }

    /// The visits that last longest.
    fn landmarks(&self) -> Vec<Visit> {
        let mut visits = self.visits.clone();
        visits.sort_by_key(|visit| (visit.first - visit.last, visit.first));
        visits.truncate(LANDMARKS);
        visits
    }
}

/// Finds the best offset of a stretch between these bounds. `None` if no visit can lie in a stall there.
pub(super) fn locate(
    known: &Known<'_>,
    stretch: &Stretch,
    (least, most): (i64, i64),
) -> Option<Located> {
    // Beyond these offsets, the stretch meets no stall.
    let ends = (stretch.centre - stretch.half, stretch.centre + stretch.half);
    let offsets = (least.max(-ends.1), most.min(known.stalls_end - ends.0));
    if offsets.0 > offsets.1 {
        return None;
    }
    let half = stretch.half as f64;
    // Drift may misplace a visit so far.
    let reach = (half * MOST_DRIFT * 1e-6) as i64 + 1;
    let step = known.ticks(MISPLACED) as f64 / half;
    let steps = (MOST_DRIFT * 1e-6 / step).ceil() as i64;
    let around = |of: &Best| {
        let from = (of.from - reach).max(offsets.0);
        (from, (of.to + reach).min(offsets.1))
    };
    let mut found: Vec<(Best, f64)> = Vec::new();
    let (mut ranges, mut edges) = (Vec::new(), Vec::new());
    for candidate in candidates(known, stretch, offsets, reach) {
        let bounds = around(&candidate);
        let beginnings = stretch.beginnings(known, bounds, BEGINNINGS);
        let mut at = |n: i64, wider: i64| {
            let slope = n as f64 * step;
            stretch.ranges(known, &beginnings, (slope, bounds), &mut ranges);
            for range in &mut ranges {
                *range = (range.0 - wider, range.1 + wider);
            }
            best(&ranges, &mut edges)
        };
        // Drifts in coarse steps, with ranges that are wider by what these misplace.
        let wider = known.ticks(MISPLACED) * COARSE / 2;
        let coarse = (-steps / COARSE)..=(steps / COARSE);
        let coarse: Vec<(u64, i64)> = coarse
            .map(|n| (at(n * COARSE, wider).count, n * COARSE))
            .collect();
        let most = coarse.iter().map(|(count, _)| *count).max().unwrap_or(0);
        let promising = coarse.iter().filter(|(count, _)| count * 20 >= most * 19);
        let fine = promising.flat_map(|(_, n)| n - COARSE / 2..n + COARSE / 2);
        let fine: Vec<(Best, i64)> = fine.map(|n| (at(n, 0), n)).collect();
        let most = fine.iter().map(|(of, _)| of.count).max().unwrap_or(0);
        let fit = || fine.iter().filter(|(of, _)| of.count == most);
        // The middle of the drifts that fit alike, if it fits as well.
        let sum: i64 = fit().map(|(_, n)| n).sum();
        let middle = sum / fit().count().max(1) as i64;
        let chosen = fit().min_by_key(|(_, n)| (n - middle).abs());
        found.extend(chosen.map(|(of, n)| (*of, *n as f64 * step)));
    }
    found.sort_by_key(|(range, _)| std::cmp::Reverse(range.count));
    let (range, slope) = found.first().copied().filter(|(of, _)| of.count > 0)?;
    // Beside it, too.
    let beside = around(&range);
    let beginnings = stretch.beginnings(known, beside, BEGINNINGS);
    stretch.ranges(known, &beginnings, (slope, beside), &mut ranges);
    let apart = known.ticks(APART).unsigned_abs();
    let by_chance = stretch.by_chance(known, range.middle());
    let nearly = UNCERTAIN.ln() / by_chance.0.max(by_chance.1).ln();
    let mut uncertain = range;
    peaks(&ranges, &mut edges, |peak| {
        let is_beside = peak.middle().abs_diff(range.middle()) <= apart;
        if is_beside && range.count.saturating_sub(peak.count) as f64 <= nearly {
            uncertain.from = uncertain.from.min(peak.from);
            uncertain.to = uncertain.to.max(peak.to);
        }
        found.push((peak, slope));
    });
    let others = found
        .into_iter()
        .filter(|(other, _)| other.middle().abs_diff(range.middle()) > apart);
    let other = others.max_by_key(|(other, _)| other.count);
    let (other, other_slope) = other.unwrap_or_default();
    Some(Located {
        centre: stretch.centre,
        half: stretch.half,
        range,
        uncertain: uncertain.width(),
        offset: range.middle(),
        slope,
        slope_error: step + range.width() as f64 / half,
        score: stretch.score(known, slope, range.middle()),
        elsewhere: match other.count {
            0 => Score::default(),
            _ => stretch.score(known, other_slope, other.middle()),
        },
        apart: other.middle().abs_diff(range.middle()),
        by_chance,
    })
}

/// The ranges of offsets that the landmarks and some beginnings of stalls allow most often, whatever the drift.
fn candidates(
    known: &Known<'_>,
    stretch: &Stretch,
    (least, most): (i64, i64),
    reach: i64,
) -> Vec<Best> {
    let landmarks = Stretch {
        visits: stretch.landmarks(),
        ..*stretch
    };
    let piece = known.ticks(PIECE).max(1);
    let mut kept: Vec<Best> = Vec::new();
    let (mut ranges, mut edges) = (Vec::new(), Vec::new());
    let mut from = least;
    while from <= most && !known.is_stopped() {
        let to = (from + piece).min(most);
        let bounds = (from - reach, to + reach);
        let beginnings = stretch.beginnings(known, bounds, FEW_BEGINNINGS);
        landmarks.ranges(known, &beginnings, (0.0, bounds), &mut ranges);
        for range in &mut ranges {
            *range = (range.0 - reach, range.1 + reach);
        }
        peaks(&ranges, &mut edges, |peak| kept.push(peak));
        if kept.len() > CANDIDATES * 64 {
            keep_best(&mut kept, reach);
        }
        from = to + 1;
    }
    keep_best(&mut kept, reach);
    let most = kept.first().map_or(0, |best| best.count);
    kept.retain(|range| range.count * 2 >= most);
    kept
}

/// Keeps the best ones that are not close to a better one.
fn keep_best(kept: &mut Vec<Best>, reach: i64) {
    kept.sort_by_key(|range| (std::cmp::Reverse(range.count), range.from));
    let mut chosen: Vec<Best> = Vec::new();
    for range in kept.drain(..) {
        let is_close = |of: &Best| of.middle().abs_diff(range.middle()) < reach.unsigned_abs();
        if chosen.len() < CANDIDATES && !chosen.iter().any(is_close) {
            chosen.push(range);
        }
    }
    *kept = chosen;
}

impl Located {
    /// Whether the offset fits, and no other one.
    pub(super) fn check(&self, known: &Known<'_>) -> Result<(), AlignError> {
        let Score { visits, inside, .. } = self.score;
        let is_enough = is_enough(usize::try_from(visits).unwrap_or(usize::MAX));
        if !is_enough || (inside as f64) < SHARE_INSIDE * visits as f64 {
            return Err(AlignError::Unrelated {
                inside,
                records: visits,
            });
        }
        // If the other offset were right, chance would have made the difference.
        let more = |own: u64, other: u64| own as f64 - other as f64;
        let (of_visits, of_stalls) = (
            more(inside, self.elsewhere.inside),
            more(self.score.begun, self.elsewhere.begun),
        );
        let (visit, stall) = self.by_chance;
        let chance = of_visits * visit.ln() + of_stalls * stall.ln();
        let is_clear = of_visits + of_stalls >= 4.0 && chance <= CHANCE.ln();
        if !is_clear && self.elsewhere.compared() == 0 {
            return Err(AlignError::Unproven {
                inside,
                records: visits,
            });
        }
        if !is_clear {
            return Err(AlignError::Ambiguous {
                apart: known.rates.probe.nanos(Ticks(self.apart)),
                inside: self.score.fits(),
                elsewhere: self.elsewhere.fits(),
                records: self.score.compared(),
            });
        }
        Ok(())
    }

    /// By how much it is better than the best one elsewhere.
    pub(super) fn margin(&self) -> i64 {
        let of = |score: &Score| i64::try_from(score.fits()).unwrap_or(i64::MAX >> 2);
        of(&self.score) - of(&self.elsewhere)
    }
}
