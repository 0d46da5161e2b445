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
/// How far visits at the ends of a stretch may be misplaced by a wrong drift.
const MISPLACED: Nanos = Nanos(600);
/// Offsets that are closer together are one.
const APART: Nanos = Nanos(20_000);
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
    pub(super) offset: i64,
    /// How fast the offset grows, and how far that may be off.
    pub(super) slope: f64,
    pub(super) slope_error: f64,
    pub(super) records: u64,
    pub(super) inside: u64,
    /// How many the best offset elsewhere fits, and how far away it is.
    pub(super) elsewhere: u64,
    apart: u64,
    /// The share of time in stalls.
    coverage: f64,
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

    /// The visits that last longest.
    fn landmarks(&self) -> Vec<Visit> {
        let mut visits = self.visits.clone();
        visits.sort_by_key(|visit| (visit.first - visit.last, visit.first));
        visits.truncate(LANDMARKS);
        visits
    }
}

/// Finds the best offset of a stretch between these bounds.
pub(super) fn locate(known: &Known<'_>, stretch: &Stretch, offsets: (i64, i64)) -> Located {
    let half = stretch.half as f64;
    // Drift may misplace a visit so far.
    let reach = (half * MOST_DRIFT * 1e-6) as i64 + 1;
    let step = known.ticks(MISPLACED) as f64 / half;
    let steps = (MOST_DRIFT * 1e-6 / step).ceil() as i64;
    // No drift first: it wins unless another one fits more.
    let slopes = || (0..=steps).flat_map(|n| [n, -n]).map(|n| n as f64 * step);
    let mut found: Vec<(Best, f64)> = Vec::new();
    let (mut ranges, mut edges) = (Vec::new(), Vec::new());
    for candidate in candidates(known, stretch, offsets, reach) {
        let bounds = (
            (candidate.from - reach).max(offsets.0),
            (candidate.to + reach).min(offsets.1),
        );
        let mut of_candidate = (Best::default(), 0.0);
        for slope in slopes() {
            allowed(known, stretch, slope, bounds, &mut ranges);
            let here = best(&ranges, &mut edges);
            if here.count > of_candidate.0.count {
                of_candidate = (here, slope);
            }
        }
        found.push(of_candidate);
    }
    found.sort_by_key(|(range, _)| std::cmp::Reverse(range.count));
    let (range, slope) = found.first().copied().unwrap_or_default();
    let apart = known.ticks(APART);
    let is_elsewhere = |other: &Best| other.middle().abs_diff(range.middle()) > apart as u64;
    // Beside it, too.
    let beside = (
        (range.from - reach).max(offsets.0),
        (range.to + reach).min(offsets.1),
    );
    allowed(known, stretch, slope, beside, &mut ranges);
    let mut others: Vec<Best> = found.iter().map(|(range, _)| *range).collect();
    peaks(&ranges, &mut edges, |peak| others.push(peak));
    let elsewhere = others
        .into_iter()
        .filter(is_elsewhere)
        .max_by_key(|of| of.count);
    let elsewhere = elsewhere.unwrap_or_default();
    Located {
        centre: stretch.centre,
        half: stretch.half,
        range,
        offset: range.middle(),
        slope,
        slope_error: step + range.width() as f64 / half,
        records: stretch.visits.len() as u64,
        inside: range.count,
        elsewhere: elsewhere.count,
        apart: elsewhere.middle().abs_diff(range.middle()),
        coverage: coverage(known, stretch, range.middle()),
    }
}

/// The offsets at the centre that each visit allows if the offset grows by `slope`.
fn allowed(
    known: &Known<'_>,
    stretch: &Stretch,
    slope: f64,
    bounds: (i64, i64),
    into: &mut Vec<(i64, i64)>,
) {
    into.clear();
    for visit in &stretch.visits {
        let moved = ((visit.first - stretch.centre) as f64 * slope) as i64;
        known.of[visit.cpu].allowed(visit, moved, bounds, into);
    }
}

/// The ranges of offsets that the landmarks allow most often, whatever the drift.
fn candidates(
    known: &Known<'_>,
    stretch: &Stretch,
    (least, most): (i64, i64),
    reach: i64,
) -> Vec<Best> {
    let landmarks = stretch.landmarks();
    let piece = known.ticks(PIECE).max(1);
    let mut kept: Vec<Best> = Vec::new();
    let (mut ranges, mut edges) = (Vec::new(), Vec::new());
    let mut from = least;
    while from <= most {
        let to = (from + piece).min(most);
        ranges.clear();
        for visit in &landmarks {
            known.of[visit.cpu].allowed(visit, 0, (from - reach, to + reach), &mut ranges);
        }
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

/// The share of the stretch that its busiest CPU spent in stalls.
fn coverage(known: &Known<'_>, stretch: &Stretch, offset: i64) -> f64 {
    let (from, to) = (
        stretch.centre - stretch.half + offset,
        stretch.centre + stretch.half + offset,
    );
    let of_cpu = |of: &super::overlap::OfCpu| {
        let begin = of.stalls.partition_point(|(_, end)| *end < from);
        let met = of.stalls[begin..]
            .iter()
            .take_while(|(start, _)| *start < to);
        let stalled: i64 = met
            .map(|(start, end)| (*end).min(to) - (*start).max(from))
            .sum();
        stalled as f64 / (to - from).max(1) as f64
    };
    known.of.iter().map(of_cpu).fold(0.0, f64::max)
}

impl Located {
    /// By how many visits it is better than the best offset elsewhere.
    pub(super) fn margin(&self) -> u64 {
        self.inside.saturating_sub(self.elsewhere)
    }

    /// Whether the offset fits, and no other one.
    pub(super) fn check(&self, known: &Known<'_>) -> Result<(), AlignError> {
        let (inside, records) = (self.inside, self.records);
        if (inside as f64) < SHARE_INSIDE * records as f64 {
            return Err(AlignError::Unrelated { inside, records });
        }
        // If the other offset were right, chance would have put the difference into stalls.
        let per_visit = self.coverage.clamp(1e-3, 0.999).ln();
        let needed = (CHANCE.ln() / per_visit).ceil().max(4.0);
        if (self.margin() as f64) < needed {
            return Err(AlignError::Ambiguous {
                apart: known.rates.probe.nanos(Ticks(self.apart)),
                inside,
                elsewhere: self.elsewhere,
                records,
            });
        }
        Ok(())
    }
}
