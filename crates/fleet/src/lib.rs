//! Many machines: rollups in an object store, queried with engines that exist.
//!
//! A program of its own, so that the measuring program, which root runs, contains no client of a store and stays small. [`upload`] sends the hours of a watch that are over, [`compact`] merges the files of a
//! day, [`schema`] prints the views for an engine, [`report`] asks the user's own DuckDB and judges the answers.
#![forbid(unsafe_code)]

pub mod args;
pub mod compact;
mod connector;
pub mod location;
pub mod problem;
pub mod report;
pub mod schema;
pub mod upload;

pub use location::Location;
pub use problem::{Problem, ProblemKind};
pub use upload::day;
