//! Two counts of rare independent events.

use super::Interval;
use super::distribution::binomial_interval;

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
}

/// The confidence interval of the second rate over the first; from 0 or up to infinity if either saw no event.
pub(super) fn rate_ratio(first: Count, second: Count, level: f64) -> Option<Interval> {
    let all = first.events.saturating_add(second.events);
    if all == 0 || first.seconds <= 0.0 || second.seconds <= 0.0 {
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
        assert_eq!(never.rate(), 0.0);
    }
}
