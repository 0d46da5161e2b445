//! Phase coherence that bursts do not fake.
//!
//! The H-test takes events to be independent. Stalls come in bursts, at all scales: a burst's events have
//! phases close together at many frequencies, and a few bursts look like a period. What a burst cannot fake
//! is agreement *between* bursts. So the window is cut into blocks; each block counts with the vector sum
//! of its events' phases, as one observation, and only the agreement of blocks is judged: for overtone k
//!
//! ```text
//! T_k = |Σ_b v_bk|² / Σ_b |v_bk|²      v_bk = Σ_{events of block b} exp(2πi k f t)
//! ```
//!
//! Given the lengths |v_bk|, and block phases that are uniform and independent, E T_k^p <= p! (Khintchine's
//! inequality for Steinhaus sums), the moments of the exponential that plain events have asymptotically,
//! so 2·ΣT_k takes the place of Z²ₘ in the H statistic, with the effective number of blocks in the place of
//! the number of events. Blocks shorter than a burst let its events count apart, blocks longer than it do
//! not; no one knows how long bursts are, so the judgement is the worst over lengths from one event a block
//! to [`FEWEST_BLOCKS`] blocks. A clock has the same phase in all of them and loses little.

use super::htest::OVERTONES;
use std::f64::consts::TAU;

/// Blocks of the coarsest cut: fewer cannot tell agreement from chance after all frequencies tried.
const FEWEST_BLOCKS: usize = 24;

/// Sums over the events of a block: cosine and sine for each overtone.
#[derive(Clone, Copy)]
struct Vectors([(f64, f64); OVERTONES]);

impl Vectors {
    const ZERO: Vectors = Vectors([(0.0, 0.0); OVERTONES]);

    fn of(time: f64, frequency: f64) -> Vectors {
        let (sin, cos) = ((time * frequency).fract() * TAU).sin_cos();
        let mut vectors = Vectors::ZERO;
        let (mut c, mut s) = (cos, sin);
        for vector in &mut vectors.0 {
            *vector = (c, s);
            (c, s) = (c * cos - s * sin, s * cos + c * sin);
        }
        vectors
    }

    fn add(&mut self, other: &Vectors) {
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            own.0 += more.0;
            own.1 += more.1;
        }
    }
}

/// The H statistic of `times` (ascending, seconds within a window of `span`) at a frequency, over blocks of
/// that length which makes it smallest.
pub(super) fn h(times: &[f64], span: f64, frequency: f64) -> f64 {
    let events: Vec<Vectors> = times.iter().map(|time| Vectors::of(*time, frequency)).collect();
    let mut worst = h_of(&events);
    // Cuts in steps of a factor of two, each at two offsets, for a cut may go through a burst.
    let mut blocks = FEWEST_BLOCKS;
    while blocks < 2 * times.len() {
        for offset in [0.0, 0.5] {
            worst = worst.min(h_of(&gathered(times, &events, blocks as f64 / span, offset)));
        }
        blocks *= 2;
    }
    worst
}

/// The vectors of blocks of 1/`per_second`, those without events left out.
fn gathered(times: &[f64], events: &[Vectors], per_second: f64, offset: f64) -> Vec<Vectors> {
    let mut blocks: Vec<Vectors> = Vec::new();
    let mut last = None;
    for (time, vectors) in times.iter().zip(events) {
        let block = (time * per_second + offset) as u64;
        match blocks.last_mut().filter(|_| last == Some(block)) {
            Some(sum) => sum.add(vectors),
            None => blocks.push(*vectors),
        }
        last = Some(block);
    }
    blocks
}

fn h_of(blocks: &[Vectors]) -> f64 {
    let (mut best, mut sum) = (0.0_f64, 0.0);
    for k in 0..OVERTONES {
        let (mut c, mut s, mut squares, mut fourths) = (0.0, 0.0, 0.0, 0.0);
        for Vectors(vectors) in blocks {
            let (cos, sin) = vectors[k];
            let square = cos * cos + sin * sin;
            c += cos;
            s += sin;
            squares += square;
            fourths += square * square;
        }
        if squares <= 0.0 {
            break;
        }
        // With few blocks of weight high overtones find coincidences, not pulses.
        let effective = squares * squares / fourths;
        if k > 0 && ((k + 1) * 3) as f64 > effective {
            break;
        }
        sum += 2.0 * (c * c + s * s) / squares;
        best = best.max(sum - 4.0 * k as f64);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_agrees_in_all_blocks_and_one_burst_in_none_but_its_own() {
        let clock: Vec<f64> = (0..500).map(|n| f64::from(n) * 0.02).collect();
        let one_a_block = super::super::htest::h(&clock, 50.0);
        assert!(h(&clock, 10.0, 50.0) > 300.0 && one_a_block > 300.0);
        // 500 events within a millisecond, and nothing else: one observation.
        let burst: Vec<f64> = (0..500).map(|n| 3.0 + f64::from(n) * 2e-6).collect();
        assert!(super::super::htest::h(&burst, 50.0) > 300.0);
        assert!(h(&burst, 10.0, 50.0) < 5.0);
    }
}
