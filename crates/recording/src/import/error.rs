//! Why nothing was imported.

use jitterscope_attribute::AlignError;
use jitterscope_model::{CpuSet, SinkError, visible};
use jitterscope_platform::{AccessError, is_full};
use jitterscope_source::ContextError;
use jitterscope_source::ctf::CtfError;
use jitterscope_source::perfdata::PerfDataError;
use jitterscope_source::perfetto::PerfettoError;
use jitterscope_source::tracedat::{RetimeError, TraceDatError};
use jitterscope_store::StoreError;
use std::io;
use std::path::{Path, PathBuf};

/// An import that made no run.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be opened.
    #[error("{}: {source}", visible(&path.to_string_lossy()))]
    File { path: PathBuf, source: io::Error },
    /// The file is not one that we read.
    #[error("{}: {source}", visible(&path.to_string_lossy()))]
    Format {
        path: PathBuf,
        source: TraceDatError,
    },
    /// The file is a `perf.data` that we do not read.
    #[error("{}: {source}", visible(&path.to_string_lossy()))]
    PerfData {
        path: PathBuf,
        source: PerfDataError,
    },
    /// The file is a trace of Perfetto that we do not read.
    #[error("{}: {source}", visible(&path.to_string_lossy()))]
    Perfetto {
        path: PathBuf,
        source: PerfettoError,
    },
    /// The folder is a CTF trace that we do not read.
    #[error("{}: {source}", visible(&path.to_string_lossy()))]
    Ctf { path: PathBuf, source: CtfError },
    /// The file contradicts itself.
    #[error("{}: {source}", visible(&file.to_string_lossy()))]
    Damaged { file: PathBuf, source: RetimeError },
    /// The folder holds no trace.
    #[error(
        "{} is a folder without a file named metadata. import reads a folder if it is a CTF trace: name the one with \
         that file, such as kernel/ of an LTTng session",
        visible(&path.to_string_lossy())
    )]
    NoTrace { path: PathBuf },
    /// There is no file for the pages that are made of its records.
    #[error(
        "the folder {} takes no temporary file, which the records need: {source}. Name another one with --runs",
        visible(&dir.to_string_lossy())
    )]
    Temporary { dir: PathBuf, source: AccessError },
    /// Its pages or its events are not described so that they can be decoded.
    #[error("this is {file}, but its records cannot be decoded: {source}")]
    Described { file: String, source: ContextError },
    #[error("reading the file: {0}")]
    Read(#[from] io::Error),
    /// The run cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Rows(#[from] SinkError),
    /// Its times are of no clock that we know.
    #[error("this is {file}, whose times are of the clock '{clock}': {advice}")]
    Clock {
        file: String,
        clock: String,
        advice: &'static str,
    },
    /// There is nothing in it.
    #[error("this is {file}, and it holds no record: there is nothing to import")]
    Empty { file: String },
    /// Several buffers hold records.
    #[error(
        "this is {file}, with records in several buffers: {buffers}. Choose one: --buffer NAME"
    )]
    Buffers { file: String, buffers: String },
    /// There is no such buffer.
    #[error("this is {file}, and it has no records in a buffer '{name}'; it has {buffers}")]
    NoBuffer {
        file: String,
        name: String,
        buffers: String,
    },
    /// Its tables want more memory than any real file does.
    #[error(
        "this is {file}, but it claims {streams} CPUs with pages of {page_size} bytes, which cannot be"
    )]
    Implausible {
        file: String,
        streams: usize,
        page_size: u32,
    },
    /// The user named no victim.
    #[error(
        "this is {file}. Its records say nothing of a probe, so name whose stalls you want: {offers}"
    )]
    NoVictim { file: String, offers: String },
    /// Nothing shows who had a CPU.
    #[error(
        "this is {file}, and it has no record of sched:sched_switch, which shows who had a CPU. Record again with it: \
         {how}"
    )]
    NoSwitches { file: String, how: &'static str },
    /// No thread of the name or id is in it.
    #[error("this is {file}, and {who} is in none of its records. {offers}")]
    NotThere {
        file: String,
        who: String,
        offers: String,
    },
    /// It has no records of the CPUs.
    #[error("this is {file}, and it has no records of CPU {cpus}; it has some of CPU {there}")]
    NoCpus {
        file: String,
        cpus: CpuSet,
        there: CpuSet,
    },
    /// No thread had the CPUs.
    #[error(
        "this is {file}, and no thread but the kernel's own had CPU {cpus}; name the threads that belong there: \
         --for NAME or --for PID"
    )]
    NoOwner { file: String, cpus: CpuSet },
    /// Only a spinning probe's stalls contain every record of its CPU.
    #[error(
        "the run {run} has no spinning probe, and only such a probe's stalls show where another trace belongs. Name a run \
         of 'record' or 'record spin' (--probe spin), or import the file alone"
    )]
    NoSpinningProbe { run: String },
    /// The clocks of the file and of the run cannot be aligned.
    #[error("this is {file}, and its clock cannot be aligned with that of the run {run}: {source}")]
    NotAligned {
        file: String,
        run: String,
        source: AlignError,
    },
    /// The disk is full.
    #[error(
        "there is no room left for the run; nothing is kept. Free some space, or name another folder with --runs"
    )]
    NoRoom,
    /// The user ended it.
    #[error("interrupted; nothing is kept")]
    Interrupted,
}

impl ImportError {
    /// The temporary file in a folder of runs cannot be made.
    pub(super) fn temporary(dir: &Path, source: AccessError) -> ImportError {
        let dir = dir.to_owned();
        ImportError::Temporary { dir, source }
    }

    /// The temporary file in a folder of runs cannot be written.
    pub(super) fn of_pages(dir: &Path, source: io::Error) -> ImportError {
        if is_full(source.kind()) {
            return ImportError::NoRoom;
        }
        let path = dir.to_owned();
        ImportError::temporary(dir, AccessError::Io { path, source })
    }
}
