//! Counted lengths, with exact queries.

use jitterscope_model::ProbeResult;

/// A share of a whole in millionths: the 99.9th percentile is 999,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ppm(pub(crate) u32);

const MILLION: u128 = 1_000_000;
/// The ratio of adjacent waits.
const STEP: f64 = 1.02;

/// Lengths in ticks, ascending, each with its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(Vec<(u64, u64)>);

impl Counts {
    /// All deltas of a CPU. Below the threshold they are exact; a stall counts as the upper end of its bucket, but
    /// never as more than the longest seen.
    pub(crate) fn deltas(result: &ProbeResult) -> Counts {
        let below = result
            .below
            .iter()
            .map(|(ticks, count)| (u64::from(*ticks), *count));
        Counts::collect(below.chain(Counts::capped(result)))
    }

    /// Only the stalls of a CPU.
    pub(crate) fn stalls(result: &ProbeResult) -> Counts {
        Counts::collect(Counts::capped(result))
    }

    /// From rows of lengths and counts.
    pub(crate) fn of(rows: &[(u64, u64)]) -> Counts {
        Counts::collect(rows.iter().copied())
    }

    pub(crate) fn sum(&self) -> u128 {
        self.0
            .iter()
            .map(|(length, n)| u128::from(*length) * u128::from(*n))
            .fold(0, u128::saturating_add)
    }

    fn capped(result: &ProbeResult) -> impl Iterator<Item = (u64, u64)> + '_ {
        result
            .above
            .iter()
            .map(|(ticks, count)| ((*ticks).min(result.max_ticks), *count))
    }

    fn collect(entries: impl Iterator<Item = (u64, u64)>) -> Counts {
        let mut entries: Vec<(u64, u64)> = entries.filter(|(_, count)| *count > 0).collect();
        entries.sort_unstable();
        entries.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        Counts(entries)
    }

    pub(crate) fn merged(&self, other: &Counts) -> Counts {
        Counts::collect(self.0.iter().chain(&other.0).copied())
    }

    /// Lengths, ascending, each with its count.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn len(&self) -> u128 {
        self.0.iter().map(|(_, count)| u128::from(*count)).sum()
    }

    /// The smallest length that at least `share` of all do not exceed (nearest rank).
    pub(crate) fn quantile(&self, share: Ppm) -> Option<u64> {
        let rank = (self.len() * u128::from(share.0)).div_ceil(MILLION).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(ticks, count)| {
            seen += u128::from(*count);
            (seen >= rank).then_some(*ticks)
        })
    }

    /// As [`Counts::quantile`], if at least `least` lengths lie above the share; a percentile that rests on fewer is
    /// not reliable.
    pub(crate) fn supported_quantile(&self, share: Ppm, least: u128) -> Option<u64> {
        let above = self.len() * (MILLION - u128::from(share.0).min(MILLION));
        if above >= least * MILLION {
            self.quantile(share)
        } else {
            None
        }
    }

    /// The waits of all moments until the next clock read, ascending, each with its share of the time in ticks: a
    /// moment within a length waits for anything up to it. A wait counts as the upper end of its step, at most
    /// [`STEP`] above the lower one.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (f64, f64)> {
        let mut waits = Vec::new();
        let (mut longer, mut below) = (self.len() as f64, 0.0);
        for (length, count) in &self.0 {
            let length = *length as f64;
            while below < length {
                let next = if below == 0.0 {
                    length / 16.0
                } else {
                    below * STEP
                };
                // The last step ends at the length: a sliver is no step of its own.
                let next = if next * 1.001 > length { length } else { next };
                waits.push((next, longer * (next - below)));
                below = next;
            }
            longer -= *count as f64;
        }
        waits.into_iter()
    }

    /// The longest wait of a random instant until the next clock read, with probability `share`: the r at which the sum
    /// of max(0, length - r) falls to the remaining share of all time. Every instant counts alike, so a long stall
    /// weighs by its length and no omission needs correction.
    pub(crate) fn residual(&self, share: Ppm) -> Option<f64> {
        let weigh = |(ticks, count): &(u64, u64)| u128::from(*ticks) * u128::from(*count);
        let total = self.0.iter().map(weigh).fold(0u128, u128::saturating_add);
        let over = MILLION - u128::from(share.0).min(MILLION);
        let remaining = (total as f64) * (over as f64) / 1e6;
        let (mut longer, mut their_sum) = (0u128, 0u128);
        for entry in self.0.iter().rev() {
            let excess = their_sum.saturating_sub(longer.saturating_mul(u128::from(entry.0)));
            if excess as f64 > remaining {
                break;
            }
            longer += u128::from(entry.1);
            their_sum = their_sum.saturating_add(weigh(entry));
        }
        (longer > 0).then(|| ((their_sum as f64 - remaining) / longer as f64).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spread(entries: &[(u64, u64)]) -> Vec<u64> {
        let mut all: Vec<u64> = entries
            .iter()
            .flat_map(|(ticks, count)| (0..*count).map(|_| *ticks))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Counts::default().quantile(Ppm(500_000)), None);
        assert_eq!(Counts::default().residual(Ppm(500_000)), None);
    }

    #[test]
    fn an_instant_at_random_feels_long_stalls_by_their_length() {
        // Half of all time is one stall of 1000: a quarter of all instants wait 500 or more.
        let counts = Counts::collect([(1, 1000), (1000, 1)].into_iter());
        let r = counts.residual(Ppm(750_000)).unwrap();
        assert!((r - 500.0).abs() < 1e-6, "{r}");
    }

    #[test]
    fn what_was_never_seen_is_not_there_and_equals_are_one() {
        let counts = Counts::of(&[(7, 2), (3, 0), (5, 1), (7, 4)]);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(5, 1), (7, 6)]);
        assert_eq!((counts.len(), counts.sum()), (7, 47));
        assert_eq!(Counts::of(&[(3, 0)]), Counts::default());
        assert_eq!((Counts::default().len(), Counts::default().sum()), (0, 0));
    }

    #[test]
    fn an_instant_waits_between_nothing_and_the_longest() {
        let counts = Counts::of(&[(10, 50), (500, 1)]);
        // A thousand equal lengths have half of all time; their last hundred have a tenth of it.
        assert_eq!(
            [0, 1_000_000].map(|share| counts.residual(Ppm(share))),
            [Some(0.0), Some(500.0)]
        );
        assert_eq!(counts.residual(Ppm(900_000)), Some(400.0));
    }

    #[test]
    fn a_percentile_is_supported_by_what_lies_above_it() {
        let counts = |n| Counts::of(&[(10, n)]);
        let reported = |n, share| counts(n).supported_quantile(Ppm(share), 10);
        assert_eq!(
            [reported(999, 990_000), reported(1_000, 990_000)],
            [None, Some(10)]
        );
        assert_eq!([reported(9, 0), reported(10, 0)], [None, Some(10)]);
        assert_eq!(reported(1_000_000, 1_000_000), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_list(
            entries in proptest::collection::vec((0u64..500, 0u64..20), 1..30),
            share in 0u32..=1_000_000,
        ) {
            let all = spread(&entries);
            let expected = (!all.is_empty()).then(|| {
                let rank = (all.len() as u128 * u128::from(share)).div_ceil(MILLION).max(1);
                all[rank as usize - 1]
            });
            prop_assert_eq!(Counts::collect(entries.into_iter()).quantile(Ppm(share)), expected);
        }

        #[test]
        fn residuals_leave_the_share_that_they_say(
            entries in proptest::collection::vec((1u64..500, 1u64..20), 1..30),
            share in 0u32..=1_000_000,
        ) {
            let all = spread(&entries);
            let total: u64 = all.iter().sum();
            let r = Counts::collect(entries.into_iter()).residual(Ppm(share)).unwrap();
            let longer: f64 = all.iter().map(|g| (*g as f64 - r).max(0.0)).sum();
            let wanted = total as f64 * (1e6 - f64::from(share)) / 1e6;
            prop_assert!((longer - wanted).abs() <= 1e-6 * total as f64, "{} {} {}", r, longer, wanted);
        }

        #[test]
        fn waits_have_all_of_the_time_and_leave_what_residuals_leave(
            entries in proptest::collection::vec((1u64..500, 1u64..20), 1..30),
            share in 0u32..=1_000_000,
        ) {
            let counts = Counts::collect(entries.into_iter());
            let waits: Vec<(f64, f64)> = counts.waits().collect();
            let total: f64 = waits.iter().map(|(_, time)| time).sum();
            prop_assert!((total / counts.sum() as f64 - 1.0).abs() < 1e-9);
            prop_assert!(waits.is_sorted_by(|a, b| a.0 < b.0));
            let r = counts.residual(Ppm(share)).unwrap();
            let over: f64 = waits.iter().filter(|(wait, _)| *wait > r).map(|(_, time)| time).sum();
            let above = total * (1.0 - f64::from(share) / 1e6);
            // The step in which the residual lies may be above it or below.
            let step = waits.iter().find(|(wait, _)| *wait > r).map_or(0.0, |(_, time)| *time);
            prop_assert!(over >= above - 1e-6 * total && over - step <= above + 1e-6 * total);
        }

        #[test]
        fn merging_is_concatenating(
            a in proptest::collection::vec((0u64..50, 0u64..20), 0..30),
            b in proptest::collection::vec((0u64..50, 0u64..20), 0..30),
        ) {
            let merged = Counts::collect(a.iter().copied()).merged(&Counts::collect(b.iter().copied()));
            prop_assert_eq!(spread(&merged.0), spread(&[a, b].concat()));
        }

        #[test]
        fn hostile_numbers_do_not_panic(
            entries in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..5),
            share in 0u32..=1_000_000,
        ) {
            let counts = Counts::collect(entries.into_iter());
            let _ = (counts.quantile(Ppm(share)), counts.residual(Ppm(share)));
        }
    }
}
