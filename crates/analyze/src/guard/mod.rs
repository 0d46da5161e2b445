//! `guard`: whether iterations of a command were contaminated, by what their threads lost to others.
//!
//! Nothing is subtracted from a time, and no iteration is dropped.

mod baseline;
mod iteration;
pub mod results;
mod series;
mod stolen;
#[cfg(test)]
mod tests;

pub use baseline::{Baseline, BaselineChange};
pub use iteration::{Contamination, Iteration, Made, QuietWait, Unsure};
pub use series::{Headline, Series};
pub use stolen::{Namesakes, Stolen, Thief};
