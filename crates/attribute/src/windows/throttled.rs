//! Time in which a CPU quota kept the victim from running, as frames of a window, for all kinds of window.
//!
//! The kernel counts how long each group was throttled, and a record shows when the throttling ended: the function of
//! the group's timer, or the call by which another CPU's timer forwards it. Throttling begins when the victim's group
//! leaves the CPU. So other threads' time on the CPU from then on belongs to the quota, up to the last such record and
//! up to the counted time. A process that writes the quota ends throttling without a record: then the counted time alone
//! decides. Each level above the victim gets its share of the counted time. An idle CPU while a thread is runnable has
//! no other explanation.

use crate::bandwidth::{Bandwidth, Rise};
use crate::culprits::{self, Unschedulable, UnschedulableTurns, Waits};
use crate::name_resolver::NameResolver;
use crate::occupancy::{Class, Frame, Window};
use jitterscope_model::{CpuId, KernelAddr, Nanos, TickRate, Ticks};

/// Timer functions, and a called function, that let a throttled group run again.
const UNTHROTTLES: [&str; 3] = [
    "sched_cfs_period_timer",
    "sched_cfs_slack_timer",
    "__cfsb_csd_unthrottle",
];
/// The maximum error of a turn's end as the time of its counts.
const READ_WITHIN: Nanos = Nanos(2_000_000);
/// An exit from the deepest idle state is shorter: a thread that waited longer for an idle CPU, and whose group was
/// throttled, did not wait for the idle exit.
const LONGEST_IDLE_EXIT: Nanos = Nanos(1_000_000);
/// Since Linux 6.18 a thread of a throttled group still gets the CPU for a moment, in which it removes itself from the
/// run queue.
const SETS_ITSELF_ASIDE: Nanos = Nanos(1_000_000);
/// Maximum of levels above a thread.
const MOST_LEVELS: usize = u32::BITS as usize;

/// The waiting thread, and the facts about quotas.
pub(crate) struct Throttling<'a> {
    pub(crate) cpu: CpuId,
    pub(crate) victim: i32,
    /// When it began to wait, in addition to its switches.
    pub(crate) waits: &'a [Waits],
    pub(crate) bandwidth: &'a Bandwidth,
    pub(crate) resolver: &'a dyn NameResolver,
    pub(crate) rate: TickRate,
    /// Whether the wait is over: then counted time that it gets is not available to other waits.
    pub(crate) is_over: bool,
}

/// Time of a turn in which the victim may have been throttled.
struct Stretch {
    turn: u32,
    from: Ticks,
    to: Ticks,
    idle: bool,
    /// The levels that may have caused it, one bit each.
    levels: u32,
}

impl Stretch {
    fn length(&self) -> Ticks {
        self.to.since(self.from)
    }
}

/// The counted time by level.
struct Counted {
    rises: Vec<Rise>,
    /// Counted in the turns that overlap this time.
    within: (Ticks, Ticks),
    rate: TickRate,
}

impl Counted {
    /// The sum over these levels.
    fn of(&self, levels: u32, part: impl Fn(&Rise) -> Nanos) -> Ticks {
        let of = |rise: &&Rise| levels & bit(rise.level) != 0;
        let all = self.rises.iter().filter(of).map(part);
        self.rate.ticks(all.sum())
    }
}

fn bit(level: usize) -> u32 {
    if level < MOST_LEVELS { 1 << level } else { 0 }
}

/// Assigns time of a window to the victim's quotas.
pub(crate) fn mark(window: &mut Window, of: &Throttling<'_>) {
    let rises = of.bandwidth.rises(of.victim, window.from, window.until);
    if rises.is_empty() {
        return;
    }
    let withheld = culprits::withheld(window, of.victim, of.waits, false, of.rate);
    let stretches = stretches(window, of, &withheld, &rises);
    let Some(first) = stretches.first() else {
        return;
    };
    let mut ended = Ended::of(window, first.from, of);
    if rises.iter().any(|rise| rise.changed) {
        ended.last = None;
    }
    let counted = counted(window, &stretches, &ended, rises, of);
    let limited = shorten(stretches, &ended, &counted, of);
    for stretch in limited
        .into_iter()
        .filter(|stretch| stretch.length() > Ticks(0))
    {
        divide(window, &stretch, &counted, of);
    }
}

/// When throttling ended, by the window's records.
struct Ended {
    first: Ticks,
    last: Option<Ticks>,
}

impl Ended {
    /// `from`: ignores earlier records.
    fn of(window: &Window, from: Ticks, asked: &Throttling<'_>) -> Ended {
        let folded = window.slices.iter().any(|slice| slice.is_folded());
        let unthrottles = |frame: &&Frame| {
            matches!(frame.class, Class::HrtimerFunction | Class::Call)
                && UNTHROTTLES.contains(&&*asked.resolver.function(KernelAddr(frame.subject)))
        };
        let mut ended = Ended {
            first: window.until,
            last: None,
        };
        for frame in window.frames.iter().filter(unthrottles) {
            // A folded frame has no exact position.
            let at = if folded { window.until } else { frame.start };
            if at >= from {
                ended.first = ended.first.min(if folded { window.from } else { at });
                ended.last = ended.last.max(Some(at));
            }
        }
        if ended.last.is_some() {
            asked.bandwidth.is_told(asked.cpu);
        }
        ended
    }
}

/// The turns of a window in which the victim may have been throttled, in order.
fn stretches(
    window: &Window,
    of: &Throttling<'_>,
    withheld: &UnschedulableTurns,
    rises: &[Rise],
) -> Vec<Stretch> {
    let [exit, aside] = [LONGEST_IDLE_EXIT, SETS_ITSELF_ASIDE].map(|time| of.rate.ticks(time));
    let mut found: Vec<Stretch> = Vec::new();
    let mut ran = false;
    for (index, frame) in (0..)
        .zip(&window.frames)
        .filter(|(_, frame)| frame.is_turn())
    {
        if frame.tid == of.victim {
            ran = true;
            continue;
        }
        let since = match withheld.at(index) {
            Unschedulable::Idle => frame.start,
            Unschedulable::LeavesIdle(since) if frame.end.since(since.max(frame.start)) > exit => {
                since
            }
            Unschedulable::Perhaps(since) => since,
            _ => continue,
        };
        if std::mem::take(&mut ran) {
            found.clear();
        }
        // A group that has the CPU is not throttled there.
        let others = |rise: &&Rise| !of.bandwidth.is_in(frame.tid, &rise.quota.cgroup);
        let levels = rises.iter().filter(others);
        let levels = levels.fold(0, |levels, rise| levels | bit(rise.level));
        if frame.gross() >= aside {
            found.iter_mut().for_each(|before| before.levels &= levels);
        }
        found.push(Stretch {
            turn: index,
            from: since.max(frame.start),
            to: frame.end,
            idle: frame.tid == 0,
            levels,
        });
    }
    found.retain(|stretch| stretch.levels != 0 && stretch.length() > Ticks(0));
    found
}

/// The time counted when the window's throttling ended; `all`: the time counted in the whole window.
fn counted(
    window: &Window,
    stretches: &[Stretch],
    ended: &Ended,
    all: Vec<Rise>,
    of: &Throttling<'_>,
) -> Counted {
    let around = of.rate.ticks(READ_WITHIN);
    let idle_until = stretches
        .last()
        .filter(|last| last.idle)
        .map(|last| last.to);
    let (from, to) = match (ended.last, idle_until) {
        (Some(last), _) => (ended.first - around, last),
        // A thread that waits for an idle CPU gets it as soon as it is allowed.
        (None, Some(until)) => (until - around, until),
        (None, None) => (window.from, window.until),
    };
    let mut within = (from.max(window.from), to);
    let mut rises = of.bandwidth.rises(of.victim, within.0, within.1);
    if rises.is_empty() {
        (rises, within) = (all, (window.from, window.until));
    }
    Counted {
        rises,
        within,
        rate: of.rate,
    }
}

/// Cuts threads' turns to the time that throttling can explain; idle time belongs to it completely.
fn shorten(
    mut stretches: Vec<Stretch>,
    ended: &Ended,
    counted: &Counted,
    of: &Throttling<'_>,
) -> Vec<Stretch> {
    // If records on this CPU show the end of throttling, and none counts here, only a change of the quota can have ended
    // it.
    let untold = ended.last.is_none() && of.bandwidth.tells(of.cpu);
    let part = |rise: &Rise| {
        if untold { rise.by_nobody } else { rise.left }
    };
    let idle = stretches.iter().filter(|stretch| stretch.idle);
    let mut taken: Ticks = idle.fold(Ticks(0), |sum, stretch| sum + stretch.length());
    for stretch in stretches.iter_mut().filter(|stretch| !stretch.idle) {
        if let Some(last) = ended.last {
            stretch.to = stretch.to.min(last).max(stretch.from);
        }
        let left = counted.of(stretch.levels, part) - taken;
        stretch.to = stretch.to.min(stretch.from + left);
        taken = taken + stretch.length();
    }
    stretches
}

/// Divides a stretch among the levels in proportion to their counted time.
fn divide(window: &mut Window, stretch: &Stretch, counted: &Counted, of: &Throttling<'_>) {
    let levels = || {
        let rises = counted.rises.iter();
        rises.filter(|rise| stretch.levels & bit(rise.level) != 0)
    };
    let all: u128 = levels().map(|rise| u128::from(rise.throttled.0)).sum();
    let (mut from, mut sum) = (stretch.from, 0);
    for rise in levels().filter(|rise| rise.throttled > Nanos::ZERO) {
        sum += u128::from(rise.throttled.0);
        let share = u128::from(stretch.length().0) * sum / all;
        let to = stretch.from + Ticks(u64::try_from(share).unwrap_or(u64::MAX));
        window.throttle(stretch.turn, (from, to), &rise.quota);
        if of.is_over {
            let time = of.rate.nanos(to.since(from));
            of.bandwidth
                .give(of.victim, rise.level, counted.within, time);
        }
        from = to;
    }
}
