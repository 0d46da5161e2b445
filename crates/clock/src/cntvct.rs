//! The virtual counter of the generic timer, on aarch64.

use crate::Clock;
use core::arch::asm;

/// `CNTVCT_EL0`, read without serialisation. It ticks at [`Cntvct::hz`], between 1 MHz and 1 GHz, so deltas of a tight
/// loop are often zero. The kernel does not use it for trace timestamps: recordings on this architecture use
/// [`crate::MonotonicRaw`].
#[derive(Clone, Copy, Debug)]
pub struct Cntvct;

impl Cntvct {
    /// Ticks per second, as the firmware states them in `CNTFRQ_EL0`.
    #[must_use]
    pub fn hz(self) -> u64 {
        let hz: u64;
        // SAFETY: reads a register that Linux opens to user mode, and touches neither memory nor flags.
        unsafe {
            asm!("mrs {hz}, cntfrq_el0", hz = out(reg) hz, options(nomem, nostack, preserves_flags))
        };
        hz
    }
}

impl Clock for Cntvct {
    #[inline(always)]
    fn now(self) -> u64 {
        let ticks: u64;
        // SAFETY: reads a register that Linux opens to user mode, and touches neither memory nor flags.
        unsafe {
            asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }

    #[inline(always)]
    fn now_after_loads(self) -> u64 {
        let ticks: u64;
        // The first barrier waits for the loads; the second keeps the read from running ahead of it. Without `nomem`
        // the compiler moves no load past them either.
        // SAFETY: barriers and a read of a register that Linux opens to user mode.
        unsafe {
            asm!(
                "dsb ishld", "isb", "mrs {ticks}, cntvct_el0",
                ticks = out(reg) ticks,
                options(nostack, preserves_flags)
            );
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_forwards_at_a_stated_rate() {
        assert!(
            (1_000_000..=1_000_000_000).contains(&Cntvct.hz()),
            "{}",
            Cntvct.hz()
        );
        let first = Cntvct.now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(Cntvct.now() > first);
        let stamps = [(); 4].map(|()| Cntvct.now_after_loads());
        assert!(
            stamps.windows(2).all(|pair| pair[0] <= pair[1]),
            "{stamps:?}"
        );
    }
}
