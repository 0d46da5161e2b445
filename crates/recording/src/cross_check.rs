//! Compares the kernel's counters with the records: where the kernel counted more than was recorded, records are
//! missing although no page reports a loss.

use jitterscope_model::{CpuId, CpuSet, Doubt, EventKind, KernelEvent, Warning};
use jitterscope_platform::{KeptFile, Machine};
use jitterscope_source::counters::parse_rows;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A thread leaves a CPU.
const SWITCH: &str = "sched:sched_switch";
/// The local timer interrupt on x86.
const TIMER: &str = "irq_vectors:local_timer_entry";
/// The timer's row in `/proc/interrupts`.
const TIMER_ROW: &str = "LOC";
/// The timer's name in records.
const TIMER_VECTOR: &str = "local_timer";
/// How often long files are read. On machines with many CPUs the kernel takes milliseconds for such a file, and this
/// bounds that cost.
const READ_EVERY: Duration = Duration::from_secs(1);
const SPENT_AT_MOST: u32 = 1000;

/// A kernel counter and the number of matching records.
#[derive(Debug, Default)]
struct Pair {
    /// Records so far, trusted or not.
    seen: u64,
    /// Value at the last read; `None` if the read failed.
    now: Option<u64>,
    /// Start of the current stretch and the point up to which it is checked: (counted, recorded).
    base: Option<(u64, u64)>,
    last: (u64, u64),
    /// Totals of the earlier stretches.
    counted: u64,
    recorded: u64,
}

impl Pair {
    /// Called before a turn's records are read, so those records include everything counted so far.
    fn read(&mut self, counted: Option<u64>) {
        self.now = counted;
        if let (None, Some(counted)) = (self.base, counted) {
            self.base = Some((counted, self.seen));
            self.last = (counted, self.seen);
        }
    }

    /// The turn's records were read and are trusted.
    fn settle(&mut self) {
        if let (Some(_), Some(counted)) = (self.base, self.now.take()) {
            self.last = (counted, self.seen);
        }
    }

    /// The turn's records are not trusted: counts since the last trusted read are dropped.
    fn interrupt(&mut self) {
        self.now = None;
        let (counted, recorded) = self.sum();
        (self.counted, self.recorded, self.base) = (counted, recorded, None);
    }

    fn sum(&self) -> (u64, u64) {
        let (counted, recorded) = self.base.map_or((0, 0), |(counted, recorded)| {
            let (now, seen) = self.last;
            (now.saturating_sub(counted), seen.saturating_sub(recorded))
        });
        (self.counted + counted, self.recorded + recorded)
    }
}

/// One of our own measured threads.
#[derive(Debug)]
struct Thread {
    schedstat: KeptFile,
    switches: Pair,
}

/// Counters for events that are recorded anyway.
#[derive(Debug)]
pub(crate) struct CrossCheck {
    machine: Machine,
    threads: FxHashMap<i32, Thread>,
    /// Per recorded CPU, if the kernel has the event.
    timers: BTreeMap<CpuId, Pair>,
    /// The whole machine's switches, if all CPUs are recorded, with the thread last switched to on each CPU.
    all: Option<(Pair, FxHashMap<CpuId, i32>)>,
    interrupts: KeptFile,
    stat: KeptFile,
    read: Option<Instant>,
    every: Duration,
}

impl CrossCheck {
    /// `recorded`: CPUs whose events are recorded. `everywhere`: `recorded` contains all CPUs. `has`: whether the event
    /// `SYSTEM:EVENT` is recorded.
    pub(crate) fn new(
        machine: &Machine,
        recorded: &CpuSet,
        everywhere: bool,
        has: impl Fn(&str) -> bool,
    ) -> CrossCheck {
        let timers = recorded.iter().filter(|_| has(TIMER));
        CrossCheck {
            machine: machine.clone(),
            threads: FxHashMap::default(),
            timers: timers.map(|cpu| (cpu, Pair::default())).collect(),
            all: (everywhere && has(SWITCH)).then(Default::default),
            interrupts: KeptFile::of(machine, "/proc/interrupts"),
            stat: KeptFile::of(machine, "/proc/stat"),
            read: None,
            every: READ_EVERY,
        }
    }

    /// Counts the switches of a thread of this process that runs only on recorded CPUs.
    pub(crate) fn watch(&mut self, tid: i32) {
        let path = format!("/proc/self/task/{tid}/schedstat");
        let thread = Thread {
            schedstat: KeptFile::of_one_record(&self.machine, path),
            switches: Pair::default(),
        };
        self.threads.insert(tid, thread);
    }

    pub(crate) fn event(&mut self, event: &KernelEvent) {
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                if let Some(thread) = self.threads.get_mut(&prev.tid) {
                    thread.switches.seen += 1;
                }
                if let Some((pair, had)) = &mut self.all {
                    pair.seen += 1;
                    // The switch to the leaving thread left no record: some kernels omit the records of some threads.
                    let unseen = had.insert(event.cpu, next.tid);
                    pair.seen += u64::from(unseen.is_some_and(|unseen| unseen != prev.tid));
                }
            }
            EventKind::VectorEntry { vector } if &**vector == TIMER_VECTOR => {
                if let Some(pair) = self.timers.get_mut(&event.cpu) {
                    pair.seen += 1;
                }
            }
            _ => {}
        }
    }

    /// Called before a turn's records are read. `online`: the set of online CPUs has not changed. `end`: this is the
    /// last turn.
    pub(crate) fn read(&mut self, online: bool, end: bool) {
        for thread in self.threads.values_mut() {
            let text = thread.schedstat.read().ok();
            let times = text.and_then(|text| text.split_whitespace().nth(2)?.parse().ok());
            thread.switches.read(times);
        }
        let begun = Instant::now();
        if !end
            && self
                .read
                .is_some_and(|read| begun.duration_since(read) < self.every)
        {
            return;
        }
        if !self.timers.is_empty() {
            let text = self.interrupts.read().unwrap_or_default();
            let rows = parse_rows(&text, |name| name == TIMER_ROW);
            let values = rows.iter().flat_map(|row| &row.values);
            let counted: FxHashMap<CpuId, u64> = values.copied().collect();
            for (cpu, pair) in &mut self.timers {
                pair.read(counted.get(cpu).copied());
            }
        }
        if let Some((pair, _)) = &mut self.all {
            if online {
                let text = self.stat.read().unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("ctxt "));
                pair.read(line.and_then(|count| count.trim().parse().ok()));
            } else {
                // A CPU that came online is not recorded.
                pair.interrupt();
            }
        }
        self.read = Some(begun);
        self.every = READ_EVERY.max(begun.elapsed() * SPENT_AT_MOST);
    }

    fn pairs(&mut self) -> impl Iterator<Item = &mut Pair> {
        let threads = self.threads.values_mut().map(|thread| &mut thread.switches);
        let all = self.all.iter_mut().map(|(pair, _)| pair);
        threads.chain(self.timers.values_mut()).chain(all)
    }

    /// The turn's records were read and are trusted.
    pub(crate) fn settle(&mut self) {
        self.pairs().for_each(Pair::settle);
    }

    /// The turn's records are not trusted.
    pub(crate) fn interrupt(&mut self) {
        self.pairs().for_each(Pair::interrupt);
        // Read again soon, so that the unchecked stretch stays short.
        self.read = None;
    }

    /// Counters that exceed the records by more than the `lost` known losses allow. A switch or interrupt between a
    /// count and the end of its turn's records counts only as recorded, so the result never overstates what is missing.
    /// A hundredth may be missing, as in every proof ([`Doubt::fails`]); no trial showed any.
    pub(crate) fn missing(&mut self, lost: u64) -> Vec<Warning> {
        let sum = |pairs: &mut dyn Iterator<Item = &Pair>| {
            pairs
                .map(Pair::sum)
                .fold((0, 0), |sum: (u64, u64), of| (sum.0 + of.0, sum.1 + of.1))
        };
        let own = sum(&mut self.threads.values().map(|thread| &thread.switches));
        let timers = sum(&mut self.timers.values());
        let all = sum(&mut self.all.iter().map(|(pair, _)| pair));
        let found = [(SWITCH, own), (SWITCH, all), (TIMER, timers)];
        let is_missing = |(counted, recorded): (u64, u64)| {
            Doubt::fails(
                counted.saturating_sub(recorded).saturating_sub(lost),
                counted,
            )
        };
        let missing = found.into_iter().filter(|(_, sums)| is_missing(*sums));
        missing
            .map(|(event, (counted, recorded))| Warning::EventsMissing {
                event: event.into(),
                counted,
                recorded,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, ExecutionContext, TaskRef, Ticks};

    const TID: i32 = 42;

    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Fake {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join(format!("proc/self/task/{TID}"))).unwrap();
            Fake(dir)
        }

        /// The thread was switched to `times` times, the machine switched `switches` times, and CPU 1 had `timers`
        /// timer interrupts.
        fn count(&self, times: u64, switches: u64, timers: u64) {
            let put = |path: &str, text: String| {
                std::fs::write(self.0.path().join(path), text).unwrap();
            };
            put(
                &format!("proc/self/task/{TID}/schedstat"),
                format!("1000 2000 {times}\n"),
            );
            put(
                "proc/stat",
                format!("cpu 1 2 3\nctxt {switches}\nbtime 1\n"),
            );
            let rows = format!("       CPU0  CPU1\n LOC:   7  {timers}  Local timer interrupts\n");
            put("proc/interrupts", rows);
        }

        fn check(&self, everywhere: bool) -> CrossCheck {
            let machine = Machine::at(self.0.path());
            let recorded = [CpuId(1)].into_iter().collect();
            let mut check = CrossCheck::new(&machine, &recorded, everywhere, |_| true);
            check.watch(TID);
            check
        }
    }

    fn event(kind: EventKind) -> KernelEvent {
        KernelEvent {
            time: Ticks(1),
            cpu: CpuId(1),
            tid: 1,
            context: ExecutionContext::Thread,
            kind,
        }
    }

    fn switch(prev: i32, next: i32) -> KernelEvent {
        let task = |tid| TaskRef {
            tid,
            comm: Comm::new("x"),
            prio: 120,
        };
        event(EventKind::SchedSwitch {
            prev: task(prev),
            prev_state: 0,
            next: task(next),
        })
    }

    fn timer() -> KernelEvent {
        event(EventKind::VectorEntry {
            vector: TIMER_VECTOR.into(),
        })
    }

    fn turn(check: &mut CrossCheck, events: &[KernelEvent]) {
        check.read(true, true);
        events.iter().for_each(|of| check.event(of));
        check.settle();
    }

    #[test]
    fn what_is_counted_and_not_recorded_is_missing() {
        let fake = Fake::new();
        fake.count(10, 100, 50);
        let mut check = fake.check(false);
        turn(&mut check, &[]);
        let records = [switch(TID, 7), switch(7, TID), timer()];
        for n in 1..=500u64 {
            fake.count(10 + n, 100 + 2 * n, 50 + n);
            turn(&mut check, &records);
        }
        assert_eq!(check.missing(0), []);
        // One missing record in a hundred is tolerated.
        fake.count(510 + 5, 0, 550);
        turn(&mut check, &[]);
        assert_eq!(check.missing(0), []);
        fake.count(510 + 6, 0, 550 + 400);
        turn(&mut check, &[]);
        let missing = check.missing(0);
        let [switches, timers] = &missing[..] else {
            panic!("{missing:?}")
        };
        let of = |event: &str, counted, recorded| Warning::EventsMissing {
            event: event.into(),
            counted,
            recorded,
        };
        assert_eq!(*switches, of(SWITCH, 506, 500));
        assert_eq!(*timers, of(TIMER, 900, 500));
        assert_eq!(check.missing(400), [], "so many are known to be lost");
    }

    #[test]
    fn switches_of_the_whole_machine_count_where_all_of_it_is_recorded() {
        let fake = Fake::new();
        fake.count(0, 1000, 0);
        let mut check = fake.check(true);
        turn(&mut check, &[]);
        // The kernel records no switch away from thread 9; the next record reveals it.
        let records = [switch(5, 9), switch(6, 5)];
        for n in 1..=100u64 {
            fake.count(0, 1000 + 3 * n, 0);
            turn(&mut check, &records);
        }
        assert_eq!(check.missing(0), []);
        fake.count(0, 2000, 0);
        turn(&mut check, &[]);
        assert_eq!(check.missing(0).len(), 1);
        // A CPU that comes online is not recorded.
        let mut check = fake.check(true);
        turn(&mut check, &[]);
        fake.count(0, 9000, 0);
        check.read(false, true);
        check.settle();
        assert_eq!(check.missing(0), []);
    }

    #[test]
    fn what_was_disturbed_is_not_missing_and_what_comes_after_it_is() {
        let fake = Fake::new();
        fake.count(0, 0, 0);
        let mut check = fake.check(false);
        turn(&mut check, &[]);
        fake.count(1000, 0, 1000);
        check.read(true, true);
        check.interrupt();
        turn(&mut check, &[]);
        assert_eq!(check.missing(0), []);
        fake.count(1100, 0, 1100);
        turn(&mut check, &[]);
        assert_eq!(check.missing(0).len(), 2);
    }

    #[test]
    fn counts_that_cannot_be_read_say_nothing() {
        let fake = Fake::new();
        let mut check = fake.check(true);
        turn(&mut check, &[switch(TID, 7)]);
        assert_eq!(check.missing(0), []);
        fake.count(5, 5, 5);
        turn(&mut check, &[]);
        // The thread has ended.
        std::fs::remove_dir_all(fake.0.path().join("proc/self/task")).unwrap();
        turn(&mut check, &[switch(TID, 7)]);
        assert_eq!(check.missing(0), []);
    }
}
