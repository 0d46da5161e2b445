//! The messages in the ring.

/// Bits of [`Message::flags`].
pub(super) mod flag {
    /// It counts; without this flag the message belongs to the warm-up.
    pub const MEASURED: u8 = 1;
    /// The last message of the warm-up.
    pub const LAST_OF_WARMUP: u8 = 2;
    /// Its record is the last of the input.
    pub const LAST_IN_FILE: u8 = 4;
    pub const LAST_IN_STREAM: u8 = 8;
}

/// One slot of the ring: a cache line with everything that the consumers read; the record's bytes are elsewhere. The
/// own line keeps the producer's writes to one slot away from the consumers' reads of the next.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Message {
    /// Intended publication, ticks.
    pub intended: u64,
    /// Actual publication, ticks.
    pub published: u64,
    /// Actual publication of the previous message, ticks.
    pub previous: u64,
    /// How long the producer waited for this slot because the ring was full, ticks.
    pub waited: u64,
    /// Number in the stream, including the warm-up.
    pub sequence: u64,
    /// Its record's number in the input.
    pub in_file: u32,
    pub flags: u8,
    pub payload: Box<[u8]>,
}

impl Message {
    pub(super) fn empty(length: usize) -> Message {
        Message {
            intended: 0,
            published: 0,
            previous: 0,
            waited: 0,
            sequence: 0,
            in_file: 0,
            flags: 0,
            payload: vec![0; length].into_boxed_slice(),
        }
    }

    pub(super) fn is(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn a_message_is_one_cache_line() {
        assert_eq!(size_of::<Message>(), 64);
    }
}
