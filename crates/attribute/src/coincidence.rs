//! Simultaneous stalls of several CPUs: more than by chance, or not.
//!
//! CPUs often stall together by chance. So each stall is also compared with the other CPUs' stalls at earlier moments.
//! A coincidence is significant only if far more stalls coincide than at those moments.

use jitterscope_model::{Nanos, TickRate, Ticks};

/// The number and distance of the earlier moments. The distance is not a fraction of a second that regular activity
/// could have.
const CONTROLS: u64 = 128;
const APART: Nanos = Nanos(3_917_000);
/// Minimum of earlier moments for a comparison; before the recording none are known.
const ENOUGH: u64 = 32;
/// Coincidences must exceed the expected number by this factor.
const BEYOND_CHANCE: u64 = 10;

/// Counts for the stalls of one CPU so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coincidences {
    stalls: u64,
    together: u64,
    controls: u64,
    by_chance: u64,
}

impl Coincidences {
    /// Adds a stall that began at `start`. `others` says whether another CPU began a similar stall at a moment; `None`
    /// if unknown. Returns whether one did at `start`, and more coincide than by chance.
    pub(crate) fn take_in(
        &mut self,
        start: Ticks,
        rate: TickRate,
        others: impl Fn(Ticks) -> Option<bool>,
    ) -> bool {
        let earlier = (1..=CONTROLS).map_while(|n| {
            let before = rate.ticks(Nanos(APART.0 * n));
            (before < start).then(|| others(start - before)).flatten()
        });
        let (controls, by_chance) = earlier.fold((0, 0), |(all, found), others| {
            (all + 1, found + u64::from(others))
        });
        if controls < ENOUGH {
            return false;
        }
        let together = others(start) == Some(true);
        self.stalls += 1;
        self.together += u64::from(together);
        self.controls += controls;
        self.by_chance += by_chance;
        // Adds one to the observed chance coincidences: even zero observed ones only mean that they are rare.
        let found = u128::from(self.together) * u128::from(self.controls);
        let expected = u128::from(self.stalls) * u128::from(self.by_chance + 1);
        together && found > expected * u128::from(BEYOND_CHANCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Whether one of these ascending times is within 5 us of `at`.
    fn is_near(times: &[u64], at: u64) -> bool {
        let next = times.partition_point(|time| *time < at.saturating_sub(5000));
        times.get(next).is_some_and(|time| *time <= at + 5000)
    }

    /// How many of these stalls coincide significantly with another CPU that stalls at `others`.
    fn found(stalls: &[u64], others: &[u64]) -> usize {
        let mut all = Coincidences::default();
        let near = |at: Ticks| Some(is_near(others, at.0));
        let is = |at: &&u64| all.take_in(Ticks(**at), TickRate::NANOSECONDS, near);
        stalls.iter().filter(is).count()
    }

    /// Times of a simple random walk with this average distance in microseconds.
    fn random(seed: u64, apart_us: u64, until_ms: u64) -> Vec<u64> {
        let mut state = seed | 1;
        let mut at = 0;
        std::iter::from_fn(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            at += 1 + state % (2000 * apart_us);
            (at < until_ms * MS).then_some(at)
        })
        .collect()
    }

    #[test]
    fn the_first_that_coincides_counts_where_others_stall_seldom() {
        let others = [100 * MS, 700 * MS, 1000 * MS];
        assert_eq!(found(&[1000 * MS + 3000], &others), 1);
        assert_eq!(found(&[1000 * MS + 9000], &others), 0);
    }

    #[test]
    fn stalls_of_cpus_that_have_nothing_to_do_with_each_other_do_not_count() {
        for seed in 1..40 {
            // Several hundred a second each: some coincide in a run of ten seconds.
            let (one, other) = (random(seed, 2000, 10_000), random(seed * 77, 2000, 10_000));
            let near = |at: &&u64| is_near(&other, **at);
            let by_chance = one.iter().filter(near).count();
            assert!(by_chance > 5, "{by_chance} of {}", one.len());
            let found = found(&one, &other);
            assert!(found <= 2, "{found} of {by_chance} by chance");
        }
    }

    #[test]
    fn many_more_than_chance_gives_do_count() {
        let mut one = random(3, 20_000, 20_000);
        let mut other = random(5, 20_000, 20_000);
        // Every 90 ms both stall.
        let paused: Vec<u64> = (10..200).map(|n| n * 90 * MS).collect();
        one.extend(&paused);
        other.extend(&paused);
        one.sort_unstable();
        other.sort_unstable();
        assert!(found(&one, &other) > 180);
    }

    #[test]
    fn without_a_past_to_compare_with_nothing_is_said() {
        let mut all = Coincidences::default();
        let always = |_| Some(true);
        assert!(!all.take_in(Ticks(20 * MS), TickRate::NANOSECONDS, always));
        let unknown = |at: Ticks| (at > Ticks(990 * MS)).then_some(true);
        assert!(!all.take_in(Ticks(1000 * MS), TickRate::NANOSECONDS, unknown));
    }
}
