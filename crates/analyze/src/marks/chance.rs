//! How much of the stalled time lies in some spans of a run, and how often chance gives as much.
//!
//! The spans are shifted together by a random time, around the end of the run. A shift keeps their distances and those
//! of the stalls, so that periods on either side do not look like a relation. Stalled time is kept by bin, so stalls and
//! spans that are shorter than a bin are blurred over it.

use std::ops::Range;

/// Bins of a run: of ten seconds each has 38 us.
const BINS: usize = 1 << 18;
/// The part of a sum that bins may blur.
const BLUR: f64 = 0.01;
/// Random shifts.
const SHIFTS: u32 = 999;
/// The numbers are random, and the same for the same run.
const SEED: u64 = 0x006a_6974_7465_7273;

/// The stalled time of a run by bin, while stalls are added.
#[derive(Debug)]
pub(super) struct StalledOverTime {
    /// Nanoseconds.
    length: u64,
    /// Nanoseconds per bin.
    width: f64,
    /// Stalled nanoseconds in parts of a bin.
    parts: Vec<f64>,
    /// How many more stalls cover the whole bin than the one before.
    steps: Vec<f64>,
}

/// The stalled time of a run up to each bin.
pub(super) struct StalledUpTo {
    length: u64,
    width: f64,
    sums: Vec<f64>,
}

impl StalledOverTime {
    pub(super) fn new(length: u64) -> StalledOverTime {
        let length = length.max(1);
        StalledOverTime {
            length,
            width: length as f64 / BINS as f64,
            parts: vec![0.0; BINS],
            steps: vec![0.0; BINS + 1],
        }
    }

    /// Adds a stall: nanoseconds from the start of the run.
    pub(super) fn add(&mut self, at: &Range<u64>) {
        let [from, to] = [at.start, at.end].map(|time| time.min(self.length) as f64 / self.width);
        let [first, last] = [from, to].map(|bin| (bin as usize).min(BINS - 1));
        if first == last {
            self.parts[first] += (to - from) * self.width;
            return;
        }
        self.parts[first] += ((first + 1) as f64 - from) * self.width;
        self.parts[last] += (to - last as f64) * self.width;
        self.steps[first + 1] += 1.0;
        self.steps[last] -= 1.0;
    }

    pub(super) fn finish(self) -> StalledUpTo {
        let (mut sums, mut covered, mut sum) = (vec![0.0], 0.0, 0.0);
        for (part, step) in self.parts.iter().zip(&self.steps) {
            covered += step;
            sum += part + covered * self.width;
            sums.push(sum);
        }
        StalledUpTo {
            length: self.length,
            width: self.width,
            sums,
        }
    }
}

impl StalledUpTo {
    /// Stalled time per time.
    pub(super) fn mean(&self) -> f64 {
        self.sums[BINS] / self.length as f64
    }

    /// The share of shifts of these spans with at least as much stalled time inside, the spans as they are included.
    pub(super) fn chance(&self, spans: &[Range<u64>]) -> f64 {
        let inside = |shift: u64| -> f64 {
            let of = |span: &Range<u64>| self.within(span, shift);
            spans.iter().map(of).sum()
        };
        let found = inside(0);
        // Bins blur the edges of spans: a shift with hardly less has as much.
        let enough = found * (1.0 - BLUR);
        let mut random = fastrand::Rng::with_seed(SEED);
        let as_much = (0..SHIFTS).filter(|_| inside(random.u64(0..self.length)) >= enough);
        (as_much.count() + 1) as f64 / f64::from(SHIFTS + 1)
    }

    /// The stalled time in a span that is shifted around the end.
    fn within(&self, span: &Range<u64>, shift: u64) -> f64 {
        let length = (span.end - span.start).min(self.length);
        let from = span.start.wrapping_add(shift) % self.length;
        let to = from + length;
        if to <= self.length {
            self.up_to(to) - self.up_to(from)
        } else {
            self.up_to(self.length) - self.up_to(from) + self.up_to(to - self.length)
        }
    }

    fn up_to(&self, time: u64) -> f64 {
        let bin = time as f64 / self.width;
        let whole = (bin as usize).min(BINS);
        let next = self.sums[(whole + 1).min(BINS)];
        self.sums[whole] + (next - self.sums[whole]) * (bin - whole as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn every(period: u64, length: u64, run: u64) -> Vec<Range<u64>> {
        (0..run / period)
            .map(|n| n * period..n * period + length)
            .collect()
    }

    #[test]
    fn stalled_time_is_that_of_the_stalls() {
        let mut time = StalledOverTime::new(10 * SECOND);
        for at in every(SECOND / 3, 7_000_000, 9 * SECOND) {
            time.add(&at);
        }
        time.add(&(2 * SECOND..4 * SECOND));
        let time = time.finish();
        let all = 27.0 * 7e6 + 2e9;
        assert!((time.mean() * 1e10 - all).abs() < 10.0, "{}", time.mean());
        let half = time.within(&(0..5 * SECOND), 0);
        assert!((half - (15.0 * 7e6 + 2e9)).abs() < 40_000.0, "{half}");
        let around = time.within(&(0..5 * SECOND), 5 * SECOND);
        assert!((around - 12.0 * 7e6).abs() < 40_000.0, "{around}");
    }

    /// Random marks and random stalls: each chance is as frequent as it says.
    #[test]
    fn chance_is_even_where_there_is_no_relation() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut random_spans = |count: u64, length: u64| -> Vec<Range<u64>> {
            (0..count)
                .map(|_| random.u64(0..10 * SECOND - length))
                .map(|at| at..at + length)
                .collect()
        };
        let (tries, mut below) = (200, [0; 3]);
        for _ in 0..tries {
            let mut time = StalledOverTime::new(10 * SECOND);
            for at in random_spans(300, 2_000_000) {
                time.add(&at);
            }
            let chance = time.finish().chance(&random_spans(20, 5_000_000));
            for (count, limit) in below.iter_mut().zip([0.05, 0.2, 0.5]) {
                *count += usize::from(chance <= limit);
            }
        }
        // Of 200, within about three standard deviations.
        assert!((1..=20).contains(&below[0]), "{below:?}");
        assert!((23..=57).contains(&below[1]), "{below:?}");
        assert!((79..=121).contains(&below[2]), "{below:?}");
    }

    #[test]
    fn marks_around_stalls_are_no_chance_and_two_rhythms_alone_may_be() {
        let mut time = StalledOverTime::new(10 * SECOND);
        let mut random = fastrand::Rng::with_seed(3);
        let stalls: Vec<u64> = (0..20).map(|_| random.u64(0..9 * SECOND)).collect();
        for at in &stalls {
            time.add(&(*at..at + 3_000_000));
        }
        let time = time.finish();
        let around: Vec<_> = stalls
            .iter()
            .map(|at| at - at.min(&1_000_000)..at + 4_000_000)
            .collect();
        assert!(time.chance(&around) <= 0.002);
        // Ticks every 4 ms, and requests every 100 ms that begin with a tick: chance says so.
        let mut ticks = StalledOverTime::new(10 * SECOND);
        for at in every(4_000_000, 20_000, 10 * SECOND) {
            ticks.add(&at);
        }
        let requests = every(SECOND / 10, 8_000_000, 10 * SECOND);
        assert!(ticks.finish().chance(&requests) > 0.05);
    }
}
