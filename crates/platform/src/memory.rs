//! Memory that must stay resident, and how much of it there is.

use crate::machine::Machine;

/// Faults in and locks the pages of `memory`, so that a hot loop never waits for them.
///
/// # Errors
/// RLIMIT_MEMLOCK is too small and CAP_IPC_LOCK is missing; the memory is faulted in all the same.
pub fn lock_in_memory<T>(memory: &mut [T]) -> std::io::Result<()> {
    let length = std::mem::size_of_val(memory);
    if length == 0 {
        return Ok(());
    }
    // SAFETY: the range is that of a live slice; locking changes residency, not content.
    unsafe { rustix::mm::mlock(memory.as_mut_ptr().cast(), length) }.map_err(Into::into)
}

/// Makes the allocator keep what it has once got from the kernel. Giving memory back changes the page
/// tables, and the kernel then interrupts every CPU on which this process runs, the measured ones
/// included, to flush their TLBs. All threads share what is kept: one thread's share of its own would serve nobody
/// else, what the draining thread makes is freed by the one that writes, and where there is no such thread next to all of
/// the work is that of one.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        // The largest threshold that glibc accepts on 64 bits (mallopt(3)); -1 switches trimming off.
        const LARGEST_MMAP_THRESHOLD: libc::c_int = 32 << 20;
        // SAFETY: mallopt only sets parameters of the allocator, under its own lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD);
            libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

/// Gives back to the kernel what the allocator keeps and nobody uses. For the moments at which nothing is measured, as
/// [`keep_freed_memory`] says: what was freed by then would lie beside what the next phase takes.
pub fn give_freed_memory_back() {
    // SAFETY: malloc_trim changes nothing but the allocator's free pages, under its own locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// All memory of the process locked, until it is dropped.
#[derive(Debug)]
pub struct LockedMemory(());

impl LockedMemory {
    /// Faults in and locks every page that the process has now; what it maps later is not locked.
    ///
    /// # Errors
    /// RLIMIT_MEMLOCK is too small and CAP_IPC_LOCK is missing.
    pub fn lock() -> std::io::Result<LockedMemory> {
        LockedMemory::all(libc::MCL_CURRENT)
    }

    /// Locks the pages that are resident now, and those of today's mappings that will be: nothing is
    /// faulted in that nobody has touched, so that a large program costs only what it uses.
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

/// The most memory that this process ever had resident, in bytes; 0 where the kernel does not say.
#[must_use]
pub fn peak_rss_bytes() -> u64 {
    status_kib("VmHWM:") * 1024
}

/// The memory that this process has resident now, in bytes.
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

    #[test]
    #[cfg(target_env = "gnu")]
    fn what_was_freed_is_given_back() {
        const PAGES: usize = 4096;
        keep_freed_memory();
        // Small enough for the heap; what is kept behind them keeps it from being its end.
        let blocks: Vec<Vec<u8>> = (0..PAGES).map(|_| vec![1; 4096]).collect();
        let behind = vec![1u8; 4096];
        drop(blocks);
        let kept = resident_bytes();
        give_freed_memory_back();
        let given = kept.saturating_sub(resident_bytes());
        assert!(given > (PAGES as u64) * 4096 / 2, "{given} of {kept} bytes");
        drop(behind);
    }
}
