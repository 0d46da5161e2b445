//! The power spectrum of binned counts, as the source of candidates.

use super::transform::Powers;
use jitterscope_model::Nanos;

/// The default shortest period.
pub(super) const SHORTEST: Nanos = Nanos(500_000);

/// At most `most` candidate frequencies (Hz) between `lowest` and `highest`. `times` are seconds from the start of a
/// window of `span` seconds.
pub(super) fn candidates(
    times: &[f64],
    span: f64,
    lowest: f64,
    highest: f64,
    most: usize,
) -> Vec<f64> {
    let bins = enough(highest, span);
    let powers = Powers::of_counts(
        times
            .iter()
            .map(|time| (time / span * bins as f64) as usize),
        bins,
    );
    let first = ((lowest * span).ceil() as usize).max(1);
    let last = ((highest * span) as usize).min(bins / 2 - 1);
    let peaks = || {
        (first..last)
            .map(|k| (powers.at(k), k))
            .filter(|(power, k)| *power >= powers.at(k - 1) && *power >= powers.at(k + 1))
    };
    let strongest = strongest(peaks(), most);
    // The overtones of a pulse train are as strong as its fundamental, so the lowest strong frequencies are as good
    // candidates as the strongest.
    let strong = strongest.first().map_or(0.0, |peak| peak.0 / 3.0);
    let low = peaks()
        .filter(|(power, _)| *power >= strong)
        .map(|(_, k)| k);
    let mut chosen: Vec<usize> = low.take(most / 2).collect();
    chosen.extend(
        strongest
            .iter()
            .take(most - chosen.len())
            .map(|peak| peak.1),
    );
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|k| k as f64 / span).collect()
}

/// The `most` highest peaks, the highest first and of equal ones the first: a long window has hundreds of thousands.
fn strongest(peaks: impl Iterator<Item = (f32, usize)>, most: usize) -> Vec<(f32, usize)> {
    let mut kept: Vec<(f32, usize)> = Vec::with_capacity(most + 1);
    for peak in peaks {
        let place = kept.partition_point(|higher| higher.0 >= peak.0);
        if place < most {
            kept.insert(place, peak);
            kept.truncate(most);
        }
    }
    kept
}

/// The number of bins that resolves frequencies up to `highest`.
fn enough(highest: f64, span: f64) -> usize {
    ((2.0 * highest * span).ceil() as usize)
        .min(MOST_BINS)
        .next_power_of_two()
        .clamp(64, MOST_BINS)
}

/// The number of bins of a search for periods of the usual lengths.
pub(super) fn bins(span: f64) -> usize {
    enough(1.0 / SHORTEST.as_secs_f64(), span)
}

/// The memory bound of one search: four bytes a bin, so 4 MiB.
const MOST_BINS: usize = 1 << 20;

/// The highest frequency that the bins of a window resolve, Hz.
pub(super) fn highest_frequency(span: f64) -> f64 {
    MOST_BINS as f64 / (2.0 * span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_peaks_are_kept_in_order_and_of_equal_ones_the_first() {
        let peaks = [(1.0, 1), (5.0, 2), (3.0, 3), (5.0, 4), (2.0, 5), (4.0, 6)];
        assert_eq!(
            strongest(peaks.into_iter(), 3),
            [(5.0, 2), (5.0, 4), (4.0, 6)]
        );
        assert_eq!(
            strongest(peaks.into_iter().take(2), 3),
            [(5.0, 2), (1.0, 1)]
        );
        assert_eq!(strongest(peaks.into_iter(), 0), []);
    }

    #[test]
    fn bins_show_twice_the_highest_frequency_as_far_as_memory_goes() {
        // Two thousand hertz; powers of two.
        assert_eq!(
            [1e-3, 0.1, 1.0, 2.0, 10.0].map(bins),
            [64, 512, 4096, 8192, 65_536]
        );
        assert_eq!([262.0, 263.0, 1e6].map(bins), [1 << 20; 3]);
        assert_eq!(highest_frequency(8.0), 65_536.0);
    }

    #[test]
    fn a_clock_shows_with_its_overtones_the_lowest_first() {
        let clock: Vec<f64> = (0..500).map(|n| f64::from(n) * 0.02).collect();
        let of = |lowest: f64, highest: f64, most: usize| {
            let found = candidates(&clock, 10.0, lowest, highest, most);
            assert!(
                found.len() <= most && found.is_sorted_by(|a, b| a < b),
                "{found:?}"
            );
            assert!(
                found
                    .iter()
                    .all(|frequency| (lowest..highest).contains(frequency)),
                "{found:?}"
            );
            found
        };
        // Half of the places are for the lowest strong frequencies.
        let found = of(0.5, 500.0, 8);
        assert!(
            [50.0, 100.0, 150.0, 200.0]
                .iter()
                .all(|strong| found.contains(strong)),
            "{found:?}"
        );
        assert_eq!(of(0.5, 500.0, 2)[0], 50.0);
        // From the lowest requested frequency to the highest.
        assert!(of(50.0, 120.0, 4).contains(&50.0) && of(50.0, 120.0, 4).contains(&100.0));
        assert!(of(60.0, 120.0, 4).contains(&100.0));
        assert!(of(50.0, 100.0, 4).contains(&50.0));
    }
}
