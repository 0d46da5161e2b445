//! Recording without a probe: CPUs are watched while they run their usual threads.

mod owners;
mod recording;
mod settings;

pub use recording::{record_passive, watch_passive};
pub use settings::{Owners, PassiveRecordSettings};

pub(crate) use recording::{kept, of_watch, take_in, watching};
