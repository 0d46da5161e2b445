//! The proof that stalls and kernel events belong together: how many events fall inside recorded gaps,
//! beside how many do when each is shifted in time.

use jitterscope_model::{CpuId, EventsInGaps, Gap, Ticks};
use std::collections::{HashMap, VecDeque};

/// Gaps kept a CPU for the control, at most.
const KEPT_GAPS: usize = 1 << 13;

/// Counts events inside and outside gaps.
#[derive(Clone, Debug)]
pub struct EventTally {
    counts: EventsInGaps,
    /// Recent gaps by CPU, in order.
    recent: HashMap<CpuId, VecDeque<Gap>>,
    /// The control shifts an event back by this much at least, and by less than twice as much.
    shift: Ticks,
    random: u64,
}

impl EventTally {
    /// `shift`: the smallest shift of the control, a few hundred milliseconds; each event gets a random
    /// one of its own between that and twice it, so that a periodic event does not meet its own period.
    #[must_use]
    pub fn new(shift: Ticks) -> EventTally {
        EventTally {
            counts: EventsInGaps::default(),
            recent: HashMap::new(),
            shift: Ticks(shift.0.max(1)),
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Takes note of a gap; those of one CPU come in order.
    pub fn gap(&mut self, cpu: CpuId, gap: Gap) {
        let gaps = self.recent.entry(cpu).or_default();
        let horizon = gap.start.0.saturating_sub(self.shift.0 * 2);
        while gaps.front().is_some_and(|g| g.end().0 < horizon) || gaps.len() >= KEPT_GAPS {
            gaps.pop_front();
        }
        gaps.push_back(gap);
    }

    /// Counts an event.
    pub fn event(&mut self, cpu: CpuId, time: Ticks, inside: bool) {
        self.counts.events += 1;
        self.counts.inside += u64::from(inside);
        let back = self.shift.0 + self.next_random() % self.shift.0;
        let Some(gaps) = self.recent.get(&cpu) else { return };
        let shifted = Ticks(time.0.saturating_sub(back));
        // Before the oldest gap kept there is nothing to compare with.
        if gaps.front().is_none_or(|oldest| shifted < oldest.start) {
            return;
        }
        self.counts.control_events += 1;
        let after = gaps.partition_point(|g| g.start <= shifted);
        let hit = after.checked_sub(1).and_then(|i| gaps.get(i)).is_some_and(|g| shifted <= g.end());
        self.counts.control_inside += u64::from(hit);
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> EventsInGaps {
        self.counts
    }

    /// Marsaglia's xorshift: any generator will do, the shifts need only differ.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_approaches_the_stolen_fraction_while_real_events_all_hit() {
        let mut tally = EventTally::new(Ticks(1_000_000));
        let cpu = CpuId(1);
        // A tenth of the time is stolen, strictly periodically: 1000 of every 10,000 ticks.
        for n in 0..20_000u64 {
            let start = Ticks(n * 10_000);
            tally.gap(cpu, Gap { start, length: Ticks(1000) });
            tally.event(cpu, start + Ticks(500), true);
        }
        let counts = tally.counts();
        assert_eq!((counts.events, counts.inside), (20_000, 20_000));
        let share = counts.control_inside as f64 / counts.control_events as f64;
        assert!((0.08..0.12).contains(&share), "{share}");
    }
}
