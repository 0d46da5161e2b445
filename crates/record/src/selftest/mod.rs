//! Whether a recording finds and names disturbances that were injected on purpose.
//!
//! Pure: the children's logs ([`jitterscope_platform::disturb`]), the stalls and their attributions go in,
//! a report comes out. Starting children and recording them is the caller's.

mod report;
mod score;
mod text;

pub use report::{SelftestReport, SelftestRow, SkippedKind, WrongVerdict};
pub use score::{Episode, PASS_PERCENT, score};
pub use text::render_text;

#[cfg(test)]
mod tests;
