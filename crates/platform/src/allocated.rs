//! How much memory a thread holds: what it has allocated minus what it has freed.
//!
//! A program that reads files of unknown origin checks this while it reads, and stops before its memory is full.

use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated minus bytes that it has freed. Negative if it frees what other threads
/// allocated. Always zero in programs that do not use [`crate::Allocator`].
#[must_use]
pub fn allocated() -> isize {
    ALLOCATED.with(Cell::get)
}

/// Counts memory that this thread allocated (`sign` 1) or freed (-1).
pub(crate) fn count(bytes: usize, sign: isize) {
    // A thread that is about to end no longer counts. No allocation is larger than `isize::MAX`.
    let _ = ALLOCATED.try_with(|all| {
        let bytes = sign.wrapping_mul(bytes.cast_signed());
        all.set(all.get().wrapping_add(bytes));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static COUNTED: crate::Allocator = crate::Allocator;

    #[test]
    fn what_a_thread_has_is_counted_and_what_it_gives_back_is_not() {
        let before = allocated();
        let mut bytes: Vec<u8> = Vec::with_capacity(1000);
        assert_eq!(allocated() - before, 1000);
        bytes.reserve_exact(5000);
        assert_eq!(allocated() - before, 5000);
        let zeros = vec![0u64; 100];
        assert_eq!(allocated() - before, 5800);
        drop((bytes, zeros));
        assert_eq!(allocated() - before, 0);
        // Other threads' allocations do not count here.
        let _large = vec![1u8; 1 << 20];
        let others = std::thread::spawn(allocated).join().unwrap();
        assert!(others < 1 << 19, "{others}");
    }
}
