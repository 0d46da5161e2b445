//! The machines of all CPUs, which waiting threads query.

use crate::bandwidth::Bandwidth;
use crate::culprits::{Naming, Waits};
use crate::lateness::{Expiries, late_ticks};
use crate::name_resolver::NameResolver;
use crate::occupancy::{Machine, Mark, NameTable, Record, Window};
use crate::senders::Senders;
use crate::uncharged::Uncharged;
use crate::windows::throttled::{self, Throttling};
use crate::windows::{CulpritCache, Named, Scratch, Slice, wait};
use jitterscope_model::{Comm, CpuId, KernelEvent, ThreadRef, TickRate, Ticks};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A kernel that records no switch away from a CPU's idle thread misses a large share. One that misses the switches of
/// a single thread misses a few a second, and charges for all threads would cost more than they help. So charges need
/// this many missing switches, and at least one per this many recorded switches.
const FEW_MISSING: u64 = 4;
const RARELY: u64 = 100;
/// The same for a single CPU.
const OFTEN: u64 = 10;

#[derive(Debug)]
struct Cpu {
    machine: Machine,
    /// The timers of a virtual machine's CPU, whose host may be late with them.
    expiries: RefCell<Expiries>,
    /// Time of a virtual machine's CPU that no thread was charged for.
    uncharged: Uncharged,
    /// The interrupt in progress in a followed thread's time.
    interrupt: Option<(Ticks, Mark)>,
}

#[derive(Debug)]
pub(super) struct Cpus {
    rate: TickRate,
    virtual_machine: bool,
    cpus: FxHashMap<CpuId, Cpu>,
    names: NameTable,
    /// Memory of the last answer, for reuse.
    window: Window,
    /// The slices of waits.
    cache: RefCell<CulpritCache>,
    /// Memory of the last window's names, and the culprits of all windows so far.
    scratch: RefCell<Scratch>,
    /// Time with only sums.
    folded: Ticks,
}

/// The querying thread, and the sources of names.
pub(super) struct Asking<'a> {
    pub(super) thread: ThreadRef,
    pub(super) senders: &'a Senders,
    pub(super) resolver: &'a dyn NameResolver,
    pub(super) bandwidth: &'a Bandwidth,
    /// When it began to wait for this CPU, if its switches there do not show it.
    pub(super) waits: Option<Waits>,
}

/// A waiting thread's view of its CPU.
pub(super) struct Seen {
    pub(super) slices: Vec<Slice>,
    /// Indices of the slices at which turns on the CPU begin.
    pub(super) turns: Vec<usize>,
    /// Beginnings and lengths of time with only sums, in order.
    pub(super) folded: Vec<(Ticks, Ticks)>,
}

impl Cpus {
    pub(super) fn new(rate: TickRate, virtual_machine: bool) -> Cpus {
        Cpus {
            rate,
            virtual_machine,
            cpus: FxHashMap::default(),
            names: NameTable::default(),
            window: Window::default(),
            cache: RefCell::default(),
            scratch: RefCell::default(),
            folded: Ticks(0),
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let rate = self.rate;
        self.cpus.entry(cpu).or_insert_with(|| Cpu {
            machine: Machine::new(rate),
            expiries: RefCell::default(),
            uncharged: Uncharged::default(),
            interrupt: None,
        })
    }

    /// Processes a record of its CPU. `mind`: whether an interrupt would be in a followed thread's time. If an
    /// interrupt in such time has ended with this record, returns its beginning and its mark.
    pub(super) fn record(&mut self, event: &KernelEvent, mind: bool) -> Option<(Ticks, Mark)> {
        let record = Record::new(event, &mut self.names);
        let (virtual_machine, rate) = (self.virtual_machine, self.rate);
        let cpu = self.cpu(event.cpu);
        let was = cpu.machine.is_interrupted();
        cpu.machine.record(&record);
        let interrupted = cpu.machine.is_interrupted();
        if virtual_machine {
            cpu.expiries.get_mut().note(event);
            cpu.uncharged.note(event, interrupted, rate);
        }
        match (was, interrupted) {
            (false, true) if mind => {
                cpu.interrupt = Some((event.time, cpu.machine.open_mark(event.time)));
                None
            }
            (true, false) => cpu.interrupt.take(),
            _ => None,
        }
    }

    /// The interrupt in progress on a CPU no longer affects a followed thread.
    pub(super) fn forget_interrupt(&mut self, cpu: CpuId) {
        let cpu = self.cpu(cpu);
        if let Some((_, mark)) = cpu.interrupt.take() {
            cpu.machine.release(mark);
        }
    }

    /// Whether an interrupt is in progress on a CPU.
    pub(super) fn is_interrupted(&mut self, cpu: CpuId) -> bool {
        self.cpu(cpu).machine.is_interrupted()
    }

    /// Whether the thread that has a CPU has only just got it, or has just been interrupted.
    pub(super) fn has_just_begun(&mut self, cpu: CpuId, at: Ticks) -> bool {
        self.cpu(cpu).machine.has_just_begun(at)
    }

    /// A thread begins to wait for a CPU.
    pub(super) fn open(&mut self, cpu: CpuId, at: Ticks) -> Mark {
        self.cpu(cpu).machine.open_mark(at)
    }

    /// A wait ended, and its culprits are not needed.
    pub(super) fn release(&mut self, cpu: CpuId, mark: Mark) {
        self.cpu(cpu).machine.release(mark);
    }

    /// Ends a wait: who had the CPU from its mark to `to`.
    pub(super) fn close(
        &mut self,
        cpu: CpuId,
        mark: Mark,
        (from, to): (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        let mut window = std::mem::take(&mut self.window);
        self.cpu(cpu).machine.close_mark(mark, to, &mut window);
        self.folded = self.folded + window.folded();
        let slices = self.slices(&mut window, cpu, (from, to), true, asking);
        self.window = window;
        slices
    }

    /// The same, but the thread continues to wait.
    pub(super) fn peek(
        &self,
        cpu: CpuId,
        mark: &Mark,
        (from, to): (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        self.peek_window(cpu, mark, (from, to), false, asking).0
    }

    /// The same, with the CPU's window.
    fn peek_window(
        &self,
        cpu: CpuId,
        mark: &Mark,
        (from, to): (Ticks, Ticks),
        is_over: bool,
        asking: &Asking<'_>,
    ) -> (Vec<Slice>, Window) {
        let mut window = Window::default();
        match self.cpus.get(&cpu) {
            Some(cpu) => cpu.machine.peek(mark, to, &mut window),
            None => return (Vec::new(), window),
        }
        (
            self.slices(&mut window, cpu, (from, to), is_over, asking),
            window,
        )
    }

    /// The same, for a wait that ends.
    pub(super) fn close_early(
        &mut self,
        cpu: CpuId,
        mark: Mark,
        times: (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        let (slices, window) = self.peek_window(cpu, &mark, times, true, asking);
        self.fold(window.folded());
        self.release(cpu, mark);
        slices
    }

    /// Who had a CPU until now, where its turns began, and where there are only sums.
    pub(super) fn peek_turns(
        &self,
        cpu: CpuId,
        mark: &Mark,
        times: (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Seen {
        let (slices, window) = self.peek_window(cpu, mark, times, false, asking);
        let begins = |slice: &&crate::occupancy::Slice| {
            !slice.is_folded() && window.frame(window.root(slice.frame)).start == slice.start
        };
        let starts = window.slices.iter().filter(begins).map(|slice| slice.start);
        let turns = starts.filter_map(|start| {
            slices
                .binary_search_by_key(&start, |slice| slice.start)
                .ok()
        });
        let turns = turns.collect();
        let folded = window.slices.iter().filter(|slice| slice.is_folded());
        let folded = folded.map(|slice| (slice.start, slice.length())).collect();
        Seen {
            slices,
            turns,
            folded,
        }
    }

    /// The slices of waits.
    pub(super) fn cache(&mut self) -> &mut CulpritCache {
        self.cache.get_mut()
    }

    /// For this time only sums were kept, or reported.
    pub(super) fn fold(&mut self, length: Ticks) {
        self.folded = self.folded + length;
    }

    fn slices(
        &self,
        window: &mut Window,
        cpu: CpuId,
        (from, to): (Ticks, Ticks),
        is_over: bool,
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        window.begin_at(from);
        let Asking {
            thread,
            senders,
            resolver,
            bandwidth,
            waits,
        } = *asking;
        let (names, victim) = (&self.names, thread.tid);
        let throttling = Throttling {
            cpu,
            victim,
            waits: waits.as_slice(),
            bandwidth,
            resolver,
            rate: self.rate,
            is_over,
        };
        throttled::mark(window, &throttling);
        let naming = Naming {
            cpu,
            victim,
            names,
            senders,
            resolver,
            quotas: &window.quotas,
            folded: false,
        };
        let scratch = self.scratch.take();
        let (late, uncharged) = match self.cpus.get(&cpu).filter(|_| self.virtual_machine) {
            Some(cpu) => (
                late_ticks(
                    window,
                    victim,
                    &mut cpu.expiries.borrow_mut(),
                    resolver,
                    self.rate,
                ),
                cpu.uncharged.within(window.from, window.until).collect(),
            ),
            None => Default::default(),
        };
        let named = Named::reusing(scratch, window, naming, waits.as_slice(), self.rate)
            .with_late_ticks(late)
            .with_uncharged(uncharged);
        let slices = wait::slices(&named, &mut self.cache.borrow_mut());
        self.scratch.replace(named.into_scratch());
        slices
            .into_iter()
            .map(|slice| Slice {
                start: slice.start.max(from),
                end: slice.end.min(to),
                ..slice
            })
            .filter(|slice| slice.start < slice.end)
            .collect()
    }

    /// A thread comes from another CPU, where it may have ended frames that it opened here.
    pub(super) fn arrived(&mut self, cpu: CpuId, tid: i32, at: Ticks) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.machine.arrived(tid, at);
        }
    }

    /// A thread is renamed.
    pub(super) fn renamed(&mut self, tid: i32, (old, comm): (Comm, Comm), at: Ticks) {
        let names = (self.names.comm_id(old), self.names.comm_id(comm));
        self.cpus
            .values_mut()
            .for_each(|cpu| cpu.machine.renamed(tid, names, at));
    }

    /// A thread begins: frames of an earlier thread with its id do not belong to it.
    pub(super) fn begun(&mut self, tid: i32, at: Ticks) {
        self.cpus
            .values_mut()
            .for_each(|cpu| cpu.machine.arrived(tid, at));
    }

    /// Records of a CPU were lost.
    pub(super) fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks) {
        self.forget_interrupt(cpu);
        let cpu = self.cpu(cpu);
        cpu.uncharged.lost();
        cpu.machine.lost(from, to);
    }

    /// Time with only sums.
    pub(super) fn folded(&self) -> Ticks {
        self.folded
    }

    /// Whether a thread has a CPU without a recorded switch.
    pub(super) fn was_put_on_unseen(&self, cpu: CpuId, tid: i32) -> bool {
        self.cpus
            .get(&cpu)
            .is_some_and(|cpu| cpu.machine.was_put_on_unseen(tid))
    }

    /// Whether enough switches are missing, relative to the recorded ones, to enable charges.
    pub(super) fn misses_switches(&self) -> bool {
        let wanted = |missing: u64, switches: u64, one_in: u64| {
            missing >= FEW_MISSING && missing.saturating_mul(one_in) >= switches
        };
        let of = |cpu: &Cpu| (cpu.machine.unrecorded_switches(), cpu.machine.switches());
        let (missing, switches) = self
            .cpus
            .values()
            .map(of)
            .fold((0, 0), |sum, cpu| (sum.0 + cpu.0, sum.1 + cpu.1));
        // A CPU with few switches would not matter among busy ones.
        wanted(missing, switches, RARELY)
            || self
                .cpus
                .values()
                .map(of)
                .any(|(missing, switches)| wanted(missing, switches, OFTEN))
    }

    /// The number of unrecorded switches, by CPU.
    pub(super) fn unrecorded_switches(&self) -> BTreeMap<CpuId, u64> {
        let all = self
            .cpus
            .iter()
            .map(|(id, cpu)| (*id, cpu.machine.unrecorded_switches()));
        all.filter(|(_, count)| *count > 0).collect()
    }
}
