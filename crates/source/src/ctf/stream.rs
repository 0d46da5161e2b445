//! One file of events: its packets, one after another, in bounded memory.

use super::bits::Bits;
use super::error::CtfError;
use super::plan::{Meaning, Places, Plan, Plans, Stated};
use super::types::{StreamClass, Trace};
use super::values::{Now, Value, Values};
use crate::own_record::{FLAGS, HEAD, THREAD};
use crate::tracedat::ReadAt;
use jitterscope_model::{Comm, KernelAddr};

/// What is read at once, bytes: a multiple of every alignment.
const AT_ONCE: usize = 256 << 10;
/// The longest header or event, bytes.
const LONGEST: u64 = 32 << 10;
/// The first word of a packet.
const MAGIC: u64 = 0xc1fc_1fc1;

/// What a stream says beside its records.
pub(super) enum Named {
    Function(KernelAddr, String),
    Thread(i32, Comm),
}

/// The next record of a stream.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) time: u64,
    pub(super) bytes: Vec<u8>,
    /// Records that were lost before it.
    pub(super) lost: u64,
    pub(super) meaning: Option<Meaning>,
    /// Whether the event states its running thread and its flags.
    pub(super) has_thread: bool,
    pub(super) has_flags: bool,
}

/// A file of events.
pub(super) struct Stream<'f> {
    file: &'f dyn ReadAt,
    places: Places,
    trace: &'f Trace,
    plans: &'f Plans,
    /// The file's length, and the beginning of the packet and of the next one, bytes.
    length: u64,
    packet: u64,
    next_packet: u64,
    /// The place in the packet, and the end of its events, bits.
    at: u64,
    end: u64,
    /// Bytes of the packet, from one of its bytes on.
    window: Vec<u8>,
    window_at: u64,
    class: Option<(u64, &'f StreamClass)>,
    now: Now,
    pub(super) cpu: Option<u32>,
    discarded: Option<u64>,
    sequence: Option<u64>,
    pub(super) ready: Ready,
    /// Losses before the next record.
    lost: u64,
    /// Whether it ends too early, or is damaged.
    pub(super) cut: bool,
    /// Events that no verdict uses.
    pub(super) unread: u64,
}

impl<'f> Stream<'f> {
    /// Reads the head of the first packet.
    pub(super) fn open(
        file: &'f dyn ReadAt,
        trace: &'f Trace,
        plans: &'f Plans,
        places: Places,
    ) -> Result<Stream<'f>, CtfError> {
        let mut stream = Stream {
            file,
            places,
            trace,
            plans,
            length: file.length()?,
            packet: 0,
            next_packet: 0,
            at: 0,
            end: 0,
            window: Vec::new(),
            window_at: 0,
            class: None,
            now: Now::default(),
            cpu: None,
            discarded: None,
            sequence: None,
            ready: Ready::default(),
            lost: 0,
            cut: false,
            unread: 0,
        };
        stream.open_packet()?;
        Ok(stream)
    }

    /// Frees what reading needs, until it is read.
    pub(super) fn rest(&mut self) {
        self.window = Vec::new();
    }

    /// Reads the bytes of the packet around its current place.
    fn fill(&mut self) -> Result<(), CtfError> {
        let from = self.at / 8 / 4096 * 4096;
        let left = self.end.div_ceil(8).saturating_sub(from);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(AT_ONCE);
        self.window.resize(wanted, 0);
        let read = self
            .file
            .read_at(self.packet.saturating_add(from), &mut self.window)?;
        self.window.truncate(read);
        self.window_at = from;
        Ok(())
    }

    /// Makes the bytes of an event available.
    fn available(&mut self) -> Result<(), CtfError> {
        let wanted = (self.at / 8 + LONGEST).min(self.end.div_ceil(8));
        let there = self.window_at + self.window.len() as u64;
        if self.window.is_empty() || self.at / 8 < self.window_at || there < wanted {
            self.fill()?;
        }
        Ok(())
    }

    fn bits(&self) -> Bits<'_> {
        let before = self.window_at * 8;
        Bits::new(&self.window, self.at - before, self.end - before)
    }

    /// What follows is damaged: the stream ends.
    fn give_up(&mut self) {
        self.cut = true;
        (self.at, self.end, self.next_packet) = (0, 0, self.length);
    }

    /// Reads the head of the next packet. False at the end.
    fn open_packet(&mut self) -> Result<bool, CtfError> {
        if self.next_packet >= self.length {
            return Ok(false);
        }
        self.packet = self.next_packet;
        (self.at, self.end) = (0, (self.length - self.packet).saturating_mul(8));
        self.window.clear();
        self.fill()?;
        let read = self.head();
        if read.is_none() {
            self.give_up();
        }
        Ok(read.is_some())
    }

    fn head(&mut self) -> Option<()> {
        let trace = self.trace;
        let mut values = Values::default();
        let mut now = Now::default();
        let mut bits = self.bits();
        let nothing = &mut |_, _, _: Value<'_>| {};
        values.fields(trace.packet_header.as_deref(), &mut bits, &mut now, nothing)?;
        let places = self.places;
        if values
            .get(places.magic)
            .is_some_and(|magic| magic & 0xffff_ffff != MAGIC)
        {
            return None;
        }
        let number = values.get(places.stream_id);
        let (number, class) = match number {
            Some(number) => trace.streams.get_key_value(&number)?,
            None => trace.streams.iter().next()?,
        };
        values.clear();
        values.fields(
            class.packet_context.as_deref(),
            &mut bits,
            &mut now,
            nothing,
        )?;
        let at = bits.at;
        self.class = Some((*number, class));
        self.at = at;
        let rest = self.end;
        let size = values.get(places.size).unwrap_or(rest);
        let content = values.get(places.content).unwrap_or(size);
        if content < at || size < content || size == 0 || size % 8 != 0 {
            return None;
        }
        self.cut |= size > rest;
        self.end = content.min(rest);
        self.next_packet = self.packet.checked_add(size / 8)?;
        if let Some(cpu) = values.get(places.cpu) {
            let cpu = u32::try_from(cpu).ok()?;
            // The file of a CPU has only its packets.
            if self.cpu.is_some_and(|known| known != cpu) {
                return None;
            }
            self.cpu = Some(cpu);
        }
        if let Some(begin) = values.get(places.begin) {
            self.now = Now(begin);
        }
        if let Some(discarded) = values.get(places.discarded) {
            // A counter of 32 bits wraps around; one that began earlier says nothing of this trace.
            let more = discarded.wrapping_sub(self.discarded.unwrap_or(discarded)) & 0xffff_ffff;
            self.lost = self.lost.saturating_add(more);
            self.discarded = Some(discarded);
        }
        if let Some(sequence) = values.get(places.sequence) {
            let follows = self
                .sequence
                .is_none_or(|last| last.wrapping_add(1) == sequence);
            if !follows {
                self.lost = self.lost.max(1);
            }
            self.sequence = Some(sequence);
        }
        Some(())
    }

    /// Reads the next record that is used into `ready`; false at the end. `take_name` gets names.
    pub(super) fn next(&mut self, take_name: &mut dyn FnMut(Named)) -> Result<bool, CtfError> {
        let mut values = Values::default();
        loop {
            if self.at >= self.end {
                if !self.open_packet()? {
                    return Ok(false);
                }
                continue;
            }
            self.available()?;
            match self.event(&mut values, take_name) {
                Some(true) => {
                    self.ready.lost = std::mem::take(&mut self.lost);
                    return Ok(true);
                }
                Some(false) => self.unread += 1,
                // Nothing says where the next event begins: the rest of the packet is lost.
                None => {
                    self.cut = true;
                    self.lost = self.lost.saturating_add(1);
                    self.at = self.end;
                }
            }
        }
    }

    /// Reads an event; whether it is one that is used.
    fn event(&mut self, values: &mut Values<'f>, take_name: &mut dyn FnMut(Named)) -> Option<bool> {
        let (number, class) = self.class?;
        let places = self.places;
        values.clear();
        let mut now = self.now;
        let before = self.window_at * 8;
        let mut bits = Bits::new(&self.window, self.at - before, self.end - before);
        let begin = bits.at;
        let nothing = &mut |_, _, _: Value<'_>| {};
        values.fields(class.event_header.as_deref(), &mut bits, &mut now, nothing)?;
        let id = values.get(places.id).unwrap_or(0);
        let event = class.events.get(&id)?;
        values.fields(class.event_context.as_deref(), &mut bits, &mut now, nothing)?;
        values.fields(event.context.as_deref(), &mut bits, &mut now, nothing)?;
        let mut thread = places.tid.iter().find_map(|name| values.get(*name));
        let mut flags = values.get(places.flags);
        let plan = self.plans.get(number, id);
        let ready = &mut self.ready;
        match plan {
            Some(plan) => plan.begin(&mut ready.bytes),
            None => ready.bytes.clear(),
        }
        let mut named = (None, None);
        let mut take = |index: usize, name: u32, value: Value<'_>| {
            let Some(plan) = plan else { return };
            named_by(&mut named, plan, name, value);
            match plan.put(&mut ready.bytes, index, value) {
                Stated::Thread(tid) => thread = Some(tid as u64),
                Stated::Flags(own) => flags = Some(own.into()),
                Stated::Nothing => {}
            }
        };
        values.fields(event.fields.as_deref(), &mut bits, &mut now, &mut take)?;
        if bits.at == begin {
            return None;
        }
        self.at = before + bits.at;
        self.now = now;
        let Some(plan) = plan else {
            return Some(false);
        };
        match (plan.meaning, named) {
            (Meaning::Function { .. }, (Some(address), Some(name))) => {
                take_name(Named::Function(KernelAddr(address), text_of(&name)));
                return Some(false);
            }
            (Meaning::Thread { .. }, (Some(tid), Some(name))) => {
                take_name(Named::Thread(tid as i32, Comm::from_bytes(&name)));
                return Some(false);
            }
            (Meaning::Function { .. } | Meaning::Thread { .. }, _) => return Some(false),
            _ => {}
        }
        let ready = &mut self.ready;
        debug_assert!(ready.bytes.len() >= HEAD);
        ready.time = now.0;
        ready.meaning = Some(plan.meaning);
        ready.has_thread = thread.is_some();
        ready.has_flags = flags.is_some();
        ready.set_thread(thread.unwrap_or(0) as i32);
        ready.bytes[FLAGS] = flags.unwrap_or(0) as u8;
        Some(true)
    }
}

impl Ready {
    pub(super) fn set_thread(&mut self, tid: i32) {
        self.bytes[THREAD..THREAD + 4].copy_from_slice(&tid.to_le_bytes());
    }

    /// The number at a place of the record.
    pub(super) fn number(&self, at: usize) -> i32 {
        let bytes = self
            .bytes
            .get(at..at + 4)
            .and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| i32::from_le_bytes(*bytes))
    }
}

/// Takes the parts of a name.
fn named_by(named: &mut (Option<u64>, Option<Vec<u8>>), plan: &Plan, field: u32, value: Value<'_>) {
    let (whose, name) = match plan.meaning {
        Meaning::Function { address, name } => (address, name),
        Meaning::Thread { tid, name } => (tid, name),
        _ => return,
    };
    match value {
        Value::Int(number) if field == whose => named.0 = Some(number),
        Value::Bytes(bytes) if field == name => {
            named.1 = Some(bytes[..bytes.len().min(256)].to_vec())
        }
        _ => {}
    }
}

fn text_of(bytes: &[u8]) -> String {
    crate::tracedat::text_of(bytes)
}
