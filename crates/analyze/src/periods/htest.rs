//! Tests of uniform phase.

use std::f64::consts::TAU;

/// Overtones that the H-test looks at, as its authors have it.
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

/// Z²ₘ at the highest m.
pub(super) fn z_at(times: &[f64], frequency: f64, overtones: usize) -> f64 {
    z_squared(times, frequency, overtones)[overtones - 1]
}

/// The H statistic: the largest of Z²ₘ - 4m + 4, each event counting by itself.
#[cfg(test)]
pub(super) fn h(times: &[f64], frequency: f64) -> f64 {
    // With few events high overtones find coincidences, not pulses.
    let overtones = (times.len() / 3).clamp(1, OVERTONES);
    let z = z_squared(times, frequency, overtones);
    z[..overtones].iter().enumerate().map(|(k, z)| z - 4.0 * k as f64).fold(0.0, f64::max)
}

/// The natural logarithm of the probability that uniform phases give an H as large.
pub(super) fn ln_probability(h: f64) -> f64 {
    -0.398_405 * h
}
