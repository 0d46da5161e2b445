//! `guard`: whether iterations of a command were contaminated, by what their threads lost to others.
//!
//! Nothing is subtracted from a time, and no iteration is dropped.

mod iteration;
mod series;
mod stolen;
#[cfg(test)]
mod tests;

pub use iteration::{Contamination, Iteration, Made, Unsure};
pub use series::{Headline, Series};
pub use stolen::{Namesakes, Stolen, Thief};
