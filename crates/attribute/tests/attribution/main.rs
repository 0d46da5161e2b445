//! Attribution against machines on paper.

mod common;
mod properties;
mod scenarios;
mod withheld;
