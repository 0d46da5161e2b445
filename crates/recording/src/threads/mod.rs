//! Threads of others, followed: `attach`, and the evidence behind slow messages.

mod attach;
mod follow;
mod rows;
mod settings;
mod target;

pub use attach::{attach, attach_to};
pub use settings::{AttachSettings, Target};
pub use target::TargetError;

pub(crate) use follow::{Follow, InOrder, TakesRecords};
pub(crate) use rows::EpisodeRows;
pub(crate) use target::threads as threads_of;
