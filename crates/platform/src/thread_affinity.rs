//! The CPUs that another thread may run on.

use jitterscope_model::CpuSet;
use rustix::thread::{CpuSet as KernelSet, Pid, sched_setaffinity};
use std::io;

/// Confines thread `tid` of this machine to `cpus`.
///
/// # Errors
/// As `sched_setaffinity(2)`: ESRCH if it is gone, EINVAL if it is bound to its CPU or `cpus` holds none that it may
/// use, EPERM if it belongs to another user, EBUSY for a deadline thread. Also EINVAL for an empty set and for CPUs
/// beyond the 1024 of the call's fixed-size mask.
pub fn set_thread_affinity(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    let invalid = || io::Error::from(rustix::io::Errno::INVAL);
    // Zero would mean the calling thread, and the library accepts no negative ids.
    if tid <= 0 {
        return Err(invalid());
    }
    let pid = Pid::from_raw(tid).ok_or_else(invalid)?;
    let mut mask = KernelSet::new();
    for cpu in cpus.iter() {
        let cpu = cpu.0 as usize;
        if cpu >= KernelSet::MAX_CPU {
            return Err(invalid());
        }
        mask.set(cpu);
    }
    if cpus.is_empty() {
        return Err(invalid());
    }
    sched_setaffinity(Some(pid), &mask).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;

    #[test]
    fn nonsense_is_refused_before_the_kernel_is_asked() {
        let one: CpuSet = [CpuId(0)].into_iter().collect();
        for (tid, cpus) in [
            (0, one.clone()),
            (-1, one),
            (1, CpuSet::new()),
            (1, [CpuId(4000)].into_iter().collect()),
        ] {
            assert_eq!(
                set_thread_affinity(tid, &cpus).unwrap_err().raw_os_error(),
                Some(libc::EINVAL)
            );
        }
    }
}
