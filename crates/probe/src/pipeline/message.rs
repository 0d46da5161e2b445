//! What travels through the ring.

/// Bits of [`Message::flags`].
pub(super) mod flag {
    /// It counts; without it the message belongs to the warm-up.
    pub const MEASURED: u8 = 1;
    /// The last of the warm-up.
    pub const LAST_OF_WARMUP: u8 = 2;
    /// Its record is the last of the input.
    pub const LAST_IN_FILE: u8 = 4;
    /// Nothing follows it.
    pub const LAST_IN_STREAM: u8 = 8;
}

/// One slot of the ring: a cache line for what the consumers read, and the record's bytes elsewhere. A
/// line of its own keeps the producer's writes to one slot off the consumers' reads of its neighbour.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Message {
    /// When it should have been published, ticks.
    pub intended: u64,
    /// When it was, ticks.
    pub published: u64,
    /// When the one before it was, ticks.
    pub previous: u64,
    /// How long the producer waited for this slot because the ring was full, ticks.
    pub waited: u64,
    /// Its number in the stream, warm-up included.
    pub sequence: u64,
    /// Its record's number in the input.
    pub in_file: u32,
    pub flags: u8,
    /// The record.
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
