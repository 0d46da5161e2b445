//! The calling thread: its CPUs, its priority, and its resource usage.

use crate::user_namespace::none_counts;
use jitterscope_model::{CpuId, CpuSet, Nanos};
use rustix::thread as rt;

/// Why a thread could not be put on a CPU.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The kernel refused the mask.
    #[error("the kernel refused to run this thread on CPU {cpu}: {source}")]
    Refused { cpu: CpuId, source: std::io::Error },
    /// The mask was accepted, but the thread is elsewhere.
    #[error("asked for CPU {wanted}, but the thread runs on CPU {actual}")]
    Elsewhere { wanted: CpuId, actual: CpuId },
    /// The CPU number exceeds the affinity call's limit.
    #[error("CPU {0} is beyond the {max} CPUs that this build can pin to", max = rt::CpuSet::MAX_CPU)]
    Unsupported(CpuId),
    /// The scheduling class was refused.
    #[error(
        "SCHED_FIFO priority {priority} was refused: {source}. It needs CAP_SYS_NICE or an RLIMIT_RTPRIO of at least {priority}, and a cgroup with real-time bandwidth{}",
        none_counts()
    )]
    Priority {
        priority: u32,
        source: std::io::Error,
    },
}

/// The kernel's id of the calling thread.
#[must_use]
pub fn current_tid() -> i32 {
    rt::gettid().as_raw_nonzero().get()
}

/// The CPU that the calling thread is on now.
#[must_use]
pub fn current_cpu() -> CpuId {
    CpuId(u32::try_from(rt::sched_getcpu()).unwrap_or(0))
}

/// CPUs that the calling thread may run on.
///
/// # Errors
/// The kernel has more CPUs than the call supports.
pub fn current_affinity() -> std::io::Result<CpuSet> {
    let mask = rt::sched_getaffinity(None)?;
    Ok((0..rt::CpuSet::MAX_CPU)
        .filter(|c| mask.is_set(*c))
        .map(|c| CpuId(c as u32))
        .collect())
}

/// Pins the calling thread to one CPU and checks that it is there.
///
/// # Errors
/// The kernel refuses, or puts it elsewhere.
pub fn pin_current_thread(cpu: CpuId) -> Result<(), PinError> {
    let only: CpuSet = [cpu].into_iter().collect();
    confine_current_thread(&only)?;
    let actual = current_cpu();
    if actual == cpu {
        Ok(())
    } else {
        Err(PinError::Elsewhere {
            wanted: cpu,
            actual,
        })
    }
}

/// Confines the calling thread, and the threads that it will start, to `cpus`.
///
/// # Errors
/// The kernel refuses: none of the CPUs is online and in the thread's cpuset.
pub fn confine_current_thread(cpus: &CpuSet) -> Result<(), PinError> {
    let mut mask = rt::CpuSet::new();
    for cpu in cpus.iter() {
        if cpu.0 as usize >= rt::CpuSet::MAX_CPU {
            return Err(PinError::Unsupported(cpu));
        }
        mask.set(cpu.0 as usize);
    }
    let cpu = cpus.first().unwrap_or_default();
    rt::sched_setaffinity(None, &mask).map_err(|e| PinError::Refused {
        cpu,
        source: e.into(),
    })
}

/// Names the calling thread (keeps 15 bytes at most).
pub fn name_current_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // The name only helps readers of the process list; the kernel does not refuse it.
        let _ = rt::set_name(&name);
    }
}

/// A thread's own name, to set it again: a call that does almost nothing, and that the kernel records if it records
/// renamed threads.
#[derive(Debug)]
pub struct OwnName(std::ffi::CString);

impl OwnName {
    /// Reads the calling thread's name; `None` if the kernel does not tell.
    #[must_use]
    pub fn read() -> Option<OwnName> {
        rt::name().ok().map(OwnName)
    }

    /// Gives the calling thread this name.
    #[inline]
    pub fn give_again(&self) {
        // The name stays the same, so a refusal does no harm.
        let _ = rt::set_name(&self.0);
    }
}

/// Gives the calling thread this nice value, if that is allowed.
pub fn set_nice(nice: i32) {
    // Without the right the thread runs later, and nothing else is lost.
    let _ = rustix::process::setpriority_process(None, nice);
}

/// Puts the calling thread in the SCHED_FIFO class.
///
/// # Errors
/// Not allowed: see the message.
pub fn set_fifo(priority: u32) -> Result<(), PinError> {
    let refused = |source| PinError::Priority { priority, source };
    let param =
        i32::try_from(priority).map_err(|_| refused(std::io::ErrorKind::InvalidInput.into()))?;
    // The raw system call: musl's function of that name always fails with ENOSYS.
    // SAFETY: the kernel's `sched_param` is one int, the priority; it outlives the call, which only reads it. The
    // thread id 0 is that of the calling thread.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO,
            &raw const param,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(refused(std::io::Error::last_os_error()))
    }
}

/// The kernel's counters of the calling thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Page faults, minor and major.
    pub page_faults: u64,
    pub involuntary_switches: u64,
    /// CPU time in user and kernel mode.
    pub cpu_time: Nanos,
}

/// Reads the counters of the calling thread.
#[must_use]
pub fn thread_usage() -> ThreadUsage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writes of a `rusage`, which the kernel fills.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if result != 0 {
        return ThreadUsage::default();
    }
    // SAFETY: zeroed is a valid `rusage`, and the call above has filled it.
    let usage = unsafe { usage.assume_init() };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    let nanos = |t: libc::timeval| count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1000;
    ThreadUsage {
        page_faults: count(usage.ru_minflt) + count(usage.ru_majflt),
        involuntary_switches: count(usage.ru_nivcsw),
        cpu_time: Nanos(nanos(usage.ru_utime) + nanos(usage.ru_stime)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_lands_on_the_cpu_and_refusals_are_typed() {
        std::thread::spawn(|| {
            let allowed = current_affinity().unwrap();
            let cpu = allowed.last().unwrap();
            pin_current_thread(cpu).unwrap();
            assert_eq!(
                current_affinity().unwrap().iter().collect::<Vec<_>>(),
                [cpu]
            );
            assert!(matches!(
                pin_current_thread(CpuId(1000)),
                Err(PinError::Refused { .. })
            ));
            assert!(matches!(
                pin_current_thread(CpuId(60_000)),
                Err(PinError::Unsupported(_))
            ));
        })
        .join()
        .unwrap();
    }
}
