//! The largest difference that does not matter, fixed before the data are seen.

use super::{Interval, Scale};
use serde::Serialize;

/// A share of the first arm's figure. For shares of the time also an absolute difference that nobody notices, but at
/// most half of the first arm's figure: on a quiet CPU a doubling is a change, however small it is. Only the level of
/// the first arm counts, never its scatter, which may only raise the number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// The share of the first arm's figure; 0.1 by default.
    pub relative: f64,
    /// In the figure's own unit; 0 if only the share counts.
    pub absolute: f64,
}

impl Margin {
    pub const RELATIVE: f64 = 0.1;
    /// The default difference of a stolen share: 0.1 percentage points.
    pub const STOLEN: f64 = 0.001;
    /// The largest share of the first arm's figure that the absolute difference may be.
    const OF_LEVEL: f64 = 0.5;
    /// The absolute difference where the first arm has nothing: a microsecond a second.
    const LEAST: f64 = 1e-6;

    /// The margin as a reported change: a share of the first arm's `middle`, or a difference.
    #[must_use]
    pub fn change(&self, scale: Scale, middle: f64) -> f64 {
        let floor = match self.absolute {
            0.0 => 0.0,
            absolute => absolute.min((Margin::OF_LEVEL * middle).max(Margin::LEAST)),
        };
        match scale {
            Scale::Ratio if middle > 0.0 => self.relative.max(floor / middle),
            Scale::Ratio => self.relative,
            Scale::Difference => (self.relative * middle).max(floor),
        }
    }

    /// The margin as a distance on the scale, upwards.
    pub(super) fn distance(&self, scale: Scale, middle: f64) -> f64 {
        let change = self.change(scale, middle);
        match scale {
            Scale::Ratio => change.ln_1p(),
            Scale::Difference => change,
        }
    }

    /// Whether an interval of changes lies completely within the margin.
    #[must_use]
    pub fn holds(&self, changes: &Interval, scale: Scale, middle: f64) -> bool {
        let margin = self.change(scale, middle);
        margin > 0.0 && changes.low >= -margin && changes.high <= margin
    }
}

impl Default for Margin {
    fn default() -> Margin {
        Margin {
            relative: Margin::RELATIVE,
            absolute: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_both_counts() {
        let stolen = Margin {
            relative: 0.1,
            absolute: Margin::STOLEN,
        };
        assert!((stolen.change(Scale::Ratio, 0.05) - 0.1).abs() < 1e-12);
        assert!((stolen.change(Scale::Ratio, 0.002) - 0.5).abs() < 1e-12);
        assert_eq!(stolen.change(Scale::Difference, 0.004), 0.001);
        let within = Interval {
            low: -0.0005,
            high: 0.0009,
            level: 0.9,
        };
        assert!(stolen.holds(&within, Scale::Difference, 0.004));
        // On a quiet CPU that would be a doubling or more.
        for level in [1e-3, 1e-4, 1e-5] {
            assert!((stolen.change(Scale::Ratio, level) - 0.5).abs() < 1e-12);
            assert!((stolen.change(Scale::Difference, level) - level / 2.0).abs() < 1e-12);
        }
        assert_eq!(stolen.change(Scale::Difference, 0.0), 1e-6);
        // The zero margin allows nothing.
        assert!(!Margin::default().holds(
            &Interval {
                low: 0.0,
                high: 0.0,
                level: 0.9
            },
            Scale::Difference,
            0.0
        ));
    }

    #[test]
    fn a_share_of_zero_is_the_share_and_distances_are_log_ratios() {
        let stolen = Margin {
            relative: 0.1,
            absolute: Margin::STOLEN,
        };
        assert_eq!(stolen.change(Scale::Ratio, 0.0), 0.1);
        assert!((stolen.change(Scale::Difference, 0.05) - 0.005).abs() < 1e-12);
        assert!((stolen.distance(Scale::Ratio, 0.05) - 1.1f64.ln()).abs() < 1e-12);
        assert!((stolen.distance(Scale::Difference, 0.05) - 0.005).abs() < 1e-12);
        // Both ends must lie within.
        let holds = |low, high| {
            stolen.holds(
                &Interval {
                    low,
                    high,
                    level: 0.9,
                },
                Scale::Ratio,
                1.0,
            )
        };
        assert_eq!(
            [holds(-0.1, 0.1), holds(-0.11, 0.0), holds(0.0, 0.11)],
            [true, false, false]
        );
    }
}
