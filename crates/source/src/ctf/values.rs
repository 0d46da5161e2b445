//! Reads values by their types.

use super::bits::Bits;
use super::types::{Label, Name, Type};

/// What reading one event may visit.
const MOST_STEPS: u32 = 1 << 14;

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'b> {
    Int(u64),
    Bytes(&'b [u8]),
    /// A structure, or elements that are no bytes.
    Other,
}

/// A number that later fields may refer to.
struct Known<'t> {
    name: Name,
    value: u64,
    labels: &'t [Label],
}

/// The clock of a stream, which numbers of fewer bits wrap around.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Now(pub(super) u64);

impl Now {
    /// The clock's lowest bits are these.
    pub(super) fn is(&mut self, value: u64, size: u32) {
        let Some(wrap) = 1_u64.checked_shl(size) else {
            self.0 = value;
            return;
        };
        let low = self.0 & (wrap - 1);
        let high = self.0 - low;
        let high = if value < low {
            high.saturating_add(wrap)
        } else {
            high
        };
        self.0 = high.saturating_add(value);
    }
}

/// Reads the fields of one header or one event.
#[derive(Default)]
pub(super) struct Values<'t> {
    known: Vec<Known<'t>>,
    steps: u32,
}

impl<'t> Values<'t> {
    /// Forgets everything, for another event.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.steps = 0;
    }

    /// The last number of this name so far.
    pub(super) fn get(&self, name: Option<Name>) -> Option<u64> {
        let last = self
            .known
            .iter()
            .rev()
            .find(|known| Some(known.name) == name);
        last.map(|known| known.value)
    }

    /// Passes each field of a structure to `take`, with its index; `None` if the bytes end or do not fit the type.
    pub(super) fn fields<'b>(
        &mut self,
        of: Option<&'t Type>,
        bits: &mut Bits<'b>,
        now: &mut Now,
        take: &mut dyn FnMut(usize, Name, Value<'b>),
    ) -> Option<()> {
        match of {
            None => Some(()),
            Some(Type::Struct { align, fields }) => {
                bits.align(*align)?;
                for (index, field) in fields.iter().enumerate() {
                    let value = self.read(&field.of, field.name, bits, now)?;
                    take(index, field.name, value);
                }
                Some(())
            }
            Some(_) => None,
        }
    }

    fn read<'b>(
        &mut self,
        of: &'t Type,
        name: Name,
        bits: &mut Bits<'b>,
        now: &mut Now,
    ) -> Option<Value<'b>> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return None;
        }
        let (int, labels) = match of {
            Type::Int(int) => (int, &[][..]),
            Type::Enum { of, labels } => (of, &labels[..]),
            Type::Bits { size, align } => {
                bits.align(*align)?;
                bits.pass((*size).into())?;
                return Some(Value::Other);
            }
            Type::Text => return bits.text().map(Value::Bytes),
            Type::Struct { .. } => {
                self.fields(Some(of), bits, now, &mut |_, _, _| {})?;
                return Some(Value::Other);
            }
            Type::Variant { tag, options } => {
                let tag = self.known.iter().rev().find(|known| known.name == *tag)?;
                let value = i128::from(tag.value as i64);
                let unsigned = i128::from(tag.value);
                let is_in = |label: &&Label| {
                    let range = label.from..=label.to;
                    range.contains(&value) || range.contains(&unsigned)
                };
                let label = tag.labels.iter().find(is_in)?;
                let chosen = options.iter().find(|option| option.name == label.name)?;
                return self.read(&chosen.of, name, bits, now);
            }
            Type::Array { of, length } => return self.elements(of, *length, name, bits, now),
            Type::Sequence { of, length } => {
                let length = self.get(Some(*length))?;
                return self.elements(of, length, name, bits, now);
            }
        };
        let value = bits.int(int)?;
        if int.is_time {
            now.is(value, int.size);
        }
        self.known.push(Known {
            name,
            value,
            labels,
        });
        Some(Value::Int(value))
    }

    fn elements<'b>(
        &mut self,
        of: &'t Type,
        length: u64,
        name: Name,
        bits: &mut Bits<'b>,
        now: &mut Now,
    ) -> Option<Value<'b>> {
        if let Type::Int(int) = of
            && int.size == 8
            && int.align == 8
        {
            return bits.bytes(length).map(Value::Bytes);
        }
        bits.align(of.align())?;
        for _ in 0..length {
            self.read(of, name, bits, now)?;
        }
        Some(Value::Other)
    }
}
