//! The program's memory: its allocator's heap, and the pages of its code.
//!
//! Returning memory to the kernel changes page tables, and the kernel then interrupts every CPU on which this process
//! runs, the measured ones included, to flush their TLBs. So the allocator keeps its memory during a measurement and
//! returns it in between. It is dlmalloc in every build: musl's own allocator maps and unmaps all the time
//! (docs/price.md).

use crate::allocated::count;
use crate::machine::Machine;
use dlmalloc::Dlmalloc;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether freed memory stays with the allocator.
static KEPT: AtomicBool = AtomicBool::new(false);
/// All threads share one heap: the writer thread frees what the drain thread allocates.
static HEAP: Mutex<Dlmalloc<Pages>> = Mutex::new(Dlmalloc::new_with_allocator(Pages));

/// The program's allocator, for its `#[global_allocator]`.
#[derive(Debug)]
pub struct Allocator;

fn heap() -> MutexGuard<'static, Dlmalloc<Pages>> {
    // No code panics while it holds the lock.
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counted(block: *mut u8, layout: Layout) -> *mut u8 {
    if !block.is_null() {
        count(layout.size(), 1);
    }
    block
}

// SAFETY: dlmalloc returns blocks of the size and alignment asked for, which overlap no other block; it is called by one
// thread at a time. The layouts that it is given are those of the blocks.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and alignment of a layout are allowed.
        counted(
            unsafe { heap().malloc(layout.size(), layout.align()) },
            layout,
        )
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller had the block from this heap, with this layout.
        unsafe { heap().free(block, layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and alignment of a layout are allowed.
        counted(
            unsafe { heap().calloc(layout.size(), layout.align()) },
            layout,
        )
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller had the block from this heap, with this layout.
        let moved = unsafe { heap().realloc(block, layout.size(), layout.align(), size) };
        if !moved.is_null() {
            count(layout.size(), -1);
            count(size, 1);
        }
        moved
    }
}

struct Pages;

// SAFETY: each region is a mapping of its own, private and zero; none is unmapped but by the heap that had it.
unsafe impl dlmalloc::Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at a place that the kernel chooses.
        match unsafe { mmap_anonymous(null_mut(), size, access, flags) } {
            Ok(region) => (region.cast(), size, 0),
            Err(_) => (null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, region: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: the heap gives up the end of a region of its own.
        unsafe { munmap(region.wrapping_add(new).cast(), old - new) }.is_ok()
    }

    fn free(&self, region: *mut u8, size: usize) -> bool {
        // SAFETY: the heap gives up a region of its own.
        unsafe { munmap(region.cast(), size) }.is_ok()
    }

    fn can_release_part(&self, _: u32) -> bool {
        !KEPT.load(Ordering::Relaxed)
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

/// Makes the allocator keep all memory that it gets from the kernel, from now on.
pub fn keep_freed_memory() {
    KEPT.store(true, Ordering::Relaxed);
}

/// Returns the allocator's unused memory to the kernel, and drops the touched pages of the program's code; the next
/// phase maps again the ones it calls. Call it only when nothing is measured.
pub fn give_memory_back() {
    let kept = KEPT.swap(false, Ordering::Relaxed);
    // SAFETY: only what no block lies in is unmapped.
    unsafe { heap().trim(0) };
    KEPT.store(kept, Ordering::Relaxed);
    forget_code();
}

/// Drops the touched pages of the program's code. The kernel maps 64 KiB of a file around each page that is touched.
/// The next phase never calls most of the code that setup or report has touched, out of some 18 MiB.
fn forget_code() {
    let maps = Machine::host().read("/proc/self/maps").unwrap_or_default();
    for (start, length) in maps.lines().filter_map(code) {
        // SAFETY: the mapping is of a file that nobody may write to through it, so that every page reads the same when it
        // is touched the next time.
        let _ = unsafe { madvise(start as *mut _, length, Advice::LinuxDontNeed) };
    }
}

/// Start and length of a mapping that holds a file's code: `55d0-55e0 r-xp 0000 fe:00 12 /usr/bin/x`.
fn code(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, access) = (words.next()?, words.next()?);
    if access != "r-xp" || !words.nth(3)?.starts_with('/') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::resident_bytes;
    use std::slice::from_raw_parts_mut;

    const BLOCK: Layout = Layout::new::<[u8; 4096]>();

    fn block(fill: u8) -> *mut u8 {
        // SAFETY: the layout is not empty; the block is written within its size.
        unsafe {
            let block = Allocator.alloc(BLOCK);
            assert!(!block.is_null());
            from_raw_parts_mut(block, BLOCK.size()).fill(fill);
            block
        }
    }

    #[test]
    fn freed_memory_stays_until_it_is_given_back() {
        const BLOCKS: usize = 4096;
        keep_freed_memory();
        let blocks: Vec<*mut u8> = (0..BLOCKS).map(|_| block(1)).collect();
        for block in blocks {
            // SAFETY: each was allocated above with this layout.
            unsafe { Allocator.dealloc(block, BLOCK) };
        }
        let kept = resident_bytes();
        give_memory_back();
        let given = kept.saturating_sub(resident_bytes());
        assert!(
            given > (BLOCKS as u64) * 4096 / 2,
            "{given} of {kept} bytes"
        );
    }

    #[test]
    fn blocks_hold_what_was_written_when_they_grow_and_shrink() {
        let first = block(7);
        let beside = block(9);
        // SAFETY: the blocks are of this layout; each is read within the size that it was given last.
        unsafe {
            let grown = Allocator.realloc(first, BLOCK, 1 << 20);
            assert!(
                from_raw_parts_mut(grown, 4096)
                    .iter()
                    .all(|byte| *byte == 7)
            );
            let large = Layout::from_size_align(1 << 20, BLOCK.align()).unwrap();
            let shrunk = Allocator.realloc(grown, large, 16);
            assert_eq!(from_raw_parts_mut(shrunk, 16), [7; 16]);
            assert!(
                from_raw_parts_mut(beside, 4096)
                    .iter()
                    .all(|byte| *byte == 9)
            );
            Allocator.dealloc(shrunk, Layout::from_size_align(16, BLOCK.align()).unwrap());
            Allocator.dealloc(beside, BLOCK);
            let aligned = Layout::from_size_align(100, 1 << 16).unwrap();
            let zeroed = Allocator.alloc_zeroed(aligned);
            assert_eq!(zeroed as usize % (1 << 16), 0);
            assert_eq!(from_raw_parts_mut(zeroed, 100), [0; 100]);
            Allocator.dealloc(zeroed, aligned);
        }
    }

    #[test]
    fn only_code_of_files_is_forgotten() {
        assert_eq!(
            code("7f00-7f80 r-xp 00001000 fe:00 12   /usr/bin/x y"),
            Some((0x7f00, 0x80))
        );
        for line in [
            "7f00-7f80 r--p 00001000 fe:00 12 /usr/bin/x",
            "7f00-7f80 r-xp 00000000 00:00 0 [vdso]",
            "7f00-7f80 r-xp 00000000 00:00 0",
            "7f00 r-xp",
            "",
        ] {
            assert_eq!(code(line), None, "{line}");
        }
        forget_code();
    }
}
