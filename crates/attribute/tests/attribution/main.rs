//! Attribution on simulated machines.

mod common;
mod exclusion;
mod lateness;
mod properties;
mod recording;
mod scenarios;
mod timeline;
mod withheld;
