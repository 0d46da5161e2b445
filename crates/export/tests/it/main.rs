//! The crate's integration tests, linked once.

#[path = "../common/mod.rs"]
mod common;
#[path = "../dashboard/mod.rs"]
mod dashboard;
#[path = "../perfetto_reader/mod.rs"]
mod perfetto_reader;

mod conformance;
mod ctf;
mod duckdb;
mod files;
mod formats;
mod grafana;
mod influxdb;
mod java;
mod perfetto;
mod tracedat;
