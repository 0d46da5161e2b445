//! CPUs that are watched while they do what they do: all that is not the work that belongs there steals.
//!
//! No probe runs, so nobody notices a stall. A stall here is a stretch, as long as can be, in which something
//! that belongs on the CPU had it or could have had it, and something else ran. `windows::passive` says of each
//! nanosecond what it was; here it is kept who waits for which CPU, stretches become stalls, and all is summed.
//!
//! Records of all CPUs come in order of time; nothing here reads a file or a clock.

mod account;
mod cpu;
mod members;
mod settings;
mod shares;
mod stall;
mod watch;

pub use members::Belonging;
pub use settings::PassiveSettings;
pub use shares::Shares;
pub use stall::PassiveStall;
pub use watch::PassiveWatch;

#[cfg(test)]
mod tests;
