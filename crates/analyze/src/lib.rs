//! Analyses runs: pure functions from a manifest and rows to a [`RunSummary`].
//!
//! Rows stream through a [`SummaryBuilder`], whose memory does not grow with the run: the table of culprits is capped,
//! and the caller limits the number of the longest stalls. Percentiles come from the counts in the manifest and need no
//! rows. Views render the summary and compute nothing.
#![forbid(unsafe_code)]

mod blame;
mod builder;
pub mod compare;
mod counts;
mod cpu;
mod cpu_summary;
mod culprit_row;
mod culprits;
mod fine;
pub mod fleet;
pub mod gate;
pub mod guard;
mod history;
mod host_time;
mod journal;
mod known_names;
mod line;
mod machine;
pub mod marks;
mod moments;
mod ours;
mod owners;
mod percentiles;
pub mod periods;
pub mod picture;
mod pipeline;
mod price;
mod profile;
mod redact;
mod rows;
mod rows_of;
mod simultaneous;
pub mod sljtest;
mod summary;
mod wakeup;
mod worst;
mod worst_case;

pub use blame::{Blame, BlameLevel, BlameRow};
pub use builder::{SummaryBuilder, timer_frequency};
pub use cpu::SUPPORT;
pub use cpu_summary::{CpuSummary, TotalSummary};
pub use culprit_row::{Common, CulpritRow, SenderRow, common};
pub use fine::FineNanos;
pub use jitterscope_model::DifferenceClass;
pub use journal::{JournalBuilder, JournalDamage, JournalSummary};
pub use known_names::{KnownName, NameList, is_named_like_kernel_thread, known_names};
pub use line::RunLine;
pub use machine::{
    KNOBS, MachineDifference, MachineFact, MachineValue, compare_machines,
    compare_machines_of_runs, machine_facts,
};
pub use ours::RecorderThread;
pub use owners::OwnerRow;
pub use percentiles::Percentiles;
pub use pipeline::{
    ConsumerSummary, Hidden, MESSAGE_LEVELS, PipelineSummary, PublisherSummary, TimesSummary,
};
pub use price::{Price, Taken};
pub use profile::{ProfileCulprit, ProfileVerdict};
pub use redact::Redactor;
pub use rows::{RowSummer, RowSums};
pub use rows_of::RowsOf;
pub use summary::*;
pub use wakeup::{IdleControl, Lateness, PhaseRow, WakeupCpu, WakeupSummary};
pub use worst_case::{Exposed, WorstCase, WorstOfCpu, rate_bound};
