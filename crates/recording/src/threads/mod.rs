//! Threads of others, followed: `attach`, and the evidence behind slow messages.

mod attach;
mod follow;
mod followed;
mod rows;
mod settings;

pub use attach::{attach, attach_to};
pub use followed::FollowError;
pub use settings::{AttachSettings, Followed};

pub(crate) use follow::{Follow, InOrder, TakesRecords};
pub(crate) use followed::threads as threads_of;
pub(crate) use rows::EpisodeRows;
