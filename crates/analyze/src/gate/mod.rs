//! Conditions that a run must not meet: `wait.p99.9>50us, max>1ms, culprit(kworker)>0.1%`.
//!
//! A condition is exceeded, kept, or undecided (too few samples, a missing source, lost trace). An undecided condition
//! never passes.

mod changes;
mod condition;
mod doubts;
mod evaluate;
mod names;
mod owner;
mod parse;
mod pattern;
mod quantities;
mod reason;
mod value;
mod watched;

pub use changes::evaluate_changes;
pub use condition::{Change, Condition, Limit, Operator, Percentile, Quantity};
pub(crate) use doubts::{Unseen, hides_longer};
pub use evaluate::{GateResult, GateVerdict, evaluate};
pub use names::check_name;
pub use parse::{ParseError, parse};
pub use pattern::is_meant;
pub use reason::{
    Counted, GateNote, GateReason, GateSource, InsteadOfSpinning, MoreRuns, SourceDoubt,
};
pub use value::{Changed, GateValue, SeenChange};
pub use watched::{Watched, parse_watched};
