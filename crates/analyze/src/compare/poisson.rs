//! Two counts of rare independent events.

use super::Interval;
use super::distribution::{binomial_at_least, binomial_interval};

/// The number of events within a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    pub events: u64,
    pub seconds: f64,
}

impl Count {
    /// Events per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.events as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// The 95 % upper bound of the rate if no event came.
    #[must_use]
    pub fn bound_of_none(&self) -> Option<f64> {
        (self.events == 0 && self.seconds > 0.0).then(|| 3.0 / self.seconds)
    }
}

/// The factor by which the rates of two runs of one setting may differ. A single run of each cannot show their
/// variation: with a few hundred events, a machine that drifts by a tenth from run to run would look like a changed
/// one.
pub const RUNS_DIFFER: f64 = 1.5;

/// The probability that rates which differ by at most [`RUNS_DIFFER`] put the counts this far apart in either
/// direction, given their sum. It is exact, and valid only if events are independent or more even ([`dispersion`] of at
/// most 1).
#[must_use]
pub fn two_counts(first: Count, second: Count) -> f64 {
    let all = first.events.saturating_add(second.events);
    let (Some(more), Some(less)) = (
        second_share(first, second, RUNS_DIFFER),
        second_share(first, second, 1.0 / RUNS_DIFFER),
    ) else {
        return 1.0;
    };
    let above = binomial_at_least(second.events, all, more);
    let below = binomial_at_least(first.events, all, 1.0 - less);
    (2.0 * above.min(below)).min(1.0)
}

/// The confidence interval of the second rate over the first; from 0 or up to infinity if either saw no event.
#[must_use]
pub fn rate_ratio(first: Count, second: Count, level: f64) -> Option<Interval> {
    let all = first.events.saturating_add(second.events);
    if all == 0 || second_share(first, second, 1.0).is_none() {
        return None;
    }
    let (low, high) = binomial_interval(second.events, all, level);
    let ratio = |share: f64| share / (1.0 - share) * first.seconds / second.seconds;
    Some(Interval {
        low: ratio(low),
        high: ratio(high),
        level,
    })
}

/// The second run's expected share of all events if its rate were `ratio` times the first's.
fn second_share(first: Count, second: Count, ratio: f64) -> Option<f64> {
    let usable = first.seconds > 0.0 && second.seconds > 0.0;
    let weight = second.seconds * ratio;
    usable.then(|| weight / (first.seconds + weight))
}

/// Variance over mean of the counts of a run's equal blocks: 1 for independent events, less for even ones, more for
/// bursts. `None` for fewer than two blocks or no event.
#[must_use]
pub fn dispersion(blocks: &[u64]) -> Option<f64> {
    let counts: Vec<f64> = blocks.iter().map(|count| *count as f64).collect();
    let moments = super::sample::Moments::of(&counts)?;
    (moments.mean > 0.0).then(|| moments.deviation.powi(2) / moments.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(events: u64) -> Count {
        Count {
            events,
            seconds: 8.0,
        }
    }

    #[test]
    fn eight_and_none_differ_eight_and_eight_do_not() {
        assert!((two_counts(count(8), count(0)) - 2.0 * 0.6f64.powi(8)).abs() < 1e-9);
        assert!(two_counts(count(0), count(8)) < 0.05);
        // However many events there are, a fifth more may be run-to-run variation.
        assert_eq!(two_counts(count(100_000), count(120_000)), 1.0);
        assert!(two_counts(count(1000), count(2000)) < 0.001);
        assert_eq!(two_counts(count(8), count(8)), 1.0);
        assert_eq!(two_counts(count(0), count(0)), 1.0);
        // Twice the time is expected to have twice the events.
        let longer = Count {
            events: 16,
            seconds: 16.0,
        };
        assert!(two_counts(count(8), longer) > 0.9);
        assert_eq!(
            two_counts(
                Count {
                    events: 1,
                    seconds: 0.0
                },
                count(3)
            ),
            1.0
        );
    }

    #[test]
    fn the_ratio_lies_in_its_interval() {
        let ratio = rate_ratio(count(10), count(40), 0.95).unwrap();
        assert!(
            ratio.low > 1.9 && ratio.low < 2.1 && ratio.high > 8.5 && ratio.high < 9.5,
            "{ratio:?}"
        );
        let gone = rate_ratio(count(8), count(0), 0.95).unwrap();
        assert!(gone.low == 0.0 && gone.high < 0.6, "{gone:?}");
        assert!(
            rate_ratio(count(0), count(5), 0.95)
                .unwrap()
                .high
                .is_infinite()
        );
        assert_eq!(rate_ratio(count(0), count(0), 0.95), None);
    }

    #[test]
    fn bursts_are_told_from_what_comes_evenly() {
        assert!(dispersion(&[1, 0, 1, 0, 1, 0, 1, 0]).unwrap() < 1.0);
        assert!(dispersion(&[0, 0, 8, 0, 0, 0, 0, 0]).unwrap() > 1.0);
        assert_eq!(dispersion(&[3, 3, 3]).unwrap(), 0.0);
        assert_eq!(dispersion(&[0, 0]), None);
        assert_eq!(dispersion(&[5]), None);
    }

    #[test]
    fn nothing_seen_is_a_bound() {
        assert_eq!(count(0).bound_of_none(), Some(3.0 / 8.0));
        assert_eq!(count(1).bound_of_none(), None);
    }

    #[test]
    fn counts_of_unequal_times_are_compared_by_their_rates() {
        let twice = |events| Count {
            events,
            seconds: 16.0,
        };
        let (equal, longer) = (
            rate_ratio(count(10), count(40), 0.95).unwrap(),
            rate_ratio(count(10), twice(40), 0.95).unwrap(),
        );
        assert!(
            (longer.low - equal.low / 2.0).abs() < 1e-9
                && (longer.high - equal.high / 2.0).abs() < 1e-9
        );
        // Exact bounds of 40 in 50: 66.28 to 89.97 % (Clopper and Pearson).
        assert!(
            (equal.low - 0.6628 / 0.3372).abs() < 2e-3
                && (equal.high - 0.8997 / 0.1003).abs() < 2e-2
        );
        // If the second rate is two thirds of the first, it has 4/7 of all events in twice the time.
        assert!((two_counts(count(8), twice(0)) - 2.0 * (3f64 / 7.0).powi(8)).abs() < 1e-9);
        assert!((two_counts(twice(0), count(8)) - 2.0 * (3f64 / 7.0).powi(8)).abs() < 1e-9);
        let never = Count {
            events: 1,
            seconds: 0.0,
        };
        assert_eq!(
            [
                rate_ratio(never, count(3), 0.95),
                rate_ratio(count(3), never, 0.95)
            ],
            [None; 2]
        );
        assert_eq!(
            (never.rate(), Count { events: 0, ..never }.bound_of_none()),
            (0.0, None)
        );
        assert_eq!(two_counts(count(3), never), 1.0);
    }

    #[test]
    fn dispersion_is_variance_over_mean() {
        assert!((dispersion(&[1, 3]).unwrap() - 1.0).abs() < 1e-12);
        assert!((dispersion(&[0, 2, 4, 6]).unwrap() - 20.0 / 3.0 / 3.0).abs() < 1e-12);
    }
}
