//! What can stand between us and the kernel's events, and the narrowest way past it.

use crate::format::FormatError;
use crate::ring::LayoutError;
use jitterscope_model::{CpuId, SourceStatus};
use jitterscope_platform::FileError;
use std::io;
use std::path::PathBuf;

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
    #[error("this kernel has no tracefs, or none with instances and event formats ({what})")]
    NotSupported {
        /// What is missing.
        what: String,
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
    #[error("this kernel has none of the events that name culprits ({0})")]
    NoEvents(String),
    /// The kernel cannot look into its functions.
    #[error("this kernel has no tracer function_graph")]
    NoGraph,
    /// It can, for one user at a time.
    #[error("this kernel's function_graph cannot run in a tracing instance of our own")]
    GraphForOne,
    /// Somebody else looks into functions.
    #[error("somebody else has chosen what function_graph looks into (set_graph_function has {functions})")]
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
            TraceError::NoPermission { .. } | TraceError::MountDenied | TraceError::LockedDown => true,
            TraceError::MountRefused { source, .. } | TraceError::Instance { source, .. } => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            TraceError::Refused { file, .. } | TraceError::File(file) => file.is_denied(),
            _ => false,
        };
        if denied { SourceStatus::Denied } else { SourceStatus::Absent }
    }

    /// What to do about it, in one sentence; empty when nothing helps.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            TraceError::LockedDown => {
                "boot without lockdown=confidentiality; lockdown=integrity allows tracing".into()
            }
            _ if self.status() == SourceStatus::Denied && !matches!(self, TraceError::MountDenied) => {
                "run as root or with CAP_DAC_OVERRIDE; where root is refused, kernel lockdown forbids tracing"
                    .into()
            }
            TraceError::MountDenied => {
                "run as root; or have root mount it (mount -t tracefs nodev /sys/kernel/tracing) and run with \
                 CAP_DAC_OVERRIDE"
                    .into()
            }
            TraceError::MountRefused { .. } => {
                "mount it by hand: mount -t tracefs nodev /sys/kernel/tracing".into()
            }
            TraceError::NotSupported { .. } | TraceError::NoEvents(_) => {
                "use a kernel built with CONFIG_EVENT_TRACING".into()
            }
            TraceError::ClockRefused { wanted: "x86-tsc", .. } => {
                "record with the clock CLOCK_MONOTONIC_RAW, which the kernel stamps as mono_raw".into()
            }
            TraceError::NoGraph => "use a kernel built with CONFIG_FUNCTION_GRAPH_TRACER".into(),
            TraceError::GraphForOne => "use Linux 6.11 or later".into(),
            TraceError::GraphTaken { .. } => {
                "end what uses it, and where that is gone: echo > /sys/kernel/tracing/set_graph_function".into()
            }
            TraceError::NoFunction { .. } => {
                "choose one that /sys/kernel/tracing/available_filter_functions lists; others were inlined into \
                 their callers"
                    .into()
            }
            TraceError::ClockRefused { .. } => String::new(),
            TraceError::Buffer { kb, .. } => format!("ask for a smaller buffer than {kb} KiB a CPU"),
            TraceError::NoCpu { cpu, .. } => {
                format!("bring it online (echo 1 > /sys/devices/system/cpu/cpu{cpu}/online), or leave it out")
            }
            _ => String::new(),
        }
    }
}
