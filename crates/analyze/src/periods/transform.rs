//! The powers of a long series of counts at all frequencies, in the memory of the series.
//!
//! A planned transform of 2^20 bins takes four times its data for factors and scratch, and would be by far the largest
//! item in a recorder's memory. So two neighbouring real bins form one complex number; the series is split by frequency
//! (Gentleman and Sande 1966) until its parts are short; the library transforms the parts; and the powers replace their
//! inputs.

use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftDirection};
use std::f64::consts::PI;

/// The number of complex numbers in one transform.
const BLOCK: usize = 1 << 13;

/// |X(k)|² of a series of real numbers, for k up to half their number.
pub(super) struct Powers {
    /// Each power is in the real part at `place(k)`.
    values: Vec<Complex32>,
    /// The number of splits in two.
    splits: u32,
}

impl Powers {
    /// The powers of `bins` counts less their mean. `events` are the bins of the events; bins beyond the end count as
    /// the last one. `bins` is a power of two and at least 4.
    pub(super) fn of_counts(events: impl ExactSizeIterator<Item = usize>, bins: usize) -> Powers {
        let mean = events.len() as f32 / bins as f32;
        let mut values = vec![Complex32::new(-mean, -mean); bins / 2];
        for bin in events {
            let bin = bin.min(bins - 1);
            let pair = &mut values[bin / 2];
            *(if bin.is_multiple_of(2) {
                &mut pair.re
            } else {
                &mut pair.im
            }) += 1.0;
        }
        let mut powers = Powers {
            splits: split(&mut values),
            values,
        };
        let block = powers.values.len() >> powers.splits;
        // What the library plans for a power of two. Its planner would bring the code for all other lengths.
        Radix4::new(block, FftDirection::Forward).process(&mut powers.values);
        powers.square();
        powers
    }

    /// The power at `k` periods in the window; `k` is less than half the number of bins.
    pub(super) fn at(&self, k: usize) -> f32 {
        self.values[self.place(k)].re
    }

    /// The index of number k of the pairs' transform: each split consumed the lowest remaining bit of k.
    fn place(&self, k: usize) -> usize {
        let block = self.values.len() >> self.splits;
        let low = k & ((1 << self.splits) - 1);
        let part = if self.splits == 0 {
            0
        } else {
            low.reverse_bits() >> (usize::BITS - self.splits)
        };
        part * block + (k >> self.splits)
    }

    /// Replaces the transform of the pairs by the powers of the series.
    fn square(&mut self) {
        let pairs = self.values.len();
        let zero = self.values[0];
        self.values[0].re = (zero.re + zero.im).powi(2);
        for k in 1..=pairs / 2 {
            let (here, mirror) = (self.place(k), self.place(pairs - k));
            let (own, other) = (self.values[here], self.values[mirror].conj());
            let even = (own + other) * 0.5;
            let odd = (own - other) * Complex32::new(0.0, -0.5) * root(k, 2 * pairs);
            self.values[here].re = (even + odd).norm_sqr();
            self.values[mirror].re = (even - odd).norm_sqr();
        }
    }
}

/// Splits until a part is no longer than a block; returns the number of splits. The first half yields the even numbers
/// of the transform, the second half the odd ones.
fn split(values: &mut [Complex32]) -> u32 {
    let (mut length, mut splits) = (values.len(), 0);
    while length > BLOCK {
        let half = length / 2;
        for k in 0..half {
            let factor = root(k, length);
            for part in values.chunks_exact_mut(length) {
                let (first, second) = (part[k], part[k + half]);
                part[k] = first + second;
                part[k + half] = (first - second) * factor;
            }
        }
        (length, splits) = (half, splits + 1);
    }
    splits
}

/// exp(-2πi k/n).
fn root(k: usize, n: usize) -> Complex32 {
    let (sin, cos) = (-2.0 * PI * k as f64 / n as f64).sin_cos();
    Complex32::new(cos as f32, sin as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustfft::FftPlanner;

    #[test]
    fn the_powers_are_those_of_a_plain_transform_whatever_the_length() {
        for bins in [4, 64, 2 * BLOCK, 4 * BLOCK, 16 * BLOCK] {
            let mut random = 12345u64;
            let mut next = || {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as usize % (bins + 1)
            };
            let events: Vec<usize> = (0..300).map(|_| next()).collect();
            let powers = Powers::of_counts(events.iter().copied(), bins);
            let mean = events.len() as f32 / bins as f32;
            let mut plain = vec![Complex32::new(-mean, 0.0); bins];
            events
                .iter()
                .for_each(|bin| plain[(*bin).min(bins - 1)].re += 1.0);
            FftPlanner::new().plan_fft_forward(bins).process(&mut plain);
            let largest = plain.iter().map(Complex32::norm_sqr).fold(0.0, f32::max);
            for (k, expected) in plain[..bins / 2].iter().enumerate() {
                let (power, expected) = (powers.at(k), expected.norm_sqr());
                assert!(
                    (power - expected).abs() <= 1e-4 * largest,
                    "{bins} bins, {k}: {power} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_pulse_in_each_eighth_bin_has_power_only_at_its_multiples() {
        let bins = 8 * BLOCK;
        let powers = Powers::of_counts((0..bins / 8).map(|n| 8 * n), bins);
        let each = (bins / 8) as f32;
        for k in 0..bins / 2 {
            let expected = if k > 0 && k.is_multiple_of(bins / 8) {
                each * each
            } else {
                0.0
            };
            assert!(
                (powers.at(k) - expected).abs() <= 1e-3 * each * each,
                "{k}: {}",
                powers.at(k)
            );
        }
    }
}
