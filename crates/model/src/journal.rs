//! The pipeline's journal: one record of 32 bytes per message.
//!
//! Big-endian, in perf-workshop's format: a marker (u32 0x55555555), the times when the message was published and when
//! the journaller received it, the difference (i64 each, nanoseconds), and the message's number (i32).

use schemars::JsonSchema;
use serde::Serialize;

/// The first bytes of every record.
const MARKER: [u8; 4] = [0x55; 4];

/// One record of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalEntry {
    /// The message's number from 0; after 2^31 - 1 it continues at -2^31, as perf-workshop's does.
    pub sequence: i32,
    /// When the message was published, nanoseconds on the measuring clock.
    pub published_ns: i64,
    /// When the journaller received it, nanoseconds on the same clock.
    pub journalled_ns: i64,
    /// The difference, nanoseconds. The writer stores it; a reader need not trust it.
    pub delta_ns: i64,
}

impl JournalEntry {
    pub const SIZE: usize = 32;

    #[must_use]
    #[inline]
    pub fn to_bytes(self) -> [u8; JournalEntry::SIZE] {
        let mut bytes = [0; JournalEntry::SIZE];
        bytes[..4].copy_from_slice(&MARKER);
        bytes[4..12].copy_from_slice(&self.published_ns.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.journalled_ns.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.delta_ns.to_be_bytes());
        bytes[28..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// The record in these bytes; `None` if they do not begin with the marker.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; JournalEntry::SIZE]) -> Option<JournalEntry> {
        let [m0, m1, m2, m3, rest @ ..] = bytes;
        if [*m0, *m1, *m2, *m3] != MARKER {
            return None;
        }
        let (numbers, sequence) = rest.split_at(24);
        let mut numbers = numbers
            .chunks_exact(8)
            .map(|n| n.try_into().map_or(0, i64::from_be_bytes));
        Some(JournalEntry {
            published_ns: numbers.next()?,
            journalled_ns: numbers.next()?,
            delta_ns: numbers.next()?,
            sequence: i32::from_be_bytes(sequence.try_into().ok()?),
        })
    }
}

/// Why and where the rest of a journal is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A record without its marker.
    #[error("no record at byte {offset}: a journal's records begin with 55 55 55 55")]
    Marker {
        /// Its position in bytes.
        offset: u64,
    },
    /// The last record is cut off.
    #[error("the journal ends within a record: {bytes} bytes at byte {offset}, a record has 32")]
    Cut {
        /// Its position in bytes.
        offset: u64,
        /// The bytes that are left of it.
        bytes: usize,
    },
}

/// Iterates over the records of a journal. Ends at the first error, or at the zeros that a killed writer left after its
/// last record.
#[derive(Clone, Debug)]
pub struct JournalReader<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> JournalReader<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> JournalReader<'a> {
        JournalReader {
            rest: bytes,
            offset: 0,
        }
    }
}

impl Iterator for JournalReader<'_> {
    type Item = Result<JournalEntry, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        let Some((record, rest)) = self.rest.split_first_chunk::<{ JournalEntry::SIZE }>() else {
            let left = std::mem::take(&mut self.rest);
            return left
                .iter()
                .any(|b| *b != 0)
                .then_some(Err(JournalError::Cut {
                    offset,
                    bytes: left.len(),
                }));
        };
        let entry = JournalEntry::from_bytes(record);
        if entry.is_some() {
            (self.rest, self.offset) = (rest, offset + JournalEntry::SIZE as u64);
            return entry.map(Ok);
        }
        let unused = self.rest.iter().all(|b| *b == 0);
        self.rest = &[];
        (!unused).then_some(Err(JournalError::Marker { offset }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_record_is_laid_out_as_its_ancestor_wrote_it() {
        let entry = JournalEntry {
            published_ns: 1,
            journalled_ns: 0x0102,
            delta_ns: 0x0101,
            sequence: 7,
        };
        let expected =
            "55555555 0000000000000001 0000000000000102 0000000000000101 00000007".replace(' ', "");
        let hex: String = entry
            .to_bytes()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hex, expected);
    }

    #[test]
    fn unused_room_is_the_end_and_foreign_bytes_are_an_error() {
        let entry = JournalEntry {
            published_ns: 5,
            journalled_ns: 9,
            delta_ns: 4,
            sequence: 0,
        };
        let mut bytes = entry.to_bytes().to_vec();
        bytes.extend([0; 100]);
        assert_eq!(JournalReader::new(&bytes).collect::<Vec<_>>(), [Ok(entry)]);
        bytes[40] = 1;
        let read: Vec<_> = JournalReader::new(&bytes).collect();
        assert_eq!(read, [Ok(entry), Err(JournalError::Marker { offset: 32 })]);
        let cut = &entry.to_bytes()[..31];
        let read: Vec<_> = JournalReader::new(cut).collect();
        assert_eq!(
            read,
            [Err(JournalError::Cut {
                offset: 0,
                bytes: 31
            })]
        );
    }

    proptest! {
        #[test]
        fn a_journal_survives_a_round_trip(entries in proptest::collection::vec(any::<(i64, i64, i64, i32)>(), 0..50)) {
            let entries: Vec<JournalEntry> = entries
                .into_iter()
                .map(|(published_ns, journalled_ns, delta_ns, sequence)| JournalEntry {
                    published_ns, journalled_ns, delta_ns, sequence,
                })
                .collect();
            let bytes: Vec<u8> = entries.iter().flat_map(|e| e.to_bytes()).collect();
            let read: Result<Vec<JournalEntry>, JournalError> = JournalReader::new(&bytes).collect();
            prop_assert_eq!(read, Ok(entries));
        }

        #[test]
        fn any_bytes_end_in_order(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(JournalReader::new(&bytes).count() <= bytes.len() / 32 + 1);
        }
    }
}
