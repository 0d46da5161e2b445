//! The injections of a selftest.

use super::{DisturbKind, DisturbSettings};
use jitterscope_model::Nanos;
use std::time::Duration;

/// The injections of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedDisturbance {
    pub kind: DisturbKind,
    /// Time from one injection to the next.
    pub period: Nanos,
    /// Length of one, for kinds with a variable length; else zero.
    pub length: Nanos,
    pub count: u32,
}

impl PlannedDisturbance {
    /// The planned time for its injections.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.period.0.saturating_mul(u64::from(self.count)))
    }

    /// The time after which the parent gives up on the child: twice the plan, after which the child itself gives up,
    /// plus time for a slow machine to report.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.duration() * 2 + Duration::from_secs(10)
    }

    /// `common` with the period, length and count of this kind.
    #[must_use]
    pub fn settings(&self, common: &DisturbSettings) -> DisturbSettings {
        DisturbSettings {
            period: self.period,
            length: self.length,
            count: self.count,
            ..common.clone()
        }
    }
}

/// The kinds, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelftestPlan {
    pub turns: Vec<PlannedDisturbance>,
}

impl SelftestPlan {
    /// The planned time for all injections, without the time between kinds.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.turns.iter().map(PlannedDisturbance::duration).sum()
    }

    /// The same kinds with about `share` of the injections of each, at least one.
    #[must_use]
    pub fn scaled(&self, share: f64) -> SelftestPlan {
        let scale = |turn: &PlannedDisturbance| PlannedDisturbance {
            count: ((f64::from(turn.count) * share).round() as u32).max(1),
            ..*turn
        };
        SelftestPlan {
            turns: self.turns.iter().map(scale).collect(),
        }
    }
}

impl Default for SelftestPlan {
    /// All kinds, in about 23 seconds. The periods are no multiples of a tick's (1, 3.33, 4 or 10 ms), so the
    /// injections drift through the tick's phase, instead of always or never coinciding with a tick.
    fn default() -> SelftestPlan {
        let turn = |kind, period_us: u64, length_us: u64, count| PlannedDisturbance {
            kind,
            period: Nanos(period_us * 1_000),
            length: Nanos(length_us * 1_000),
            count,
        };
        let turns = vec![
            turn(DisturbKind::Fifo, 10_270, 200, 150),
            turn(DisturbKind::Fair, 20_270, 1_000, 120),
            turn(DisturbKind::Timer, 10_270, 0, 150),
            turn(DisturbKind::Membarrier, 10_270, 0, 150),
            turn(DisturbKind::Softirq, 10_270, 0, 150),
            turn(DisturbKind::Kworker, 20_270, 0, 120),
            // Each syncs a whole file system.
            turn(DisturbKind::Writeback, 150_270, 0, 35),
            turn(DisturbKind::Stop, 10_270, 2_000, 100),
            // Long enough to contain the end of one of its periods of 20 ms, and so far apart that its effect is over
            // half a period later, when the control measures.
            turn(DisturbKind::Quota, 160_270, 45_000, 30),
            // A few traps per injection.
            turn(DisturbKind::Trap, 10_270, 100, 100),
        ];
        SelftestPlan { turns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_is_short_and_has_enough_of_each() {
        let plan = SelftestPlan::default();
        assert!(
            plan.duration() < Duration::from_secs(24),
            "{:?}",
            plan.duration()
        );
        let kinds: Vec<_> = plan.turns.iter().map(|turn| turn.kind).collect();
        assert_eq!(kinds, DisturbKind::ALL);
        for turn in &plan.turns {
            assert!(
                turn.count >= 100
                    || matches!(turn.kind, DisturbKind::Writeback | DisturbKind::Quota)
            );
            for tick_us in [1_000, 3_333, 4_000, 10_000] {
                assert!(
                    turn.period.0 / 1_000 % tick_us > 100,
                    "{turn:?} keeps step with a tick"
                );
            }
        }
    }

    #[test]
    fn a_scaled_plan_keeps_one_of_each() {
        let plan = SelftestPlan::default().scaled(0.001);
        assert!(plan.turns.iter().all(|turn| turn.count == 1));
    }
}
