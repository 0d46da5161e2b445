//! Attribution against machines on paper.

mod common;
mod properties;
mod scenarios;
