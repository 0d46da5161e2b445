//! The kernel's raw monotonic clock, which is never adjusted.

use crate::Clock;
use core::ffi::{c_int, c_long};
use core::mem::MaybeUninit;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the layout of a time is that of 64-bit Linux");

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
struct Time {
    seconds: i64,
    nanos: c_long,
}

const CLOCK_MONOTONIC_RAW: c_int = 4;

// The C library's function: the only way to the kernel's vDSO without another crate, and the only code outside this
// crate that a loop calls. On common machines it makes no system call.
// SAFETY: the signature is that of POSIX on 64-bit Linux, where `clockid_t` is an int and `time_t` 64 bits.
unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds, never stepped or slewed. The vDSO orders the read after the loads before it.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicRaw;

impl Clock for MonotonicRaw {
    #[inline(always)]
    fn now(self) -> u64 {
        let mut time = MaybeUninit::<Time>::zeroed();
        // SAFETY: the pointer is valid for writes of a `timespec`, which the call fills. Linux has had this
        // clock since 2.6.28; were it refused, the time would stay zero.
        unsafe { clock_gettime(CLOCK_MONOTONIC_RAW, time.as_mut_ptr()) };
        // SAFETY: zeroed is a valid value of two integers, whether or not the call has written them.
        let time = unsafe { time.assume_init() };
        // Time since the boot is not negative, and its nanoseconds fit in 64 bits for 584 years.
        (time.seconds as u64) * 1_000_000_000 + time.nanos as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn it_runs_in_nanoseconds_beside_the_clock_of_the_standard_library() {
        let (wall, first) = (Instant::now(), MonotonicRaw.now());
        std::thread::sleep(Duration::from_millis(20));
        let (last, wall_after) = (MonotonicRaw.now(), wall.elapsed());
        let passed = u128::from(last - first);
        // The raw clock is read inside the span of the other one. The two rates differ by less than 500 ppm (the limit
        // of slewing).
        assert!(
            passed >= 19_900_000 && passed <= wall_after.as_nanos() * 1001 / 1000,
            "{passed}"
        );
        assert!(last <= MonotonicRaw.now_after_loads());
    }
}
