//! Views of a run: they render what `analyze` returns and compute nothing.
//!
//! [`mod@load`] is the only way from a stored run to its summary, so that `report` prints the same as `record`.
#![forbid(unsafe_code)]

mod any_version;
pub mod chart;
mod clocks;
pub mod compare;
mod cpus_because;
mod culprits_chapter;
pub mod doctor;
mod doubts;
mod drawn;
mod ended;
pub mod expected;
pub mod experiment;
pub mod fleet;
mod gate;
pub mod guard;
pub mod html;
mod journal_fault;
pub mod json;
pub mod junit;
mod lines;
pub mod list;
mod load;
pub mod metrics;
mod misfit;
mod number;
pub mod pipeline;
mod profile;
pub mod report;
pub mod selftest;
pub mod sljtest;
pub mod sljtest_json;
mod sources;
mod style;
pub mod text;
pub mod timeline;
pub mod toml_file;
pub mod top;
pub mod tuning;
mod warnings;
mod watch;
mod words;
mod worst_case;

pub use cpus_because::cpus_because;
pub use culprits_chapter::culprits_chapter;
pub use doubts::doubts_text;
pub use drawn::{Drawn, Wanted, load_drawn, load_drawn_with};
pub use gate::{gate_outcome, gate_table};
pub use journal_fault::journal_fault;
pub use lines::{counted, cpus_text};
pub use load::{load, load_by, load_periods, load_redacted, load_stall, load_worst, sum_up};
pub use misfit::pipeline_error;
pub use number::{bytes as size_text, utc};
pub use sources::{record_error, source_words, with_fix};
pub use style::{Style, wrap_whole};
pub use warnings::warning;
pub use watch::{silent_watch, watch_moment, watch_status};
