//! The interface between a probe and a clock.

/// A clock that is cheap enough to read back to back. Implementations are zero-sized, so the compiler makes one copy of
/// the probe's loop per clock, without indirect calls.
pub trait Clock: Copy + Send + Sync + 'static {
    /// Reads the clock, in its own ticks. Successive reads on one CPU never run backwards.
    fn now(self) -> u64;

    /// Reads the clock after all loads before it in the program have completed. Use it for a timestamp that belongs to
    /// data from another thread, or that must not be taken while a copy still waits for memory. It orders as
    /// `clock_gettime` does, and costs some nanoseconds more than [`Clock::now`].
    #[inline(always)]
    fn now_after_loads(self) -> u64 {
        self.now()
    }
}
