//! What can stand between us and the kernel's events.

use crate::format::FormatError;
use crate::ring::LayoutError;
use jitterscope_model::{CpuId, SourceProblem, SourceStatus, TracefsFlaw};
use jitterscope_platform::FileError;
use std::io;
use std::path::{Path, PathBuf};

/// Why kernel events cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// tracefs is there, but not for this user.
    #[error("no permission for {}", path.display())]
    NoPermission {
        /// What was refused.
        path: PathBuf,
    },
    /// tracefs is not mounted, and this user may not mount it.
    #[error("tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN")]
    MountDenied,
    /// tracefs is not mounted, and the kernel refused to.
    #[error("tracefs is not mounted, and mounting it at {at} failed: {source}")]
    MountRefused {
        /// Where.
        at: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// This kernel has no tracefs.
    #[error("this kernel has no tracefs, or none with instances and event formats: {flaw:?}")]
    NotSupported {
        /// What is wrong with it.
        flaw: TracefsFlaw,
    },
    /// The kernel is locked down: it keeps its events to itself, from root too.
    #[error("the kernel's lockdown (confidentiality) refuses all tracing, to root too")]
    LockedDown,
    /// The trace clock that the probe's clock needs is refused.
    #[error("the kernel does not stamp events with {wanted} (it uses {got})")]
    ClockRefused {
        /// Name of the trace clock asked for.
        wanted: &'static str,
        /// The clock in force after asking.
        got: String,
    },
    /// The ring buffer could not be made as large as asked.
    #[error("the kernel refused a trace buffer of {kb} KiB a CPU: {source}")]
    Buffer {
        /// Size asked for, KiB a CPU.
        kb: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// A control file refused a value.
    #[error("the kernel refused '{value}' in {}: {}", file.path.display(), file.source)]
    Refused {
        /// The value.
        value: String,
        /// The file, and what the kernel said.
        #[source]
        file: FileError,
    },
    /// A control file cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// A tracing instance could not be made.
    #[error("no tracing instance could be made at {}: {source}", path.display())]
    Instance {
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// None of the wanted events exists or can be enabled.
    #[error("this kernel has none of the events that name culprits ({})", .0.join(", "))]
    NoEvents(Vec<String>),
    /// The kernel cannot look into its functions.
    #[error("this kernel has no tracer function_graph")]
    NoGraph,
    /// It can, for one user at a time.
    #[error("this kernel's function_graph cannot run in a tracing instance of our own")]
    GraphForOne,
    /// Somebody else looks into functions.
    #[error(
        "somebody else has chosen what function_graph looks into (set_graph_function has {functions})"
    )]
    GraphTaken {
        /// Which.
        functions: String,
    },
    /// The kernel has no such function, or none that can be traced.
    #[error("this kernel has no function {name} that can be looked into")]
    NoFunction {
        /// As it was asked for.
        name: String,
    },
    /// A CPU has no trace buffer: it is not there, or offline.
    #[error("CPU {cpu} has no trace buffer that can be read: {source}")]
    NoCpu {
        /// The CPU.
        cpu: CpuId,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel's pages cannot be read.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An event's format cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl TraceError {
    /// How a report of sources calls this.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        let denied = match self {
            TraceError::NoPermission { .. } | TraceError::MountDenied | TraceError::LockedDown => {
                true
            }
            TraceError::MountRefused { source, .. } | TraceError::Instance { source, .. } => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            TraceError::Refused { file, .. } | TraceError::File(file) => file.is_denied(),
            _ => false,
        };
        if denied {
            SourceStatus::Denied
        } else {
            SourceStatus::Absent
        }
    }

    /// The same as a report of sources has it.
    #[must_use]
    pub fn problem(&self) -> SourceProblem {
        let denied = self.status() == SourceStatus::Denied;
        let text = |path: &Path| path.display().to_string();
        match self {
            TraceError::NoPermission { path } => SourceProblem::NoPermission { path: text(path) },
            TraceError::MountDenied => SourceProblem::MountDenied,
            TraceError::MountRefused { at, source } => SourceProblem::MountRefused {
                path: at.clone(),
                denied,
                system: source.to_string(),
            },
            TraceError::NotSupported { flaw } => {
                SourceProblem::TracefsUnusable { flaw: flaw.clone() }
            }
            TraceError::LockedDown => SourceProblem::LockedDown,
            TraceError::ClockRefused { wanted, got } => SourceProblem::TraceClock {
                wanted: (*wanted).to_owned(),
                offered: got.clone(),
            },
            TraceError::Buffer { kb, source } => SourceProblem::BufferRefused {
                kib: *kb,
                system: source.to_string(),
            },
            TraceError::Refused { value, file } => SourceProblem::ValueRefused {
                value: value.clone(),
                path: text(&file.path),
                denied,
                system: file.source.to_string(),
            },
            TraceError::File(file) => SourceProblem::ControlUnreadable {
                path: text(&file.path),
                denied,
                system: file.source.to_string(),
            },
            TraceError::Instance { path, source } => SourceProblem::InstanceRefused {
                path: text(path),
                denied,
                system: source.to_string(),
            },
            TraceError::NoEvents(events) => SourceProblem::NoEvents {
                events: events.clone(),
            },
            TraceError::NoGraph => SourceProblem::NoTracer {
                tracer: "function_graph".into(),
            },
            TraceError::GraphForOne => SourceProblem::GraphForOne,
            TraceError::GraphTaken { functions } => SourceProblem::GraphTaken {
                functions: functions.clone(),
            },
            TraceError::NoFunction { name } => SourceProblem::NoFunction {
                function: name.clone(),
            },
            TraceError::NoCpu { cpu, source } => SourceProblem::NoTraceBuffer {
                cpu: *cpu,
                system: source.to_string(),
            },
            TraceError::Layout(error) => SourceProblem::FormatUnreadable {
                parser: error.to_string(),
            },
            TraceError::Format(error) => SourceProblem::FormatUnreadable {
                parser: error.to_string(),
            },
        }
    }
}
