//! Stalls and kernel events in, culprits out: a pure function.
//!
//! Nothing here reads a file or a clock. All external data (names of addresses and of threads) comes through
//! [`NameResolver`], so a stored run can be attributed again on any machine.
//!
//! One machine per CPU (`occupancy`) keeps the CPU's stack and assigns each nanosecond to a frame. `windows` queries it
//! for each kind of stall: a spinning probe's gap, whose edges (lead, holes, trail) are granted to their neighbours up
//! to a measured cost; a late wake-up; a thread's wait; a slow message; a CPU that is only watched. `threads` is a
//! second stage over all CPUs: the threads that were runnable and did not run. What no record explains is classified by
//! exclusion. See `docs/attribution.md`.
#![forbid(unsafe_code)]

mod align;
mod attributor;
mod bandwidth;
mod block_reasons;
mod calls;
mod coincidence;
mod costs;
mod culprits;
mod feed;
mod frequencies;
mod instead;
mod lateness;
mod measured_cpu;
mod name_resolver;
mod occupancy;
mod part_sums;
mod passive;
mod senders;
mod sent;
mod subjects;
mod tally;
mod threads;
mod uncharged;
mod view;
mod windows;

pub use align::{AlignError, Alignment, ClockMap, CpuTimes, Guess, Rates, align};
pub use attributor::{Attributor, AttributorSettings, OutsideHints};
pub use bandwidth::{Bandwidth, GroupThrottled};
pub use calls::{with_calls, with_instants};
pub use costs::{Edge, EdgeCost, EdgeCosts};
pub use frequencies::FrequencyChanges;
pub use name_resolver::NameResolver;
pub use passive::{Belonging, PassiveSettings, PassiveStall, PassiveWatch, Shares};
pub use senders::Senders;
pub use tally::EventTally;
pub use threads::{Episode, EpisodeKind, FollowerSettings, Following, Start, ThreadFollower};
pub use view::{TimelineOf, timeline_rows};
pub use windows::{MessageWindow, SharedCulprit, Slice, split_message};
