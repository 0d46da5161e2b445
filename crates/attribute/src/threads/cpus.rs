//! The machines of all CPUs, asked for by threads that wait.

use crate::bandwidth::Bandwidth;
use crate::culprits::{Naming, Waits};
use crate::lexicon::Lexicon;
use crate::occupancy::{Machine, Mark, NameTable, Record, Window};
use crate::senders::Senders;
use crate::windows::{CulpritCache, Named, Scratch, Slice, wait};
use jitterscope_model::{CpuId, KernelEvent, ThreadRef, TickRate, Ticks};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Of a kernel that records no switch away from a CPU's idle thread a good part is missing. One that records nothing
/// of some single thread lacks a few a second, and a charge for each of all others would cost more than it tells: not
/// before so many are missing, and one in so many of those that are recorded.
const FEW_MISSING: u64 = 4;
const RARELY: u64 = 100;
/// On a single CPU.
const OFTEN: u64 = 10;

/// One CPU.
#[derive(Debug)]
struct Cpu {
    machine: Machine,
    /// The interrupt that is under way in the time of a followed thread.
    interrupt: Option<(Ticks, Mark)>,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    rate: TickRate,
    cpus: FxHashMap<CpuId, Cpu>,
    names: NameTable,
    /// Memory of the last answer, for the next.
    window: Window,
    /// The slices that waits were given.
    cache: RefCell<CulpritCache>,
    /// Memory of the last window's names, and the culprits of all windows so far.
    scratch: RefCell<Scratch>,
    /// Time of which only sums were kept.
    folded: Ticks,
}

/// Who asks, and who can tell names.
pub(super) struct Asking<'a> {
    pub(super) thread: ThreadRef,
    pub(super) senders: &'a Senders,
    pub(super) lexicon: &'a dyn Lexicon,
    pub(super) bandwidth: &'a Bandwidth,
    /// When it began to wait for this CPU, where its switches there do not tell.
    pub(super) waits: Option<Waits>,
}

/// What one who waits saw of his CPU.
pub(super) struct Seen {
    pub(super) slices: Vec<Slice>,
    /// The numbers of the slices at which turns on the CPU begin.
    pub(super) turns: Vec<usize>,
    /// Beginnings and lengths of that of which only sums were kept, in order.
    pub(super) folded: Vec<(Ticks, Ticks)>,
}

impl Cpus {
    pub(super) fn new(rate: TickRate) -> Cpus {
        Cpus {
            rate,
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
            interrupt: None,
        })
    }

    /// Takes in a record of its CPU. An interrupt is minded if it is one in a followed thread's time. When
    /// it began, and the mark that it was given, if it has ended with this record.
    pub(super) fn record(&mut self, event: &KernelEvent, mind: bool) -> Option<(Ticks, Mark)> {
        let record = Record::new(event, &mut self.names);
        let cpu = self.cpu(event.cpu);
        let was = cpu.machine.is_interrupted();
        cpu.machine.record(&record);
        match (was, cpu.machine.is_interrupted()) {
            (false, true) if mind => {
                cpu.interrupt = Some((event.time, cpu.machine.open_mark(event.time)));
                None
            }
            (true, false) => cpu.interrupt.take(),
            _ => None,
        }
    }

    /// The interrupt under way on a CPU concerns no waiting thread any more.
    pub(super) fn forget_interrupt(&mut self, cpu: CpuId) {
        let cpu = self.cpu(cpu);
        if let Some((_, mark)) = cpu.interrupt.take() {
            cpu.machine.release(mark);
        }
    }

    /// Whether an interrupt is under way on a CPU.
    pub(super) fn is_interrupted(&mut self, cpu: CpuId) -> bool {
        self.cpu(cpu).machine.is_interrupted()
    }

    /// Somebody begins to wait for a CPU.
    pub(super) fn open(&mut self, cpu: CpuId, at: Ticks) -> Mark {
        self.cpu(cpu).machine.open_mark(at)
    }

    /// Somebody waited, and nobody asks who had the CPU.
    pub(super) fn release(&mut self, cpu: CpuId, mark: Mark) {
        self.cpu(cpu).machine.release(mark);
    }

    /// Who had a CPU from when it was asked for to `to`.
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
        let slices = self.slices(&mut window, cpu, (from, to), asking);
        self.window = window;
        slices
    }

    /// The same, and the thread goes on waiting.
    pub(super) fn peek(
        &self,
        cpu: CpuId,
        mark: &Mark,
        (from, to): (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        self.peek_window(cpu, mark, (from, to), asking).0
    }

    /// The same, with what the CPU did.
    fn peek_window(
        &self,
        cpu: CpuId,
        mark: &Mark,
        (from, to): (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> (Vec<Slice>, Window) {
        let mut window = Window::default();
        match self.cpus.get(&cpu) {
            Some(cpu) => cpu.machine.peek(mark, to, &mut window),
            None => return (Vec::new(), window),
        }
        (self.slices(&mut window, cpu, (from, to), asking), window)
    }

    /// The same, of a wait that ends.
    pub(super) fn close_early(
        &mut self,
        cpu: CpuId,
        mark: Mark,
        times: (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        let (slices, window) = self.peek_window(cpu, &mark, times, asking);
        self.fold(window.folded());
        self.release(cpu, mark);
        slices
    }

    /// Who had a CPU until now, where turns on it began, and of when only sums were kept.
    pub(super) fn peek_turns(
        &self,
        cpu: CpuId,
        mark: &Mark,
        times: (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Seen {
        let (slices, window) = self.peek_window(cpu, mark, times, asking);
        let begins = |slice: &&crate::occupancy::Slice| {
            !slice.folded && window.frame(window.root(slice.frame)).start == slice.start
        };
        let starts = window.slices.iter().filter(begins).map(|slice| slice.start);
        let turns = starts.filter_map(|start| {
            slices
                .binary_search_by_key(&start, |slice| slice.start)
                .ok()
        });
        let turns = turns.collect();
        let folded = window.slices.iter().filter(|slice| slice.folded);
        let folded = folded.map(|slice| (slice.start, slice.length())).collect();
        Seen {
            slices,
            turns,
            folded,
        }
    }

    /// The slices that waits were given.
    pub(super) fn cache(&mut self) -> &mut CulpritCache {
        self.cache.get_mut()
    }

    /// Of this time only sums were kept, or reported.
    pub(super) fn fold(&mut self, length: Ticks) {
        self.folded = self.folded + length;
    }

    fn slices(
        &self,
        window: &mut Window,
        cpu: CpuId,
        (from, to): (Ticks, Ticks),
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        window.begin_at(from);
        let Asking {
            thread,
            senders,
            lexicon,
            bandwidth,
            waits,
        } = *asking;
        let (names, victim) = (&self.names, thread.tid);
        let naming = Naming {
            cpu,
            victim,
            names,
            senders,
            lexicon,
            bandwidth,
            folded: false,
        };
        let scratch = self.scratch.take();
        let named = Named::reusing(scratch, window, naming, waits.as_slice(), self.rate);
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

    /// A thread comes from another CPU, where it may have ended what it had begun here.
    pub(super) fn arrived(&mut self, cpu: CpuId, tid: i32, at: Ticks) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.machine.arrived(tid, at);
        }
    }

    /// A thread begins: what another of its id left is not its.
    pub(super) fn begun(&mut self, tid: i32, at: Ticks) {
        self.cpus
            .values_mut()
            .for_each(|cpu| cpu.machine.arrived(tid, at));
    }

    /// Records of a CPU were lost.
    pub(super) fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks) {
        self.forget_interrupt(cpu);
        self.cpu(cpu).machine.lost(from, to);
    }

    /// Time of which only sums were kept.
    pub(super) fn folded(&self) -> Ticks {
        self.folded
    }

    /// Whether a thread has a CPU that no switch was seen to put there.
    pub(super) fn was_put_on_unseen(&self, cpu: CpuId, tid: i32) -> bool {
        self.cpus
            .get(&cpu)
            .is_some_and(|cpu| cpu.machine.was_put_on_unseen(tid))
    }

    /// Whether enough switches are missing among those that are recorded to ask for charges.
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
        // A CPU with few switches of its own would be lost among busy ones.
        wanted(missing, switches, RARELY)
            || self
                .cpus
                .values()
                .map(of)
                .any(|(missing, switches)| wanted(missing, switches, OFTEN))
    }

    /// How many, by CPU.
    pub(super) fn unrecorded_switches(&self) -> BTreeMap<CpuId, u64> {
        let all = self
            .cpus
            .iter()
            .map(|(id, cpu)| (*id, cpu.machine.unrecorded_switches()));
        all.filter(|(_, count)| *count > 0).collect()
    }
}
