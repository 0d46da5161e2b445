//! The design of a comparison.

use jitterscope_model::PutInOrder;
use serde::Serialize;
use statrs::function::factorial::ln_binomial;

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

/// The arms count as recorded one after the other if a random order alternates as rarely with at most this probability.
/// The bound is the smallest whole percentage that withholds A A A B B B A A A B B B (62 of 924 orders). It costs a
/// random order of five and five runs 10 of 252 verdicts, and no random order more than 7 %. Measured in 2000 simulated
/// comparisons each of one setting, with autocorrelations up to 0.8 and steps of 1.3 and 2.0: 0 are called different in
/// the orders that it withholds, at most 78 in turns, and at most 76 in random order.
const RARE: f64 = 0.07;

impl Design {
    /// The design of two arms that were recorded at these times. If runs follow each other more alike than independent
    /// ones (in recordings of a busy machine, neighbours correlated by up to 0.56), only an order that changes often
    /// between the arms keeps the error rate of a test that assumes any order was possible. Arms of one stretch each
    /// never do. Beyond that the number of stretches decides: the lower tail of its distribution over random orders
    /// (Wald and Wolfowitz). Without an order (equal times), the caller's word counts.
    #[must_use]
    pub fn as_recorded(first: &[u64], second: &[u64]) -> Design {
        if first.iter().any(|time| second.contains(time)) || first.is_empty() || second.is_empty() {
            return Design::Unpaired;
        }
        let mut order: Vec<(u64, bool)> = first
            .iter()
            .map(|time| (*time, false))
            .chain(second.iter().map(|time| (*time, true)))
            .collect();
        order.put_in_order();
        let stretches = 1 + order.windows(2).filter(|two| two[0].1 != two[1].1).count();
        if stretches == 2 || at_most_stretches(stretches, first.len(), second.len()) <= RARE {
            Design::Blocks
        } else {
            Design::Unpaired
        }
    }
}

/// The share of the orders of `a` and `b` runs that have at most this many stretches. An order of 2k stretches divides
/// both arms into k parts; one of 2k + 1 divides one of them into k + 1.
fn at_most_stretches(most: usize, a: usize, b: usize) -> f64 {
    // The ways to divide `runs` into `parts`, in logarithms.
    let divided = |runs: usize, parts: usize| match parts {
        0 => f64::NEG_INFINITY,
        parts if parts > runs => f64::NEG_INFINITY,
        parts => ln_binomial(runs as u64 - 1, parts as u64 - 1),
    };
    let all = ln_binomial((a + b) as u64, a as u64);
    let share = |parts_of_a: usize, parts_of_b: usize| {
        (divided(a, parts_of_a) + divided(b, parts_of_b) - all).exp()
    };
    (2..=most)
        .map(|stretches| {
            let (half, odd) = (stretches / 2, stretches % 2);
            share(half + odd, half) + share(half, half + odd)
        })
        .sum()
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
    fn arms_that_alternate_too_rarely_are_blocks() {
        for blocks in [
            "AB",
            "AABB",
            "AAAAABBBBB",
            "AAAABBBBBA",
            "AAABBBAAABBB",
            "AAAAAAAAAB",
            "AAAAABBBBBAAAAABBBBB",
        ] {
            assert_eq!(of(blocks), Design::Blocks, "{blocks}");
        }
        for mixed in [
            "ABA",
            "ABBA",
            "AABBA",
            "ABABABABAB",
            "AABBAABBAA",
            "AABBAABBAABB",
            "AABBABABBA",
            "AABBBBAAAB",
            "AAAABAAAAA",
        ] {
            assert_eq!(of(mixed), Design::Unpaired, "{mixed}");
        }
        // Runs of unknown order.
        assert_eq!(Design::as_recorded(&[7, 7], &[7, 7]), Design::Unpaired);
    }

    /// All orders of both arms, in bits.
    fn orders(a: u32, b: u32) -> impl Iterator<Item = u32> {
        (0..1u32 << (a + b)).filter(move |order| order.count_ones() == b)
    }

    #[test]
    fn the_share_of_orders_is_that_of_counting_them() {
        for (a, b) in [(1, 1), (2, 3), (5, 5), (6, 6), (3, 7), (1, 9)] {
            let stretches = |order: u32| {
                let changes = (order ^ (order >> 1)) & ((1 << (a + b - 1)) - 1);
                1 + changes.count_ones() as usize
            };
            let all = orders(a, b).count() as f64;
            for most in 1..=(a + b + 1) as usize {
                let few = orders(a, b)
                    .filter(|order| stretches(*order) <= most)
                    .count();
                let found = at_most_stretches(most, a as usize, b as usize);
                assert!(
                    (found - few as f64 / all).abs() < 1e-12,
                    "{a} {b} {most}: {found}"
                );
            }
        }
        // Long samples do not overflow.
        let half = at_most_stretches(1001, 1000, 1000);
        assert!((0.4..0.6).contains(&half), "{half}");
    }

    /// Chance orders of arms that a test can decide lose at most this share of their verdicts.
    #[test]
    fn few_orders_by_chance_are_taken_for_blocks() {
        for (a, b) in [(4, 4), (5, 5), (6, 6), (4, 7), (8, 8)] {
            let (mut blocks, mut all) = (0, 0);
            for order in orders(a, b) {
                let times = |arm: u32| -> Vec<u64> {
                    let runs = (0..a + b).filter(|at| order >> at & 1 == arm);
                    runs.map(u64::from).collect()
                };
                let design = Design::as_recorded(&times(0), &times(1));
                blocks += usize::from(design == Design::Blocks);
                all += 1;
            }
            assert!(
                blocks as f64 <= RARE * all as f64,
                "{a} {b}: {blocks} of {all}"
            );
        }
    }
}
