//! Views of what was measured. They render what `analyze` returns and compute nothing.
pub mod sljtest;
