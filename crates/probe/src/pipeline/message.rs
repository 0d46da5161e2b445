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
    /// Bytes of a datagram before the payload.
    pub(super) const HEAD: usize = 48;

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

    /// Writes it to a datagram of [`Message::HEAD`] bytes and the payload's.
    pub(super) fn encode(&self, datagram: &mut [u8]) {
        let times = [
            self.intended,
            self.published,
            self.previous,
            self.waited,
            self.sequence,
            u64::from(self.in_file) | u64::from(self.flags) << 32,
        ];
        let Some((head, payload)) = datagram.split_at_mut_checked(Message::HEAD) else {
            return;
        };
        for (room, time) in head.chunks_exact_mut(8).zip(times) {
            room.copy_from_slice(&time.to_ne_bytes());
        }
        if payload.len() == self.payload.len() {
            payload.copy_from_slice(&self.payload);
        }
    }

    /// Reads it from a datagram; false if that has another length.
    pub(super) fn decode(&mut self, datagram: &[u8]) -> bool {
        let Some((head, payload)) = datagram.split_at_checked(Message::HEAD) else {
            return false;
        };
        if payload.len() != self.payload.len() {
            return false;
        }
        let mut times = [0; Message::HEAD / 8];
        for (time, bytes) in times.iter_mut().zip(head.chunks_exact(8)) {
            *time = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        let [intended, published, previous, waited, sequence, rest] = times;
        self.intended = intended;
        self.published = published;
        self.previous = previous;
        self.waited = waited;
        self.sequence = sequence;
        self.in_file = rest as u32;
        self.flags = (rest >> 32) as u8;
        self.payload.copy_from_slice(payload);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn a_message_is_one_cache_line() {
        assert_eq!(size_of::<Message>(), 64);
    }

    #[test]
    fn a_datagram_holds_the_whole_message_and_another_length_is_refused() {
        let sent = Message {
            intended: 1,
            published: u64::MAX,
            previous: 3,
            waited: 4,
            sequence: 5,
            in_file: u32::MAX,
            flags: 13,
            payload: vec![7; 9].into_boxed_slice(),
        };
        let mut datagram = vec![0; Message::HEAD + 9];
        sent.encode(&mut datagram);
        let mut received = Message::empty(9);
        assert!(received.decode(&datagram));
        let all = |of: &Message| {
            let numbers = [of.intended, of.published, of.previous, of.waited];
            (
                numbers,
                of.sequence,
                of.in_file,
                of.flags,
                of.payload.clone(),
            )
        };
        assert_eq!(all(&received), all(&sent));
        for length in (0..datagram.len()).chain([datagram.len() + 1]) {
            let mut other = datagram.clone();
            other.resize(length, 0);
            assert!(!received.decode(&other), "{length}");
        }
    }
}
