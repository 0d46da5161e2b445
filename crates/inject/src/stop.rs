//! Stops the measuring thread for a known time, as a debugger does. It stops only that thread; a stop signal would stop
//! the whole process, including the recorder. If this child is killed, the kernel lets the thread continue.

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::unavailable::needs_capability;
use super::{DisturbError, Injector, Unavailable, needs_helper, pace};
use jitterscope_model::{CulpritKind, Nanos, Verdict};
use jitterscope_platform::{Machine, clock, monotonic_now};
use rustix::io::Errno;

/// `CAP_SYS_PTRACE` (`include/uapi/linux/capability.h`).
const CAP_SYS_PTRACE: (u32, &str) = (19, "CAP_SYS_PTRACE");

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    needs_helper(settings)?;
    if settings.victim_tid.is_none() {
        return Err(Unavailable::NoVictim);
    }
    needs_capability(machine, CAP_SYS_PTRACE, "stopping another process's thread")
}

pub(super) struct Stop {
    settings: DisturbSettings,
    victim: libc::pid_t,
}

impl Stop {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Stop, DisturbError> {
        let victim = settings.victim_tid.ok_or_else(|| {
            DisturbError::Arguments("there is no thread to stop: victim_tid is missing".into())
        })?;
        // Checks now whether it works.
        let stopped =
            Stopped::new(victim).map_err(DisturbError::refused("tracing the measuring thread"))?;
        drop(stopped);
        Ok(Stop {
            settings: settings.clone(),
            victim,
        })
    }
}

/// A stopped thread; dropping this lets it continue. The thread is traced only during the stop, because a signal for a
/// traced thread would wait for us.
pub(super) struct Stopped {
    thread: libc::pid_t,
    /// The signal that stopped it before we did; it is delivered when the thread continues.
    signal: libc::c_int,
}

impl Stopped {
    pub(super) fn new(thread: libc::pid_t) -> Result<Stopped, Errno> {
        request(libc::PTRACE_SEIZE, thread, 0)?;
        let mut status = 0;
        request(libc::PTRACE_INTERRUPT, thread, 0)?;
        loop {
            // SAFETY: `status` is a valid place for the state, and the thread is traced by us, so waiting for it
            // affects no other child.
            let waited = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
            match waited {
                0.. => break,
                _ if last_error() == Errno::INTR => {}
                _ => return Err(last_error()),
            }
        }
        let by_us = status >> 16 == libc::PTRACE_EVENT_STOP;
        let signal = if by_us || !libc::WIFSTOPPED(status) {
            0
        } else {
            libc::WSTOPSIG(status)
        };
        Ok(Stopped { thread, signal })
    }

    /// The address of the instruction that it executes next.
    pub(super) fn instruction(&self) -> Result<u64, Errno> {
        // SAFETY: all fields are integers, for which zero is a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let mut place = libc::iovec {
            iov_base: (&raw mut registers).cast(),
            iov_len: size_of::<libc::user_regs_struct>(),
        };
        /// `NT_PRSTATUS`: the general registers.
        const GENERAL: usize = 1;
        // SAFETY: the thread is stopped and traced by us; the kernel writes no more than the place holds.
        let done = unsafe {
            libc::ptrace(
                libc::PTRACE_GETREGSET,
                self.thread,
                GENERAL as *mut libc::c_void,
                &raw mut place,
            )
        };
        if done < 0 {
            return Err(last_error());
        }
        #[cfg(target_arch = "x86_64")]
        return Ok(registers.rip);
        #[cfg(target_arch = "aarch64")]
        return Ok(registers.pc);
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return Err(Errno::NOSYS);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // If the thread has ended meanwhile, there is nothing to release.
        let _ = request(libc::PTRACE_DETACH, self.thread, self.signal);
    }
}

impl Injector for Stop {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        let name = Verdict::StoppedByTracer.as_str().into();
        Expectation {
            kind: CulpritKind::Stopped,
            name,
            sender: None,
        }
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        if !pace::sleep_until(deadline)? {
            return Ok(None);
        }
        let start_ticks = clock::now(self.settings.clock);
        let stopped = Stopped::new(self.victim)
            .map_err(DisturbError::refused("stopping the measuring thread"))?;
        // A request to end may have cut the stop short.
        let slept = pace::sleep_until(monotonic_now() + self.settings.length);
        drop(stopped);
        let end_ticks = clock::now(self.settings.clock);
        slept?;
        Ok(Some(Injection {
            start_ticks,
            end_ticks,
            length_ticks: None,
        }))
    }
}

/// The C library's type of a request.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// A request without an address, with a number as its data.
fn request(request: Request, tid: libc::pid_t, data: libc::c_int) -> Result<(), Errno> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: these requests take no address, their data is a number, and they touch no memory of ours.
    let done = unsafe { libc::ptrace(request, tid, none, libc::c_long::from(data)) };
    if done < 0 { Err(last_error()) } else { Ok(()) }
}

pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
