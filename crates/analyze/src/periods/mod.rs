//! Periods in the times of stalls, for each culprit and CPU.
//!
//! Starts of stalls are a point process, not a sampled signal, so they are tested as one: candidate
//! frequencies come from the spectrum of binned counts, and each is judged on the exact times by the
//! H-test (de Jager, Raubenheimer and Swanepoel 1989; tail probability of de Jager and Büsching 2010),
//! which finds sine waves and narrow pulses alike without being told the shape. The probability is
//! multiplied by the number of frequencies that a blind search would have tried, whatever led to the
//! candidate, and by the number of groups. What a found period explains is taken out (epoch folding)
//! before the next is looked for, and multiples and fractions of a found frequency are not found again.

mod dictionary;
mod gather;
mod htest;
mod rows;
mod search;
mod spectrum;

pub use dictionary::{Known, known};
pub use gather::{Effort, Found, GroupPeriods, PeriodGroup, PeriodSearch};
pub use rows::{PeriodRow, PeriodSummary};
pub use search::{Period, SearchSettings, find};

/// Probability of naming a period where there is none, over a whole measurement.
pub const FALSE_ALARM: f64 = 0.001;
