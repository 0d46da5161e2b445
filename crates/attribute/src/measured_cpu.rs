//! The attribution's data about the measured CPUs.

use crate::coincidence::Coincidences;
use crate::feed::Feed;
use crate::lateness::Expiries;
use crate::windows::late_wakeup::Woken;
use jitterscope_model::{CpuId, Gap, Stall, TickRate, Ticks, Verdict};
use std::collections::VecDeque;

/// Two CPUs were stopped by the same cause only if neither stood still for more than this many times as long as the
/// other.
const ALIKE: u64 = 2;
/// Maximum of losses; older ones only matter to stalls that are already attributed.
const KEPT_LOSSES: usize = 256;
/// Maximum of gaps, which serve to detect simultaneous stalls.
const KEPT_GAPS: usize = 4096;
/// Maximum of wake-ups: a late wake-up needs only the last ones.
const KEPT_WAKINGS: usize = 1024;
/// Maximum of frequency changes.
const KEPT_FREQUENCY_CHANGES: usize = 256;

/// The measured CPUs, sorted by number: there are few, and each record looks one up.
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

    /// The data about a CPU, if there is any.
    pub(crate) fn get(&self, cpu: CpuId) -> Option<&MeasuredCpu> {
        self.place(cpu).ok().map(|at| &self.cpus[at].1)
    }

    /// The data about a CPU.
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
    /// Only for a virtual machine, whose host may delay them.
    pub(crate) expiries: Expiries,
    /// Windows in which records were lost or are not trusted.
    losses: VecDeque<(Ticks, Ticks, Verdict)>,
    recent: VecDeque<Gap>,
    /// The time from which `recent` has all gaps.
    pub(crate) known_from: Ticks,
    /// Wake-ups on this CPU, recorded where the waker ran: the woken thread, and its wake-up. In order of time.
    wakings: VecDeque<(i32, Woken)>,
    frequency_changes: VecDeque<Ticks>,
    /// Simultaneous stalls of this CPU and others.
    pub(crate) coincidences: Coincidences,
}

/// Appends an item; drops the oldest if there are too many.
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
            known_from: Ticks(0),
            wakings: VecDeque::new(),
            frequency_changes: VecDeque::new(),
            coincidences: Coincidences::default(),
        }
    }

    pub(crate) fn woken(&mut self, tid: i32, woken: Woken) {
        // The CPUs' records arrive buffer by buffer, each CPU's in order.
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

    /// The victim's wake-ups in a stall, in order; discards wake-ups from before its end.
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

    /// Records between two times were lost, or are not trusted, as `why` says.
    pub(crate) fn lost(&mut self, from: Ticks, to: Ticks, why: Verdict) {
        self.feed.lost(from, to);
        keep(&mut self.losses, KEPT_LOSSES, (from, to, why));
    }

    /// Why records are missing that a stall touches, if any are.
    pub(crate) fn loss_near(&self, stall: &Stall) -> Option<Verdict> {
        let touched = |(from, to, _): &&(Ticks, Ticks, _)| *from <= stall.end && stall.start <= *to;
        self.losses.iter().find(touched).map(|(.., why)| *why)
    }

    /// A gap that will be attributed soon. Gaps come in order.
    pub(crate) fn announced(&mut self, gap: Gap) {
        if self.recent.len() >= KEPT_GAPS
            && let Some(oldest) = self.recent.front()
        {
            self.known_from = self.known_from.max(oldest.end());
        }
        keep(&mut self.recent, KEPT_GAPS, gap);
    }

    /// Whether the previous gap ended at this time.
    pub(crate) fn stalled_until(&self, time: Ticks) -> bool {
        let before = self.recent.partition_point(|gap| gap.start < time);
        before
            .checked_sub(1)
            .is_some_and(|at| self.recent[at].end() == time)
    }

    /// Whether a gap began within `within` of a time and lasted about as long as `length`, so that both may have the
    /// same cause: what stops several CPUs at once stops them for the same time. `None` if gaps of that time are no
    /// longer known, or the CPU was not yet measured.
    pub(crate) fn stalled_with(&self, at: Ticks, length: Ticks, within: Ticks) -> Option<bool> {
        if at < self.known_from {
            return None;
        }
        let first = self.recent.partition_point(|gap| gap.start + within < at);
        let near = self
            .recent
            .range(first..)
            .take_while(|gap| gap.start <= at + within);
        let alike = |other: Ticks| other.0 / ALIKE <= length.0 && length.0 / ALIKE <= other.0;
        Some(near.map(|gap| gap.length).any(alike))
    }

    pub(crate) fn frequency_changed(&mut self, at: Ticks) {
        keep(&mut self.frequency_changes, KEPT_FREQUENCY_CHANGES, at);
    }

    /// Whether the frequency changed before the end of a stall and within this time of its start.
    pub(crate) fn has_changed_frequency(&self, stall: &Stall, within: Ticks) -> bool {
        let near = |at: &Ticks| *at <= stall.end && at.0.abs_diff(stall.start.0) <= within.0;
        self.frequency_changes.iter().any(near)
    }
}
