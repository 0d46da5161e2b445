//! Why the kernel's events are not available.

use crate::format::FormatError;
use crate::ring::LayoutError;
use jitterscope_model::{CpuId, SourceProblem, SourceStatus, TracefsFlaw};
use jitterscope_platform::FileError;
use std::io;
use std::path::{Path, PathBuf};

/// Why kernel events cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// tracefs exists, but this user may not use it.
    #[error("no permission for {}", path.display())]
    NoPermission { path: PathBuf },
    /// Instances belong to the owner of their folder, who is another user.
    #[error("tracing instances in {} belong to another user", path.display())]
    InstancesOfOwner {
        path: PathBuf,
        /// `None` if this process's user namespace does not map it.
        owner: Option<u32>,
    },
    /// tracefs is not mounted, and this user may not mount it.
    #[error("tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN")]
    MountDenied,
    /// tracefs is not mounted, and the kernel refused to mount it.
    #[error("tracefs is not mounted, and mounting it at {at} failed: {source}")]
    MountRefused { at: String, source: io::Error },
    /// This kernel has no tracefs.
    #[error("this kernel has no tracefs, or none with instances and event formats: {flaw:?}")]
    NotSupported {
        /// What is wrong with it.
        flaw: TracefsFlaw,
    },
    /// The kernel is locked down: it hides its events even from root.
    #[error("the kernel's lockdown (confidentiality) refuses all tracing, to root too")]
    LockedDown,
    /// This process is in a namespace of process ids.
    #[error(
        "this process is in a PID namespace of its own: the kernel's records have the machine's ids"
    )]
    PidNamespace,
    /// The kernel refuses the trace clock that matches the probe's clock.
    #[error("the kernel does not stamp events with {wanted} (it uses {got})")]
    ClockRefused {
        /// Name of the required trace clock.
        wanted: &'static str,
        /// The clock in use after the attempt.
        got: String,
    },
    /// The ring buffer could not get the requested size.
    #[error("the kernel refused a trace buffer of {kb} KiB a CPU: {source}")]
    Buffer {
        /// Requested size, KiB per CPU.
        kb: u64,
        source: io::Error,
    },
    /// A control file refused a value.
    #[error("the kernel refused '{value}' in {}: {}", file.path.display(), file.source)]
    Refused {
        value: String,
        /// The file, and the system's error.
        #[source]
        file: FileError,
    },
    /// A control file cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// A tracing instance could not be made.
    #[error("no tracing instance could be made at {}: {source}", path.display())]
    Instance { path: PathBuf, source: io::Error },
    /// None of the required events exists or can be enabled.
    #[error("this kernel has none of the events that name culprits ({})", .0.join(", "))]
    NoEvents(Vec<String>),
    /// The kernel cannot trace its functions.
    #[error("this kernel has no tracer function_graph")]
    NoGraph,
    /// It can, but only for one user at a time.
    #[error("this kernel's function_graph cannot run in a tracing instance of our own")]
    GraphForOne,
    /// Another process traces functions.
    #[error(
        "somebody else has chosen what function_graph looks into (set_graph_function has {functions})"
    )]
    GraphTaken { functions: String },
    /// The kernel has no such function, or cannot trace it.
    #[error("this kernel has no function {name} that can be looked into")]
    NoFunction {
        /// As the user named it.
        name: String,
    },
    /// A CPU has no trace buffer: it does not exist, or is offline.
    #[error("CPU {cpu} has no trace buffer that can be read: {source}")]
    NoCpu { cpu: CpuId, source: io::Error },
    /// The kernel's page layout cannot be parsed.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An event's format cannot be parsed.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl TraceError {
    /// The status for a report of sources.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        let denied = match self {
            TraceError::NoPermission { .. }
            | TraceError::InstancesOfOwner { .. }
            | TraceError::MountDenied
            | TraceError::LockedDown
            | TraceError::PidNamespace => true,
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

    /// The same for a report of sources.
    #[must_use]
    pub fn problem(&self) -> SourceProblem {
        let denied = self.status() == SourceStatus::Denied;
        let text = |path: &Path| path.display().to_string();
        match self {
            TraceError::NoPermission { path } => SourceProblem::NoPermission { path: text(path) },
            TraceError::InstancesOfOwner { path, owner } => SourceProblem::InstancesOfOwner {
                path: text(path),
                owner: *owner,
            },
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
            TraceError::PidNamespace => SourceProblem::PidNamespace,
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
