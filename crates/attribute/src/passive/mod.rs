//! CPUs that are watched in normal operation: any activity other than their owners' work can steal time.
//!
//! There is no probe that could notice a stall. A stall here is a maximal stretch in which a thread that belongs on the
//! CPU had it or was runnable there, and something else ran. `windows::passive` classifies each nanosecond. This module
//! tracks which thread waits for which CPU, joins stretches to stalls, and sums up.
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
