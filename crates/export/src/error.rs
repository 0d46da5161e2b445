//! What can go wrong on the way out.

use jitterscope_model::{CpuId, CpuSet, SinkError};
use std::io;
use std::path::{Path, PathBuf};

/// A target that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// No `SCHEME://`.
    #[error(
        "'{0}' is no target: write SCHEME://PLACE, for example csv://stalls.csv or influx://localhost:8089"
    )]
    NoScheme(String),
    /// A scheme that nobody here speaks.
    #[error("'{scheme}://' is not known; there are {known}")]
    Scheme {
        /// As given.
        scheme: String,
        /// Those that there are.
        known: String,
    },
    /// The part behind the scheme is incomplete.
    #[error("'{target}': {missing}")]
    Incomplete {
        /// As given.
        target: String,
        /// What is missing, and an example.
        missing: &'static str,
    },
    /// An option that the scheme does not take.
    #[error("'{target}': '{option}' is no option of it; there is {known}")]
    Option {
        /// As given.
        target: String,
        /// The option.
        option: String,
        /// What there is.
        known: &'static str,
    },
    /// An option is given twice.
    #[error("'{target}': '{option}' is given twice")]
    OptionTwice {
        /// As given.
        target: String,
        /// The option.
        option: String,
    },
    /// Two targets would write over each other.
    #[error("'{0}' is given twice: two targets cannot be written to one place")]
    Twice(String),
    /// An option's value makes no sense.
    #[error("'{target}': {option} cannot be '{value}'")]
    Value {
        /// As given.
        target: String,
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
    },
}

/// An export that failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run's own tables cannot go out without names.
    #[error(
        "parquet:// copies the run's own tables, names and all: with --redact take csv:// or json://"
    )]
    NamesInTables,
    /// A file cannot be written.
    #[error("{} cannot be written: {source}{}", path.display(), to_do(source))]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server's name has no address.
    #[error("'{host}' cannot be resolved: {source}")]
    Resolve {
        /// Name and port.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// It was left out of this build.
    #[error(
        "{url} needs TLS, which this jitterscope was built without (--no-default-features): build it with \
         --features tls"
    )]
    WithoutTls {
        /// Where.
        url: String,
    },
    /// The server cannot be reached.
    #[error("{url} cannot be reached: {why}{hint}")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        why: String,
        /// What to do, if that is clear.
        hint: &'static str,
    },
    /// The server does not want it.
    #[error("{url} refused ({status}): {why}{hint}")]
    Refused {
        /// Where.
        url: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        why: String,
        /// What to do, if that is clear.
        hint: &'static str,
    },
    /// The token cannot be had.
    #[error("the token file {}: {source}", path.display())]
    Token {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A thread could not be made.
    #[error("the sending thread could not be started: {0}")]
    Thread(io::Error),
    /// The format needs what a live run does not have.
    #[error("{0} can be written from a stored run only: record it, then use 'export'")]
    StoredOnly(&'static str),
    /// A table of a CPU that the run does not have.
    #[error("{}: CPU {cpu} is not measured in this run, only {cpus}", path.display())]
    NoSuchCpu {
        /// The file.
        path: PathBuf,
        /// As asked.
        cpu: CpuId,
        /// Those measured.
        cpus: CpuSet,
    },
    /// A table of a histogram that the run does not have.
    #[error("{}: this run has no histogram '{tag}', only {}", path.display(), listed(known))]
    NoSuchHistogram {
        /// The file.
        path: PathBuf,
        /// As asked.
        tag: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A histogram cannot be made or written.
    #[error("a histogram cannot be written: {0}")]
    Histogram(String),
    /// The stored run cannot be read.
    #[error(transparent)]
    Store(#[from] jitterscope_store::StoreError),
}

impl ExportError {
    /// Whether the target was asked for wrongly, as opposed to something being wrong with its place.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ExportError::NamesInTables
                | ExportError::StoredOnly(_)
                | ExportError::NoSuchCpu { .. }
                | ExportError::NoSuchHistogram { .. }
        )
    }

    /// A file that is not opened for writing.
    #[must_use]
    pub fn access(path: &Path, error: jitterscope_platform::AccessError) -> ExportError {
        ExportError::file(path, error.into_io())
    }

    /// A file that cannot be written.
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

/// Tags in a line.
fn listed(known: &[String]) -> String {
    if known.is_empty() {
        "those of its intervals".into()
    } else {
        known.join(", ")
    }
}

/// "No such file" of a file that was to be made says little.
fn to_do(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ". Make its folder first",
        io::ErrorKind::IsADirectory => ". Name a file",
        _ => "",
    }
}
