//! The machine against CPUs on paper whose truth is known.

mod common;
mod differential;
mod healing;
mod memory;
mod older;
mod properties;
mod speed;
