//! The crate's integration tests, linked once.

#[path = "../../../view/tests/common/mod.rs"]
mod common;
#[path = "../fakes/mod.rs"]
mod fakes;

mod block;
mod engine;
mod screen;
