//! A recording, and what is built upon it.
#![forbid(unsafe_code)]

pub mod selftest;
