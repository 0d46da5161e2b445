//! Memory that must stay resident, and how much of it there is.

use crate::machine::Machine;

/// Faults in and locks the pages of `memory`, so that a hot loop never waits for them.
///
/// # Errors
/// RLIMIT_MEMLOCK is too small and CAP_IPC_LOCK is missing; the memory is still faulted in.
pub fn lock_in_memory<T>(memory: &mut [T]) -> std::io::Result<()> {
    let length = std::mem::size_of_val(memory);
    if length == 0 {
        return Ok(());
    }
    // SAFETY: the range is that of a live slice; locking changes residency, not content.
    unsafe { rustix::mm::mlock(memory.as_mut_ptr().cast(), length) }.map_err(Into::into)
}

/// All memory of the process, locked until this is dropped.
#[derive(Debug)]
pub struct LockedMemory(());

impl LockedMemory {
    /// Faults in and locks every page that the process has now; later mappings are not locked.
    ///
    /// # Errors
    /// RLIMIT_MEMLOCK is too small and CAP_IPC_LOCK is missing.
    pub fn lock() -> std::io::Result<LockedMemory> {
        LockedMemory::all(libc::MCL_CURRENT)
    }

    /// Locks the resident pages of all current mappings, and the other pages as they become resident. It faults in no
    /// untouched page, so a large program costs only what it uses.
    ///
    /// # Errors
    /// As [`LockedMemory::lock`].
    pub fn lock_resident() -> std::io::Result<LockedMemory> {
        LockedMemory::all(libc::MCL_CURRENT | libc::MCL_ONFAULT)
    }

    fn all(flags: libc::c_int) -> std::io::Result<LockedMemory> {
        // SAFETY: locking changes residency, not content.
        let result = unsafe { libc::mlockall(flags) };
        if result == 0 {
            Ok(LockedMemory(()))
        } else {
            Err(std::io::Error::last_os_error())
        }
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // SAFETY: as for locking. It cannot fail for a process that was allowed to lock.
        unsafe { libc::munlockall() };
    }
}

fn status_kib(field: &str) -> u64 {
    let status = Machine::host()
        .read("/proc/self/status")
        .unwrap_or_default();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix(field))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// The peak resident memory of this process, in bytes; 0 if the kernel does not tell.
#[must_use]
pub fn peak_rss_bytes() -> u64 {
    status_kib("VmHWM:") * 1024
}

/// The current resident memory of this process, in bytes.
#[must_use]
pub fn resident_bytes() -> u64 {
    status_kib("VmRSS:") * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_seen() {
        assert!(resident_bytes() > 100_000);
        assert!(peak_rss_bytes() >= resident_bytes() / 2);
        assert!(lock_in_memory(&mut [0u64; 512]).is_ok());
    }
}
