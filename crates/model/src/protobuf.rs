//! Writes protocol buffers: the wire format of <https://protobuf.dev/programming-guides/encoding/>, as far as traces and
//! metrics need it.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// An unsigned number, a boolean or the value of an enumeration.
    pub fn uint(&mut self, field: u32, value: impl Into<u64>) {
        self.tag(field, VARINT);
        self.varint(value.into());
    }

    /// A signed number; negative ones take ten bytes.
    pub fn int(&mut self, field: u32, value: impl Into<i64>) {
        self.tag(field, VARINT);
        self.varint(value.into() as u64);
    }

    /// A signed number of a type that stays short for small negative ones: `sint32`, `sint64`.
    pub fn zigzag(&mut self, field: u32, value: i64) {
        self.tag(field, VARINT);
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    /// A number with a fraction.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// The message behind its own length, as streams of messages have it.
    #[must_use]
    pub fn delimited(&self) -> Vec<u8> {
        let mut whole = Message::default();
        whole.varint(self.0.len() as u64);
        whole.0.extend_from_slice(&self.0);
        whole.0
    }

    pub fn raw(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, field: u32, text: &str) {
        self.raw(field, text.as_bytes());
    }

    /// A message inside this one. `write` writes its fields at the end of this message, so that nothing is copied unless
    /// its length takes more than one byte.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        self.tag(field, BYTES);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let start = at + 1;
        let length = self.0.len() - start;
        if length < 0x80 {
            self.0[at] = length as u8;
            return;
        }
        let mut prefix = Message::default();
        prefix.varint(length as u64);
        self.0.splice(at..start, prefix.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_examples_are_written() {
        // From the documentation of the encoding.
        let mut message = Message::default();
        message.uint(1, 150u32);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x12\x07testing");
        message.clear();
        message.message(3, |inner| inner.uint(1, 150u32));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3)] {
            message.zigzag(1, value);
            assert_eq!(message.bytes(), [0x08, byte]);
            message.clear();
        }
        message.int(1, -2);
        assert_eq!(
            message.bytes()[1..],
            [0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]
        );
    }

    #[test]
    fn a_long_message_has_a_longer_length() {
        let mut message = Message::default();
        message.message(1, |inner| inner.text(1, &"x".repeat(300)));
        assert_eq!(message.bytes()[..6], [0x0a, 0xaf, 0x02, 0x0a, 0xac, 0x02]);
        assert_eq!(message.bytes().len(), 306);
    }
}
