//! What a run says, as data.
pub mod sljtest;
