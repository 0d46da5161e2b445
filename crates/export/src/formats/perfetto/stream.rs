//! A trace as a stream of packets, with a table of the texts that they share.

use crate::error::ExportError;
use crate::output::Output;
use jitterscope_model::KeyedMap;
use jitterscope_model::Message;
use jitterscope_source::perfetto::numbers::{interned, packet};

/// The one sequence of packets that a file has.
const SEQUENCE: u32 = 1;
/// The largest number of texts in a table: later ones are written out each time, so that memory stays bounded.
const MOST_TEXTS: usize = 1 << 14;

/// What a text is, which decides its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextOf {
    EventName,
    AnnotationName,
    AnnotationText,
}

impl TextOf {
    fn field(self) -> u32 {
        match self {
            TextOf::EventName => interned::EVENT_NAMES,
            TextOf::AnnotationName => interned::ANNOTATION_NAMES,
            TextOf::AnnotationText => interned::ANNOTATION_TEXTS,
        }
    }
}

/// The texts that packets share, by their numbers.
#[derive(Default)]
pub(super) struct Texts {
    tables: [KeyedMap<String, u64>; 3],
    /// Entries that the file does not have yet.
    fresh: Message,
}

impl Texts {
    /// The number of a text; `None` if its table is full.
    pub(super) fn number(&mut self, of: TextOf, text: &str) -> Option<u64> {
        let table = &mut self.tables[of as usize];
        if let Some(number) = table.get(text) {
            return Some(*number);
        }
        if table.len() >= MOST_TEXTS {
            return None;
        }
        let number = table.len() as u64 + 1;
        table.insert(text.to_owned(), number);
        self.entry(of.field(), number, text);
        Some(number)
    }

    /// Names the kernel function with this number.
    pub(super) fn function(&mut self, number: u64, name: &str) {
        self.entry(interned::KERNEL_SYMBOLS, number, name);
    }

    fn entry(&mut self, field: u32, number: u64, text: &str) {
        self.fresh.message(field, |entry| {
            entry.uint(interned::ID, number);
            entry.text(interned::TEXT, text);
        });
    }
}

/// A trace file.
pub(super) struct Stream {
    output: Output,
    texts: Texts,
    packet: Message,
    framed: Message,
    begun: bool,
}

impl Stream {
    pub(super) fn new(output: Output) -> Stream {
        Stream {
            output,
            texts: Texts::default(),
            packet: Message::default(),
            framed: Message::default(),
            begun: false,
        }
    }

    pub(super) fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    pub(super) fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    /// Writes a packet. `fill` writes its own fields.
    pub(super) fn packet(
        &mut self,
        fill: impl FnOnce(&mut Message, &mut Texts),
    ) -> Result<(), ExportError> {
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE, SEQUENCE);
        let flags = if self.begun {
            packet::NEEDS_INTERNED
        } else {
            packet::CLEARED
        };
        self.packet.uint(packet::SEQUENCE_FLAGS, flags);
        self.begun = true;
        fill(&mut self.packet, &mut self.texts);
        self.write()
    }

    /// Writes a packet of one instant.
    pub(super) fn packet_at(
        &mut self,
        ns: u64,
        fill: impl FnOnce(&mut Message, &mut Texts),
    ) -> Result<(), ExportError> {
        self.packet(|packet, texts| {
            packet.uint(packet::TIMESTAMP, ns);
            fill(packet, texts);
        })
    }

    fn write(&mut self) -> Result<(), ExportError> {
        if !self.texts.fresh.is_empty() {
            self.packet.raw(packet::INTERNED, self.texts.fresh.bytes());
            self.texts.fresh.clear();
        }
        self.framed.clear();
        self.framed.raw(packet::TRACE_PACKET, self.packet.bytes());
        self.output.write(self.framed.bytes())
    }
}
