//! The design of a comparison.

use serde::Serialize;

/// The relation between the runs of two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// The n-th runs of both arms were made next to each other.
    Paired,
    /// The runs are independent, and their order in time has nothing to do with the setting.
    Unpaired,
    /// The runs of each arm were made in one stretch of time, or nearly: a difference may be the setting's or that of
    /// the time, and the runs cannot tell which.
    Blocks,
}

/// The share of the stretches of a random order below which the arms count as recorded one after the other.
const FEW_STRETCHES: f64 = 0.7;

impl Design {
    /// The design of two arms that were recorded at these times. If runs follow each other more alike than independent
    /// ones (in recordings of a busy machine, neighbours correlated by up to 0.56), only an order that changes often
    /// between the arms keeps the error rate of a test that assumes any order was possible. Without an order (equal
    /// times), the caller's word counts.
    #[must_use]
    pub fn as_recorded(first: &[u64], second: &[u64]) -> Design {
        let (a, b) = (first.len() as f64, second.len() as f64);
        if first.iter().any(|time| second.contains(time)) || first.is_empty() || second.is_empty() {
            return Design::Unpaired;
        }
        let mut order: Vec<(u64, bool)> = first
            .iter()
            .map(|time| (*time, false))
            .chain(second.iter().map(|time| (*time, true)))
            .collect();
        order.sort_unstable();
        let stretches = 1 + order.windows(2).filter(|two| two[0].1 != two[1].1).count();
        let expected = 1.0 + 2.0 * a * b / (a + b);
        if stretches == 2 || stretches as f64 <= FEW_STRETCHES * expected {
            Design::Blocks
        } else {
            Design::Unpaired
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(order: &str) -> Design {
        let times = |arm: char| -> Vec<u64> {
            order
                .chars()
                .zip(1u64..)
                .filter(|(of, _)| *of == arm)
                .map(|(_, at)| at)
                .collect()
        };
        let [one, other] = [
            Design::as_recorded(&times('A'), &times('B')),
            Design::as_recorded(&times('B'), &times('A')),
        ];
        assert_eq!(one, other, "{order}");
        one
    }

    #[test]
    fn arms_in_one_or_two_stretches_each_are_blocks() {
        for blocks in [
            "AB",
            "AABB",
            "AAAAABBBBB",
            "AAAABBBBBA",
            "AAABBBAAABBB",
            "AAAAAAAAAB",
        ] {
            assert_eq!(of(blocks), Design::Blocks, "{blocks}");
        }
        for mixed in [
            "ABA",
            "ABBA",
            "ABABABABAB",
            "AABBAABBAABB",
            "AABBABABBA",
            "AAAABAAAAA",
        ] {
            assert_eq!(of(mixed), Design::Unpaired, "{mixed}");
        }
        // Runs of unknown order.
        assert_eq!(Design::as_recorded(&[7, 7], &[7, 7]), Design::Unpaired);
    }
}
