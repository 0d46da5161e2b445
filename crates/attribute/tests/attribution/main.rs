//! Attribution against machines on paper.

mod common;
mod exclusion;
mod lateness;
mod properties;
mod scenarios;
mod timeline;
mod withheld;
