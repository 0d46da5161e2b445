//! Reads protocol buffers: the wire format of <https://protobuf.dev/programming-guides/encoding/>.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Int(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn int(self) -> Option<u64> {
        match self {
            Value::Int(number) => Some(number),
            Value::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Int(_) => None,
        }
    }
}

/// The fields of a message, up to its end or the first damaged one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    damaged: bool,
}

/// The fields of a message.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields {
        rest: message,
        damaged: false,
    }
}

impl<'a> Fields<'a> {
    /// Whether the message ends within a field, or has one of a type that does not exist.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = match tag & 7 {
            0 => Value::Int(varint(&mut self.rest)?),
            1 => {
                let (word, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Value::Int(u64::from_le_bytes(*word))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => {
                let (word, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Value::Int(u32::from_le_bytes(*word).into())
            }
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<(u32, Value<'a>)> {
        if self.rest.is_empty() || self.damaged {
            return None;
        }
        let field = self.field();
        self.damaged = field.is_none();
        field
    }
}

/// A number of at most ten bytes; `None` if it is cut off.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The last number of a field.
pub(super) fn int(message: &[u8], field: u32) -> Option<u64> {
    let own = fields(message).filter(|(of, _)| *of == field);
    own.filter_map(|(_, value)| value.int()).last()
}

/// The last text or message of a field.
pub(super) fn bytes(message: &[u8], field: u32) -> Option<&[u8]> {
    all(message, field).last()
}

/// All texts or messages of a field.
pub(super) fn all(message: &[u8], field: u32) -> impl Iterator<Item = &[u8]> {
    let own = fields(message).filter(move |(of, _)| *of == field);
    own.filter_map(|(_, value)| value.bytes())
}

/// The first `most` numbers of a field that is packed or not.
pub(super) fn ints(message: &[u8], field: u32, most: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    for (_, value) in fields(message).filter(|(of, _)| *of == field) {
        match value {
            Value::Int(number) if numbers.len() < most => numbers.push(number),
            Value::Int(_) => {}
            Value::Bytes(mut packed) => {
                while numbers.len() < most
                    && let Some(number) = varint(&mut packed)
                {
                    numbers.push(number);
                }
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Message;

    #[test]
    fn what_is_written_is_read() {
        let mut message = Message::default();
        message.uint(1, 300_u32);
        message.int(2, -2);
        message.text(3, "text");
        message.raw(4, &[1, 0x96, 1]);
        message.uint(4, 7_u32);
        message.fixed64(5, u64::MAX);
        let bytes_of = message.bytes();
        assert_eq!(int(bytes_of, 1), Some(300));
        assert_eq!(int(bytes_of, 2).map(|word| word as i64), Some(-2));
        assert_eq!(bytes(bytes_of, 3), Some(&b"text"[..]));
        assert_eq!(ints(bytes_of, 4, 9), [1, 150, 7]);
        assert_eq!(ints(bytes_of, 4, 2), [1, 150]);
        assert_eq!(int(bytes_of, 5), Some(u64::MAX));
        assert_eq!((int(bytes_of, 3), bytes(bytes_of, 1)), (None, None));
    }

    #[test]
    fn a_damaged_message_ends_where_it_is_damaged() {
        for damaged in [&b"\x08\x01\x12\x05ab"[..], b"\x08\x01\x0b", b"\x08\x01\x80"] {
            let mut read = fields(damaged);
            assert_eq!(read.next(), Some((1, Value::Int(1))));
            assert_eq!(
                (read.next(), read.is_damaged()),
                (None, true),
                "{damaged:?}"
            );
        }
        assert_eq!(varint(&mut &[0x80; 11][..]), None);
    }
}
