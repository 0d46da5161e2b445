//! What a run says, as data.
pub mod periods;
pub mod sljtest;
