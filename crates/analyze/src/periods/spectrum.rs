//! The power spectrum of binned counts, to find candidates.

/// Frequencies (Hz) worth a closer look, at most `most`, between `lowest` and `highest`. `times` are
/// seconds from the start of a window of `span` seconds.
pub(super) fn candidates(times: &[f64], span: f64, lowest: f64, highest: f64, most: usize) -> Vec<f64> {
    let bins = enough(highest, span);
    let (mut re, mut im) = (vec![0.0f64; bins], vec![0.0f64; bins]);
    for time in times {
        let bin = (time / span * bins as f64) as usize;
        re[bin.min(bins - 1)] += 1.0;
    }
    let mean = times.len() as f64 / bins as f64;
    re.iter_mut().for_each(|value| *value -= mean);
    transform(&mut re, &mut im);
    let power = |k: usize| re[k] * re[k] + im[k] * im[k];
    let first = ((lowest * span).ceil() as usize).max(1);
    let last = ((highest * span) as usize).min(bins / 2 - 1);
    let mut peaks: Vec<(f64, usize)> = (first..last)
        .filter(|k| power(*k) >= power(k - 1) && power(*k) >= power(k + 1))
        .map(|k| (power(k), k))
        .collect();
    peaks.sort_by(|a, b| b.0.total_cmp(&a.0));
    // A train of pulses is as strong in its overtones as in its fundamental; of the strong ones the
    // lowest are therefore as good as the strongest.
    let strong = peaks.first().map_or(0.0, |peak| peak.0 / 3.0);
    let mut low: Vec<usize> = peaks.iter().take_while(|peak| peak.0 >= strong).map(|peak| peak.1).collect();
    low.sort_unstable();
    let mut chosen: Vec<usize> = low.into_iter().take(most / 2).collect();
    chosen.extend(peaks.iter().take(most - chosen.len()).map(|peak| peak.1));
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|k| k as f64 / span).collect()
}

/// Bins that show frequencies up to `highest`.
fn enough(highest: f64, span: f64) -> usize {
    ((2.0 * highest * span).ceil() as usize).min(MOST_BINS).next_power_of_two().clamp(64, MOST_BINS)
}

/// Bins of a search for periods of the usual lengths.
pub(super) fn bins(span: f64) -> usize {
    enough(1.0 / super::search::SHORTEST.as_secs_f64(), span)
}

/// Memory for one search: 16 MiB.
const MOST_BINS: usize = 1 << 20;

/// The highest frequency that the bins of a window can show, Hz.
pub(super) fn highest_frequency(span: f64) -> f64 {
    MOST_BINS as f64 / (2.0 * span)
}

/// The discrete Fourier transform in place (Cooley and Tukey 1965); the length is a power of two.
fn transform(re: &mut [f64], im: &mut [f64]) {
    let n = re.len();
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            re.swap(i, j);
            im.swap(i, j);
        }
    }
    let mut half = 1;
    while half < n {
        let step = -std::f64::consts::PI / half as f64;
        let turns: Vec<(f64, f64)> = (0..half).map(|k| (step * k as f64).sin_cos()).collect();
        for start in (0..n).step_by(2 * half) {
            for (k, (sin, cos)) in turns.iter().enumerate() {
                let (a, b) = (start + k, start + k + half);
                let (tr, ti) = (re[b] * cos - im[b] * sin, re[b] * sin + im[b] * cos);
                (re[b], im[b]) = (re[a] - tr, im[a] - ti);
                (re[a], im[a]) = (re[a] + tr, im[a] + ti);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_that_of_the_definition() {
        let signal: Vec<f64> = (0..16).map(|i| f64::from(i * i % 7)).collect();
        let (mut re, mut im) = (signal.clone(), vec![0.0; 16]);
        transform(&mut re, &mut im);
        for k in 0..16 {
            let sum = signal.iter().enumerate().fold((0.0, 0.0), |(r, i), (t, x)| {
                let (sin, cos) = (-std::f64::consts::TAU * (k * t) as f64 / 16.0).sin_cos();
                (r + x * cos, i + x * sin)
            });
            assert!((re[k] - sum.0).abs() < 1e-9 && (im[k] - sum.1).abs() < 1e-9);
        }
    }
}
