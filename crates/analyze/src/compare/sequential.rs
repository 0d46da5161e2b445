//! Looking at an experiment more than once without fooling oneself.

use super::distribution::{normal_below, t_quantile};
use super::effect::{distances, middle};
use super::sample::Moments;
use super::{Design, Margin, fewest};
use serde::Serialize;

/// A look at what there is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// After so many pairs.
    pub pairs: usize,
    /// What chance may have of being taken for an effect at this look. All looks together have 0.05.
    pub alpha: f64,
}

/// When an experiment is looked at, and ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Looks([Look; 3]);

/// An experiment is given up when a decision has become less likely than this.
const FUTILE: f64 = 0.05;

impl Looks {
    /// Eight pairs, twelve, sixteen.
    pub const DEFAULT: Looks = Looks([
        Look { pairs: 8, alpha: 0.01 },
        Look { pairs: 12, alpha: 0.015 },
        Look { pairs: 16, alpha: 0.025 },
    ]);

    /// The same in proportion, with the first look after so many pairs. `None` where those are too few for
    /// its alpha.
    #[must_use]
    pub fn first_after(pairs: usize) -> Option<Looks> {
        let Looks(looks) = Looks::DEFAULT;
        let scaled = looks.map(|look| Look { pairs: (look.pairs * pairs).div_ceil(looks[0].pairs), ..look });
        (pairs >= fewest(Design::Paired, looks[0].alpha)).then_some(Looks(scaled))
    }

    /// The look after exactly so many pairs.
    #[must_use]
    pub fn at(&self, pairs: usize) -> Option<Look> {
        self.0.into_iter().find(|look| look.pairs == pairs)
    }

    /// The first that is after so many pairs or more; the last where none is.
    #[must_use]
    pub fn due(&self, pairs: usize) -> Look {
        self.0.into_iter().find(|look| look.pairs >= pairs).unwrap_or(self.0[2])
    }

    /// The last.
    #[must_use]
    pub fn last(&self) -> Look {
        self.0[2]
    }

    /// The first.
    #[must_use]
    pub fn first(&self) -> Look {
        self.0[0]
    }

    /// Whether going on is hardly worth it: were the pairs to come like those so far, neither a difference
    /// nor equivalence would be found by the last look but one time in twenty. May be asked after any pair,
    /// for ending early never makes a verdict.
    #[must_use]
    pub fn futile(&self, first: &[f64], second: &[f64], margin: Margin) -> bool {
        let last = self.last();
        let (scale, distances) = distances(first, second);
        let Some(seen) = Moments::of(&distances) else { return false };
        if seen.deviation == 0.0 || seen.count >= last.pairs {
            return false;
        }
        let (all, so_far) = (last.pairs as f64, seen.count as f64);
        let ahead = all - so_far;
        // The mean at the end, as the pairs so far foretell it.
        let scatter = seen.deviation * ahead / all * (1.0 / so_far + 1.0 / ahead).sqrt();
        let error = seen.deviation / all.sqrt();
        let beyond = |limit: f64, from: f64| 1.0 - normal_below((limit - from) / scatter);
        let needed = t_quantile(1.0 - last.alpha / 2.0, all - 1.0) * error;
        let differs = beyond(needed, seen.mean) + beyond(needed, -seen.mean);
        let room = margin.distance(scale, middle(scale, first)) - t_quantile(0.95, all - 1.0) * error;
        let alike = if room > 0.0 { 1.0 - beyond(room, seen.mean) - beyond(room, -seen.mean) } else { 0.0 };
        differs.max(alike) < FUTILE
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
        assert_eq!(Looks::first_after(8), Some(Looks::DEFAULT));
        assert_eq!(Looks::first_after(10).unwrap().last().pairs, 20);
        assert_eq!(Looks::first_after(7), None);
    }

    #[test]
    fn what_goes_nowhere_is_given_up_and_what_may_decide_is_not() {
        let first = [10.0, 14.0, 9.0, 15.0, 10.0, 14.0, 9.0, 15.0, 10.0, 14.0];
        let swapped: Vec<f64> = first.iter().map(|f| 24.0 - f).collect();
        let margin = Margin { relative: 0.01, absolute: 0.0 };
        assert!(Looks::DEFAULT.futile(&first, &swapped, margin));
        // A margin that such pairs can show.
        assert!(!Looks::DEFAULT.futile(&first, &swapped, Margin { relative: 0.9, absolute: 0.0 }));
        let halved: Vec<f64> = first.iter().map(|f| f / 2.0 + 0.1 * (f - 12.0)).collect();
        assert!(!Looks::DEFAULT.futile(&first, &halved, margin));
        assert!(!Looks::DEFAULT.futile(&first[..2], &swapped[..2], margin));
    }
}
