//! Interrupts that came later than they were due: evidence that a host kept a virtual CPU from running.
//!
//! A spinning thread runs with interrupts enabled, so a due interrupt comes at once. If the thread made no progress and
//! the interrupt did not come either, the CPU did not run this kernel at all. Exceptions without a record, such as
//! debug traps, delay interrupts only for their own first microseconds.
//!
//! For an interrupt from another CPU, the time of sending is recorded. The tick is due on a grid: its timer is set
//! forward by whole periods, from a fixed instant. The kernel's record of the timer has the kernel's clock at the
//! interrupt, not the expiry. But a timer never fires early, so the tick that came earliest in its period is the
//! closest to the due time. Every other tick is late by its offset from that one. If the earliest comes at a whole
//! number of periods of the clock, ticks are assumed to be due exactly then: kernels since 6.4 align them so (unless
//! `skew_tick` moves those of other CPUs).

use crate::name_resolver::NameResolver;
use crate::occupancy::{Class, Window};
use jitterscope_model::{EventKind, KernelAddr, KernelEvent, Nanos, TickRate, Ticks};
use std::collections::VecDeque;

/// The timer function of the tick, by kernel version.
const TICK: [&str; 3] = [
    "tick_nohz_handler",
    "tick_nohz_highres_handler",
    "tick_sched_timer",
];
/// The possible periods of a kernel (`HZ`), nanoseconds.
const PERIODS: [u64; 4] = [1_000_000, 3_333_333, 4_000_000, 10_000_000];
/// Required ticks for the period, and ticks in a row that must contradict the grid to invalidate it.
const ENOUGH: u32 = 8;
/// A tick within this fraction of the period is near the grid.
const NEAR: u64 = 8;
/// Ticks are assumed to be due at whole periods if the earliest one comes at most this much later, in nanoseconds. By
/// chance, another grid is that close in one case of 200 at HZ=250, and is then assumed to be up to this much earlier.
const ALIGNED: u64 = 20_000;
/// Timers kept per CPU until their stall is attributed.
const MOST: usize = 4096;

/// A timer that ran its function.
#[derive(Clone, Copy, Debug)]
struct Expiry {
    at: Ticks,
    function: KernelAddr,
    /// The kernel's clock at the timer's interrupt.
    now: Nanos,
}

/// The timers of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiries {
    /// Timers of future stalls.
    pending: VecDeque<Expiry>,
    grid: TickGrid,
}

impl Expiries {
    /// Adds a record of this CPU, if it is a timer's.
    pub(crate) fn note(&mut self, event: &KernelEvent) {
        let EventKind::HrtimerEntry { function, now, .. } = event.kind else {
            return;
        };
        if self.pending.len() >= MOST {
            self.pending.pop_front();
        }
        self.pending.push_back(Expiry {
            at: event.time,
            function,
            now,
        });
    }

    pub(crate) fn forget(&mut self, before: Ticks) {
        while self
            .pending
            .front()
            .is_some_and(|expiry| expiry.at < before)
        {
            self.pending.pop_front();
        }
    }

    /// The due time of the tick that came between two times, after the CPU had stood still since `from`: at the
    /// earliest `from`, at the latest the tick itself. `None` if unknown.
    pub(crate) fn tick_due(
        &mut self,
        from: Ticks,
        came: (Ticks, Ticks),
        resolver: &dyn NameResolver,
        rate: TickRate,
    ) -> Option<Ticks> {
        let tick = self.tick_within(came, resolver)?;
        let late = self.grid.tick(tick.now, rate.nanos(tick.at.since(from)))?;
        // The clock was read slightly before the record was written: the due time is too late by that difference, never
        // too early.
        Some((tick.at - rate.ticks(late)).max(from))
    }

    /// How much later than it was due the tick came that lies between two times, in the turn of a thread that may have
    /// run until then. `None` if the grid is unknown.
    fn late_in_turn(&mut self, came: (Ticks, Ticks), resolver: &dyn NameResolver) -> Option<Nanos> {
        let tick = self.tick_within(came, resolver)?;
        self.grid.in_turn(tick.now)
    }

    /// The first tick between two times.
    fn tick_within(
        &self,
        (from, to): (Ticks, Ticks),
        resolver: &dyn NameResolver,
    ) -> Option<Expiry> {
        // They are in order of time, and may include those of all stalls of a turn.
        let first = self.pending.partition_point(|expiry| expiry.at < from);
        let within = self.pending.range(first..);
        let mut within = within.take_while(|expiry| expiry.at <= to);
        within
            .find(|expiry| TICK.contains(&&*resolver.function(expiry.function)))
            .copied()
    }
}

/// A tick that comes this much later than it was due indicates host time. The grid is known to [`ALIGNED`].
const LATE: Nanos = Nanos(2 * ALIGNED);

/// Times in turns of other threads than `victim` in which a tick was due and did not come: from when it was due to
/// when it came, in order. The host had the CPU, or the thread had interrupts disabled; no record says which.
pub(crate) fn late_ticks(
    window: &Window,
    victim: i32,
    expiries: &mut Expiries,
    resolver: &dyn NameResolver,
    rate: TickRate,
) -> Vec<(Ticks, Ticks)> {
    let pairs = window.slices.iter().zip(window.slices.iter().skip(1));
    pairs
        .filter_map(|(before, tick)| {
            let timer = window.frame(
                window
                    .chain(tick.frame)
                    .find(|index| window.frame(*index).class == Class::LocalTimer)?,
            );
            let turn = window.frame(window.root(before.frame));
            let of_another = turn.is_turn() && turn.tid != victim && turn.tid != 0;
            if timer.start != before.end || before.is_folded() || !of_another {
                return None;
            }
            let came = (timer.start, timer.end);
            let late = expiries.late_in_turn(came, resolver)?;
            let due = (timer.start - rate.ticks(late)).max(before.start);
            (late >= LATE).then_some((due, timer.start))
        })
        .collect()
}

/// When the tick of one CPU is due.
#[derive(Clone, Debug, Default)]
struct TickGrid {
    last: Option<Nanos>,
    /// Intervals between ticks, counted for the nearest period.
    votes: [u32; PERIODS.len()],
    /// The tick that came earliest in its period.
    earliest: Option<Nanos>,
    /// Ticks in a row that contradict the grid.
    strangers: u32,
}

impl TickGrid {
    /// Adds a tick: the kernel's clock when it came, and how long the CPU had stood still by then. Returns its minimum
    /// lateness, which is at most that time; `None` if unknown.
    fn tick(&mut self, now: Nanos, stood: Nanos) -> Option<Nanos> {
        let period = self.period(now)?;
        let near = period / NEAR;
        let Some(earliest) = self.earliest else {
            // After a long standstill its lateness is unknown.
            self.earliest = (stood.0 < near).then_some(now);
            return None;
        };
        let after = now.0.wrapping_sub(earliest.0) % period;
        let earliest = if stood.0 < near && period - after < near {
            now
        } else {
            earliest
        };
        self.earliest = Some(earliest);
        let beyond = earliest.0 % period;
        let due = if beyond <= ALIGNED {
            earliest.0 - beyond
        } else {
            earliest.0
        };
        let late = now.0.wrapping_sub(due) % period;
        if late > stood.0 && late >= near {
            // It would have come before the CPU stood still.
            self.strangers += 1;
            if self.strangers >= ENOUGH {
                *self = TickGrid {
                    votes: self.votes,
                    last: self.last,
                    ..TickGrid::default()
                };
            }
            return None;
        }
        self.strangers = 0;
        if late > stood.0 {
            return Some(stood);
        }
        // If several ticks were due meanwhile, the first one counts.
        Some(Nanos(late + (stood.0 - late) / period * period))
    }

    /// Takes in a tick that interrupted a running thread: how late it was within its period.
    fn in_turn(&mut self, now: Nanos) -> Option<Nanos> {
        let period = self.period(now)?;
        let earliest = *self.earliest.get_or_insert(now);
        let after = now.0.wrapping_sub(earliest.0) % period;
        if period - after < period / NEAR {
            self.earliest = Some(now);
            self.strangers = 0;
            return Some(Nanos::ZERO);
        }
        if after < LATE.0 {
            self.strangers = 0;
        } else {
            // Ticks that are all late belong to another grid.
            self.strangers += 1;
            if self.strangers >= ENOUGH {
                self.earliest = Some(now);
                self.strangers = 0;
                return None;
            }
        }
        Some(Nanos(after))
    }

    /// The period, once it is known.
    fn period(&mut self, now: Nanos) -> Option<u64> {
        if let Some(last) = self.last.replace(now) {
            let elapsed = now.saturating_sub(last).0;
            let is = |period: &u64| elapsed.abs_diff(*period) < period / NEAR;
            if let Some(which) = PERIODS.iter().position(is) {
                self.votes[which] = self.votes[which].saturating_add(1);
            }
        }
        let (votes, period) = self
            .votes
            .iter()
            .zip(PERIODS)
            .max_by_key(|(votes, _)| **votes)?;
        (*votes >= ENOUGH).then_some(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_resolver::NoNames;
    use jitterscope_model::{CpuId, ExecutionContext};

    const MS: u64 = 1_000_000;
    const US: u64 = 1000;

    /// The offset of the due time in every four milliseconds.
    const DUE: u64 = 1_234_567;

    /// A grid after twenty ticks with two microseconds' delay, and the number of ticks.
    fn grid() -> (TickGrid, u64) {
        let mut grid = TickGrid::default();
        for n in 0..20 {
            grid.tick(Nanos(DUE + n * 4 * MS + 2 * US), Nanos(3 * US));
        }
        (grid, 20)
    }

    #[test]
    fn a_tick_is_late_by_what_it_came_after_the_earliest() {
        let (mut grid, mut n) = grid();
        for (late, stood, expected) in [
            (2 * US, 3 * US, Some(0)),
            (502 * US, 600 * US, Some(500 * US)),
            // A standstill of a millisecond, with the tick due at its very end.
            (3 * US, 1000 * US, Some(US)),
            // The first of two due ticks.
            (5002 * US, 6 * MS, Some(5 * MS)),
            // The tick before it was due when the CPU still ran.
            (1002 * US, 4 * MS, Some(MS)),
            // It was due before the standstill began, and had not come.
            (32 * US, 10 * US, Some(10 * US)),
            // No thread runs for a millisecond while an interrupt is due.
            (1002 * US, 10 * US, None),
            // Earlier than any before: the others were later than assumed.
            (US, 2 * US, Some(0)),
            (502 * US, 600 * US, Some(501 * US)),
        ] {
            n += 2;
            let now = Nanos(DUE + n * 4 * MS + late);
            assert_eq!(
                grid.tick(now, Nanos(stood)),
                expected.map(Nanos),
                "{late} late, stood {stood}"
            );
        }
    }

    #[test]
    fn ticks_that_come_at_whole_periods_are_due_at_those() {
        for (delay, expected) in [(7 * US, 30 * US), (21 * US, 9 * US)] {
            let mut grid = TickGrid::default();
            for n in 1..20 {
                grid.tick(Nanos(n * 4 * MS + delay), Nanos(9 * US));
            }
            let late = Nanos(20 * 4 * MS + 30 * US);
            assert_eq!(
                grid.tick(late, Nanos(50 * US)),
                Some(Nanos(expected)),
                "{delay}"
            );
        }
    }

    #[test]
    fn no_lateness_before_the_period_is_known_or_after_a_standstill() {
        let mut grid = TickGrid::default();
        for n in 0..8 {
            assert_eq!(grid.tick(Nanos(DUE + n * 4 * MS), Nanos(2 * US)), None);
        }
        // The ninth makes eight intervals, but was too late to determine the grid.
        assert_eq!(grid.tick(Nanos(DUE + 8 * 4 * MS), Nanos(MS)), None);
        assert_eq!(grid.earliest, None);
        assert_eq!(grid.tick(Nanos(DUE + 9 * 4 * MS), Nanos(2 * US)), None);
        assert_eq!(
            grid.tick(Nanos(DUE + 10 * 4 * MS), Nanos(2 * US)),
            Some(Nanos::ZERO)
        );
    }

    #[test]
    fn a_grid_that_ticks_no_longer_agree_with_is_given_up() {
        let (mut grid, n) = grid();
        let shifted = |n: u64| Nanos(DUE + n * 4 * MS + 2 * MS);
        for n in n..n + u64::from(ENOUGH) {
            assert_eq!(grid.tick(shifted(n), Nanos(2 * US)), None);
        }
        let n = n + u64::from(ENOUGH);
        assert_eq!(grid.tick(shifted(n), Nanos(2 * US)), None);
        assert_eq!(grid.tick(shifted(n + 1), Nanos(2 * US)), Some(Nanos::ZERO));
        assert_eq!(
            grid.tick(shifted(n + 2) + Nanos(40 * US), Nanos(50 * US)),
            Some(Nanos(40 * US))
        );
    }

    #[test]
    fn the_period_is_one_of_those_that_kernels_are_built_with() {
        for period in PERIODS {
            let mut grid = TickGrid::default();
            let came = |n: u64, late: u64| Nanos(DUE + n * period + late);
            for n in 0..=u64::from(ENOUGH) {
                assert_eq!(grid.tick(came(n, 0), Nanos(US)), None, "{period}");
            }
            let n = u64::from(ENOUGH) + 1;
            assert_eq!(
                grid.tick(came(n, 0), Nanos(US)),
                Some(Nanos::ZERO),
                "{period}"
            );
            assert_eq!(
                grid.tick(came(n + 1, 90 * US), Nanos(100 * US)),
                Some(Nanos(90 * US)),
                "{period}"
            );
        }
        // No kernel ticks every two milliseconds.
        let mut grid = TickGrid::default();
        for n in 0..100 {
            assert_eq!(grid.tick(Nanos(DUE + n * 2 * MS), Nanos(US)), None);
        }
    }

    #[test]
    fn an_interval_votes_for_a_period_that_it_is_within_an_eighth_of() {
        let known = |interval: u64| {
            let mut grid = TickGrid::default();
            (0..20).fold(None, |_, n| grid.period(Nanos(DUE + n * interval)))
        };
        let eighth = 10 * MS / NEAR;
        assert_eq!(
            [known(10 * MS - eighth + 1), known(10 * MS + eighth - 1)],
            [Some(10 * MS); 2]
        );
        assert_eq!(
            [known(10 * MS - eighth), known(10 * MS + eighth)],
            [None; 2]
        );
    }

    #[test]
    fn only_a_punctual_tick_defines_the_tick_grid() {
        let near = 4 * MS / NEAR;
        let settled = |stood: u64| {
            let mut grid = TickGrid::default();
            (0..=u64::from(ENOUGH)).for_each(|n| {
                grid.tick(Nanos(DUE + n * 4 * MS), Nanos(stood));
            });
            grid.earliest.is_some()
        };
        assert_eq!([settled(near - 1), settled(near)], [true, false]);
        // This also applies to a tick that came earlier than all others, compared with those that came at 2 us.
        let moved = |early: u64, stood: u64| {
            let (mut grid, n) = grid();
            grid.tick(Nanos(DUE + n * 4 * MS + 2 * US - early), Nanos(stood));
            grid.earliest.is_some_and(|earliest| {
                (earliest.0 + early) % (4 * MS) == (DUE + 2 * US) % (4 * MS)
            })
        };
        assert_eq!([moved(US, near - 1), moved(US, near)], [true, false]);
        assert_eq!([moved(near - 1, US), moved(near, US)], [true, false]);
    }

    #[test]
    fn one_tick_of_another_grid_makes_no_grid_wrong() {
        let (mut grid, n) = grid();
        let strangers = u64::from(ENOUGH) - 1;
        for n in n..n + strangers {
            assert_eq!(
                grid.tick(Nanos(DUE + n * 4 * MS + 2 * MS), Nanos(2 * US)),
                None
            );
        }
        let n = n + strangers;
        assert_eq!(
            grid.tick(Nanos(DUE + n * 4 * MS + 42 * US), Nanos(50 * US)),
            Some(Nanos(40 * US))
        );
        // They must come in a row.
        assert_eq!(grid.strangers, 0);
    }

    #[test]
    fn a_tick_belongs_to_its_interrupt_and_earlier_timers_are_dropped() {
        let timer = |at: u64, function: u64| KernelEvent {
            time: Ticks(at),
            cpu: CpuId(1),
            tid: 1,
            context: ExecutionContext::Interrupt,
            kind: EventKind::HrtimerEntry {
                hrtimer: 7,
                function: KernelAddr(function),
                now: Nanos(at),
            },
        };
        let mut expiries = Expiries::default();
        // Without a known tick, every function is another timer's.
        (0..3).for_each(|n| expiries.note(&timer(100 + n, 1)));
        let none = expiries.tick_due(
            Ticks(0),
            (Ticks(0), Ticks(1000)),
            &NoNames,
            TickRate::NANOSECONDS,
        );
        assert_eq!(none, None);
        let kept = |expiries: &Expiries| {
            expiries
                .pending
                .iter()
                .map(|expiry| expiry.at.0)
                .collect::<Vec<_>>()
        };
        expiries.forget(Ticks(101));
        assert_eq!(kept(&expiries), [101, 102]);
        let mut many = Expiries::default();
        (0..MOST as u64 + 2).for_each(|n| many.note(&timer(n, 1)));
        assert_eq!((many.pending.len(), kept(&many)[0]), (MOST, 2));
        // Another kind of record is ignored.
        many.note(&KernelEvent {
            kind: EventKind::HrtimerExit { hrtimer: 7 },
            ..timer(9, 1)
        });
        assert_eq!(many.pending.len(), MOST);
    }
}
