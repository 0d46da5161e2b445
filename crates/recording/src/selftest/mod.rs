//! Tests whether a recording finds and names disturbances that were injected on purpose.
//!
//! [`score()`] is pure: it turns the children's logs ([`jitterscope_inject`]), the stalls and their attributions into a
//! report. [`run()`] starts the children and records them.

mod report;
mod run;
mod score;

pub use report::{
    Instead, PASS_PERCENT, SelftestReport, SelftestRow, Shortfall, SkipCause, SkippedKind,
    WrongVerdict,
};
pub use run::{SelftestError, SelftestSettings, SelftestStep, Selftested, run};
pub use score::{Episode, score};

#[cfg(test)]
mod tests;
