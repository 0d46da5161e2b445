//! An estimated change with its confidence interval.

use super::Scale;
use super::distribution::{t_below, t_quantile};
use super::sample::{Moments, mean};
use schemars::JsonSchema;
use serde::Serialize;

/// An interval that covers a value with a stated probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// In JSON null if there is no lower bound.
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// In JSON null if there is no upper bound.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// The probability: 0.95.
    pub level: f64,
}

impl Interval {
    /// The hull of this interval and another of the same level, if there is one.
    #[must_use]
    pub fn and(self, other: Option<Interval>) -> Interval {
        let Some(other) = other else { return self };
        Interval {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            level: self.level,
        }
    }

    #[must_use]
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// The difference of the second arm from the first, on a [`Scale`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    pub scale: Scale,
    pub distance: f64,
    pub error: f64,
    /// The degrees of freedom of `error`.
    pub freedom: f64,
    /// The standard deviation of the distance of one pair, or of one run of each arm.
    pub deviation: f64,
}

impl Effect {
    /// The effect of paired runs (first arm, second arm), from the t distribution of their distances. `None` for fewer
    /// than two pairs.
    #[must_use]
    pub fn paired(first: &[f64], second: &[f64]) -> Option<Effect> {
        let (scale, distances) = distances(first, second);
        let moments = Moments::of(&distances)?;
        Some(Effect {
            scale,
            distance: moments.mean,
            error: moments.error(),
            freedom: (moments.count - 1) as f64,
            deviation: moments.deviation,
        })
    }

    /// The effect of unpaired runs (Welch: the arms may have different variances). `None` for fewer than two in an arm.
    #[must_use]
    pub fn unpaired(first: &[f64], second: &[f64]) -> Option<Effect> {
        let scale = Scale::of(first.iter().chain(second).copied());
        let on_scale = |figures: &[f64]| {
            figures
                .iter()
                .map(|f| scale.position(*f))
                .collect::<Vec<f64>>()
        };
        let (a, b) = (
            Moments::of(&on_scale(first))?,
            Moments::of(&on_scale(second))?,
        );
        let (va, vb) = (a.error().powi(2), b.error().powi(2));
        let below = va.powi(2) / (a.count - 1) as f64 + vb.powi(2) / (b.count - 1) as f64;
        // Identical runs have no variance.
        let freedom = if below > 0.0 {
            (va + vb).powi(2) / below
        } else {
            (a.count + b.count - 2) as f64
        };
        Some(Effect {
            scale,
            distance: b.mean - a.mean,
            error: (va + vb).sqrt(),
            freedom,
            deviation: (a.deviation.powi(2) + b.deviation.powi(2)).sqrt(),
        })
    }

    /// The half width of the interval of this level, on the scale: that of Student's t, or that of the family's test if
    /// it is larger. The family's test divides by no smaller error than `least`.
    pub(super) fn half_width(&self, level: f64, critical: f64, least: f64) -> f64 {
        let times = |limit: f64, error: f64| if error > 0.0 { limit * error } else { 0.0 };
        times(t_quantile(0.5 + level / 2.0, self.freedom), self.error)
            .max(times(critical, self.error.max(least)))
    }

    /// The probability that chance alone makes t this large, in either direction.
    pub(super) fn probability(&self) -> f64 {
        match self.distance.abs() {
            0.0 => 1.0,
            _ if self.error == 0.0 => 0.0,
            distance => 2.0 * (1.0 - t_below(distance / self.error, self.freedom)),
        }
    }

    /// The interval of this half width, as a reported change; `None` if a bound is not finite.
    pub(super) fn change_interval_within(&self, level: f64, half: f64) -> Option<Interval> {
        let interval = Interval {
            low: self.scale.change(self.distance - half),
            high: self.scale.change(self.distance + half),
            level,
        };
        (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
    }

    /// The interval of this level, on the scale.
    #[must_use]
    pub fn interval(&self, level: f64) -> Interval {
        let half = match self.error {
            0.0 => 0.0,
            error => t_quantile(0.5 + level / 2.0, self.freedom) * error,
        };
        Interval {
            low: self.distance - half,
            high: self.distance + half,
            level,
        }
    }

    /// The interval of this level as a reported change: shares of the first arm, or differences.
    #[must_use]
    pub fn change_interval(&self, level: f64) -> Interval {
        let Interval { low, high, .. } = self.interval(level);
        Interval {
            low: self.scale.change(low),
            high: self.scale.change(high),
            level,
        }
    }
}

/// The distances of pairs, and their scale. Runs without a partner are ignored.
#[must_use]
pub fn distances(first: &[f64], second: &[f64]) -> (Scale, Vec<f64>) {
    let pairs = first.iter().zip(second);
    let scale = Scale::of(pairs.clone().flat_map(|(a, b)| [*a, *b]));
    (
        scale,
        pairs
            .map(|(a, b)| scale.position(*b) - scale.position(*a))
            .collect(),
    )
}

/// The centre of an arm on its scale, in the figure's own unit: the geometric mean if all figures are above zero.
#[must_use]
pub fn middle(scale: Scale, figures: &[f64]) -> f64 {
    match scale {
        Scale::Ratio => mean(
            &figures
                .iter()
                .map(|figure| figure.ln())
                .collect::<Vec<f64>>(),
        )
        .exp(),
        Scale::Difference => mean(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paired_interval_is_that_of_the_textbook() {
        // Differences 1, 2, 3 of logarithms: mean 2, error 1/sqrt(3), t(2) = 4.3027.
        let first = [1.0, 1.0, 1.0];
        let second = [1f64.exp(), 2f64.exp(), 3f64.exp()];
        let effect = Effect::paired(&first, &second).unwrap();
        assert_eq!(effect.scale, Scale::Ratio);
        let interval = effect.interval(0.95);
        assert!(
            (interval.low - (2.0 - 4.3027 / 3f64.sqrt())).abs() < 1e-3,
            "{interval:?}"
        );
        assert!((effect.distance - 2.0).abs() < 1e-12);
        assert_eq!(Effect::paired(&[1.0], &[2.0]), None);
    }

    #[test]
    fn a_zero_makes_it_a_difference() {
        let effect = Effect::paired(&[8.0, 9.0], &[0.0, 1.0]).unwrap();
        assert_eq!(
            (effect.scale, effect.distance, effect.error),
            (Scale::Difference, -8.0, 0.0)
        );
        assert_eq!(
            effect.interval(0.95),
            Interval {
                low: -8.0,
                high: -8.0,
                level: 0.95
            }
        );
        // Zero against zero is no ratio either.
        assert_eq!(
            Effect::unpaired(&[0.0, 0.0], &[0.0, 0.0]).unwrap().scale,
            Scale::Difference
        );
    }

    #[test]
    fn welch_shares_out_unequal_scatter() {
        // Differences, because one figure is zero: means 1 and 5, variances 2/3 and 6 of four runs each.
        let effect = Effect::unpaired(&[0.0, 1.0, 1.0, 2.0], &[2.0, 5.0, 5.0, 8.0]).unwrap();
        assert_eq!((effect.scale, effect.distance), (Scale::Difference, 4.0));
        assert!((effect.error - (20f64 / 12.0).sqrt()).abs() < 1e-12);
        // (1/6 + 3/2)^2 / ((1/6)^2/3 + (3/2)^2/3)
        assert!(
            (effect.freedom - 3.658_536_585).abs() < 1e-6,
            "{}",
            effect.freedom
        );
    }

    #[test]
    fn arms_of_unequal_size_share_out_what_each_of_them_knows() {
        // Differences, because one figure is zero: variances 2 of two runs and 4 of three, means 1 and 6.
        let effect = Effect::unpaired(&[0.0, 2.0], &[4.0, 6.0, 8.0]).unwrap();
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-3, "{found} {expected}")
        };
        near(effect.error, (2f64 / 2.0 + 4.0 / 3.0).sqrt());
        near(effect.deviation, 6f64.sqrt());
        // (1 + 4/3)^2 / (1^2/1 + (4/3)^2/2), and the quantile of t at that freedom.
        near(effect.freedom, 49.0 / 17.0);
        let interval = effect.interval(0.9);
        near(interval.width() / 2.0 / effect.error, 2.393_04);
        near(f64::midpoint(interval.low, interval.high), 5.0);
        assert_eq!(effect.change_interval(0.9), interval);
        // Identical runs have no variance.
        let alike = Effect::unpaired(&[0.0; 3], &[2.0; 5]).unwrap();
        assert_eq!(
            (alike.freedom, alike.error, alike.interval(0.95).width()),
            (6.0, 0.0, 0.0)
        );
    }

    #[test]
    fn an_interval_with_another_holds_both() {
        let of = |low, high| Interval {
            low,
            high,
            level: 0.9,
        };
        assert_eq!(of(-1.0, 2.0).and(Some(of(0.0, 3.0))), of(-1.0, 3.0));
        assert_eq!(of(-1.0, 2.0).and(Some(of(-2.0, 1.0))), of(-2.0, 2.0));
        assert_eq!(of(-1.0, 2.0).and(None), of(-1.0, 2.0));
        assert_eq!(of(-1.0, 2.5).width(), 3.5);
    }
}
