//! The two arms.

use serde::{Deserialize, Serialize};

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arm {
    /// As the machine was found.
    A,
    /// With the change.
    B,
}

/// The order within a pair, drawn by lot: the same for the same seed, so that an experiment that goes on
/// draws what it would have drawn.
#[must_use]
pub fn order(seed: u64, pair: usize) -> [Arm; 2] {
    // One generator a pair: neighbouring seeds of one generator begin alike.
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
