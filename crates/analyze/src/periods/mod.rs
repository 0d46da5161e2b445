//! Periods in the times of stalls, for each culprit and CPU.
//!
//! Starts of stalls are a point process, not a sampled signal, so they are tested as one: candidate
//! frequencies come from the spectrum of binned counts, and each is judged on the exact times by the
//! H-test (de Jager, Raubenheimer and Swanepoel 1989; tail probability of de Jager and Büsching 2010),
//! which finds sine waves and narrow pulses alike without being told the shape. Stalls come in bursts, whose
//! events are not independent, so what the test is made on are blocks of time, of every length (`blocks`).
//! The probability is
//! multiplied by the number of frequencies that a blind search would have tried, whatever led to the
//! candidate, and by the number of groups. What a found period explains is taken out (epoch folding)
//! before the next is looked for, and multiples and fractions of a found frequency are not found again. Whether
//! a clock keeps a period or its phase drifts is told apart (`regularity`); where it drifts too far to have a
//! frequency, intervals of one length still show (`intervals`).

mod blocks;
mod dictionary;
mod gather;
mod htest;
mod intervals;
mod of_kind;
mod regularity;
mod search;
mod spectrum;
mod summary;
mod transform;

pub use dictionary::{Known, TickOf, known};
pub use gather::{Effort, Found, GroupPeriods, PeriodGroup, PeriodSearch};
pub use regularity::Regularity;
pub use search::{Period, SearchSettings, find};
pub use summary::{PeriodRow, PeriodSummary};

/// Probability of naming a period where there is none, over a whole measurement.
pub const FALSE_ALARM: f64 = 0.001;
