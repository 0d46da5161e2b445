//! The check that stalls and kernel events belong together: how many events fall inside recorded gaps, compared with
//! how many do after a random shift in time.
//!
//! Each CPU counts from the first to the last read of its own probe: earlier and later kernel activity has no gap.
//!
//! A probe with a slow clock, or with a high threshold, has no gap for kernel activity shorter than its threshold. So
//! events outside of gaps are divided: a visit of the kernel whose records, from the first to the one after which the
//! same thread continues, span less than that may be invisible; all others must be in a gap.

use crate::feed::Turns;
use jitterscope_model::{CpuId, EventsInGaps, Gap, Nanos, TickRate, Ticks};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The approximate time for entering and leaving the kernel, in addition to the time between its records.
const THERE_AND_BACK: Nanos = Nanos(300);

/// Maximum of gaps kept per CPU for the control.
const KEPT_GAPS: usize = 1 << 13;

/// Up to this number, all events are compared with their control; of further events, one in [`EACH`]. The share among
/// tens of thousands is precise enough, and searching the gaps of half a second takes longer than counting.
const ALL_COMPARED: u64 = 1 << 16;
const EACH: u64 = 8;

/// From the first to the last read of a probe.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Ticks,
    until: Ticks,
}

impl Window {
    const ALWAYS: Window = Window {
        from: Ticks(0),
        until: Ticks(u64::MAX),
    };
    const NEVER: Window = Window {
        from: Ticks(u64::MAX),
        until: Ticks(u64::MAX),
    };

    fn contains(self, time: Ticks) -> bool {
        self.from <= time && time <= self.until
    }
}

/// Kernel activity outside of gaps between two moments of one thread in its own code. Includes activity that follows so
/// closely that it may belong to the same kernel entry, such as a softirq raised by an interrupt.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// The thread that continues after the visit.
    home: i32,
    since: Ticks,
    events: u64,
    /// Its end, and how many of its events were then counted as too short.
    over: Option<(Ticks, u64)>,
}

#[derive(Clone, Debug)]
struct Cpu {
    /// The measurement time of its probe.
    window: Window,
    /// Recent gaps, in order.
    recent: VecDeque<Gap>,
    /// The last visit of the kernel outside of any gap.
    visit: Option<Visit>,
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu {
            window: Window::ALWAYS,
            recent: VecDeque::new(),
            visit: None,
        }
    }
}

/// The data that all CPUs share.
#[derive(Clone, Debug)]
struct Common {
    counts: EventsInGaps,
    /// The planned measurement; the CPUs' own windows are within it.
    planned: Window,
    /// The control shifts an event back by at least this, and by less than twice as much.
    shift: Ticks,
    /// Visits whose records span less than this need not be in a gap.
    must: Ticks,
    random: u64,
}

/// Counts events inside and outside gaps.
#[derive(Clone, Debug)]
pub struct EventTally {
    common: Common,
    cpus: FxHashMap<CpuId, Cpu>,
}

impl EventTally {
    /// `shift`: the smallest shift of the control, a few hundred milliseconds. Each event gets its own random shift
    /// between that and twice as much, so that a periodic event does not coincide with its own period.
    #[must_use]
    pub fn new(shift: Ticks) -> EventTally {
        let common = Common {
            counts: EventsInGaps::default(),
            planned: Window::NEVER,
            shift: Ticks(shift.0.max(1)),
            must: Ticks(0),
            random: 0x9e37_79b9_7f4a_7c15,
        };
        EventTally {
            common,
            cpus: FxHashMap::default(),
        }
    }

    /// Sets the time span of events that count; before this call none do. A CPU's own window is narrower still.
    pub fn measure(&mut self, from: Ticks, until: Ticks) {
        self.common.planned = Window { from, until };
    }

    /// Sets the probes' threshold for stalls. Visits of the kernel whose records span less than that, minus the entry
    /// and exit time, need not be in a gap; before this call all must.
    pub fn threshold(&mut self, threshold: Ticks, rate: TickRate) {
        self.common.must = threshold - rate.ticks(THERE_AND_BACK);
    }

    /// The probe of a CPU first read the clock at `from`.
    pub fn begin(&mut self, cpu: CpuId, from: Ticks) {
        self.cpus.entry(cpu).or_default().window.from = from;
    }

    /// The probe of a CPU last read the clock at `until`.
    pub fn end(&mut self, cpu: CpuId, until: Ticks) {
        self.cpus.entry(cpu).or_default().window.until = until;
    }

    /// Adds a gap; those of one CPU come in order.
    pub fn gap(&mut self, cpu: CpuId, gap: Gap) {
        let Cpu {
            window,
            recent: gaps,
            ..
        } = self.cpus.entry(cpu).or_default();
        if gap.start < self.common.planned.from.max(window.from) {
            return;
        }
        let horizon = gap.start.0.saturating_sub(self.common.shift.0 * 2);
        while gaps.front().is_some_and(|g| g.end().0 < horizon) || gaps.len() >= KEPT_GAPS {
            gaps.pop_front();
        }
        gaps.push_back(gap);
    }

    /// The counter for events of one CPU.
    pub(crate) fn of(&mut self, cpu: CpuId) -> CpuTally<'_> {
        CpuTally {
            common: &mut self.common,
            cpu: self.cpus.entry(cpu).or_default(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> EventsInGaps {
        self.common.counts
    }
}

/// Counts events of one CPU.
pub(crate) struct CpuTally<'t> {
    common: &'t mut Common,
    cpu: &'t mut Cpu,
}

impl CpuTally<'_> {
    /// A gap begins: earlier activity is a separate visit.
    pub(crate) fn gap_begins(&mut self) {
        self.cpu.visit = None;
    }

    /// Counts an event inside of a gap, if it is within the CPU's measurement.
    pub(crate) fn inside(&mut self, time: Ticks) {
        self.event(time, true);
    }

    /// Counts an event outside of all gaps, if it is within the CPU's measurement.
    pub(crate) fn outside(&mut self, time: Ticks, turns: Turns) {
        if !self.event(time, false) {
            return;
        }
        let (must, counts) = (self.common.must, &mut self.common.counts);
        let last = &mut self.cpu.visit;
        let close = |before: Ticks| time.0.saturating_sub(before.0) < must.0;
        match (last.as_mut(), turns.before) {
            (Some(visit @ Visit { over: None, .. }), _) => visit.events += 1,
            (_, Some(home)) if turns.after != Some(home) => {
                let mut visit = Visit {
                    home,
                    since: time,
                    events: 1,
                    over: None,
                };
                if let Some(Visit {
                    home: same,
                    since,
                    events,
                    over: Some((ended, too_short)),
                }) = *last
                    && same == home
                    && close(ended)
                {
                    counts.too_short -= too_short;
                    (visit.since, visit.events) = (since, events + 1);
                }
                *last = Some(visit);
            }
            // A single record does not show how long the kernel was active.
            _ => {}
        }
        if let Some(visit) = last
            .as_mut()
            .filter(|visit| visit.over.is_none() && turns.after == Some(visit.home))
        {
            let too_short = if close(visit.since) { visit.events } else { 0 };
            counts.too_short += too_short;
            visit.over = Some((time, too_short));
        }
    }

    /// Counts an event; false if it is outside of the CPU's measurement.
    fn event(&mut self, time: Ticks, inside: bool) -> bool {
        let Common {
            counts,
            planned,
            shift,
            random,
            ..
        } = &mut *self.common;
        let random = next_random(random);
        let Cpu {
            window,
            recent: gaps,
            ..
        } = &*self.cpu;
        if !planned.contains(time) || !window.contains(time) {
            return false;
        }
        counts.events += 1;
        counts.inside += u64::from(inside);
        if counts.events > ALL_COMPARED && !counts.events.is_multiple_of(EACH) {
            return true;
        }
        let shifted = Ticks(time.0.saturating_sub(shift.0 + random % shift.0));
        // Before the oldest kept gap a comparison is not possible.
        if gaps.front().is_none_or(|oldest| shifted < oldest.start) {
            return true;
        }
        counts.control_events += 1;
        let after = gaps.partition_point(|g| g.start <= shifted);
        let hit = after
            .checked_sub(1)
            .and_then(|i| gaps.get(i))
            .is_some_and(|g| shifted <= g.end());
        counts.control_inside += u64::from(hit);
        true
    }
}

/// Marsaglia's xorshift. Any generator works, because the shifts only need to differ.
fn next_random(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_approaches_the_stolen_fraction_while_real_events_all_hit() {
        let mut tally = EventTally::new(Ticks(1_000_000));
        tally.measure(Ticks(0), Ticks(u64::MAX));
        let cpu = CpuId(1);
        // A tenth of the time is stolen, strictly periodically: 1000 of every 10,000 ticks.
        for n in 0..20_000u64 {
            let start = Ticks(n * 10_000);
            tally.gap(
                cpu,
                Gap {
                    start,
                    length: Ticks(1000),
                },
            );
            tally.of(cpu).inside(start + Ticks(500));
        }
        let counts = tally.counts();
        assert_eq!((counts.events, counts.inside), (20_000, 20_000));
        let share = counts.control_inside as f64 / counts.control_events as f64;
        assert!((0.08..0.12).contains(&share), "{share}");
    }

    #[test]
    fn a_sample_of_many_events_has_the_share_of_all() {
        let mut tally = EventTally::new(Ticks(1_000_000));
        tally.measure(Ticks(0), Ticks(u64::MAX));
        let cpu = CpuId(1);
        let many = 2 * ALL_COMPARED;
        for n in 0..many {
            let start = Ticks(n * 10_000);
            tally.gap(
                cpu,
                Gap {
                    start,
                    length: Ticks(3000),
                },
            );
            tally.of(cpu).inside(start + Ticks(500));
        }
        let counts = tally.counts();
        assert_eq!((counts.events, counts.inside), (many, many));
        let compared = ALL_COMPARED + ALL_COMPARED / EACH;
        // The first events have no gap that is old enough.
        assert!(
            (compared - 300..=compared).contains(&counts.control_events),
            "{}",
            counts.control_events
        );
        let share = counts.control_inside as f64 / counts.control_events as f64;
        assert!((0.29..0.31).contains(&share), "{share}");
    }

    #[test]
    fn each_cpu_counts_from_its_probes_first_read_to_its_last() {
        let (near, far) = (CpuId(0), CpuId(1));
        let mut tally = EventTally::new(Ticks(1));
        tally.of(near).inside(Ticks(150));
        assert_eq!(tally.counts().events, 0, "nothing is measured yet");
        tally.measure(Ticks(100), Ticks(1000));
        tally.begin(near, Ticks(130));
        tally.begin(far, Ticks(140));
        tally.end(far, Ticks(900));
        for cpu in [near, far] {
            for time in [99, 100, 129, 130, 140, 900, 901, 1000, 1001] {
                tally.of(cpu).inside(Ticks(time));
            }
        }
        // 130, 140, 900, 901 and 1000 of one CPU; 140 and 900 of the other.
        assert_eq!(tally.counts().events, 5 + 2);
    }

    fn gap(start: u64, end: u64) -> Gap {
        Gap {
            start: Ticks(start),
            length: Ticks(end - start),
        }
    }

    /// The measurement has no limits.
    fn tally(shift: u64) -> EventTally {
        let mut tally = EventTally::new(Ticks(shift));
        tally.measure(Ticks(0), Ticks(u64::MAX));
        tally
    }

    /// (events that have a control, those whose control lies in a gap)
    fn control(tally: &mut EventTally, times: impl IntoIterator<Item = u64>) -> (u64, u64) {
        times
            .into_iter()
            .for_each(|time| tally.of(CpuId(1)).outside(Ticks(time), Turns::default()));
        let counts = tally.counts();
        assert_eq!(counts.inside, 0);
        (counts.control_events, counts.control_inside)
    }

    #[test]
    fn the_control_is_the_same_event_earlier() {
        // With a `shift` of 1 each shift is 1.
        let with = |time| {
            let mut tally = tally(1);
            tally.gap(CpuId(1), gap(10, 20));
            tally.gap(CpuId(1), gap(22, 24));
            control(&mut tally, [time])
        };
        // Before the oldest gap a comparison is not possible.
        assert_eq!([with(5), with(10)], [(0, 0); 2]);
        assert_eq!([with(11), with(21), with(23), with(25)], [(1, 1); 4]);
        assert_eq!([with(22), with(26)], [(1, 0); 2]);
        // Another CPU's gaps do not count.
        let mut tally = tally(1);
        tally.gap(CpuId(2), gap(10, 20));
        assert_eq!(control(&mut tally, [15]), (0, 0));
        // With a shift of zero the control would be the event itself.
        assert_eq!(EventTally::new(Ticks(0)).common.shift, Ticks(1));
    }

    #[test]
    fn the_shift_is_anything_from_once_to_twice_what_was_asked_for() {
        // Events at 10,000, shifted by 1000 to 2000, into one of these gaps.
        let shifted_into = |gaps: &[Gap]| {
            let mut tally = tally(1000);
            tally.gap(CpuId(1), gap(1, 2));
            gaps.iter().for_each(|gap| tally.gap(CpuId(1), *gap));
            // Earlier gaps are kept as long as a current event may need them.
            tally
                .cpus
                .get_mut(&CpuId(1))
                .unwrap()
                .recent
                .push_front(gap(0, 0));
            let (events, inside) = control(&mut tally, std::iter::repeat_n(10_000, 4000));
            assert_eq!(events, 4000);
            inside
        };
        assert_eq!(shifted_into(&[gap(8001, 9000)]), 4000);
        assert_eq!(shifted_into(&[gap(7000, 8000), gap(9001, 9500)]), 0);
        for quarter in 0..4 {
            let from = 8001 + quarter * 250;
            let inside = shifted_into(&[gap(from, from + 249)]);
            assert!((800..1200).contains(&inside), "{quarter}: {inside}");
        }
    }

    #[test]
    fn gaps_are_kept_as_long_as_a_control_can_meet_them_and_no_more_than_fit() {
        let kept = |next: u64| {
            let mut tally = tally(10);
            tally.gap(CpuId(1), gap(100, 110));
            tally.gap(CpuId(1), gap(next, next + 1));
            tally.cpus[&CpuId(1)].recent.len()
        };
        assert_eq!([kept(130), kept(131)], [2, 1]);
        let mut tally = tally(1_000_000);
        for n in 0..KEPT_GAPS as u64 + 10 {
            tally.gap(CpuId(1), gap(n * 2, n * 2 + 1));
        }
        let recent = &tally.cpus[&CpuId(1)].recent;
        assert_eq!((recent.len(), recent[0].start), (KEPT_GAPS, Ticks(20)));
    }

    #[test]
    fn a_gap_of_before_the_measurement_is_none() {
        let mut tally = EventTally::new(Ticks(1000));
        tally.measure(Ticks(100), Ticks(1000));
        tally.begin(CpuId(2), Ticks(150));
        for cpu in [CpuId(1), CpuId(2)] {
            for start in [99, 100, 149, 150] {
                tally.gap(cpu, gap(start, start + 1));
            }
        }
        assert_eq!(
            [CpuId(1), CpuId(2)].map(|cpu| tally.cpus[&cpu].recent.len()),
            [3, 1]
        );
    }

    /// Counts events outside of gaps, for a probe (thread 7) without gaps below 20. Each event has a time, and the
    /// thread that is in its own code after it. Returns how many count, and how many of them as too short.
    fn outside(events: &[(u64, Option<i32>)]) -> (u64, u64) {
        let mut tally = tally(1);
        tally.threshold(Ticks(20 + THERE_AND_BACK.0), TickRate::NANOSECONDS);
        let mut before = Some(7);
        for (time, after) in events {
            tally.of(CpuId(1)).outside(
                Ticks(*time),
                Turns {
                    before,
                    after: *after,
                },
            );
            before = *after;
        }
        (tally.counts().events, tally.counts().too_short)
    }

    #[test]
    fn only_a_visit_that_was_seen_whole_can_be_too_short() {
        let probe = Some(7);
        assert_eq!(outside(&[(100, None), (105, None), (119, probe)]), (3, 3));
        assert_eq!(
            outside(&[(100, None), (105, None), (120, probe)]),
            (3, 0),
            "as long as a gap"
        );
        assert_eq!(
            outside(&[(100, Some(9)), (110, None), (115, probe)]),
            (3, 3),
            "another thread's turn"
        );
        assert_eq!(
            outside(&[(100, probe)]),
            (1, 0),
            "nothing says how long it was"
        );
        assert_eq!(
            outside(&[(100, None), (105, None)]),
            (2, 0),
            "nor where no end was seen"
        );
        assert_eq!(outside(&[(100, None), (105, Some(9))]), (2, 0));
    }

    #[test]
    fn visits_that_follow_closely_are_one() {
        let probe = Some(7);
        let (irq, softirq) = ([(100, None), (110, probe)], [(111, None), (118, probe)]);
        assert_eq!(outside(&[irq, softirq].concat()), (4, 4));
        let longer = [(111, None), (125, probe)];
        assert_eq!(
            outside(&[irq, longer].concat()),
            (4, 0),
            "together they are as long as a gap"
        );
        let later = [(131, None), (140, probe)];
        assert_eq!(
            outside(&[irq, later].concat()),
            (4, 4),
            "each by itself is not"
        );
    }

    #[test]
    fn a_gap_parts_visits_and_without_a_threshold_all_events_must_lie_in_one() {
        let turns = |before, after| Turns { before, after };
        for (must, too_short) in [(20, 2), (0, 0)] {
            let mut tally = tally(1);
            tally.threshold(Ticks(must + THERE_AND_BACK.0), TickRate::NANOSECONDS);
            tally.of(CpuId(1)).outside(Ticks(100), turns(Some(7), None));
            tally.of(CpuId(1)).gap_begins();
            tally.of(CpuId(1)).outside(Ticks(110), turns(None, Some(7)));
            tally.of(CpuId(1)).outside(Ticks(115), turns(Some(7), None));
            tally.of(CpuId(1)).outside(Ticks(118), turns(None, Some(7)));
            assert_eq!(
                (tally.counts().events, tally.counts().too_short),
                (4, too_short)
            );
        }
    }
}
