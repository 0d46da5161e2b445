//! What attribution keeps of the measured CPUs.

use crate::feed::Feed;
use crate::lateness::Expiries;
use crate::windows::late_wakeup::Woken;
use jitterscope_model::{CpuId, Gap, Stall, TickRate, Ticks};
use std::collections::VecDeque;

/// What stopped two CPUs stopped neither for more than so many times as long as the other.
const ALIKE: u64 = 2;
/// Losses remembered; older ones can only matter to stalls long since attributed.
const KEPT_LOSSES: usize = 256;
/// Gaps remembered to see stalls that begin together.
const KEPT_GAPS: usize = 4096;
/// Wake-ups remembered: those of a late wake-up are among the last.
const KEPT_WAKINGS: usize = 1024;
/// Changes of frequency remembered.
const KEPT_FREQUENCY_CHANGES: usize = 256;

/// All of them, in order of their numbers: they are few, and each record asks for one.
#[derive(Debug)]
pub(crate) struct MeasuredCpus {
    rate: TickRate,
    cpus: Vec<(CpuId, MeasuredCpu)>,
}

impl MeasuredCpus {
    pub(crate) fn new(rate: TickRate) -> MeasuredCpus {
        MeasuredCpus {
            rate,
            cpus: Vec::new(),
        }
    }

    fn place(&self, cpu: CpuId) -> Result<usize, usize> {
        self.cpus.binary_search_by_key(&cpu, |(id, _)| *id)
    }

    /// What is kept of a CPU, if anything is.
    pub(crate) fn get(&self, cpu: CpuId) -> Option<&MeasuredCpu> {
        self.place(cpu).ok().map(|at| &self.cpus[at].1)
    }

    /// What is kept of a CPU.
    pub(crate) fn of(&mut self, cpu: CpuId) -> &mut MeasuredCpu {
        let at = self.place(cpu).unwrap_or_else(|at| {
            self.cpus.insert(at, (cpu, MeasuredCpu::new(self.rate)));
            at
        });
        &mut self.cpus[at].1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CpuId, &MeasuredCpu)> {
        self.cpus.iter().map(|(id, cpu)| (*id, cpu))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (CpuId, &mut MeasuredCpu)> {
        self.cpus.iter_mut().map(|(id, cpu)| (*id, cpu))
    }
}

#[derive(Debug)]
pub(crate) struct MeasuredCpu {
    pub(crate) feed: Feed,
    /// Only of a virtual machine, whose host may be late with them.
    pub(crate) expiries: Expiries,
    /// Windows in which records were lost.
    losses: VecDeque<(Ticks, Ticks)>,
    recent: VecDeque<Gap>,
    /// Wake-ups on this CPU, recorded where the waker ran: of whom, and by what priority. In order of time.
    wakings: VecDeque<(i32, Woken)>,
    frequency_changes: VecDeque<Ticks>,
}

/// Keeps one more, and no more than so many.
fn keep<T>(kept: &mut VecDeque<T>, most: usize, one: T) {
    if kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(one);
}

impl MeasuredCpu {
    pub(crate) fn new(rate: TickRate) -> MeasuredCpu {
        MeasuredCpu {
            feed: Feed::new(rate),
            expiries: Expiries::default(),
            losses: VecDeque::new(),
            recent: VecDeque::new(),
            wakings: VecDeque::new(),
            frequency_changes: VecDeque::new(),
        }
    }

    /// Notes a wake-up.
    pub(crate) fn woken(&mut self, tid: i32, woken: Woken) {
        // The CPUs' records arrive buffer by buffer, each one's in order.
        if self
            .wakings
            .back()
            .is_none_or(|(_, last)| last.at <= woken.at)
        {
            return keep(&mut self.wakings, KEPT_WAKINGS, (tid, woken));
        }
        if self.wakings.len() >= KEPT_WAKINGS {
            self.wakings.pop_front();
        }
        let place = self
            .wakings
            .partition_point(|(_, other)| other.at <= woken.at);
        self.wakings.insert(place, (tid, woken));
    }

    /// When the victim was woken in a stall, in order; wakings of before its end are given up.
    pub(crate) fn take_woken(&mut self, stall: &Stall) -> Vec<Woken> {
        let past = self
            .wakings
            .partition_point(|(_, waking)| waking.at <= stall.end);
        let of_victim = self
            .wakings
            .drain(..past)
            .filter(|(tid, w)| *tid == stall.victim.tid && stall.contains(w.at));
        of_victim.map(|(_, waking)| waking).collect()
    }

    /// Records were lost between two times.
    pub(crate) fn lost(&mut self, from: Ticks, to: Ticks) {
        self.feed.lost(from, to);
        keep(&mut self.losses, KEPT_LOSSES, (from, to));
    }

    /// Whether records were lost that a stall touches.
    pub(crate) fn is_near_loss(&self, stall: &Stall) -> bool {
        self.losses
            .iter()
            .any(|(from, to)| *from <= stall.end && stall.start <= *to)
    }

    /// A gap that will be attributed soon. They come in order.
    pub(crate) fn announced(&mut self, gap: Gap) {
        keep(&mut self.recent, KEPT_GAPS, gap);
    }

    /// Whether the gap before this time ended at it.
    pub(crate) fn stalled_until(&self, time: Ticks) -> bool {
        let before = self.recent.partition_point(|gap| gap.start < time);
        before
            .checked_sub(1)
            .is_some_and(|at| self.recent[at].end() == time)
    }

    /// Whether a gap began within so much of a stall's start and lasted about as long, so that both may have had
    /// one cause: what stops several CPUs at once stops them for the same time.
    pub(crate) fn stalled_with(&self, stall: &Stall, within: Ticks) -> bool {
        let (start, length) = (stall.start.0, stall.length().0);
        let first = self
            .recent
            .partition_point(|gap| gap.start.0.saturating_add(within.0) < start);
        let near = self
            .recent
            .range(first..)
            .take_while(|gap| gap.start.0 <= start.saturating_add(within.0));
        let alike = |other: u64| other / ALIKE <= length && length / ALIKE <= other;
        near.map(|gap| gap.length.0).any(alike)
    }

    /// The frequency was changed.
    pub(crate) fn frequency_changed(&mut self, at: Ticks) {
        keep(&mut self.frequency_changes, KEPT_FREQUENCY_CHANGES, at);
    }

    /// Whether that was before the end of a stall and within so much of its start.
    pub(crate) fn has_changed_frequency(&self, stall: &Stall, within: Ticks) -> bool {
        let near = |at: &Ticks| *at <= stall.end && at.0.abs_diff(stall.start.0) <= within.0;
        self.frequency_changes.iter().any(near)
    }
}
