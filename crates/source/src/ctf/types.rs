//! The types of fields, and what a trace declares.

use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Int {
    /// In bits: 1 to 64.
    pub(super) size: u32,
    /// In bits.
    pub(super) align: u32,
    pub(super) signed: bool,
    pub(super) big_endian: bool,
    /// Whether it is a character of a text.
    pub(super) is_text: bool,
    /// Whether its value is a clock's.
    pub(super) is_time: bool,
}

/// A label of an enumeration, and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) name: Name,
    pub(super) from: i128,
    pub(super) to: i128,
}

#[derive(Debug)]
pub(super) enum Type {
    Int(Int),
    /// Bits that are passed over: a floating-point number.
    Bits {
        size: u32,
        align: u32,
    },
    /// Bytes up to a NUL.
    Text,
    Enum {
        of: Int,
        labels: Vec<Label>,
    },
    /// As its own alignment or the largest of its fields.
    Struct {
        align: u32,
        fields: Vec<Field>,
    },
    /// The option is that whose name the tag's label is.
    Variant {
        tag: Name,
        options: Vec<Field>,
    },
    /// A fixed number of elements.
    Array {
        of: Rc<Type>,
        length: u64,
    },
    /// As many elements as an earlier number says.
    Sequence {
        of: Rc<Type>,
        length: Name,
    },
}

/// The name of a field without its path, as an index of [`Trace::names`].
pub(super) type Name = u32;

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Name,
    pub(super) of: Rc<Type>,
}

impl Type {
    /// In bits.
    pub(super) fn align(&self) -> u32 {
        match self {
            Type::Int(of) | Type::Enum { of, .. } => of.align,
            Type::Bits { align, .. } => *align,
            Type::Text => 8,
            Type::Struct { align, .. } => *align,
            Type::Variant { .. } => 1,
            Type::Array { of, .. } | Type::Sequence { of, .. } => of.align(),
        }
    }
}

/// A clock's rate, and what is added to it so that it is the time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) name: String,
    pub(super) hz: u64,
    pub(super) offset_s: i64,
    /// In ticks.
    pub(super) offset: i64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct StreamClass {
    pub(super) packet_context: Option<Rc<Type>>,
    pub(super) event_header: Option<Rc<Type>>,
    pub(super) event_context: Option<Rc<Type>>,
    /// By number.
    pub(super) events: BTreeMap<u64, EventClass>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct EventClass {
    pub(super) name: String,
    pub(super) context: Option<Rc<Type>>,
    pub(super) fields: Option<Rc<Type>>,
}

/// What the metadata say.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) big_endian: bool,
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) packet_header: Option<Rc<Type>>,
    pub(super) clocks: Vec<Clock>,
    /// Texts and numbers as they are written.
    pub(super) env: BTreeMap<String, String>,
    pub(super) streams: BTreeMap<u64, StreamClass>,
    /// The names of fields, each once.
    pub(super) names: Vec<String>,
}
