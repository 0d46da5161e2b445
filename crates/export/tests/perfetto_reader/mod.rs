//! Reads a trace of Perfetto, by the numbers of its published messages. It shares no code with the exporter.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::{BTreeMap, HashMap};

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than 64 bits");
}

/// The fields of a message, in order.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*word))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

pub fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message)
        .into_iter()
        .find_map(|(of, value)| match value {
            Field::Number(number) if of == field => Some(number),
            _ => None,
        })
}

pub fn all(message: &[u8], field: u64) -> Vec<&[u8]> {
    let fields = fields(message).into_iter();
    fields
        .filter_map(|(of, value)| match value {
            Field::Bytes(bytes) if of == field => Some(bytes),
            _ => None,
        })
        .collect()
}

pub fn bytes(message: &[u8], field: u64) -> Option<&[u8]> {
    all(message, field).first().copied()
}

pub fn text(message: &[u8], field: u64) -> Option<String> {
    bytes(message, field).map(|text| String::from_utf8(text.to_vec()).expect("UTF-8"))
}

/// The value of an annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    Number(i64),
    Text(String),
}

/// A slice or an instant.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub track: u64,
    pub name: String,
    pub begin: u64,
    /// The same as `begin` for an instant.
    pub end: u64,
    pub notes: BTreeMap<String, Note>,
    pub flows: Vec<u64>,
    pub ended_flows: Vec<u64>,
    pub inside: Vec<Slice>,
}

impl Slice {
    pub fn number(&self, name: &str) -> i64 {
        match self.notes.get(name) {
            Some(Note::Number(number)) => *number,
            other => panic!("{name} of {}: {other:?}", self.name),
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.notes.get(name) {
            Some(Note::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// A kernel event: the number of its message, and the message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    pub ns: u64,
    pub cpu: u64,
    pub tid: i32,
    pub kind: u64,
    pub message: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Trace {
    /// Names of tracks, and their parents.
    pub tracks: HashMap<u64, (String, Option<u64>)>,
    pub slices: Vec<Slice>,
    pub instants: Vec<Slice>,
    /// Track, time and value.
    pub counters: Vec<(u64, u64, u64)>,
    pub events: Vec<Event>,
    pub bundles_with_loss: usize,
    pub functions: HashMap<u64, String>,
    pub clocks: BTreeMap<u64, u64>,
    pub release: String,
}

/// Reads a file.
pub fn read(file: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let mut names: [HashMap<u64, String>; 3] = Default::default();
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    for (n, (field, packet)) in fields(file).into_iter().enumerate() {
        let Field::Bytes(packet) = packet else {
            panic!("a packet is a message")
        };
        assert_eq!(field, 1);
        assert!(number(packet, 10).is_some_and(|sequence| sequence > 0));
        let flags = if n == 0 { 1 } else { 2 };
        assert_eq!(number(packet, 13), Some(flags), "the first packet clears");
        for (slot, table) in [(2, 0), (3, 1), (29, 2)] {
            for entry in all(packet, 12).into_iter().flat_map(|data| all(data, slot)) {
                names[table].insert(number(entry, 1).unwrap(), text(entry, 2).unwrap());
            }
        }
        for entry in all(packet, 12).into_iter().flat_map(|data| all(data, 26)) {
            let (id, name) = (number(entry, 1).unwrap(), text(entry, 2).unwrap());
            trace.functions.insert(id, name);
        }
        for snapshot in all(packet, 6) {
            assert_eq!(
                number(snapshot, 2),
                Some(6),
                "the primary clock is BOOTTIME"
            );
            for clock in all(snapshot, 1) {
                let (id, ns) = (number(clock, 1).unwrap(), number(clock, 2).unwrap());
                trace.clocks.insert(id, ns);
            }
        }
        for track in all(packet, 60) {
            let about = (text(track, 2).unwrap(), number(track, 5));
            trace.tracks.insert(number(track, 1).unwrap(), about);
        }
        for info in all(packet, 45) {
            trace.release = text(bytes(info, 1).unwrap(), 3).unwrap();
        }
        for bundle in all(packet, 1) {
            read_bundle(bundle, &mut trace);
        }
        for event in all(packet, 11) {
            let at = number(packet, 8).expect("a time");
            read_event(event, at, &names, &mut open, &mut trace);
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    trace
}

fn read_bundle(bundle: &[u8], trace: &mut Trace) {
    let cpu = number(bundle, 1).expect("a CPU");
    trace.bundles_with_loss += usize::from(number(bundle, 3) == Some(1));
    for event in all(bundle, 2) {
        let inner = fields(event);
        let (kind, message) = inner
            .iter()
            .find_map(|(field, value)| match value {
                Field::Bytes(message) => Some((*field, message.to_vec())),
                Field::Number(_) => None,
            })
            .expect("an event's message");
        trace.events.push(Event {
            ns: number(event, 1).unwrap(),
            cpu,
            tid: number(event, 2).unwrap() as u32 as i32,
            kind,
            message,
        });
    }
}

fn read_event(
    event: &[u8],
    at: u64,
    names: &[HashMap<u64, String>; 3],
    open: &mut HashMap<u64, Vec<Slice>>,
    trace: &mut Trace,
) {
    let track = number(event, 11).expect("a track");
    assert!(trace.tracks.contains_key(&track), "it is described before");
    let mut slice = Slice {
        track,
        begin: at,
        end: at,
        name: match number(event, 10) {
            Some(id) => names[0][&id].clone(),
            None => text(event, 23).unwrap_or_default(),
        },
        ..Slice::default()
    };
    for note in all(event, 4) {
        let name = names[1][&number(note, 1).unwrap()].clone();
        let value = match (number(note, 4), number(note, 17)) {
            (Some(value), _) => Note::Number(value as i64),
            (None, Some(id)) => Note::Text(names[2][&id].clone()),
            (None, None) => Note::Text(text(note, 6).unwrap()),
        };
        slice.notes.insert(name, value);
    }
    for (field, value) in fields(event) {
        match (field, value) {
            (47, Field::Number(flow)) => slice.flows.push(flow),
            (48, Field::Number(flow)) => slice.ended_flows.push(flow),
            _ => {}
        }
    }
    let stack = open.entry(track).or_default();
    match number(event, 9) {
        Some(1) => stack.push(slice),
        Some(2) => {
            let mut ended = stack.pop().expect("a slice is open");
            assert!(ended.begin <= at);
            ended.end = at;
            match stack.last_mut() {
                Some(outer) => outer.inside.push(ended),
                None => trace.slices.push(ended),
            }
        }
        Some(3) => trace.instants.push(slice),
        Some(4) => trace.counters.push((track, at, number(event, 30).unwrap())),
        other => panic!("an event of type {other:?}"),
    }
}
