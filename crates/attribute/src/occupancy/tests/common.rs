//! A simulated CPU: it generates activity and the kernel's records of it, and keeps the truth for comparison. One tick
//! is one nanosecond.

use crate::occupancy::{Class, Machine, NameTable, Record, Window};
use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, Nanos, TaskRef, TickRate,
    Ticks,
};
use proptest::prelude::*;
use std::collections::HashMap;

/// The victim, which spins.
pub(super) const VICTIM: i32 = 100;
/// The victim, the idle thread, two workers, and two others.
pub(super) const THREADS: [i32; 6] = [VICTIM, 0, 50, 51, 200, 201];

pub(super) fn task(tid: i32) -> TaskRef {
    let comm = match tid {
        0 => "swapper/1".into(),
        50 | 51 => format!("kworker/1:{tid}"),
        _ => format!("task{tid}"),
    };
    TaskRef {
        tid,
        comm: Comm::new(&comm),
        prio: 120,
    }
}

pub(super) fn at(time: u64, tid: i32, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu: CpuId(1),
        tid,
        context: ExecutionContext::Thread,
        kind,
    }
}

pub(super) fn switch(time: u64, prev: i32, next: i32) -> KernelEvent {
    at(
        time,
        prev,
        EventKind::SchedSwitch {
            prev: task(prev),
            prev_state: 1,
            next: task(next),
        },
    )
}

pub(super) fn tick(from: u64, to: u64, tid: i32) -> [KernelEvent; 2] {
    [
        at(
            from,
            tid,
            EventKind::VectorEntry {
                vector: "local_timer".into(),
            },
        ),
        at(
            to,
            tid,
            EventKind::VectorExit {
                vector: "local_timer".into(),
            },
        ),
    ]
}

/// Who has a CPU: the innermost frame, and the thread beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    pub(super) class: Class,
    /// The key of a frame inside a turn.
    pub(super) key: u64,
    pub(super) tid: i32,
}

pub(super) type Stretches = Vec<(u64, u64, Who)>;

/// The CPU's next action, and the time until it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) after: u64,
    pub(super) what: u8,
    pub(super) which: u8,
}

pub(super) fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = (0..60_u64, any::<u8>(), any::<u8>());
    proptest::collection::vec(
        act.prop_map(|(after, what, which)| Act { after, what, which }),
        1..most,
    )
}

#[derive(Clone, Copy)]
struct Open {
    class: Class,
    key: u64,
}

pub(super) struct FakeCpu {
    pub(super) events: Vec<KernelEvent>,
    pub(super) truth: Stretches,
    pub(super) now: u64,
    tid: i32,
    stack: Vec<Open>,
    parked: HashMap<i32, Vec<Open>>,
    since: u64,
    /// Whether softirqs can be switched out.
    threaded: bool,
}

impl FakeCpu {
    /// Begins with the victim running.
    pub(super) fn new(threaded: bool) -> FakeCpu {
        FakeCpu {
            events: Vec::new(),
            truth: Vec::new(),
            now: 0,
            tid: VICTIM,
            stack: Vec::new(),
            parked: HashMap::new(),
            since: 0,
            threaded,
        }
    }

    pub(super) fn play(acts: &[Act], threaded: bool) -> FakeCpu {
        let mut fake = FakeCpu::new(threaded);
        for act in acts {
            fake.act(*act);
        }
        let now = fake.now + 1;
        fake.until(now);
        fake
    }

    fn who(&self) -> Who {
        match self.stack.last() {
            Some(open) => Who {
                class: open.class,
                key: open.key,
                tid: self.tid,
            },
            None => Who {
                class: Class::Turn,
                key: 0,
                tid: self.tid,
            },
        }
    }

    fn until(&mut self, time: u64) {
        if time > self.since {
            self.truth.push((self.since, time, self.who()));
            self.since = time;
        }
        self.now = self.now.max(time);
    }

    fn write(&mut self, kind: EventKind) {
        self.events.push(at(self.now, self.tid, kind));
    }

    fn has(&self, of: impl Fn(Class) -> bool) -> bool {
        self.stack.iter().any(|open| of(open.class))
    }

    fn hard(&self) -> bool {
        self.has(|class| class.is_vector() || class == Class::Irq)
    }

    fn act(&mut self, act: Act) {
        if act.what.is_multiple_of(16) {
            // The handler's record states its length.
            let length = act.after / 2;
            self.until(self.now + act.after - length);
            self.stack.push(Open {
                class: Class::Nmi,
                key: 9,
            });
            self.until(self.now + length);
            self.stack.pop();
            self.write(EventKind::NmiHandler {
                handler: KernelAddr(9),
                delta_ns: length,
            });
            return;
        }
        self.until(self.now + act.after);
        let which = u64::from(act.which);
        match act.what % 16 {
            1..=3 => self.leave(),
            4 | 5 if !self.hard() => self.vector(which),
            6 if !self.hard() => {
                let irq = act.which as u32 % 3;
                self.enter(
                    Class::Irq,
                    irq.into(),
                    EventKind::IrqEntry {
                        irq,
                        action: "device".into(),
                    },
                );
            }
            7 if !self.hard() && !self.has(|class| class == Class::Softirq) => {
                let vec = act.which as u32 % 10;
                self.enter(Class::Softirq, vec.into(), EventKind::SoftirqEntry { vec });
            }
            8 | 9 => self.function(which),
            10..=12 => self.switch(THREADS[act.which as usize % THREADS.len()]),
            13 => self.fault(act.which.is_multiple_of(2)),
            14 if self.tid == 0 && !self.has(|class| class != Class::Idle) => self.idle(which),
            15 => self.write(EventKind::TickStop {
                success: true,
                dependency: 0,
            }),
            _ => {}
        }
    }

    fn enter(&mut self, class: Class, key: u64, kind: EventKind) {
        let interrupts = class.is_vector() || matches!(class, Class::Irq | Class::Softirq);
        if interrupts && self.tid == 0 {
            match self.stack.last_mut() {
                Some(open) if open.class == Class::Idle => open.key = u64::MAX,
                None => self.stack.push(Open {
                    class: Class::Idle,
                    key: u64::MAX,
                }),
                _ => {}
            }
        }
        self.stack.push(Open { class, key });
        self.write(kind);
    }

    fn vector(&mut self, which: u64) {
        // Keys are the numbers that the names get.
        let (class, key, vector) = match which % 3 {
            0 => (Class::LocalTimer, 0, "local_timer"),
            1 => (Class::Vector, 1, "reschedule"),
            _ => (Class::Vector, 2, "call_function_single"),
        };
        self.enter(
            class,
            key,
            EventKind::VectorEntry {
                vector: vector.into(),
            },
        );
    }

    fn function(&mut self, which: u64) {
        let function = KernelAddr(1000 + which % 4);
        match self.stack.last().map(|open| open.class) {
            Some(Class::LocalTimer) => {
                let kind = EventKind::HrtimerEntry {
                    hrtimer: which,
                    function,
                    now: Nanos::ZERO,
                };
                self.enter(Class::HrtimerFunction, which, kind);
            }
            Some(Class::Softirq) => {
                let kind = EventKind::TimerEntry {
                    timer: which,
                    function,
                };
                self.enter(Class::WheelFunction, which, kind);
            }
            Some(Class::Vector) => self.enter(
                Class::Call,
                which,
                EventKind::CsdEntry {
                    function,
                    csd: which,
                },
            ),
            None if matches!(self.tid, 50 | 51) => {
                self.enter(
                    Class::Work,
                    which,
                    EventKind::WorkStart {
                        work: which,
                        function,
                    },
                );
            }
            _ => {}
        }
    }

    /// Ends the innermost frame.
    fn leave(&mut self) {
        let mut fault = None;
        if self
            .stack
            .last()
            .is_some_and(|open| open.class == Class::Fault)
        {
            fault = self.stack.pop();
        }
        let Some(open) = self.stack.pop() else {
            self.stack.extend(fault);
            return;
        };
        let kind = match open.class {
            Class::LocalTimer => EventKind::VectorExit {
                vector: "local_timer".into(),
            },
            Class::Vector if open.key == 1 => EventKind::VectorExit {
                vector: "reschedule".into(),
            },
            Class::Vector => EventKind::VectorExit {
                vector: "call_function_single".into(),
            },
            Class::Irq => EventKind::IrqExit {
                irq: open.key as u32,
            },
            Class::Softirq => EventKind::SoftirqExit {
                vec: open.key as u32,
            },
            Class::HrtimerFunction => EventKind::HrtimerExit { hrtimer: open.key },
            Class::WheelFunction => EventKind::TimerExit { timer: open.key },
            Class::Call => EventKind::CsdExit {
                function: KernelAddr(1000 + open.key % 4),
                csd: open.key,
            },
            Class::Work => EventKind::WorkEnd { work: open.key },
            _ => {
                self.stack.push(open);
                self.stack.extend(fault);
                return;
            }
        };
        self.write(kind);
    }

    fn switch(&mut self, next: i32) {
        let sleeps = |class: Class| match class {
            Class::Work | Class::Fault | Class::Idle => true,
            Class::Softirq | Class::WheelFunction => self.threaded,
            _ => false,
        };
        if next == self.tid || self.has(|class| !sleeps(class)) {
            return;
        }
        self.events.push(switch(self.now, self.tid, next));
        let left: Vec<Open> = self
            .stack
            .drain(..)
            .filter(|open| open.class != Class::Idle)
            .collect();
        self.parked.insert(self.tid, left);
        self.tid = next;
        self.stack = self.parked.remove(&next).unwrap_or_default();
    }

    fn fault(&mut self, user: bool) {
        match self.stack.last().map(|open| open.class) {
            Some(Class::Fault) => {
                self.stack.pop();
            }
            None | Some(Class::Work) if self.tid != 0 => {}
            _ => return,
        }
        self.stack.push(Open {
            class: Class::Fault,
            key: u64::from(user),
        });
        self.write(EventKind::PageFault {
            user,
            address: 0,
            ip: 0,
        });
    }

    fn idle(&mut self, which: u64) {
        self.stack.clear();
        let state = which.is_multiple_of(2).then_some(act_state(which));
        self.stack.push(Open {
            class: Class::Idle,
            key: state.map_or(u64::MAX, u64::from),
        });
        self.write(EventKind::CpuIdle { state });
    }

    /// The truth between two times.
    pub(super) fn between(&self, from: u64, until: u64) -> Stretches {
        let clipped = self
            .truth
            .iter()
            .map(|(a, b, who)| (*a.max(&from), *b.min(&until), *who));
        merged(clipped.filter(|(a, b, _)| a < b))
    }
}

fn act_state(which: u64) -> u32 {
    (which / 2 % 4) as u32
}

pub(super) fn merged(stretches: impl Iterator<Item = (u64, u64, Who)>) -> Stretches {
    let mut found: Stretches = Vec::new();
    for (from, until, who) in stretches {
        match found.last_mut() {
            Some(last) if last.2 == who => last.1 = until,
            _ => found.push((from, until, who)),
        }
    }
    found
}

/// A window in the same form.
pub(super) fn stretches(window: &Window) -> Stretches {
    merged(window.slices.iter().map(|slice| {
        let (frame, root) = (
            window.frame(slice.frame),
            window.frame(window.root(slice.frame)),
        );
        let key = if frame.class.is_root() { 0 } else { frame.key };
        (
            slice.start.0,
            slice.end.0,
            Who {
                class: frame.class,
                key,
                tid: root.tid,
            },
        )
    }))
}

/// A name table with the simulation's numbers.
pub(super) fn names() -> NameTable {
    let mut names = NameTable::default();
    for vector in ["local_timer", "reschedule", "call_function_single"] {
        names.name_id(&vector.into());
    }
    names
}

pub(super) fn machine() -> Machine {
    Machine::new(TickRate::NANOSECONDS)
}

pub(super) fn records(events: &[KernelEvent]) -> Vec<Record> {
    records_with(events, &mut names())
}

/// The window from `from` to `until`, on a CPU that runs the victim at 0.
pub(super) fn window(events: &[KernelEvent], from: u64, until: u64) -> Window {
    let mut machine = machine();
    machine.running(VICTIM, Ticks(0));
    let records = records(events);
    let before = records.partition_point(|record| record.time.0 < from);
    let inside = records.partition_point(|record| record.time.0 <= until);
    records[..before]
        .iter()
        .for_each(|record| machine.record(record));
    let mark = machine.open_mark(Ticks(from));
    records[before..inside]
        .iter()
        .for_each(|record| machine.record(record));
    let mut window = Window::default();
    machine.close_mark(mark, Ticks(until), &mut window);
    window
}

/// The records of events, with a table for their names.
pub(super) fn records_with(events: &[KernelEvent], names: &mut NameTable) -> Vec<Record> {
    events
        .iter()
        .map(|event| Record::new(event, names))
        .collect()
}
