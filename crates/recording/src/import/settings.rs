//! Resolved settings of an import.

use crate::passive::Owners;
use jitterscope_model::{CpuSet, Nanos};
use std::path::PathBuf;

/// Whose stalls are wanted: a file has no probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Victim {
    /// CPUs, and the threads that belong there.
    Cpus { cpus: CpuSet, owners: Owners },
    /// A thread by its id, with the threads that it begins.
    Process(i32),
    /// Every thread with this name.
    Named(String),
}

#[derive(Clone, Debug)]
pub struct ImportSettings {
    pub file: PathBuf,
    /// `None`: the import says what the file offers.
    pub victim: Option<Victim>,
    /// The tracing instance whose buffer is read; `None`: the only one with records.
    pub buffer: Option<String>,
    /// Rate of the file's TSC, if the file does not state it.
    pub tsc_hz: Option<u64>,
    /// Whether the file was recorded in a virtual machine: then time beyond what the scheduler charged may be the
    /// host's.
    pub virtual_machine: bool,
    /// Whether processes that a followed one makes are followed, too.
    pub children: bool,
    /// Shorter stalls get no row; `None`: as in a recording of the same kind.
    pub threshold: Option<Nanos>,
    /// Maximum size of the stored raw trace, bytes.
    pub trace_limit_bytes: u64,
    /// The user's label for the configuration.
    pub label: String,
    /// The directory for runs.
    pub runs_dir: PathBuf,
    /// The command line, for the manifest.
    pub command_line: Vec<String>,
}
