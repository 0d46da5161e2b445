//! Threads followed on a machine on paper: two CPUs, events written by hand, one tick a nanosecond.

mod accounts;
mod common;
mod following;
mod messages;
mod properties;
mod scenarios;
mod withheld;
