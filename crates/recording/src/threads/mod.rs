//! Follows threads of other processes: for `attach`, and for the causes of slow messages.

mod attach;
mod episode_rows;
mod event_run;
mod follow;
mod followed;
mod settings;

pub use attach::attach;
pub use followed::FollowError;
pub use settings::{AttachSettings, Followed};

pub(crate) use attach::{MOST_OF_NAME, MOST_THREADS};
pub(crate) use episode_rows::{EpisodeRows, INTERVAL};
pub(crate) use event_run::{EventRun, JOIN_WITHIN, MakesRows};
pub(crate) use follow::{Follow, InOrder, TakesRecords, kept};
pub(crate) use followed::{Found, threads as threads_of};
