//! The black box: a recording without end, of which a run is saved around a moment that mattered.
//!
//! The recording is a chain of sections, each an ordinary run in a hidden folder (`engine/section.rs`). The oldest are
//! dropped, so memory and disk are bounded; hourly sums outlive them (`hours`). A trigger (`triggers`) comes from a
//! condition (`judge`), the application, a mark in the trace, a signal or a person (`requests`, `control`). When the
//! seconds after it are over, the section ends early, and a thread of its own (`worker`) cuts an ordinary run out of the
//! closed sections (`cut`). Events stay enabled and probes go on throughout: nothing is switched at a trigger or at a
//! border.

mod control;
mod cut;
mod history;
mod hour;
mod hours;
mod judge;
mod left;
mod live;
mod published;
mod requests;
mod rollup_host;
mod running;
mod settings;
mod slots;
mod status;
mod totals;
mod triggers;
mod worker;

pub use control::{Request, SocketError, ask, bind_trusted, running};
pub use hours::{HourCulprit, HourSums};
pub use judge::{NotDecidable, decidable};
pub use left::{EndedHistory, LeftHistory, end_left_histories, left_histories};
pub use live::{Live, LiveCpu, LiveCulprit, LiveStall, LiveSum, LiveSums, LiveView, SECONDS};
pub use published::Published;
pub use running::{Attend, Watch};
pub use settings::{Action, ActionError, WatchSettings, actions};
pub use slots::OTHER;
pub use status::{HistoryStatus, LostRecords, Reply, WatchStatus};
pub use totals::{BOUNDS, Totals, UNATTRIBUTED};
pub use triggers::TriggerCounts;

use jitterscope_analyze::gate::GateResult;
use jitterscope_model::{Nanos, SavedMoment};
use std::path::PathBuf;

/// The length of a recording that a watch divides into sections.
pub const ENDLESS: Nanos = crate::engine::NEVER;

/// What a watch has to say while it runs.
#[derive(Debug)]
pub enum Report {
    /// A moment is going to be saved.
    Triggered(SavedMoment),
    /// The run of a moment.
    Saved(PathBuf),
    /// A condition could not be decided, for the first time.
    Undecided(Box<GateResult>),
    /// Something failed; the watch goes on.
    Trouble(String),
}

/// Why there is no watch.
#[derive(Debug, thiserror::Error)]
pub enum NoWatch {
    #[error(transparent)]
    Claimed(#[from] jitterscope_platform::CpuClaimed),
    #[error(transparent)]
    Store(#[from] jitterscope_store::StoreError),
    /// The socket of `--socket`.
    #[error(transparent)]
    Socket(SocketError),
    /// The socket for `watch save` and the like.
    #[error(transparent)]
    Control(SocketError),
    /// The history has less room than one saved run may take.
    #[error(
        "--disk {} MiB is less than one saved run may take with these CPUs, --before and --after: give it {} MiB or more",
        given >> 20,
        least.div_ceil(1 << 20)
    )]
    Disk {
        given: u64,
        /// The least limit, bytes.
        least: u64,
    },
    /// The history would end before the seconds before a trigger begin.
    #[error("--keep {given} is shorter than what a saved run needs: give it {least} or more")]
    Keep { given: Nanos, least: Nanos },
}
