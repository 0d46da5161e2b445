//! Debug traps in the measuring thread, like the breakpoints of debuggers and profilers: a hardware breakpoint on an
//! instruction of its loop, set for a moment. The kernel handles such a trap without an event, and counts it for us. A
//! recording can only report that it saw no event, and must not blame the host.

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::stop::Stopped;
use super::{DisturbError, Injector, Unavailable, needs_helper, pace};
use jitterscope_model::{CulpritKind, Nanos, Verdict};
use jitterscope_platform::{Machine, clock, monotonic_now};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};

/// How many instructions of the loop to try: the thread may seldom execute the one where it was stopped.
const TRIES: usize = 20;
/// How long to try each.
const TRIED_FOR: Nanos = Nanos(2_000_000);
/// Traps that make an injection: the first one may coincide with the interrupt that sets the breakpoint, or another
/// thread may hide it.
const FEW: u64 = 4;
/// How long to retry an injection while there are too few traps because other threads have the CPU.
const PATIENCE: Nanos = Nanos(3_000_000_000);
/// Between two tries.
const BETWEEN: Nanos = Nanos(1_000_000);
/// How often to measure the length of a trap. Other threads may have the victim's CPU in most of the measurements.
const MEASURED: usize = 20;
/// How many times longer than the shortest recorded stall a trap must be, because its length varies.
const MARGIN: u64 = 2;

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    super::stop::availability(machine, settings)?;
    needs_helper(settings)
}

/// Traps for which an injection should have time. The loop may meet the breakpoint sixteen times between two clock reads,
/// which is one stall: several such stalls must fit.
const ROOM: u64 = 64;

pub(super) struct Trap {
    settings: DisturbSettings,
    breakpoint: Breakpoint,
    /// How long an injection lasts.
    length: Nanos,
}

impl Trap {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Trap, DisturbError> {
        let victim = settings.victim_tid.ok_or_else(|| {
            DisturbError::Arguments("there is no thread to trap: victim_tid is missing".into())
        })?;
        for _ in 0..TRIES {
            let at = Stopped::new(victim)
                .and_then(|stopped| stopped.instruction())
                .map_err(DisturbError::refused(
                    "looking where the measuring thread is",
                ))?;
            let breakpoint = Breakpoint::on(victim, at).map_err(DisturbError::refused(
                "a hardware breakpoint in the measuring thread",
            ))?;
            let mut trap = Trap {
                settings: settings.clone(),
                breakpoint,
                length: settings.length,
            };
            if trap.moment(TRIED_FOR)?.2 >= FEW {
                let room = Nanos(trap.shortest()?.0.saturating_mul(ROOM));
                // An injection must be over long before the next one, because the time between is the control.
                let most = Nanos(settings.period.0 / 4);
                trap.length = settings.length.max(room.min(most));
                return Ok(trap);
            }
        }
        Err(DisturbError::Unavailable(
            "the measuring thread met none of the breakpoints that were set in it".into(),
        ))
    }

    /// An upper bound of the length of a trap. Each trap is long enough to be a stall by itself: if clock reads are slow,
    /// as in an emulator, only stalls longer than a trap are recorded. Then an injection would only show the two
    /// interrupts that set and clear the breakpoint.
    ///
    /// # Errors
    /// A trap is too short.
    fn shortest(&mut self) -> Result<Nanos, DisturbError> {
        let mut shortest = Nanos(u64::MAX);
        for _ in 0..MEASURED {
            let (start, end, met) = self.moment(TRIED_FOR)?;
            let length = self.settings.rate.nanos(end.since(start));
            shortest = shortest.min(Nanos(length.0.checked_div(met).unwrap_or(u64::MAX)));
        }
        if shortest.0 >= self.settings.threshold.0.saturating_mul(MARGIN) {
            return Ok(shortest);
        }
        Err(DisturbError::Unavailable(format!(
            "a trap takes {shortest}, and the shortest stall that is recorded here is {}",
            self.settings.threshold
        )))
    }

    /// Sets the breakpoint for a while. Returns the number of traps, after a time from whose start to whose end the
    /// breakpoint was set, however long this thread waited for its CPU before and after.
    fn moment(
        &mut self,
        length: Nanos,
    ) -> Result<(jitterscope_model::Ticks, jitterscope_model::Ticks, u64), DisturbError> {
        let failed = |error| DisturbError::refused("setting a hardware breakpoint")(error);
        let before = self.breakpoint.met().map_err(failed)?;
        self.breakpoint.set(true).map_err(failed)?;
        let start = clock::now(self.settings.clock);
        // Too short to sleep.
        let until = monotonic_now() + length;
        while monotonic_now() < until {
            std::hint::spin_loop();
        }
        let end = clock::now(self.settings.clock);
        self.breakpoint.set(false).map_err(failed)?;
        Ok((
            start,
            end,
            self.breakpoint
                .met()
                .map_err(failed)?
                .saturating_sub(before),
        ))
    }
}

impl Injector for Trap {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        let name = Verdict::NoEventInVm.as_str().into();
        Expectation {
            kind: CulpritKind::Unresolved,
            name,
            sender: None,
        }
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        let mut deadline = deadline;
        let given_up = deadline.max(monotonic_now()) + PATIENCE;
        while monotonic_now() < given_up {
            if !pace::sleep_until(deadline)? {
                return Ok(None);
            }
            let (start_ticks, end_ticks, met) = self.moment(self.length)?;
            // Without its CPU it has few traps, or none: that does not count as an injection.
            if met >= FEW {
                return Ok(Some(Injection {
                    start_ticks,
                    end_ticks,
                    length_ticks: None,
                }));
            }
            deadline = monotonic_now() + BETWEEN;
        }
        Err(DisturbError::Unavailable(
            "the measuring thread met no breakpoint any more".into(),
        ))
    }
}

/// `PERF_TYPE_BREAKPOINT`, `HW_BREAKPOINT_X` and the flags of `struct perf_event_attr` (uapi).
const TYPE_BREAKPOINT: u32 = 5;
const ON_EXECUTION: u32 = 4;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;

/// `struct perf_event_attr` up to its second version.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_on: u32,
    breakpoint_address: u64,
    breakpoint_length: u64,
}

/// A hardware breakpoint on an instruction of one thread. The kernel removes it when this is dropped, or when its
/// process ends.
struct Breakpoint(File);

impl Breakpoint {
    fn on(thread: libc::pid_t, address: u64) -> Result<Breakpoint, Errno> {
        let length = if cfg!(target_arch = "x86_64") {
            size_of::<libc::c_long>()
        } else {
            4
        };
        let attributes = Attributes {
            kind: TYPE_BREAKPOINT,
            size: size_of::<Attributes>() as u32,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            wakeup_events: 0,
            breakpoint_on: ON_EXECUTION,
            breakpoint_address: address,
            breakpoint_length: length as u64,
        };
        let (any_cpu, no_group, close_on_exec): (libc::c_int, libc::c_int, libc::c_ulong) =
            (-1, -1, 8);
        // SAFETY: the attributes are valid for the size that they state, outlive the call, and are only read.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                any_cpu,
                no_group,
                close_on_exec,
            )
        };
        let fd = i32::try_from(fd)
            .ok()
            .filter(|fd| *fd >= 0)
            .ok_or_else(super::stop::last_error)?;
        // SAFETY: the call gave us this descriptor, and no other code has it.
        Ok(Breakpoint(unsafe { File::from_raw_fd(fd) }))
    }

    fn set(&self, on: bool) -> Result<(), Errno> {
        let request = if on { ENABLE } else { DISABLE };
        // SAFETY: the descriptor is open, and these requests take a number, which is 0.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), request, 0) };
        if done < 0 {
            Err(super::stop::last_error())
        } else {
            Ok(())
        }
    }

    /// The number of its traps since it was made.
    fn met(&mut self) -> Result<u64, Errno> {
        let mut count = [0; 8];
        self.0
            .read_exact(&mut count)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(u64::from_ne_bytes(count))
    }
}
