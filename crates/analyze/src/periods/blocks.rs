//! Phase coherence that bursts do not fake.
//!
//! The H-test assumes independent events. Stalls come in bursts, at all scales: the events of a burst have close phases
//! at many frequencies, and a few bursts look like a period. A burst cannot fake agreement *between* bursts. So the
//! window is cut into blocks. Each block counts as one observation, the vector sum of its events' phases, and only the
//! agreement of blocks is judged: for overtone k
//!
//! ```text
//! T_k = |Σ_b v_bk|² / Σ_b |v_bk|²      v_bk = Σ_{events of block b} exp(2πi k f t)
//! ```
//!
//! Given the lengths |v_bk|, and uniform and independent block phases, E T_k^p <= p! (Khintchine's inequality for
//! Steinhaus sums). These are the moments of the exponential distribution that plain events have asymptotically, so
//! 2·ΣT_k replaces Z²ₘ in the H statistic, and the effective number of blocks replaces the number of events. Blocks
//! shorter than a burst count its events separately, longer blocks do not. The length of bursts is unknown, so the
//! statistic is the worst over lengths from one event a block to [`FEWEST_BLOCKS`] blocks. A clock has the same phase
//! in all blocks and loses little.

use super::htest::OVERTONES;
use std::f64::consts::TAU;

/// The number of blocks in the coarsest cut. Fewer cannot separate agreement from chance after all tried frequencies.
const FEWEST_BLOCKS: usize = 24;

/// The sums over a block's events: cosine and sine for each overtone.
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

/// The H statistic of `times` (ascending, seconds within a window of `span`) at a frequency, minimised over the length
/// of blocks.
pub(super) fn h(times: &[f64], span: f64, frequency: f64) -> f64 {
    let events: Vec<Vectors> = times
        .iter()
        .map(|time| Vectors::of(*time, frequency))
        .collect();
    let mut worst = h_of(&events);
    // Cuts in steps of a factor of two, each at two offsets, because a cut may split a burst.
    let mut blocks = FEWEST_BLOCKS;
    while blocks < 2 * times.len() {
        for offset in [0.0, 0.5] {
            worst = worst.min(h_of(&gathered(
                times,
                &events,
                blocks as f64 / span,
                offset,
            )));
        }
        blocks *= 2;
    }
    worst
}

/// The vectors of blocks of 1/`per_second` seconds, without empty blocks.
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
        // With few effective blocks, high overtones find coincidences instead of pulses.
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
        // 500 events within a millisecond, and no others: one observation.
        let burst: Vec<f64> = (0..500).map(|n| 3.0 + f64::from(n) * 2e-6).collect();
        assert!(super::super::htest::h(&burst, 50.0) > 300.0);
        assert!(h(&burst, 10.0, 50.0) < 5.0);
    }

    fn near(found: f64, wanted: f64) {
        assert!(
            (found - wanted).abs() < 1e-9 * (1.0 + wanted.abs()),
            "{found} {wanted}"
        );
    }

    /// Times about every twenty milliseconds.
    fn jittered(count: u32) -> Vec<f64> {
        let mut random = jitterscope_testing::SplitMix64(3);
        (0..count)
            .map(|n| f64::from(n) * 0.02 + random.uniform() * 4e-3)
            .collect()
    }

    #[test]
    fn a_vector_turns_by_the_phase_with_every_overtone() {
        let Vectors(found) = Vectors::of(1.3, 0.5);
        for (k, (c, s)) in (1..).zip(found) {
            let angle = 1.3 * 0.5 * f64::from(k) * TAU;
            assert!(
                (c - angle.cos()).abs() < 1e-9 && (s - angle.sin()).abs() < 1e-9,
                "{k}"
            );
        }
    }

    #[test]
    fn one_event_a_block_is_the_plain_test() {
        for count in [1, 2, 5, 7, 8, 31, 59, 61, 200] {
            let times = jittered(count);
            let events: Vec<Vectors> = times.iter().map(|time| Vectors::of(*time, 50.0)).collect();
            near(h_of(&events), super::super::htest::h(&times, 50.0));
        }
        assert_eq!(h_of(&[]), 0.0);
        assert_eq!(h_of(&[Vectors::ZERO; 3]), 0.0);
    }

    #[test]
    fn a_block_counts_by_the_length_of_its_vector() {
        let block = |c: f64, s: f64| {
            let mut of = Vectors::ZERO;
            of.0[0] = (c, s);
            of
        };
        // |(3, 0) + (0, 4) + (3, 4)|^2 over 9 + 16 + 25, twice; the zero overtones end the sum.
        near(
            h_of(&[block(3.0, 0.0), block(0.0, 4.0), block(3.0, 4.0)]),
            2.0 * (36.0 + 64.0) / 50.0,
        );
        near(h_of(&[block(1.0, 0.0), block(-1.0, 0.0)]), 0.0);
    }

    #[test]
    fn few_blocks_of_weight_have_few_overtones() {
        // One block of weight ten and five of one: 11025 / 10005 effective blocks, whatever the number.
        let of = |times: &[f64], weight: u32| {
            let mut all: Vec<Vectors> = times.iter().map(|time| Vectors::of(*time, 50.0)).collect();
            let heavy = all[0];
            (1..weight).for_each(|_| all[0].add(&heavy));
            h_of(&all)
        };
        let aligned: Vec<f64> = (0..6).map(|n| f64::from(n) * 0.02).collect();
        // All with the same phase: the first overtone alone, (10 + 5)^2 / (100 + 5).
        near(of(&aligned, 10), 2.0 * 225.0 / 105.0);
        // Six equal blocks have two overtones: twice 2 * 36 / 6, less 4.
        near(of(&aligned, 1), 20.0);
    }

    #[test]
    fn events_of_one_block_are_added_up() {
        let times = [0.1, 0.2, 1.1, 1.9, 2.5];
        let events = times.map(|time| Vectors::of(time, 0.3));
        let sums = |blocks: &[&[usize]]| -> Vec<(f64, f64)> {
            let sum = |block: &&[usize]| {
                block.iter().fold((0.0, 0.0), |sum, at| {
                    (sum.0 + events[*at].0[0].0, sum.1 + events[*at].0[0].1)
                })
            };
            blocks.iter().map(sum).collect()
        };
        for (per_second, offset, blocks) in [
            (1.0, 0.0, &[&[0, 1][..], &[2, 3], &[4]][..]),
            (1.0, 0.5, &[&[0, 1], &[2], &[3], &[4]]),
            (0.5, 0.0, &[&[0, 1, 2, 3], &[4]]),
            (10.0, 0.0, &[&[0], &[1], &[2], &[3], &[4]]),
        ] {
            let found = gathered(&times, &events, per_second, offset);
            let wanted = sums(blocks);
            assert_eq!(found.len(), wanted.len(), "{per_second} {offset}");
            for (Vectors(found), wanted) in found.iter().zip(wanted) {
                near(found[0].0, wanted.0);
                near(found[0].1, wanted.1);
            }
        }
    }

    #[test]
    fn the_judgement_is_that_of_the_cut_that_says_least() {
        // Bursts of eight within two milliseconds, each at its own phase: each counts as one event.
        let mut random = jitterscope_testing::SplitMix64(9);
        let starts: Vec<f64> = (0..40)
            .map(|n| f64::from(n) * 0.25 + 0.1 * random.uniform())
            .collect();
        let bursts: Vec<f64> = starts
            .iter()
            .flat_map(|start| (0..8).map(move |n| start + f64::from(n) * 2.5e-4))
            .collect();
        let frequency = 20.0;
        let (plain, judged) = (
            super::super::htest::h(&bursts, frequency),
            h(&bursts, 10.0, frequency),
        );
        let alone = super::super::htest::h(&starts, frequency);
        assert!(
            judged < 1.3 * alone + 1.0 && plain > 3.0 * judged,
            "{plain} {judged} {alone}"
        );
        // Never more than event by event, nor than any cut.
        let events: Vec<Vectors> = bursts
            .iter()
            .map(|time| Vectors::of(*time, frequency))
            .collect();
        let cut = |blocks: f64, offset| h_of(&gathered(&bursts, &events, blocks / 10.0, offset));
        let least = [24.0, 48.0, 96.0, 192.0, 384.0]
            .into_iter()
            .flat_map(|blocks| [cut(blocks, 0.0), cut(blocks, 0.5)])
            .fold(h_of(&events), f64::min);
        near(judged, least);
    }
}
