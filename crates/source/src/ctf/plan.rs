//! The events of a trace as records of the kernel's ring buffer: a format for each, and how its fields get there.

use super::names::{kernel_event, kernel_field};
use super::types::{EventClass, Int, Name, StreamClass, Trace, Type};
use super::values::Value;
use crate::context::FormatText;
use crate::own_record::{self, Edge, HEAD};
use std::collections::{BTreeMap, HashMap};

/// The longest array that has its place in a record.
const LONGEST_ARRAY: u64 = 64;
/// An event has at most so many fields.
const MOST_FIELDS: usize = 64;
/// The events that name functions and threads, of our own exports and of LTTng.
pub const FUNCTION: &str = "jitterscope:function";
pub const NAMED_THREAD: &str = "jitterscope:thread";
const STATE_OF_PROCESS: &str = "lttng_statedump_process_state";

/// What an event says of who runs, beyond its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    /// Places of the two threads in the record.
    Switch {
        prev: usize,
        next: usize,
    },
    Edge(Edge),
    /// The name of a function, or of a thread.
    Function {
        address: Name,
        name: Name,
    },
    Thread {
        tid: Name,
        name: Name,
    },
}

/// The place of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    None,
    Number {
        at: usize,
        bytes: usize,
    },
    Fixed {
        at: usize,
        bytes: usize,
    },
    Located {
        at: usize,
    },
    /// The running thread and the flags of the head.
    Thread,
    Flags,
}

/// How an event becomes a record.
#[derive(Debug)]
pub(super) struct Plan {
    /// The number of its format.
    id: u16,
    places: Vec<Place>,
    /// Bytes of its record before those of located fields.
    length: usize,
    pub(super) meaning: Meaning,
}

/// All plans of a trace, by stream and event.
#[derive(Debug, Default)]
pub(super) struct Plans {
    plans: HashMap<(u64, u64), Plan>,
    pub(super) formats: Vec<FormatText>,
}

impl Plans {
    pub(super) fn of(trace: &Trace) -> Plans {
        let all = || {
            let streams = trace.streams.iter();
            streams.flat_map(|(stream, of)| {
                of.events
                    .iter()
                    .map(move |(id, event)| ((*stream, *id), of, event))
            })
        };
        let name = |event: &EventClass| kernel_event(&event.name, false);
        let wakes =
            !all().any(|(_, _, event)| name(event).is_some_and(|(_, name)| name == "sched_waking"));
        let mut made = Plans::default();
        // Channels may declare the same event: equal ones have one format.
        let mut known: BTreeMap<(&str, String, String), u16> = BTreeMap::new();
        for (key, _, event) in all() {
            let Some((system, kernels)) = kernel_event(&event.name, wakes) else {
                if let Some(meaning) = names_something(trace, event) {
                    let plan = Plan {
                        id: 0,
                        places: Vec::new(),
                        length: HEAD,
                        meaning,
                    };
                    made.plans.insert(key, plan);
                }
                continue;
            };
            let (mut plan, fields) = placed(trace, (system, &kernels), event);
            let next = made.formats.len() + 1;
            let text = fields.clone();
            let id = *known
                .entry((system, kernels.clone(), fields))
                .or_insert_with(|| {
                    let id = u16::try_from(next).unwrap_or(0);
                    if id > 0 {
                        made.formats
                            .push(own_record::format(id, (system, &kernels), &text));
                    }
                    id
                });
            if id > 0 {
                plan.id = id;
                made.plans.insert(key, plan);
            }
        }
        made
    }

    pub(super) fn get(&self, stream: u64, event: u64) -> Option<&Plan> {
        self.plans.get(&(stream, event))
    }

    /// Whether the trace has any event of the kernel.
    pub(super) fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }
}

/// Whether an event only names a function or a thread.
fn names_something(trace: &Trace, event: &EventClass) -> Option<Meaning> {
    let of = |name: &str| number_of(trace, name);
    match event.name.as_str() {
        FUNCTION => Some(Meaning::Function {
            address: of("address")?,
            name: of("name")?,
        }),
        NAMED_THREAD | STATE_OF_PROCESS => Some(Meaning::Thread {
            tid: of("tid")?,
            name: of("name")?,
        }),
        _ => None,
    }
}

/// The number of a field's name.
pub(super) fn number_of(trace: &Trace, name: &str) -> Option<Name> {
    let found = trace.names.iter().position(|known| known == name)?;
    Name::try_from(found).ok()
}

/// Gives each field of an event a place. Returns also the lines of the format.
fn placed(trace: &Trace, (system, kernels): (&str, &str), event: &EventClass) -> (Plan, String) {
    let mut plan = Plan {
        id: 0,
        places: Vec::new(),
        length: HEAD,
        meaning: Meaning::Nothing,
    };
    let mut lines = String::new();
    let fields = match event.fields.as_deref() {
        Some(Type::Struct { fields, .. }) => &fields[..],
        _ => &[],
    };
    for field in fields.iter().take(MOST_FIELDS) {
        let theirs = trace
            .names
            .get(field.name as usize)
            .map_or("", String::as_str);
        let name = kernel_field(system, kernels, theirs);
        let place = match name {
            // perf's.
            "common_pid" => Place::Thread,
            "common_flags" => Place::Flags,
            "common_type" | "common_preempt_count" => Place::None,
            _ => plan.place(&field.of, name, &mut lines),
        };
        plan.places.push(place);
    }
    let at = |name: &str| {
        let places = fields.iter().zip(&plan.places);
        let mut named = places.filter(|(field, _)| {
            let theirs = trace
                .names
                .get(field.name as usize)
                .map_or("", String::as_str);
            kernel_field(system, kernels, theirs) == name
        });
        named.find_map(|(_, place)| match place {
            Place::Number { at, bytes: 4 } => Some(*at),
            _ => None,
        })
    };
    let meaning = match (system, kernels) {
        ("sched", "sched_switch") => match (at("prev_pid"), at("next_pid")) {
            (Some(prev), Some(next)) => Meaning::Switch { prev, next },
            _ => Meaning::Nothing,
        },
        _ => Edge::of(system, kernels).map_or(Meaning::Nothing, Meaning::Edge),
    };
    plan.meaning = meaning;
    (plan, lines)
}

impl Plan {
    /// Gives a field the next place, if its type has one.
    fn place(&mut self, of: &Type, name: &str, lines: &mut String) -> Place {
        if !own_record::is_name(name) {
            return Place::None;
        }
        let byte = |of: &Type| {
            matches!(
                of,
                Type::Int(Int {
                    size: 8,
                    align: 8,
                    ..
                })
            )
        };
        let (place, line, bytes) = match of {
            Type::Int(int) | Type::Enum { of: int, .. } => {
                let bytes = (int.size.div_ceil(8) as usize).next_power_of_two();
                let at = self.length.next_multiple_of(bytes);
                let line = own_record::number_line(name, (at, bytes), int.signed);
                (Place::Number { at, bytes }, line, at + bytes)
            }
            Type::Array { of, length } if byte(of) && (1..=LONGEST_ARRAY).contains(length) => {
                let (at, bytes) = (self.length, *length as usize);
                let line = own_record::fixed_line(name, (at, bytes));
                (Place::Fixed { at, bytes }, line, at + bytes)
            }
            Type::Text => self.located(name),
            Type::Sequence { of, .. } | Type::Array { of, .. } if byte(of) => self.located(name),
            _ => return Place::None,
        };
        self.length = bytes;
        lines.push_str(&line);
        place
    }

    fn located(&self, name: &str) -> (Place, String, usize) {
        let at = self.length.next_multiple_of(4);
        let line = own_record::located_line(name, at);
        (Place::Located { at }, line, at + 4)
    }

    /// An empty record.
    pub(super) fn begin(&self, record: &mut Vec<u8>) {
        own_record::begin(record, self.id, self.length);
    }

    /// Puts a field into a record. Returns the running thread, if the field says it.
    pub(super) fn put(&self, record: &mut Vec<u8>, index: usize, value: Value<'_>) -> Stated {
        let Some(place) = self.places.get(index) else {
            return Stated::Nothing;
        };
        match (*place, value) {
            (Place::Number { at, bytes }, Value::Int(number)) => {
                own_record::put_number(record, (at, bytes), number);
            }
            (Place::Fixed { at, bytes }, Value::Bytes(own)) => {
                own_record::put_fixed(record, (at, bytes), own);
            }
            (Place::Located { at }, Value::Bytes(own)) => {
                own_record::put_located(record, at, own);
            }
            (Place::Thread, Value::Int(tid)) => return Stated::Thread(tid as i32),
            (Place::Flags, Value::Int(flags)) => return Stated::Flags(flags as u8),
            _ => {}
        }
        Stated::Nothing
    }
}

/// What a field says of the head of its record.
pub(super) enum Stated {
    Nothing,
    Thread(i32),
    Flags(u8),
}

/// The names of fields that place packets and events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) magic: Option<Name>,
    pub(super) stream_id: Option<Name>,
    pub(super) begin: Option<Name>,
    pub(super) content: Option<Name>,
    pub(super) size: Option<Name>,
    pub(super) sequence: Option<Name>,
    pub(super) discarded: Option<Name>,
    pub(super) cpu: Option<Name>,
    pub(super) id: Option<Name>,
    pub(super) tid: [Option<Name>; 2],
    pub(super) flags: Option<Name>,
}

impl Places {
    pub(super) fn of(trace: &Trace) -> Places {
        let of = |name| number_of(trace, name);
        Places {
            magic: of("magic"),
            stream_id: of("stream_id"),
            begin: of("timestamp_begin"),
            content: of("content_size"),
            size: of("packet_size"),
            sequence: of("packet_seq_num"),
            discarded: of("events_discarded"),
            cpu: of("cpu_id"),
            id: of("id"),
            tid: [of("tid"), of("perf_tid")],
            flags: of("common_flags"),
        }
    }
}

/// Whether a header has a time, directly or in its parts.
pub(super) fn has_time(of: &Type) -> bool {
    match of {
        Type::Int(int) | Type::Enum { of: int, .. } => int.is_time,
        Type::Struct { fields, .. }
        | Type::Variant {
            options: fields, ..
        } => fields.iter().any(|field| has_time(&field.of)),
        _ => false,
    }
}

impl StreamClass {
    /// Whether its events have times.
    pub(super) fn has_time(&self) -> bool {
        self.event_header.as_deref().is_some_and(has_time)
    }
}
