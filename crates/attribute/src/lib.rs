//! Stalls and kernel events in, culprits out: a pure function.
//!
//! Nothing here reads a file or a clock. What the function needs of the outside (names of addresses and
//! of threads) comes through [`Lexicon`], so that a stored run can be attributed again on any machine.
//!
//! The path of one stall: its events are folded into nested [`frames`](Timeline), each nanosecond goes to
//! the innermost frame, the edges (lead, holes, trail) are granted to their neighbours up to a measured
//! cost, and what is left is classified by exclusion. See `docs/attribution.md`.
#![forbid(unsafe_code)]

mod attributor;
mod costs;
mod culprits;
mod lexicon;
#[allow(dead_code, unused_imports)] // The windows move onto it next.
mod occupancy;
mod senders;
mod split;
mod tally;
mod threads;
mod timeline;
mod view;
mod wakeup;

pub use attributor::{Attributor, AttributorSettings, OutsideHints};
pub use costs::{Edge, EdgeCost, EdgeCosts};
pub use lexicon::Lexicon;
pub use senders::Senders;
pub use tally::EventTally;
pub use threads::{
    Episode, EpisodeKind, FollowerSettings, Following, MessageWindow, Slice, Start, ThreadFollower,
    split_message,
};
pub use timeline::{Frame, Timeline};
pub use view::timeline_rows;
pub use wakeup::{attribute_wakeup, split_wakeup};
