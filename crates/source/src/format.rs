//! The kernel's event formats, and accessors for single fields.
//!
//! No offset in this crate is hard-coded: if a kernel moves, widens or drops a field, its `format` file shows that, and
//! the accessor follows. A missing field reads as zero.

pub(crate) mod guard;

use guard::Flaw;
use jitterscope_model::{Comm, KernelAddr};
use tracepoint_decode::{PerfEventFormat, PerfFieldArray, PerfFieldFormat};

/// What is wrong with the text of a `format` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It has no name or no id, or is much too long.
    #[error("the format of {system}:{event} has no readable name and ID")]
    Unreadable { system: String, event: String },
    /// A field is outside any possible event, or the id is not a valid one.
    #[error("the format of {system}:{event} states a number that cannot be: {number}")]
    Implausible {
        system: String,
        event: String,
        number: String,
    },
}

#[derive(Debug)]
pub struct EventFormat {
    id: u16,
    format: PerfEventFormat,
}

impl EventFormat {
    /// Parses the text of `events/SYSTEM/EVENT/format`.
    ///
    /// # Errors
    /// The text is not a format, or contains impossible numbers.
    pub fn parse(system: &str, event: &str, text: &str) -> Result<EventFormat, FormatError> {
        let unreadable = || FormatError::Unreadable {
            system: system.into(),
            event: event.into(),
        };
        let implausible = |number: &str| FormatError::Implausible {
            system: system.into(),
            event: event.into(),
            number: number.into(),
        };
        let text = guard::event(text).map_err(|flaw| match flaw {
            Flaw::Form => unreadable(),
            Flaw::Number(number) => implausible(&number),
        })?;
        let format = PerfEventFormat::parse(true, system, &text).ok_or_else(unreadable)?;
        let id = u16::try_from(format.id()).map_err(|_| implausible(&format.id().to_string()))?;
        Ok(EventFormat { id, format })
    }

    /// The id at the beginning of each of the event's records.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    #[must_use]
    pub fn system(&self) -> &str {
        self.format.system_name()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.format.name()
    }

    fn find(&self, name: &str) -> Option<&PerfFieldFormat> {
        self.format
            .fields()
            .iter()
            .find(|field| field.name() == name)
    }

    /// The fields that only this event has, in the kernel's order.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = &PerfFieldFormat> {
        let common = self.format.common_field_count();
        self.format.fields().iter().skip(common)
    }

    /// The fields that only this event has and that can be read, with their names and their forms.
    pub fn forms(&self) -> impl Iterator<Item = (&str, FieldForm)> {
        self.own_fields().filter_map(|field| {
            let name = field.name();
            let number = self.number(name);
            if number.is_present() {
                return Some((name, FieldForm::Number(number)));
            }
            // Characters are a text; other elements are only bytes here.
            let is_text = field.field().contains("char") && !field.field().contains("unsigned");
            match self.bytes(name) {
                BytesField::Absent => None,
                bytes if is_text => Some((name, FieldForm::Text(bytes))),
                bytes => Some((name, FieldForm::Bytes(bytes))),
            }
        })
    }

    /// Whether the event has this field.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the field is a signed number; false if it is missing.
    #[must_use]
    pub fn is_signed(&self, name: &str) -> bool {
        self.find(name)
            .and_then(PerfFieldFormat::signed)
            .unwrap_or(false)
    }

    /// An accessor for a number; it reads zero if the field is missing.
    #[must_use]
    pub fn number(&self, name: &str) -> NumberField {
        match self.find(name) {
            Some(f) if f.array() == PerfFieldArray::None && matches!(f.size(), 1 | 2 | 4 | 8) => {
                NumberField {
                    offset: f.offset(),
                    size: f.size() as u8,
                    signed: f.signed().unwrap_or(false),
                }
            }
            _ => NumberField::default(),
        }
    }

    /// Where a field of any form begins; `None` if it is missing.
    #[must_use]
    pub fn start(&self, name: &str) -> Option<usize> {
        self.find(name).map(|field| field.offset().into())
    }

    /// An accessor for a text or other bytes; it reads no bytes if the field is missing.
    #[must_use]
    pub fn bytes(&self, name: &str) -> BytesField {
        let Some(field) = self.find(name) else {
            return BytesField::Absent;
        };
        let (offset, length) = (usize::from(field.offset()), usize::from(field.size()));
        match (field.array(), length) {
            (PerfFieldArray::Fixed, _) => BytesField::Fixed { offset, length },
            (PerfFieldArray::DataLoc4, 4) => BytesField::Located {
                offset,
                relative_to: 0,
            },
            (PerfFieldArray::RelLoc4, 4) => BytesField::Located {
                offset,
                relative_to: offset + 4,
            },
            _ => BytesField::Absent,
        }
    }
}

/// The form of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    Number(NumberField),
    Text(BytesField),
    Bytes(BytesField),
}

/// The position of a number within an event's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberField {
    offset: u16,
    /// In bytes; zero if the kernel has no such field.
    size: u8,
    signed: bool,
}

impl NumberField {
    /// Whether the kernel has this field.
    #[must_use]
    pub fn is_present(self) -> bool {
        self.size != 0
    }

    /// In bytes; zero if it is missing.
    #[must_use]
    pub fn size(self) -> usize {
        self.size.into()
    }

    #[must_use]
    pub fn is_signed(self) -> bool {
        self.signed
    }

    /// Bytes that an event needs for this field.
    #[must_use]
    pub fn end(self) -> usize {
        usize::from(self.offset) + usize::from(self.size)
    }

    /// The number, sign-extended if it is signed; zero if it is missing.
    #[must_use]
    #[inline]
    pub fn i64(self, event: &[u8]) -> i64 {
        match (self.size, self.signed) {
            (8, _) => i64::from_le_bytes(self.bytes(event)),
            (4, true) => i32::from_le_bytes(self.bytes(event)).into(),
            (4, false) => u32::from_le_bytes(self.bytes(event)).into(),
            (2, true) => i16::from_le_bytes(self.bytes(event)).into(),
            (2, false) => u16::from_le_bytes(self.bytes(event)).into(),
            (1, true) => i8::from_le_bytes(self.bytes(event)).into(),
            (1, false) => u8::from_le_bytes(self.bytes(event)).into(),
            _ => 0,
        }
    }

    #[inline]
    fn bytes<const N: usize>(self, event: &[u8]) -> [u8; N] {
        event
            .get(usize::from(self.offset)..)
            .and_then(|b| b.first_chunk::<N>())
            .copied()
            .unwrap_or([0; N])
    }

    /// The number's bits, unsigned.
    #[must_use]
    #[inline]
    pub fn u64(self, event: &[u8]) -> u64 {
        self.i64(event) as u64
    }

    /// The low 32 bits.
    #[must_use]
    #[inline]
    pub fn u32(self, event: &[u8]) -> u32 {
        self.i32(event) as u32
    }

    /// The low 32 bits, signed.
    #[must_use]
    #[inline]
    pub fn i32(self, event: &[u8]) -> i32 {
        // The most common width; its sign does not matter.
        if self.size == 4 {
            i32::from_le_bytes(self.bytes(event))
        } else {
            self.i64(event) as i32
        }
    }

    /// The number as a kernel address.
    #[must_use]
    #[inline]
    pub fn address(self, event: &[u8]) -> KernelAddr {
        KernelAddr(self.u64(event))
    }
}

/// The position of bytes within an event's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BytesField {
    /// The kernel has no such field.
    #[default]
    Absent,
    /// At a fixed place.
    Fixed {
        /// From the start of the event.
        offset: usize,
        length: usize,
    },
    /// At the place that a word gives: its low half is the offset, its high half the length.
    Located {
        /// The word's offset, from the start of the event.
        offset: usize,
        /// The base of the offset in the word.
        relative_to: usize,
    },
}

impl BytesField {
    /// Bytes that an event needs for the fixed part.
    #[must_use]
    pub fn end(self) -> usize {
        match self {
            BytesField::Absent => 0,
            BytesField::Fixed { offset, length } => offset + length,
            BytesField::Located { offset, .. } => offset + 4,
        }
    }

    /// The bytes; empty if they are missing or would be outside the event.
    #[must_use]
    #[inline]
    pub fn get(self, event: &[u8]) -> &[u8] {
        let range = match self {
            BytesField::Absent => return &[],
            BytesField::Fixed { offset, length } => offset..offset + length,
            BytesField::Located {
                offset,
                relative_to,
            } => {
                let word = event
                    .get(offset..)
                    .and_then(|b| b.first_chunk::<4>())
                    .copied()
                    .unwrap_or([0; 4]);
                let word = u32::from_le_bytes(word);
                let start = relative_to + (word & 0xffff) as usize;
                start..start + (word >> 16) as usize
            }
        };
        event.get(range).unwrap_or(&[])
    }

    /// The bytes up to the first NUL.
    #[must_use]
    #[inline]
    pub fn text(self, event: &[u8]) -> &[u8] {
        let bytes = self.get(event);
        bytes
            .iter()
            .position(|b| *b == 0)
            .map_or(bytes, |end| &bytes[..end])
    }

    /// The text as a thread's name.
    #[must_use]
    #[inline]
    pub fn comm(self, event: &[u8]) -> Comm {
        // The common case, a field of 16 bytes that ends in NUL, needs no byte-wise search.
        match <[u8; 16]>::try_from(self.get(event)) {
            Ok(bytes) if bytes[15] == 0 => Comm(clear_after_nul(bytes)),
            _ => Comm::from_bytes(self.get(event)),
        }
    }

    /// The first 64 bits of a bitmap.
    #[must_use]
    pub fn bitmap(self, event: &[u8]) -> u64 {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.get(event)) {
            *to = *from;
        }
        u64::from_le_bytes(word)
    }
}

/// Clears the bytes after the first NUL, so that equal names have equal bytes.
fn clear_after_nul(bytes: [u8; 16]) -> [u8; 16] {
    let word = u128::from_le_bytes(bytes);
    let (low, high) = (word as u64, (word >> 64) as u64);
    // Most names have less than eight bytes.
    let kept = match before_nul(low) {
        u64::MAX => u128::from(low) | u128::from(high & before_nul(high)) << 64,
        keep => u128::from(low & keep),
    };
    kept.to_le_bytes()
}

/// A mask of the bytes below the lowest zero byte.
fn before_nul(word: u64) -> u64 {
    // A common bit trick; only the lowest set bit is exact.
    let ones = u64::from_le_bytes([1; 8]);
    let zeros = word.wrapping_sub(ones) & !word & (ones << 7);
    if zeros == 0 {
        u64::MAX
    } else {
        (1 << (zeros.trailing_zeros() / 8 * 8)) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn format(fields: &str) -> EventFormat {
        let text = format!("name: x\nID: 77\nformat:\n{COMMON}{fields}\nprint fmt: \"a\"\n");
        EventFormat::parse("s", "x", &text).unwrap()
    }

    #[test]
    fn numbers_of_every_width_and_sign() {
        let f = format(
            "\tfield:short a;\toffset:8;\tsize:2;\tsigned:1;\n\
             \tfield:unsigned int b;\toffset:12;\tsize:4;\tsigned:0;\n\
             \tfield:void * c;\toffset:16;\tsize:8;\tsigned:0;\n",
        );
        let mut event = [0u8; 24];
        event[8..10].copy_from_slice(&(-2i16).to_le_bytes());
        event[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        event[16..].copy_from_slice(&0xffff_ffff_8100_0000u64.to_le_bytes());
        assert_eq!(f.id(), 77);
        assert_eq!(f.number("a").i64(&event), -2);
        assert_eq!(f.number("b").i64(&event), i64::from(u32::MAX));
        assert_eq!(
            f.number("c").address(&event),
            KernelAddr(0xffff_ffff_8100_0000)
        );
        assert_eq!(f.number("none").i64(&event), 0);
        assert!(!f.number("none").is_present());
        assert_eq!(f.number("c").u64(&event[..20]), 0);
    }

    #[test]
    fn texts_fixed_located_and_relative() {
        let f = format(
            "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n\
             \tfield:__rel_loc char[] rel;\toffset:28;\tsize:4;\tsigned:0;\n\
             \tfield:__data_loc cpumask_t mask;\toffset:32;\tsize:4;\tsigned:0;\n",
        );
        let mut event = [0u8; 48];
        event[8..13].copy_from_slice(b"ab\0cd");
        event[24..28].copy_from_slice(&(36u32 | 5 << 16).to_le_bytes());
        event[28..32].copy_from_slice(&(4u32 | 3 << 16).to_le_bytes());
        event[32..36].copy_from_slice(&(41u32 | 2 << 16).to_le_bytes());
        event[36..41].copy_from_slice(b"eth0\0");
        event[41..43].copy_from_slice(&[2, 1]);
        assert_eq!(f.bytes("comm").comm(&event), Comm::new("ab"));
        assert_eq!(f.bytes("name").text(&event), b"eth0");
        assert_eq!(f.bytes("rel").text(&event), b"eth");
        assert_eq!(f.bytes("mask").bitmap(&event), 0x0102);
        event[24..28].copy_from_slice(&(36u32 | 500 << 16).to_le_bytes());
        assert_eq!(f.bytes("name").text(&event), b"");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let text = format!("name: x\nID: 7\nformat:\n{COMMON}").replace("offset:4", "offset:65535");
        assert!(matches!(
            EventFormat::parse("s", "x", &text),
            Err(FormatError::Implausible { .. })
        ));
        assert!(matches!(
            EventFormat::parse("s", "x", "name: x\n"),
            Err(FormatError::Unreadable { .. })
        ));
        let text = format!(
            "name: x\nID: 7\nformat:\n{COMMON}\tfield:ת a;\toffset:8;\tsize:4;\tsigned:0;\n"
        );
        assert!(matches!(
            EventFormat::parse("s", "x", &text),
            Err(FormatError::Unreadable { .. })
        ));
        let text =
            format!("name: x\nID: 7\nformat:\n{COMMON}").replace("signed:1", "signed:42949672960");
        assert!(matches!(
            EventFormat::parse("s", "x", &text),
            Err(FormatError::Implausible { .. })
        ));
        let text = format!("name: x\nID: 70000\nformat:\n{COMMON}");
        assert!(matches!(
            EventFormat::parse("s", "x", &text),
            Err(FormatError::Implausible { .. })
        ));
    }

    proptest! {
        #[test]
        fn a_comm_is_cut_at_its_nul(bytes in any::<[u8; 16]>(), zeros in prop::collection::vec(0usize..16, 0..3)) {
            let mut bytes = bytes;
            zeros.iter().for_each(|z| bytes[*z] = 0);
            let field = BytesField::Fixed { offset: 0, length: 16 };
            prop_assert_eq!(field.comm(&bytes), Comm::from_bytes(&bytes));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(name: |ID: |format:|\t|field:|;|offset:|size:|signed:|[0-9]{1,6}|\n|\\[|\\]|char|__data_loc |\\PC){0,60}") {
            let _ = EventFormat::parse("s", "e", &text);
        }
    }
}
