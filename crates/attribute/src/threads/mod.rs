//! Threads that are followed through the scheduler: how they spent their time, and what ran instead of them.
//!
//! A spinning probe notices its stalls by itself. Any other thread is followed from outside: its `sched_switch`,
//! `sched_waking` and `sched_migrate_task` records show when it ran, when it was runnable without a CPU, and when it
//! slept; interrupts during its turn took time without a switch. An [`Episode`] is a wait or an interruption, cut into
//! [`Slice`](crate::Slice)s by what had the CPU. [`split_message`](crate::split_message) splits a slow message between
//! two followed threads among their episodes.
//!
//! Records of all CPUs come in order of time; nothing here reads a file or a clock.

mod account;
mod closing;
mod cpus;
mod episode;
mod follower;
mod freezes;
mod renamed;
mod sleeps;
mod state;
mod stopped;
mod summed;
mod transitions;

pub use episode::{Episode, EpisodeKind};
pub use follower::{FollowerSettings, Following, ThreadFollower};
pub use state::Start;
