//! A packet: its head, and events one after another.

use super::metadata::UUID;
use jitterscope_model::{CpuId, Ticks};

/// The first word of a packet.
const MAGIC: u32 = 0xc1fc_1fc1;
/// Magic, UUID, number of the stream; times, lengths, number, losses, CPU.
const HEAD: usize = 4 + 16 + 4 + 6 * 8 + 4;

/// The packet that is being filled.
#[derive(Default)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    begin: Ticks,
}

impl Packet {
    /// Begins a packet. No event of it is earlier.
    pub(super) fn begin(&mut self, at: Ticks) {
        self.bytes.clear();
        self.bytes.resize(HEAD, 0);
        self.begin = at;
    }

    /// The head of an event; its fields follow.
    pub(super) fn event(&mut self, id: u16, at: Ticks, (tid, flags, preempt): (i32, u8, u8)) {
        self.put(&id.to_le_bytes());
        self.put(&at.0.to_le_bytes());
        self.put(&tid.to_le_bytes());
        self.put(&[flags, preempt]);
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The whole packet.
    pub(super) fn end(&mut self, at: Ticks, cpu: CpuId, number: u64, discarded: u64) -> &[u8] {
        let bits = self.bytes.len() as u64 * 8;
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(&MAGIC.to_le_bytes());
        head.extend_from_slice(&UUID);
        head.extend_from_slice(&0_u32.to_le_bytes());
        let end = at.max(self.begin);
        for word in [self.begin.0, end.0, bits, bits, number, discarded] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        head.extend_from_slice(&cpu.0.to_le_bytes());
        self.bytes[..HEAD].copy_from_slice(&head);
        &self.bytes
    }
}
