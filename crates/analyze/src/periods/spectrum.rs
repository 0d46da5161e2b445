//! The power spectrum of binned counts, to find candidates.

use jitterscope_model::Nanos;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex32;

/// The shortest period unless said otherwise.
pub(super) const SHORTEST: Nanos = Nanos(500_000);

/// Frequencies (Hz) worth a closer look, at most `most`, between `lowest` and `highest`. `times` are
/// seconds from the start of a window of `span` seconds.
pub(super) fn candidates(times: &[f64], span: f64, lowest: f64, highest: f64, most: usize) -> Vec<f64> {
    let bins = enough(highest, span);
    let mean = times.len() as f32 / bins as f32;
    let mut values = vec![Complex32::new(-mean, 0.0); bins];
    for time in times {
        let bin = (time / span * bins as f64) as usize;
        values[bin.min(bins - 1)].re += 1.0;
    }
    FftPlanner::new().plan_fft_forward(bins).process(&mut values);
    let power = |k: usize| f64::from(values[k].norm_sqr());
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
    enough(1.0 / SHORTEST.as_secs_f64(), span)
}

/// Memory for one search: 8 MiB, and as much for the transform.
const MOST_BINS: usize = 1 << 20;

/// The highest frequency that the bins of a window can show, Hz.
pub(super) fn highest_frequency(span: f64) -> f64 {
    MOST_BINS as f64 / (2.0 * span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_show_twice_the_highest_frequency_as_far_as_memory_goes() {
        // Two thousand hertz; powers of two.
        assert_eq!([1e-3, 0.1, 1.0, 2.0, 10.0].map(bins), [64, 512, 4096, 8192, 65_536]);
        assert_eq!([262.0, 263.0, 1e6].map(bins), [1 << 20; 3]);
        assert_eq!(highest_frequency(8.0), 65_536.0);
    }

    #[test]
    fn a_clock_shows_with_its_overtones_the_lowest_first() {
        let clock: Vec<f64> = (0..500).map(|n| f64::from(n) * 0.02).collect();
        let of = |lowest: f64, highest: f64, most: usize| {
            let found = candidates(&clock, 10.0, lowest, highest, most);
            assert!(found.len() <= most && found.is_sorted_by(|a, b| a < b), "{found:?}");
            assert!(found.iter().all(|frequency| (lowest..highest).contains(frequency)), "{found:?}");
            found
        };
        // Half of the room is for the lowest of the strong ones.
        let found = of(0.5, 500.0, 8);
        assert!([50.0, 100.0, 150.0, 200.0].iter().all(|strong| found.contains(strong)), "{found:?}");
        assert_eq!(of(0.5, 500.0, 2)[0], 50.0);
        // From the lowest frequency asked for up to the highest.
        assert!(of(50.0, 120.0, 4).contains(&50.0) && of(50.0, 120.0, 4).contains(&100.0));
        assert!(of(60.0, 120.0, 4).contains(&100.0));
        assert!(of(50.0, 100.0, 4).contains(&50.0));
    }
}
