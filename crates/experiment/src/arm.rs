//! The two arms of an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arm {
    /// Without the change: the machine as it was found.
    A,
    B,
}

/// The random order within a pair. It depends only on the seed and the pair, so a resumed experiment draws the same
/// order.
#[must_use]
pub fn order(seed: u64, pair: usize) -> [Arm; 2] {
    // One generator per pair: the first values of neighbouring seeds are similar.
    let mut random =
        fastrand::Rng::with_seed(seed ^ (pair as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    if random.bool() {
        [Arm::A, Arm::B]
    } else {
        [Arm::B, Arm::A]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_repeat_by_seed_and_are_both_drawn() {
        let draw = |seed| {
            (0..64)
                .map(|pair| order(seed, pair)[0] == Arm::A)
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let first = draw(3).into_iter().filter(|a| *a).count();
        assert!((16..=48).contains(&first), "{first} of 64");
    }
}
