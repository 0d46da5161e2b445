//! Sleeping to a deadline, and keeping sleeps short.

use jitterscope_model::Nanos;
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::Path;

/// `CLOCK_MONOTONIC`: the clock of [`sleep_until`].
#[must_use]
pub fn monotonic_now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (
        u64::try_from(now.tv_sec).unwrap_or(0),
        u64::try_from(now.tv_nsec).unwrap_or(0),
    );
    Nanos(seconds * 1_000_000_000 + nanos)
}

/// Sleeps until `CLOCK_MONOTONIC` shows `deadline`; returns at once if it has passed. Signals do not end the sleep.
///
/// # Errors
/// The kernel refuses the deadline.
pub fn sleep_until(deadline: Nanos) -> io::Result<()> {
    let seconds = i64::try_from(deadline.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let at = Timespec {
        tv_sec: seconds,
        tv_nsec: (deadline.0 % 1_000_000_000) as _,
    };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &at) {
            Err(Errno::INTR) => {}
            other => return other.map_err(Into::into),
        }
    }
}

/// Lets the calling thread's timers fire when they are due: in the fair class the kernel may otherwise delay each by up
/// to 50 us, to merge it with others.
///
/// # Errors
/// The kernel has no timer slack.
pub fn no_timer_slack() -> io::Result<()> {
    // Zero would mean the default.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(Into::into)
}

/// While this exists, the kernel's power management keeps idle CPUs in shallow states: the file `/dev/cpu_dma_latency`
/// holds a bound of the exit latency for as long as it is open.
#[derive(Debug)]
pub struct ShallowIdle {
    _file: File,
}

impl ShallowIdle {
    /// Requests an exit latency of zero.
    ///
    /// # Errors
    /// The file does not exist, or this user may not open it.
    pub fn hold() -> io::Result<ShallowIdle> {
        ShallowIdle::hold_at(Path::new("/dev/cpu_dma_latency"))
    }

    fn hold_at(path: &Path) -> io::Result<ShallowIdle> {
        let mut file = File::options().write(true).open(path)?;
        // The kernel expects a signed 32-bit number of microseconds in native byte order.
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(ShallowIdle { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_deadline_and_not_before() {
        let deadline = Nanos(monotonic_now().0 + 3_000_000);
        sleep_until(deadline).unwrap();
        assert!(monotonic_now() >= deadline);
        sleep_until(Nanos(1)).unwrap();
        no_timer_slack().unwrap();
    }

    #[test]
    fn the_latency_file_gets_a_binary_zero() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("latency");
        std::fs::write(&path, "").unwrap();
        let _held = ShallowIdle::hold_at(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [0; 4]);
        assert!(ShallowIdle::hold_at(&dir.path().join("missing")).is_err());
    }
}
