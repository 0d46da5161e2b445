//! Threads followed through the scheduler: what became of their time, and who ran instead of them.
//!
//! A spinning probe notices its stalls by itself. Any other thread is followed from outside: its
//! `sched_switch`, `sched_waking` and `sched_migrate_task` records say when it ran, when it was runnable
//! and had no CPU, and when it slept; interrupts that came while it ran took it away without a switch. An
//! [`Episode`] is one stretch of either kind, cut into [`Slice`](crate::Slice)s among those who had the CPU. A slow
//! message between two followed threads is split among their episodes by [`split_message`](crate::split_message).
//!
//! Records of all CPUs come in order of time; nothing here reads a file or a clock.

mod account;
mod closing;
mod cpus;
mod episode;
mod follower;
mod renamed;
mod state;
mod stopped;
mod summed;
mod transitions;

pub use episode::{Episode, EpisodeKind};
pub use follower::{FollowerSettings, Following, ThreadFollower};
pub use state::Start;
