//! The remaining time of an experiment.

use std::time::Duration;

/// The pace since the start or the last resume: earlier runs determine how much is left, but not how fast it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    made: u32,
}

impl Pace {
    /// Counts one more, void or not: a void one takes as long.
    pub fn made_one(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    /// How long `left` more will take, if those made so far took `took`; `None` if none was made.
    #[must_use]
    pub fn left(&self, took: Duration, left: usize) -> Option<Duration> {
        let each = took.checked_div(self.made)?;
        Some(each.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_as_fast_as_what_was_made_here() {
        let mut pace = Pace::default();
        assert_eq!(pace.left(Duration::from_secs(5), 3), None);
        // It resumed after seven pairs; two were made since, one of them void. The eighth takes as long as each of
        // them.
        pace.made_one();
        pace.made_one();
        assert_eq!(
            pace.left(Duration::from_secs(20), 1),
            Some(Duration::from_secs(10))
        );
        assert_eq!(pace.left(Duration::from_secs(20), 0), Some(Duration::ZERO));
    }
}
