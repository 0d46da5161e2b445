//! The kernel events of one CPU in one packet, in order of time.

use super::events::{Form, MOST_FIELDS, Plans};
use super::numbers::{bundle, compact, descriptor, ftrace, generic};
use super::wire::{Value, all, bytes, fields, int, ints};
use crate::own_record::{self, Edge, FLAGS, THREAD};
use crate::tracefs::system_of;
use std::collections::HashMap;

/// The most events of a bundle: the kernel's buffers that Perfetto reads at once have fewer.
const MOST_EVENTS: usize = 1 << 18;

/// An event of a bundle: a message, or an index into a compact list.
#[derive(Clone, Copy, Debug)]
enum Entry<'a> {
    Event(&'a [u8]),
    Switch(usize),
    Waking(usize),
}

/// A bundle, with the places of its events.
pub(super) struct Bundle<'a> {
    pub(super) cpu: u32,
    /// Records were lost before its first one.
    pub(super) lost: bool,
    /// The number of its clock.
    pub(super) clock: u64,
    entries: Vec<(u64, Entry<'a>)>,
    switches: Lists<'a, 4>,
    wakings: Lists<'a, 5>,
    has_lists: bool,
    /// A part of it cannot be read.
    pub(super) damaged: bool,
    /// Perfetto skipped what followed in the kernel's buffer.
    pub(super) skipped: bool,
}

/// A compact list: the time of each event, and its other fields in `N` lists.
struct Lists<'a, const N: usize> {
    of: [Vec<u64>; N],
    texts: Vec<&'a [u8]>,
}

impl<'a, const N: usize> Lists<'a, N> {
    const EMPTY: Lists<'a, N> = Lists {
        of: [const { Vec::new() }; N],
        texts: Vec::new(),
    };

    fn number(&self, list: usize, at: usize) -> u64 {
        self.of[list].get(at).copied().unwrap_or(0)
    }

    fn text(&self, list: usize, at: usize) -> &[u8] {
        let number = usize::try_from(self.number(list, at)).unwrap_or(usize::MAX);
        self.texts.get(number).copied().unwrap_or_default()
    }
}

impl<'a> Bundle<'a> {
    /// The number of its events.
    pub(super) fn events(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The time of its first event.
    pub(super) fn begin(&self) -> Option<u64> {
        self.entries.first().map(|(time, _)| *time)
    }

    /// Reads the places of its events. Learns the events that it describes.
    pub(super) fn read(message: &'a [u8], plans: &mut Plans) -> Bundle<'a> {
        let mut read = Bundle {
            cpu: 0,
            lost: false,
            clock: 0,
            entries: Vec::new(),
            switches: Lists::EMPTY,
            wakings: Lists::EMPTY,
            has_lists: false,
            damaged: false,
            skipped: false,
        };
        let mut own = fields(message);
        for (field, value) in &mut own {
            match (field, value) {
                (bundle::CPU, Value::Int(cpu)) => read.cpu = u32::try_from(cpu).unwrap_or(u32::MAX),
                (bundle::LOST_EVENTS, Value::Int(lost)) => read.lost |= lost != 0,
                (bundle::CLOCK, Value::Int(clock)) => read.clock = clock,
                (bundle::DESCRIPTORS, Value::Bytes(described)) => describe(described, plans),
                (bundle::ERROR, _) => read.skipped = true,
                (bundle::COMPACT, Value::Bytes(compact)) => read.compact(compact),
                (bundle::EVENT, Value::Bytes(event)) => {
                    let mut inner = fields(event);
                    let is_whole = inner.by_ref().count() > 0 && !inner.is_damaged();
                    match int(event, ftrace::TIMESTAMP) {
                        Some(time) if is_whole && read.entries.len() < MOST_EVENTS => {
                            read.entries.push((time, Entry::Event(event)));
                        }
                        _ => read.damaged = true,
                    }
                }
                _ => {}
            }
        }
        read.damaged |= own.is_damaged();
        // The compact lists are beside the other events. Equal times keep their order.
        read.entries.sort_by_key(|(time, _)| *time);
        read
    }

    fn compact(&mut self, message: &'a [u8]) {
        // Their entries are places in the lists.
        if std::mem::replace(&mut self.has_lists, true) {
            self.damaged = true;
            return;
        }
        let texts: Vec<&[u8]> = all(message, compact::TEXTS).take(MOST_EVENTS).collect();
        let of = |field| ints(message, field, MOST_EVENTS);
        self.switches = Lists {
            of: [
                of(compact::SWITCH_PREV_STATE),
                of(compact::SWITCH_NEXT_PID),
                of(compact::SWITCH_NEXT_PRIO),
                of(compact::SWITCH_NEXT_COMM),
            ],
            texts: texts.clone(),
        };
        self.wakings = Lists {
            of: [
                of(compact::WAKING_PID),
                of(compact::WAKING_CPU),
                of(compact::WAKING_PRIO),
                of(compact::WAKING_COMM),
                of(compact::WAKING_FLAGS),
            ],
            texts,
        };
        // Older versions do not state the flags of wake-ups.
        let [switches, wakings] = [&self.switches.of[..], &self.wakings.of[..4]].map(shortest);
        self.timed((message, compact::SWITCH_TIME), switches, Entry::Switch);
        self.timed((message, compact::WAKING_TIME), wakings, Entry::Waking);
    }

    /// Adds the events of a compact list. Each time is the difference to the one before.
    fn timed(
        &mut self,
        (message, field): (&[u8], u32),
        (shortest, longest): (usize, usize),
        entry: fn(usize) -> Entry<'a>,
    ) {
        let times = ints(message, field, MOST_EVENTS);
        self.damaged |= times.len() != shortest || shortest != longest;
        let mut now = 0_u64;
        for (at, step) in times.into_iter().take(shortest).enumerate() {
            now = now.wrapping_add(step);
            self.entries.push((now, entry(at)));
        }
    }
}

/// The lengths of the shortest list and of the longest one.
fn shortest(lists: &[Vec<u64>]) -> (usize, usize) {
    let lengths = || lists.iter().map(Vec::len);
    (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0))
}

/// Learns an event that has no message in Perfetto's schema.
fn describe(described: &[u8], plans: &mut Plans) {
    let text =
        |message, field| bytes(message, field).and_then(|text| std::str::from_utf8(text).ok());
    let number = int(described, descriptor::FIELD).and_then(|number| u32::try_from(number).ok());
    let message = bytes(described, descriptor::MESSAGE).unwrap_or_default();
    let (Some(number), Some(event)) = (number, text(message, descriptor::NAME)) else {
        return;
    };
    // Older versions do not state the system.
    let system = text(described, descriptor::SYSTEM).or_else(|| system_of(event));
    let own = all(message, descriptor::FIELDS).take(MOST_FIELDS);
    let own = own.filter_map(|field| {
        let number = u32::try_from(int(field, descriptor::FIELD_NUMBER)?).ok()?;
        let name = text(field, descriptor::FIELD_NAME)?;
        let form = match int(field, descriptor::FIELD_TYPE) {
            Some(descriptor::TYPE_STRING) => Form::Text,
            _ => Form::Signed8,
        };
        Some((number, name.to_owned(), form))
    });
    plans.describe(number, (system.unwrap_or_default(), event), own.collect());
}

/// A thread as a switch names it.
#[derive(Clone, Debug, Default)]
struct Thread {
    tid: i32,
    /// Its name and priority, if a switch of this CPU named it.
    named: Option<(Vec<u8>, u64)>,
}

/// What is known of a CPU between the bundles of one sequence.
#[derive(Default)]
pub(super) struct CpuState {
    running: Option<Thread>,
    /// Records were lost since the last one.
    pub(super) after_loss: bool,
}

/// A record of an event.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) bytes: Vec<u8>,
    /// Whether the event begins or ends an interrupt.
    pub(super) edge: Option<Edge>,
    /// Whether the event states its flags.
    pub(super) has_flags: bool,
}

impl CpuState {
    /// Hands over all events of a bundle as records, with their times. `function` gives the address of a named function.
    /// Returns the number of events that no verdict uses.
    pub(super) fn records<E>(
        &mut self,
        read: &Bundle<'_>,
        plans: &mut Plans,
        function: &mut dyn FnMut(u64) -> u64,
        take: &mut dyn FnMut(u64, Made) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut unread = 0;
        for (time, entry) in &read.entries {
            let mut made = Made::default();
            let is_made = match *entry {
                Entry::Event(event) => self.event(event, plans, function, &mut made),
                Entry::Switch(at) => self.switch(read, at, plans, &mut made),
                Entry::Waking(at) => self.waking(read, at, plans, &mut made),
            };
            match is_made {
                Some(()) => take(*time, made)?,
                None => unread += 1,
            }
        }
        Ok(unread)
    }

    /// Makes a record of an event; `None` if it is not used.
    fn event(
        &mut self,
        event: &[u8],
        plans: &mut Plans,
        function: &mut dyn FnMut(u64) -> u64,
        made: &mut Made,
    ) -> Option<()> {
        let record = &mut made.bytes;
        let (mut tid, mut flags, mut message) = (None, None, None);
        for (field, value) in fields(event) {
            match (field, value) {
                (ftrace::PID, Value::Int(pid)) => tid = Some(pid as i32),
                (ftrace::FLAGS, Value::Int(own)) => flags = Some(own as u8),
                (_, Value::Bytes(own)) => message = Some((field, own)),
                _ => {}
            }
        }
        let (field, own) = message?;
        let plan = match field {
            ftrace::IPI_ENTRY => plans.of_vector(bytes(own, 1)?, true),
            ftrace::IPI_EXIT => plans.of_vector(bytes(own, 1)?, false),
            ftrace::GENERIC => {
                let name = std::str::from_utf8(bytes(own, generic::EVENT)?).ok()?;
                plans.generic(name, || {
                    let all = all(own, generic::FIELD).take(MOST_FIELDS);
                    let all = all.filter_map(|field| {
                        let name = std::str::from_utf8(bytes(field, generic::NAME)?).ok()?;
                        let is_text = bytes(field, generic::TEXT).is_some();
                        let form = if is_text { Form::Text } else { Form::Signed8 };
                        Some((0, name.to_owned(), form))
                    });
                    all.collect()
                })
            }
            message => plans.of_message(message),
        }?;
        let plan = plans.get(plan);
        plan.begin(record);
        match field {
            ftrace::IPI_ENTRY | ftrace::IPI_EXIT => {}
            ftrace::GENERIC => {
                for field in all(own, generic::FIELD) {
                    let name = bytes(field, generic::NAME).unwrap_or_default();
                    let text = bytes(field, generic::TEXT).map(Value::Bytes);
                    let number = int(field, generic::INT).or_else(|| int(field, generic::UINT));
                    let value = text.or(number.map(Value::Int));
                    if let (Ok(name), Some(value)) = (std::str::from_utf8(name), value) {
                        plan.put_named(record, (name, value), function);
                    }
                }
            }
            _ => {
                for (number, value) in fields(own) {
                    plan.put(record, number, value, function);
                }
            }
        }
        if let Some(tid) = tid.filter(|tid| self.tid() != Some(*tid)) {
            self.running = Some(Thread { tid, named: None });
        }
        head(record, self.tid().unwrap_or(0), flags.unwrap_or(0));
        (made.edge, made.has_flags) = (plan.edge, flags.is_some());
        if let Some((_, next)) = plan.switch {
            let next = number_at(record, next);
            self.running = Some(Thread {
                tid: next,
                named: named(own),
            });
        }
        Some(())
    }

    /// Records of the CPU are missing here: the running thread is unknown.
    pub(super) fn lose(&mut self) {
        self.after_loss = true;
        self.running = None;
    }

    fn tid(&self) -> Option<i32> {
        self.running.as_ref().map(|thread| thread.tid)
    }

    /// Makes a record of a compact switch: the thread that ran is the one that the CPU's switch before names. `None` if
    /// that is not known: at the beginning, and after a loss.
    fn switch(
        &mut self,
        read: &Bundle<'_>,
        at: usize,
        plans: &mut Plans,
        made: &mut Made,
    ) -> Option<()> {
        let record = &mut made.bytes;
        let lists = &read.switches;
        let comm = lists.text(3, at);
        let next = Thread {
            tid: lists.number(1, at) as i32,
            named: Some((comm[..comm.len().min(16)].to_vec(), lists.number(2, at))),
        };
        let plan = plans.of_message(ftrace::SCHED_SWITCH)?;
        let plan = plans.get(plan);
        let prev = self.running.replace(next.clone())?;
        // An event states the running thread's id only.
        let named = [(&prev, [1, 2, 3]), (&next, [5, 6, 7])];
        let [(Some(_), _), (Some(_), _)] = named.map(|(of, at)| (of.named.as_ref(), at)) else {
            return None;
        };
        plan.begin(record);
        let mut put = |number, value| plan.put(record, number, value, &mut |_| 0);
        for (thread, [comm, tid, prio]) in named {
            put(tid, Value::Int(thread.tid as u64));
            if let Some((name, own)) = &thread.named {
                put(comm, Value::Bytes(name));
                put(prio, Value::Int(*own));
            }
        }
        put(4, Value::Int(lists.number(0, at)));
        head(record, prev.tid, 0);
        Some(())
    }

    /// Makes a record of a compact wake-up; `None` if the running thread is unknown.
    fn waking(
        &mut self,
        read: &Bundle<'_>,
        at: usize,
        plans: &mut Plans,
        made: &mut Made,
    ) -> Option<()> {
        let record = &mut made.bytes;
        let lists = &read.wakings;
        let plan = plans.of_message(ftrace::SCHED_WAKING)?;
        let plan = plans.get(plan);
        plan.begin(record);
        let mut put = |number, value| plan.put(record, number, value, &mut |_| 0);
        put(1, Value::Bytes(lists.text(3, at)));
        put(2, Value::Int(lists.number(0, at)));
        put(3, Value::Int(lists.number(2, at)));
        put(5, Value::Int(lists.number(1, at)));
        let flags = lists.of[4].get(at).map(|own| *own as u8);
        head(record, self.tid()?, flags.unwrap_or(0));
        made.has_flags = flags.is_some();
        Some(())
    }
}

/// The next thread's name and priority, of a switch's message.
fn named(switch: &[u8]) -> Option<(Vec<u8>, u64)> {
    let comm = bytes(switch, 5)?;
    Some((
        comm[..comm.len().min(16)].to_vec(),
        int(switch, 7).unwrap_or(0),
    ))
}

/// Fills the head of a record.
fn head(record: &mut [u8], tid: i32, flags: u8) {
    own_record::put_number(record, (THREAD, 4), u64::from(tid as u32));
    record[FLAGS] = flags;
}

fn number_at(record: &[u8], at: usize) -> i32 {
    let bytes = record.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| i32::from_le_bytes(*bytes))
}

/// What is known of each CPU, by sequence.
pub(super) type Cpus = HashMap<(u64, u32), CpuState>;
