//! Periods in the times of stalls, for each culprit and CPU.
//!
//! Starts of stalls are a point process, not a sampled signal, so they are tested as one. Candidate frequencies come
//! from the spectrum of binned counts. Each is judged on the exact times by the H-test (de Jager, Raubenheimer and
//! Swanepoel 1989; tail probability of de Jager and Büsching 2010), which finds sine waves and narrow pulses alike
//! without knowing the shape. Stalls come in bursts, whose events are not independent, so the test uses blocks of time
//! of every length (`blocks`). The probability is multiplied by the number of frequencies that a blind search would
//! try, whatever led to the candidate, and by the number of groups. The stalls that a found period explains are removed
//! (epoch folding) before the next search, and multiples and fractions of a found frequency are not found again.
//! `regularity` decides whether a clock keeps a period or its phase drifts; if it drifts too far to have a frequency,
//! intervals of equal length still show it (`intervals`).

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

/// The probability of naming a period where there is none, over a whole measurement.
pub const FALSE_ALARM: f64 = 0.001;
