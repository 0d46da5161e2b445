//! The crate's integration tests, linked once.

#[path = "../support/mod.rs"]
mod support;

mod acceptance;
mod advised;
mod audit;
mod docs;
mod drift_and_merge;
mod forged;
mod in_force;
mod killed;
mod real;
mod rollback_only;
mod round_trip;
mod tuning_state;
mod vmstat;
