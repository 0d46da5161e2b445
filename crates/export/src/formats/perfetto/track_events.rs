//! Tracks and what happens on them: slices, instants and counters.

use super::fields::{annotation, event, track};
use super::stream::{Stream, TextOf, Texts};
use crate::error::ExportError;
use crate::largest_part::Fact;
use jitterscope_model::{CpuId, Message, RunFacts};
use jitterscope_source::perfetto::numbers::packet;
use serde_json::Value;
use std::collections::HashMap;

/// A track of the file, below the run's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Track {
    /// The stalls of a CPU; stalls that overlap are in lanes of their own.
    Stalls(CpuId, u32),
    /// The time stolen from a CPU, by interval.
    Stolen(CpuId),
    /// What a CPU sent to others.
    Sent(CpuId),
}

impl Track {
    fn name(self) -> String {
        match self {
            Track::Stalls(cpu, 0) => format!("CPU {cpu} stalls"),
            Track::Stalls(cpu, lane) => format!("CPU {cpu} stalls ({})", lane + 1),
            Track::Stolen(cpu) => format!("CPU {cpu} stolen per interval"),
            Track::Sent(cpu) => format!("CPU {cpu} senders"),
        }
    }

    /// Its place among the tracks: by CPU, then stalls, counters and senders.
    fn rank(self) -> u32 {
        let (cpu, within) = match self {
            Track::Stalls(cpu, lane) => (cpu, 1 + lane.min(1 << 10)),
            Track::Stolen(cpu) => (cpu, 0),
            Track::Sent(cpu) => (cpu, 1 << 11),
        };
        cpu.0.min(1 << 16) << 12 | within
    }
}

/// The tracks of a file.
pub(super) struct Tracks {
    /// The number of the run's own track. Others follow it.
    root: u64,
    met: HashMap<Track, u64>,
}

impl Tracks {
    /// The tracks of a run. Their numbers begin at a hash of its id, so that the tracks of several runs stay apart in
    /// one viewer.
    pub(super) fn new(facts: &RunFacts) -> Tracks {
        // FNV-1a: it is the same for each export of a run.
        let hash = facts
            .id
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Tracks {
            // Never zero, which is Perfetto's default track.
            root: hash >> 16 << 16 | 1,
            met: HashMap::new(),
        }
    }

    /// The run's own track.
    pub(super) fn root(&self) -> u64 {
        self.root
    }

    /// Describes the run's own track.
    pub(super) fn begin(&self, stream: &mut Stream, facts: &RunFacts) -> Result<(), ExportError> {
        let root = self.root;
        stream.packet(|packet, _| {
            packet.message(packet::TRACK_DESCRIPTOR, |of| {
                of.uint(track::UUID, root);
                of.text(track::NAME, &format!("jitterscope {} {}", facts.label, facts.id));
                of.uint(track::CHILD_ORDERING, track::EXPLICIT);
                of.text(
                    track::DESCRIPTION,
                    "Stalls of a recording. The parts of a stall are its shares of time, laid end to end in the order \
                     of their first appearance: a part that came in several pieces is one slice.",
                );
            });
        })
    }

    /// The number of a track. Describes it if it is new.
    pub(super) fn number(&mut self, stream: &mut Stream, of: Track) -> Result<u64, ExportError> {
        if let Some(number) = self.met.get(&of) {
            return Ok(*number);
        }
        let (root, number) = (self.root, self.root + 1 + self.met.len() as u64);
        stream.packet(|packet, _| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, number);
                descriptor.uint(track::PARENT, root);
                descriptor.text(track::NAME, &of.name());
                descriptor.uint(track::RANK, of.rank());
                if let Track::Stolen(_) = of {
                    descriptor.message(track::COUNTER, |counter| {
                        counter.uint(track::COUNTER_UNIT, track::UNIT_TIME_NS);
                    });
                }
            });
        })?;
        self.met.insert(of, number);
        Ok(number)
    }
}

/// An event on a track, while it is written.
pub(super) struct TrackEvent<'m> {
    message: &'m mut Message,
    texts: &'m mut Texts,
}

impl TrackEvent<'_> {
    pub(super) fn name(&mut self, name: &str) {
        match self.texts.number(TextOf::EventName, name) {
            Some(number) => self.message.uint(event::NAME_IID, number),
            None => self.message.text(event::NAME, name),
        }
    }

    pub(super) fn number(&mut self, name: &'static str, value: u64) {
        self.fact(
            name,
            &Fact::Number(i64::try_from(value).unwrap_or(i64::MAX)),
        );
    }

    pub(super) fn text(&mut self, name: &'static str, text: &str) {
        self.annotate(name, |annotation, texts| put_text(annotation, texts, text));
    }

    pub(super) fn fact(&mut self, name: &'static str, fact: &Fact) {
        self.annotate(name, |annotation, texts| match fact {
            Fact::Number(number) => annotation.int(annotation::INT, *number),
            Fact::Text(text) => put_text(annotation, texts, text),
        });
    }

    /// A value of JSON: numbers as numbers, all else as text.
    pub(super) fn value(&mut self, name: &str, value: &Value) {
        self.annotate(name, |annotation, texts| match value {
            Value::Number(number) if number.is_i64() => {
                annotation.int(annotation::INT, number.as_i64().unwrap_or_default());
            }
            Value::String(text) => put_text(annotation, texts, text),
            other => put_text(annotation, texts, &other.to_string()),
        });
    }

    fn annotate(&mut self, name: &str, put: impl FnOnce(&mut Message, &mut Texts)) {
        // The names are few and our own, so their table has room.
        let number = self.texts.number(TextOf::AnnotationName, name).unwrap_or(0);
        let texts = &mut *self.texts;
        self.message.message(event::ANNOTATIONS, |annotation| {
            annotation.uint(annotation::NAME_IID, number);
            put(annotation, texts);
        });
    }

    /// Marks the event as the beginning of an arrow.
    pub(super) fn flow(&mut self, flow: u64) {
        self.message.fixed64(event::FLOW, flow);
    }

    /// Marks the event as the end of an arrow.
    pub(super) fn last_of_flow(&mut self, flow: u64) {
        self.message.fixed64(event::LAST_OF_FLOW, flow);
    }
}

fn put_text(annotation: &mut Message, texts: &mut Texts, text: &str) {
    match texts.number(TextOf::AnnotationText, text) {
        Some(number) => annotation.uint(annotation::TEXT_IID, number),
        None => annotation.text(annotation::TEXT, text),
    }
}

impl Stream {
    /// Writes an event of a kind of `TrackEvent` on a track.
    fn event(
        &mut self,
        (ns, track, kind): (u64, u64, u32),
        fill: impl FnOnce(&mut TrackEvent<'_>),
    ) -> Result<(), ExportError> {
        self.packet_at(ns, |packet, texts| {
            packet.message(packet::TRACK_EVENT, |message| {
                message.uint(event::TYPE, kind);
                message.uint(event::TRACK, track);
                fill(&mut TrackEvent { message, texts });
            });
        })
    }

    /// Begins a slice.
    pub(super) fn slice(
        &mut self,
        ns: u64,
        track: u64,
        fill: impl FnOnce(&mut TrackEvent<'_>),
    ) -> Result<(), ExportError> {
        self.event((ns, track, event::BEGIN), fill)
    }

    /// Ends the innermost slice.
    pub(super) fn slice_ends(&mut self, ns: u64, track: u64) -> Result<(), ExportError> {
        self.event((ns, track, event::END), |_| {})
    }

    pub(super) fn instant(
        &mut self,
        ns: u64,
        track: u64,
        fill: impl FnOnce(&mut TrackEvent<'_>),
    ) -> Result<(), ExportError> {
        self.event((ns, track, event::INSTANT), fill)
    }

    /// Sets a counter from this instant on.
    pub(super) fn counter(&mut self, ns: u64, track: u64, value: u64) -> Result<(), ExportError> {
        self.event((ns, track, event::COUNTER), |of| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            of.message.int(event::COUNTER_VALUE, value);
        })
    }
}
