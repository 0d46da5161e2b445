//! The calling thread: where it may run, at which priority, and what it has suffered.

use jitterscope_model::{CpuId, CpuSet, Nanos};
use rustix::thread as rt;

/// Why a thread could not be put on a CPU.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The kernel refused the mask.
    #[error("the kernel refused to run this thread on CPU {cpu}: {source}")]
    Refused {
        /// The CPU asked for.
        cpu: CpuId,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The mask was accepted, but the thread is elsewhere.
    #[error("asked for CPU {wanted}, but the thread runs on CPU {actual}")]
    Elsewhere {
        /// Asked for.
        wanted: CpuId,
        /// Where it is.
        actual: CpuId,
    },
    /// Beyond what the affinity call can express.
    #[error("CPU {0} is beyond the {max} CPUs that this build can pin to", max = rt::CpuSet::MAX_CPU)]
    Unsupported(CpuId),
    /// The scheduling class was refused.
    #[error(
        "SCHED_FIFO priority {priority} was refused: {source}. It needs CAP_SYS_NICE or an RLIMIT_RTPRIO of at least {priority}, and a cgroup with real-time bandwidth"
    )]
    Priority {
        /// Asked for.
        priority: u32,
        /// What the kernel said.
        source: std::io::Error,
    },
}

/// The kernel's id of the calling thread.
#[must_use]
pub fn current_tid() -> i32 {
    rt::gettid().as_raw_nonzero().get()
}

/// The CPU that the calling thread is on at this moment.
#[must_use]
pub fn current_cpu() -> CpuId {
    CpuId(u32::try_from(rt::sched_getcpu()).unwrap_or(0))
}

/// CPUs that the calling thread may run on.
///
/// # Errors
/// The kernel has more CPUs than the call can express.
pub fn current_affinity() -> std::io::Result<CpuSet> {
    let mask = rt::sched_getaffinity(None)?;
    Ok((0..rt::CpuSet::MAX_CPU)
        .filter(|c| mask.is_set(*c))
        .map(|c| CpuId(c as u32))
        .collect())
}

/// Puts the calling thread on one CPU and checks that it is there.
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

/// Confines the calling thread, and the threads that it will start, to some CPUs.
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

/// Names the calling thread (15 bytes at most are kept).
pub fn name_current_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // A name is a courtesy to who looks at the process list; the kernel does not refuse it.
        let _ = rt::set_name(&name);
    }
}

/// The name of a thread, to give it once more: a call that does next to nothing, and that the kernel records
/// where renamed threads are recorded.
#[derive(Debug)]
pub struct OwnName(std::ffi::CString);

impl OwnName {
    /// That of the calling thread; `None` where the kernel does not tell.
    #[must_use]
    pub fn read() -> Option<OwnName> {
        rt::name().ok().map(OwnName)
    }

    /// Gives the calling thread this name.
    #[inline]
    pub fn give_again(&self) {
        // What it is called is what it was called: nothing is lost where the kernel refuses.
        let _ = rt::set_name(&self.0);
    }
}

/// Puts the calling thread in the SCHED_FIFO class.
///
/// # Errors
/// Not allowed: see the message.
pub fn set_fifo(priority: u32) -> Result<(), PinError> {
    let refused = |source| PinError::Priority { priority, source };
    let prio =
        i32::try_from(priority).map_err(|_| refused(std::io::ErrorKind::InvalidInput.into()))?;
    let param = libc::sched_param {
        sched_priority: prio,
    };
    // SAFETY: `param` outlives the call, which only reads it; pid 0 names the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) };
    if result == 0 {
        Ok(())
    } else {
        Err(refused(std::io::Error::last_os_error()))
    }
}

/// What the kernel has counted for the calling thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Page faults, minor and major.
    pub page_faults: u64,
    /// Context switches that it did not ask for.
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
