//! Sequential looks at an experiment that keep its overall error rate.

use super::distribution::{t_below, t_quantile};
use super::effect::{distances, middle};
use super::sample::Moments;
use super::{Design, Grain, Margin, Scale, fewest};
use serde::Serialize;

/// A planned look at the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// The number of pairs before this look.
    pub pairs: usize,
    /// The alpha of this look. All looks together have 0.05.
    pub alpha: f64,
}

/// The planned looks of an experiment; the last ends it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Looks([Look; 3]);

/// A figure is given up when the probability of a decision falls below this. Few pairs predict little: with the default
/// looks, a figure without effect is given up after seven pairs at the earliest.
const FUTILE: f64 = 0.1;

impl Looks {
    /// Eight pairs, twelve, sixteen.
    pub const DEFAULT: Looks = Looks([
        Look {
            pairs: 8,
            alpha: 0.01,
        },
        Look {
            pairs: 12,
            alpha: 0.015,
        },
        Look {
            pairs: 16,
            alpha: 0.025,
        },
    ]);

    /// The default looks, scaled so that the first comes after `pairs` pairs. `None` if those are too few for its
    /// alpha.
    #[must_use]
    pub fn first_after(pairs: usize) -> Option<Looks> {
        let Looks(looks) = Looks::DEFAULT;
        let scaled = looks.map(|look| Look {
            pairs: (look.pairs * pairs).div_ceil(looks[0].pairs),
            ..look
        });
        (pairs >= fewest(Design::Paired, looks[0].alpha)).then_some(Looks(scaled))
    }

    /// The look after exactly this many pairs.
    #[must_use]
    pub fn at(&self, pairs: usize) -> Option<Look> {
        self.0.into_iter().find(|look| look.pairs == pairs)
    }

    /// The first look after this many pairs or more, or else the last one.
    #[must_use]
    pub fn due(&self, pairs: usize) -> Look {
        self.0
            .into_iter()
            .find(|look| look.pairs >= pairs)
            .unwrap_or(self.0[2])
    }

    #[must_use]
    pub fn last(&self) -> Look {
        self.0[2]
    }

    #[must_use]
    pub fn first(&self) -> Look {
        self.0[0]
    }

    /// Whether continuing is hardly worth it for this figure: if later pairs resemble those so far, the probability of
    /// finding a difference or equivalence by the last look is below 0.1. It may be called after any pair, because
    /// stopping early never makes a verdict.
    #[must_use]
    pub fn futile(&self, first: &[f64], second: &[f64], margin: Margin, grain: Grain) -> bool {
        let Some(end) = Foretold::of(self.last(), first, second) else {
            return false;
        };
        let middle = middle(end.scale, first);
        let times = self.last().pairs as f64 / first.len() as f64;
        let alike = match grain.could_hold(times, margin, end.scale, middle, 1.0 - 2.0 * end.alpha)
        {
            true => end.is_alike(margin.distance(end.scale, middle)),
            false => 0.0,
        };
        end.differs(1).max(alike) < FUTILE
    }

    /// The same for a difference alone, tested among this many figures.
    pub(super) fn hardly_differs(&self, first: &[f64], second: &[f64], among: usize) -> bool {
        if first.iter().zip(second).all(|(a, b)| a == b) {
            return true;
        }
        Foretold::of(self.last(), first, second).is_some_and(|end| end.differs(among) < FUTILE)
    }
}

/// The last look, as the pairs so far predict it.
struct Foretold {
    scale: Scale,
    alpha: f64,
    /// The mean distance so far.
    mean: f64,
    /// The standard error of the predicted mean.
    scatter: f64,
    /// The degrees of freedom of `scatter`.
    freedom: f64,
    /// The predicted standard error of the final mean.
    error: f64,
    /// Its degrees of freedom.
    last_freedom: f64,
}

impl Foretold {
    /// `None` if there is nothing to predict: fewer than two pairs, identical pairs, or no pairs left.
    fn of(last: Look, first: &[f64], second: &[f64]) -> Option<Foretold> {
        let (scale, distances) = distances(first, second);
        let seen = Moments::of(&distances)?;
        if seen.deviation == 0.0 || seen.count >= last.pairs {
            return None;
        }
        let (all, so_far) = (last.pairs as f64, seen.count as f64);
        let ahead = all - so_far;
        Some(Foretold {
            scale,
            alpha: last.alpha,
            mean: seen.mean,
            scatter: seen.deviation * ahead / all * (1.0 / so_far + 1.0 / ahead).sqrt(),
            freedom: so_far - 1.0,
            error: seen.deviation / all.sqrt(),
            last_freedom: all - 1.0,
        })
    }

    /// The probability that the mean is beyond `limit`, given a distribution around `middle`.
    fn beyond(&self, limit: f64, middle: f64) -> f64 {
        1.0 - t_below((limit - middle) / self.scatter, self.freedom)
    }

    /// The probability of finding a difference, at the threshold for one of `among` figures.
    fn differs(&self, among: usize) -> f64 {
        let tail = self.alpha / 2.0 / among.max(1) as f64;
        let needed = t_quantile(1.0 - tail, self.last_freedom) * self.error;
        self.beyond(needed, self.mean) + self.beyond(needed, -self.mean)
    }

    /// The probability of finding equivalence within a distance.
    fn is_alike(&self, within: f64) -> f64 {
        let room = within - t_quantile(1.0 - self.alpha, self.last_freedom) * self.error;
        if room <= 0.0 {
            return 0.0;
        }
        1.0 - self.beyond(room, self.mean) - self.beyond(room, -self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_share_one_alpha() {
        let Looks(looks) = Looks::DEFAULT;
        assert!((looks.iter().map(|look| look.alpha).sum::<f64>() - 0.05).abs() < 1e-12);
        assert_eq!(looks.map(|look| look.pairs), [8, 12, 16]);
        assert_eq!(Looks::DEFAULT.at(12).map(|look| look.alpha), Some(0.015));
        assert_eq!(Looks::DEFAULT.at(9), None);
        // Pairs after a missed look count at the next one, and those beyond the last at the last.
        assert_eq!(
            [0, 8, 9, 16, 99].map(|pairs| Looks::DEFAULT.due(pairs).pairs),
            [8, 8, 12, 16, 16]
        );
        assert_eq!(Looks::first_after(8), Some(Looks::DEFAULT));
        assert_eq!(Looks::first_after(10).unwrap().last().pairs, 20);
        assert_eq!(Looks::first_after(7), None);
    }

    #[test]
    fn what_goes_nowhere_is_given_up_and_what_may_decide_is_not() {
        let first = [10.0, 14.0, 9.0, 15.0, 10.0, 14.0, 9.0, 15.0, 10.0, 14.0];
        let swapped: Vec<f64> = first.iter().map(|f| 24.0 - f).collect();
        let margin = Margin {
            relative: 0.01,
            absolute: 0.0,
        };
        assert!(Looks::DEFAULT.futile(&first, &swapped, margin, Grain::Fine));
        // A margin that such pairs can resolve.
        assert!(!Looks::DEFAULT.futile(
            &first,
            &swapped,
            Margin {
                relative: 0.9,
                absolute: 0.0
            },
            Grain::Fine
        ));
        let halved: Vec<f64> = first.iter().map(|f| f / 2.0 + 0.1 * (f - 12.0)).collect();
        assert!(!Looks::DEFAULT.futile(&first, &halved, margin, Grain::Fine));
        assert!(!Looks::DEFAULT.futile(&first[..2], &swapped[..2], margin, Grain::Fine));
        // Six pairs without effect predict too little, eight enough.
        let even = |pairs: usize| {
            Looks::DEFAULT.futile(&first[..pairs], &swapped[..pairs], margin, Grain::Fine)
        };
        assert!(!even(6) && even(8));
        // Among many figures a difference needs more; pairs that all agree still differ.
        let less: Vec<f64> = first
            .iter()
            .map(|f| f - 1.0 - (f - 12.0).abs() / 2.0)
            .collect();
        assert!(!Looks::DEFAULT.hardly_differs(&first, &less, 1));
        assert!(Looks::DEFAULT.hardly_differs(&first, &swapped, 20));
        assert!(Looks::DEFAULT.hardly_differs(&first, &first, 1));
    }

    /// Six pairs with distances of mean 1.5 and standard deviation 2.429; figures of zero make them differences.
    fn foretold() -> Foretold {
        let second = [3.0, -1.0, 2.0, 4.0, -2.0, 3.0];
        Foretold::of(Looks::DEFAULT.last(), &[0.0; 6], &second).unwrap()
    }

    /// The mean of all sixteen is the mean so far plus t with five degrees of freedom times 2.429 * 10/16 * sqrt(1/6 +
    /// 1/10); the values are from tables of t.
    #[test]
    fn the_pairs_so_far_foretell_the_last_look() {
        let end = foretold();
        for (among, wanted) in [
            (0, 0.500_251),
            (1, 0.500_251),
            (3, 0.343_643),
            (20, 0.151_975),
        ] {
            assert!(
                (end.differs(among) - wanted).abs() < 1e-5,
                "{among}: {}",
                end.differs(among)
            );
        }
        for (within, wanted) in [
            (1.0, 0.0),
            (2.0, 0.160_027),
            (3.0, 0.593_519),
            (5.0, 0.980_721),
        ] {
            assert!(
                (end.is_alike(within) - wanted).abs() < 1e-5,
                "{within}: {}",
                end.is_alike(within)
            );
        }
    }

    #[test]
    fn no_prediction_without_scatter_or_after_the_end() {
        let last = Looks::DEFAULT.last();
        let of = |pairs: usize| {
            let second: Vec<f64> = (0..pairs).map(|n| (n % 3) as f64).collect();
            Foretold::of(last, &vec![0.0; pairs], &second).is_some()
        };
        assert_eq!(
            [1, 2, 15, 16, 17].map(of),
            [false, true, true, false, false]
        );
        assert!(Foretold::of(last, &[0.0; 6], &[2.0; 6]).is_none());
        // After the last look nothing is given up.
        let (first, second) = ([0.0; 16], [1.0, -1.0].repeat(8));
        assert!(!Looks::DEFAULT.futile(&first, &second, Margin::default(), Grain::Fine));
    }

    #[test]
    fn looks_in_proportion_are_rounded_up() {
        let pairs =
            |first| Looks::first_after(first).map(|Looks(looks)| looks.map(|look| look.pairs));
        assert_eq!(pairs(9), Some([9, 14, 18]));
        assert_eq!(pairs(16), Some([16, 24, 32]));
        let looks = Looks::first_after(9).unwrap();
        assert_eq!((looks.first().pairs, looks.last().pairs), (9, 18));
        assert_eq!((looks.first().alpha, looks.last().alpha), (0.01, 0.025));
    }

    #[test]
    fn counts_that_will_never_show_what_is_alike_are_given_up() {
        // Pairs that differ by a hundredth, and this many events: the last look has twice as many, and about 850 are
        // needed.
        let first = [1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 1.0, 1.01];
        let second = [1.01, 1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 1.0];
        let futile = |events| {
            let count = super::super::Count {
                events,
                seconds: 64.0,
            };
            Looks::DEFAULT.futile(
                &first,
                &second,
                Margin::default(),
                Grain::Counted([count; 2]),
            )
        };
        assert!(futile(100) && !futile(500));
    }
}
