//! What followed threads waited for while they slept.
//!
//! A sleep begins with the switch away from its thread. The stack of the same switch comes from another tracing
//! instance, which the kernel serves after the one with the switch: so its record is a little later, but earlier than
//! the thread's next turn on a CPU, even if another CPU wakes the thread in between. That turn settles the sleep.

use super::follower::ThreadFollower;
use super::state::{State, Thread};
use crate::block_reasons::reason_of;
use crate::name_resolver::NameResolver;
use jitterscope_model::{
    BlockReason, BlockedOn, CpuId, KernelAddr, KernelEvent, Name, Nanos, NoReason, PutInOrder,
    SleepStack, TickRate, Ticks,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The number of rows of a thread with a function each; further ones are summed by reason.
const MOST_ROWS: usize = 12;
/// Maximum of different stacks whose reason is remembered.
const MOST_STACKS: usize = 4096;
/// Maximum of different reasons and functions; a kernel has far fewer functions that wait.
const MOST_REASONS: usize = 4096;
/// A stack that comes before its switch comes this shortly before it.
const BEFORE_ITS_SWITCH: Nanos = Nanos(1_000_000);

/// A reason with its function, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Why {
    For(BlockReason, Option<Name>),
    Unknown(NoReason),
}

impl Why {
    /// The same without its function.
    fn without_function(&self) -> Why {
        match self {
            Why::For(reason, _) => Why::For(reason.clone(), None),
            Why::Unknown(why) => Why::Unknown(why.clone()),
        }
    }
}

/// A number of a [`Why`].
type WhyNo = u32;

/// The reasons so far, numbered.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    rows: Vec<Why>,
    numbers: FxHashMap<Why, WhyNo>,
    stacks: FxHashMap<Box<[KernelAddr]>, WhyNo>,
}

impl Reasons {
    fn number(&mut self, why: Why) -> WhyNo {
        let why = if self.rows.len() < MOST_REASONS {
            why
        } else {
            why.without_function()
        };
        let next = self.rows.len() as WhyNo;
        *self.numbers.entry(why).or_insert_with_key(|why| {
            self.rows.push(why.clone());
            next
        })
    }

    fn of(&mut self, frames: &[KernelAddr], resolver: &dyn NameResolver) -> WhyNo {
        if let Some(number) = self.stacks.get(frames) {
            return *number;
        }
        let why = match reason_of(frames, resolver) {
            Some((reason, function)) => Why::For(reason, Some(function)),
            None => Why::Unknown(NoReason::NoNames),
        };
        let number = self.number(why);
        if self.stacks.len() >= MOST_STACKS {
            self.stacks.clear();
        }
        self.stacks.insert(frames.into(), number);
        number
    }
}

/// The last sleep of a thread, until its next turn on a CPU.
#[derive(Debug)]
pub(super) struct Sleep {
    /// The CPU that it left; `None` if no switch shows the beginning.
    cpu: Option<CpuId>,
    /// The part of it that counts so far.
    length: Ticks,
    reason: Option<WhyNo>,
}

/// A stack without a sleep yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Early {
    time: Ticks,
    cpu: CpuId,
    reason: WhyNo,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    length: Ticks,
    max: Ticks,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.length = self.length + other.length;
        self.max = self.max.max(other.max);
    }
}

/// The settled sleeps of a thread by reason. A thread has few reasons, so their numbers are searched one by one.
#[derive(Debug, Default)]
pub(super) struct Sleeps(Vec<(WhyNo, Sum)>);

impl Sleeps {
    fn add(&mut self, why: WhyNo, length: Ticks) {
        let one = Sum {
            count: 1,
            length,
            max: length,
        };
        match self.0.iter_mut().find(|(number, _)| *number == why) {
            Some((_, sum)) => sum.add(one),
            None => self.0.push((why, one)),
        }
    }

    /// The rows, most time first. Their times sum to the nanoseconds of the whole.
    pub(super) fn rows(&self, reasons: &Reasons, rate: TickRate) -> Vec<BlockedOn> {
        let why = |number: WhyNo| reasons.rows.get(number as usize).cloned();
        let mut rows: Vec<(Why, Sum)> = self
            .0
            .iter()
            .filter_map(|(number, sum)| Some((why(*number)?, *sum)))
            .collect();
        let by_length = |rows: &mut Vec<(Why, Sum)>| {
            rows.order_by(|(a, of_a), (b, of_b)| {
                (Reverse(of_a.length), a).cmp(&(Reverse(of_b.length), b))
            });
        };
        by_length(&mut rows);
        let rest = rows.split_off(MOST_ROWS.min(rows.len()));
        for (why, sum) in rest {
            let why = why.without_function();
            match rows[..].iter_mut().find(|(known, _)| *known == why) {
                Some((_, known)) => known.add(sum),
                None => rows.push((why, sum)),
            }
        }
        by_length(&mut rows);
        let mut until = Ticks(0);
        let mut row = |(why, sum): (Why, Sum)| {
            // Differences of rounded sums add up to the rounded whole.
            let from = rate.nanos(until);
            until = until + sum.length;
            let (reason, function, unknown_because) = match why {
                Why::For(reason, function) => (reason, function.map(|name| name.to_string()), None),
                Why::Unknown(why) => (BlockReason::NotRecorded, None, Some(why)),
            };
            BlockedOn {
                reason,
                function,
                unknown_because,
                count: sum.count,
                blocked_ns: rate.nanos(until).saturating_sub(from),
                max_ns: rate.nanos(sum.max),
            }
        };
        rows.into_iter().map(&mut row).collect()
    }
}

impl Thread {
    /// It slept for this long, in addition.
    pub(super) fn slept(&mut self, length: Ticks) {
        let sleep = self.sleep.get_or_insert(Sleep {
            cpu: None,
            length: Ticks(0),
            reason: None,
        });
        sleep.length = sleep.length + length;
    }

    /// Its sleep is over: no stack of it can follow.
    pub(super) fn settle(&mut self, reasons: &mut Reasons, stacks: bool) {
        self.early = None;
        let Some(sleep) = self.sleep.take().filter(|sleep| sleep.length > Ticks(0)) else {
            return;
        };
        let number = sleep.reason.unwrap_or_else(|| {
            reasons.number(Why::Unknown(match (stacks, sleep.cpu) {
                (false, _) => NoReason::Off,
                (true, None) => NoReason::Before,
                (true, Some(_)) => NoReason::Lost,
            }))
        });
        self.account.sleeps.add(number, sleep.length);
    }
}

impl ThreadFollower {
    /// A thread leaves its CPU to sleep.
    pub(super) fn falls_asleep(&mut self, event: &KernelEvent, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let before = self.settings.rate.ticks(BEFORE_ITS_SWITCH);
        let early = thread.early.take();
        thread.settle(&mut self.reasons, self.settings.stacks);
        let own = |early: &Early| early.cpu == event.cpu && event.time.since(early.time) <= before;
        thread.sleep = Some(Sleep {
            cpu: Some(event.cpu),
            length: Ticks(0),
            reason: early.filter(own).map(|early| early.reason),
        });
    }

    /// The stack of a thread that leaves its CPU to sleep.
    pub fn stack(&mut self, stack: &SleepStack, resolver: &dyn NameResolver) {
        let Some(thread) = self.threads.get_mut(&stack.tid) else {
            return;
        };
        let reason = self.reasons.of(&stack.frames, resolver);
        match &mut thread.sleep {
            Some(sleep) if sleep.cpu == Some(stack.cpu) => sleep.reason = Some(reason),
            // The switch itself is still to come, or lost.
            _ if matches!(thread.state, State::Running { .. } | State::Unknown { .. }) => {
                thread.early = Some(Early {
                    time: stack.time,
                    cpu: stack.cpu,
                    reason,
                });
            }
            _ => {}
        }
    }
}
