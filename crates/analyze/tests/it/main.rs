//! The crate's integration tests, linked once.

#[path = "../common/mod.rs"]
mod common;

mod cpus;
mod drawn_runs;
mod figures;
mod futility;
mod gate_doubts;
mod gates;
mod machine;
mod periods;
mod profile;
mod recorded_runs;
mod redact;
mod redacted_machine;
mod rows;
mod sides;
mod statements;
mod summary;
mod together;
