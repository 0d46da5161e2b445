//! What a probe asks of a clock.

/// A clock cheap enough to be read back to back. Implementations are zero-sized, so that a probe's loop
/// is compiled once for each and holds no indirect call.
pub trait Clock: Copy + Send + Sync + 'static {
    /// Reads it, in its own ticks. Successive reads on one CPU never run backwards.
    fn now(self) -> u64;

    /// Reads it once all loads before it in the program have their value: a stamp that belongs to what
    /// another thread wrote, or that must not be taken while a copy still waits for memory. As
    /// `clock_gettime` does, for some nanoseconds more than [`Clock::now`].
    #[inline(always)]
    fn now_after_loads(self) -> u64 {
        self.now()
    }
}
