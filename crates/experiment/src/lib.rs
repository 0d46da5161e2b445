//! Tests whether a change helps: measures the same thing with it and without it, in pairs of random order.
//!
//! [`run`] makes the pairs. It applies and reverts a [`Change`], waits until either is in force, and lets a [`Runner`]
//! make a run. It evaluates the runs after the pairs that [`Looks`](jitterscope_analyze::compare::Looks) sets, and
//! restores the machine. If the program is killed, a separate process restores it. A [`Session`] contains what was
//! measured, and an experiment resumes from it.
#![forbid(unsafe_code)]

mod arm;
mod auto_plan;
mod boot_arm;
mod boot_change;
mod change;
mod engine;
mod error;
mod estimate;
mod knobs;
mod leader;
mod manual_change;
mod not_tried;
mod note;
mod note_error;
mod pace;
mod predicted;
mod screen;
mod session;
mod void_reason;

pub use arm::{Arm, order};
pub use auto_plan::{AutoPlan, Candidate, Step, StepRuns};
pub use boot_arm::BootArm;
pub use boot_change::{BootChange, Difference, Surroundings};
pub use change::{Change, CommandChange, Declared, InForceIn, NoChange};
pub use engine::{
    Asked, Decision, Ended, Experiment, Observer, Outcome, Rules, Runner, Verified, interleaves,
    run,
};
pub use error::{CommandFailure, ExperimentError, Untried};
pub use estimate::{Estimate, Known, OverheadFrom, RunOverhead, estimate, runs_take};
pub use knobs::KnobChange;
pub use leader::Leader;
pub use manual_change::ManualChange;
pub use not_tried::NotTried;
pub use note::{Note, Notes};
pub use note_error::NoteError;
pub use pace::Pace;
pub use predicted::Predicted;
pub use screen::{NotKept, Screened, screen};
pub use session::{BlockRun, Chosen, Header, Pair, SESSION_VERSION, Session};
pub use void_reason::VoidReason;
