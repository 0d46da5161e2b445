//! The time stamp counter of x86-64.

use crate::Clock;
use core::arch::x86_64::{_mm_lfence, _rdtsc};

/// The time stamp counter, read without serialisation: neighbouring instructions may overlap the read by a few ticks,
/// which is far less than a fence costs.
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

impl Clock for Tsc {
    #[inline(always)]
    fn now(self) -> u64 {
        // SAFETY: `rdtsc` reads a register and touches no memory; every x86-64 CPU has it, and Linux
        // allows it in user mode unless the thread asked otherwise with PR_SET_TSC.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    fn now_after_loads(self) -> u64 {
        // SAFETY: `lfence` orders instructions and does nothing else; every x86-64 CPU has it.
        unsafe { _mm_lfence() };
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordered_stamp_lies_between_its_neighbours() {
        // Each read waits for the loads before it. A plain read may overlap them, but does not run backwards on one
        // CPU.
        let stamps = [(); 4].map(|()| Tsc.now_after_loads());
        assert!(
            stamps.windows(2).all(|pair| pair[0] < pair[1]),
            "{stamps:?}"
        );
        assert!(Tsc.now() <= Tsc.now_after_loads());
    }
}
