//! Tests of uniform phase.

use std::f64::consts::TAU;

/// The number of overtones of the H-test, as its authors chose it.
pub(super) const OVERTONES: usize = 20;

/// Z²ₘ for m = 1 to `overtones`: with uniform phases each is χ² with 2m degrees of freedom.
fn z_squared(times: &[f64], frequency: f64, overtones: usize) -> [f64; OVERTONES] {
    let (mut cosines, mut sines) = ([0.0; OVERTONES], [0.0; OVERTONES]);
    for time in times {
        let phase = (time * frequency).fract() * TAU;
        let (sin, cos) = phase.sin_cos();
        let (mut s, mut c) = (sin, cos);
        for k in 0..overtones {
            cosines[k] += c;
            sines[k] += s;
            // The next multiple of the angle.
            (s, c) = (s * cos + c * sin, c * cos - s * sin);
        }
    }
    let mut z = [0.0; OVERTONES];
    let mut sum = 0.0;
    for k in 0..overtones {
        sum += (cosines[k] * cosines[k] + sines[k] * sines[k]) * 2.0 / times.len() as f64;
        z[k] = sum;
    }
    z
}

/// Z²ₘ at the largest m.
pub(super) fn z_at(times: &[f64], frequency: f64, overtones: usize) -> f64 {
    z_squared(times, frequency, overtones)[overtones - 1]
}

/// Frequencies of a [`z_grid`].
pub(super) const GRID: usize = 17;

/// [`z_at`] at `first`, `first + step` and so on. The phase of a time at the next frequency is the last one rotated by
/// a fixed angle: two sines and cosines for each time, for any number of frequencies.
pub(super) fn z_grid(times: &[f64], first: f64, step: f64, overtones: usize) -> [f64; GRID] {
    let (mut cosines, mut sines) = ([[0.0; GRID]; OVERTONES], [[0.0; GRID]; OVERTONES]);
    for time in times {
        let angle = |frequency: f64| ((time * frequency).fract() * TAU).sin_cos();
        let ((mut s, mut c), (turn_s, turn_c)) = (angle(first), angle(step));
        let (mut sin, mut cos) = ([0.0; GRID], [0.0; GRID]);
        for n in 0..GRID {
            (sin[n], cos[n]) = (s, c);
            (s, c) = (s * turn_c + c * turn_s, c * turn_c - s * turn_s);
        }
        let (mut s, mut c) = (sin, cos);
        for (sines, cosines) in sines.iter_mut().zip(&mut cosines).take(overtones) {
            for n in 0..GRID {
                cosines[n] += c[n];
                sines[n] += s[n];
                // The next multiple of the angle.
                (s[n], c[n]) = (s[n] * cos[n] + c[n] * sin[n], c[n] * cos[n] - s[n] * sin[n]);
            }
        }
    }
    let power = |k: usize, n: usize| cosines[k][n] * cosines[k][n] + sines[k][n] * sines[k][n];
    std::array::from_fn(|n| {
        (0..overtones).map(|k| power(k, n)).sum::<f64>() * 2.0 / times.len() as f64
    })
}

/// The H statistic: the largest of Z²ₘ - 4m + 4, with each event counted separately.
#[cfg(test)]
pub(super) fn h(times: &[f64], frequency: f64) -> f64 {
    // With few events, high overtones find coincidences instead of pulses.
    let overtones = (times.len() / 3).clamp(1, OVERTONES);
    let z = z_squared(times, frequency, overtones);
    z[..overtones]
        .iter()
        .enumerate()
        .map(|(k, z)| z - 4.0 * k as f64)
        .fold(0.0, f64::max)
}

/// The natural logarithm of the probability that uniform phases give an H this large.
pub(super) fn ln_probability(h: f64) -> f64 {
    -0.398_405 * h
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_testing::SplitMix64;

    #[test]
    fn a_grid_says_of_each_frequency_what_is_said_of_it_alone() {
        let mut random = SplitMix64(5);
        let mut times: Vec<f64> = (0..300)
            .map(|n| f64::from(n) * 0.01 + random.uniform() * 1e-3)
            .collect();
        times.extend((0..200).map(|_| random.uniform() * 3.0));
        for (first, step, overtones) in
            [(99.0, 0.125, 1), (1.0, 0.5, 4), (1_999.0, 1e-3, OVERTONES)]
        {
            let grid = z_grid(&times, first, step, overtones);
            for (n, found) in (0..).zip(grid) {
                let alone = z_at(&times, first + f64::from(n) * step, overtones);
                assert!(
                    (found - alone).abs() < 1e-7 * (1.0 + alone),
                    "{first} {n}: {found} and {alone}"
                );
            }
        }
    }

    /// Some times every ten milliseconds and some at random.
    fn mixed(regular: u32, random: usize) -> Vec<f64> {
        let mut seed = SplitMix64(11);
        let mut times: Vec<f64> = (0..regular)
            .map(|n| f64::from(n) * 0.01 + seed.uniform() * 1e-3)
            .collect();
        times.extend((0..random).map(|_| seed.uniform() * 3.0));
        times
    }

    /// Rayleigh's statistic of each overtone from its own angles: 2/n ((sum of cosines)^2 + (sum of sines)^2).
    fn of_overtone(times: &[f64], frequency: f64, overtone: usize) -> f64 {
        let angles = || {
            times
                .iter()
                .map(|time| time * frequency * overtone as f64 * TAU)
        };
        let (c, s) = (
            angles().map(f64::cos).sum::<f64>(),
            angles().map(f64::sin).sum::<f64>(),
        );
        2.0 * (c * c + s * s) / times.len() as f64
    }

    #[test]
    fn z_squared_sums_the_statistics_of_the_overtones() {
        let times = mixed(60, 30);
        for frequency in [100.0, 33.3, 7.0] {
            let mut sum = 0.0;
            for overtones in 1..=OVERTONES {
                sum += of_overtone(&times, frequency, overtones);
                let found = z_at(&times, frequency, overtones);
                assert!(
                    (found - sum).abs() < 1e-6 * (1.0 + sum),
                    "{frequency} {overtones}: {found} {sum}"
                );
            }
        }
    }

    #[test]
    fn h_is_the_best_of_all_numbers_of_overtones_that_so_few_events_allow() {
        for (regular, random, most) in [(2, 0, 1), (5, 1, 2), (20, 10, 10), (50, 30, 20)] {
            let times = mixed(regular, random);
            let best = (1..=most)
                .map(|m| z_at(&times, 100.0, m) - 4.0 * (m - 1) as f64)
                .fold(0.0, f64::max);
            assert!((h(&times, 100.0) - best).abs() < 1e-9, "{regular} {random}");
        }
        // de Jager and Büsching: approximately exp(-0.4 H).
        assert!((ln_probability(10.0) + 4.0).abs() < 0.02);
    }
}
