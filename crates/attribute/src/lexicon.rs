//! Names for the addresses and threads that events mention.

use jitterscope_model::{KernelAddr, Name};

/// What a recorder knows of names. Implementations answer the same for the same question within a run.
pub trait Lexicon {
    /// The kernel function at an address; its hexadecimal form when unknown.
    fn function(&self, addr: KernelAddr) -> Name;

    /// The name of a thread, when it was seen.
    fn comm(&self, tid: i32) -> Option<Name>;
}
