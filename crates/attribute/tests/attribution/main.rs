//! Attribution against machines on paper.

mod common;
mod exclusion;
mod properties;
mod scenarios;
mod timeline;
mod withheld;
