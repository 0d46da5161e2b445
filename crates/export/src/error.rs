//! Errors of an export.

use jitterscope_model::{CpuId, CpuSet, SinkError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a destination is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// There is no `SCHEME://`.
    #[error(
        "'{0}' is no target: write SCHEME://PLACE, for example csv://stalls.csv or influx://localhost:8089"
    )]
    NoScheme(String),
    /// The scheme is unknown.
    #[error("'{scheme}://' is not known; there are {known}")]
    Scheme { scheme: String, known: String },
    /// The place is incomplete.
    #[error("'{target}': {missing}")]
    Incomplete {
        target: String,
        /// What is missing, and an example.
        missing: &'static str,
    },
    #[error("'{target}': '{option}' is no option of it; there is {known}")]
    Option {
        target: String,
        option: String,
        known: &'static str,
    },
    #[error("'{target}': '{option}' is given twice")]
    OptionTwice { target: String, option: String },
    #[error("'{0}' is given twice: two targets cannot be written to one place")]
    Twice(String),
    #[error("'{target}': {option} cannot be '{value}'")]
    Value {
        target: String,
        option: &'static str,
        value: String,
    },
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What the run holds cannot be redacted.
    #[error(
        "{0}:// copies what the run holds, names and all: with --redact take csv:// or json://"
    )]
    NamesInCopy(&'static str),
    /// The run kept no trace.
    #[error("the run kept no kernel events, so there is nothing to write")]
    NoTrace,
    #[error("{} cannot be written: {source}{}", path.display(), to_do(source))]
    File { path: PathBuf, source: io::Error },
    /// The server's name does not resolve.
    #[error("'{host}' cannot be resolved: {source}")]
    Resolve { host: String, source: io::Error },
    /// This build has no TLS.
    #[error(
        "{url} needs TLS, which this jitterscope was built without (--no-default-features): build it with \
         --features tls"
    )]
    WithoutTls { url: String },
    /// The server is unreachable.
    #[error("{url} cannot be reached: {why}{hint}")]
    Unreachable {
        url: String,
        why: String,
        /// Advice for the user, if there is any.
        hint: &'static str,
    },
    /// The server rejects the data.
    #[error("{url} refused ({status}): {why}{hint}")]
    Refused {
        url: String,
        status: u16,
        why: String,
        /// Advice for the user, if there is any.
        hint: &'static str,
    },
    /// The token cannot be read.
    #[error("the token file {}: {source}", path.display())]
    Token { path: PathBuf, source: io::Error },
    /// A thread failed to start.
    #[error("the sending thread could not be started: {0}")]
    Thread(io::Error),
    /// The format needs data that a live run does not have.
    #[error("{0} can be written from a stored run only: record it, then use 'export'")]
    StoredOnly(&'static str),
    /// The table is of a CPU that the run does not have.
    #[error("{}: CPU {cpu} is not measured in this run, only {cpus}", path.display())]
    NoSuchCpu {
        path: PathBuf,
        cpu: CpuId,
        cpus: CpuSet,
    },
    /// The table is of a histogram that the run does not have.
    #[error("{}: this run has no histogram '{tag}', only {}", path.display(), listed(known))]
    NoSuchHistogram {
        path: PathBuf,
        tag: String,
        /// The tags of the histograms that the run has.
        known: Vec<String>,
    },
    /// A histogram cannot be built or written.
    #[error("a histogram cannot be written: {0}")]
    Histogram(String),
    /// The format is not text.
    #[error("{0} is no text: send standard output to a file or to another program")]
    NoText(&'static str),
    /// The description of the trace's pages is not one.
    #[error("the trace of the run cannot be decoded: {0}")]
    TraceContext(String),
    /// The stored run cannot be read.
    #[error(transparent)]
    Store(#[from] jitterscope_store::StoreError),
}

impl ExportError {
    /// Whether the user asked for the wrong target, as opposed to a failure of its place.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ExportError::NamesInCopy(_)
                | ExportError::StoredOnly(_)
                | ExportError::NoText(_)
                | ExportError::NoSuchCpu { .. }
                | ExportError::NoSuchHistogram { .. }
        )
    }

    /// The error of a file that cannot be opened for writing.
    #[must_use]
    pub fn access(path: &Path, error: jitterscope_platform::AccessError) -> ExportError {
        ExportError::file(path, error.into_io())
    }

    /// The error of a file that cannot be written.
    #[must_use]
    pub fn file(path: &Path, source: io::Error) -> ExportError {
        ExportError::File {
            path: path.to_path_buf(),
            source,
        }
    }
}

impl From<ExportError> for SinkError {
    fn from(error: ExportError) -> SinkError {
        if error.is_usage() {
            SinkError::usage(error)
        } else {
            SinkError::new(error)
        }
    }
}

/// Tags as one line.
fn listed(known: &[String]) -> String {
    if known.is_empty() {
        "those of its intervals".into()
    } else {
        known.join(", ")
    }
}

/// Advice for the user. "No such file" alone says little about a file that the export was to make.
fn to_do(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ". Make its folder first",
        io::ErrorKind::IsADirectory => ". Name a file",
        _ => "",
    }
}
