//! The crate's integration tests, linked once.

#[path = "../common/bombs.rs"]
mod bombs;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/tables.rs"]
mod tables;

mod directory;
mod docs;
mod filled_memory;
mod found;
mod full_disk;
mod hostile;
mod killed;
mod manifest;
mod sink;
mod trace_by_time;
mod turns;
