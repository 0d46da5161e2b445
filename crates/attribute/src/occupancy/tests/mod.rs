//! The machine against simulated CPUs with a known truth.

mod common;
mod differential;
mod healing;
mod memory;
mod older;
mod properties;
mod speed;
