//! Threads followed on a simulated machine: two CPUs, hand-written events, one tick per nanosecond.

mod accounts;
mod common;
mod following;
mod messages;
mod properties;
mod quotas;
mod renames;
mod scenarios;
mod sleeps;
mod switches;
mod withheld;
