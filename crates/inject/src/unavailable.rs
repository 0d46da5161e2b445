//! Why a disturbance is not possible on a machine.

use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why disturbances of a kind cannot be injected, or not be named, on this machine. Its text says what is wrong and
/// what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Unavailable {
    /// It needs another CPU than the victim's.
    #[error("it comes from another CPU, and no unmeasured one is left")]
    NoHelper,
    /// The measuring thread is unknown.
    #[error("the thread that measures is not known")]
    NoVictim,
    /// The kernel was built without a required feature.
    #[error("this kernel {lacks}")]
    Kernel {
        /// `has no` or `cannot`, the feature, and the build option for it.
        lacks: String,
    },
    /// The kernel has no event that names it.
    #[error("this kernel has no event that says {tell} ({})", .events.join(", "))]
    NoEvents {
        /// What the events would tell.
        tell: String,
        /// The missing events, as `system:event`.
        events: Vec<String>,
    },
    /// The process has no permission.
    #[error("{what} needs {capability}")]
    Capability {
        what: String,
        /// Its name in capabilities(7).
        capability: String,
    },
    /// A control file cannot be opened.
    #[error("{path}: {error}; {what} needs root")]
    ControlFile {
        path: String,
        error: String,
        /// The purpose of the file.
        what: String,
    },
    #[error("{error}")]
    Refused { error: String },
    /// The folder's file system is never written back.
    #[error("{folder} is on {file_system}, which is never written back")]
    InMemory { folder: String, file_system: String },
}

impl Unavailable {
    /// A kernel without a required feature.
    pub(super) fn kernel(lacks: impl Into<String>) -> Unavailable {
        Unavailable::Kernel {
            lacks: lacks.into(),
        }
    }

    /// A control file that cannot be opened.
    pub(super) fn file(path: &str, error: &std::io::Error, what: &str) -> Unavailable {
        Unavailable::ControlFile {
            path: path.into(),
            error: error.to_string(),
            what: what.into(),
        }
    }

    pub(super) fn refused(error: impl std::fmt::Display) -> Unavailable {
        Unavailable::Refused {
            error: error.to_string(),
        }
    }
}

/// Whether this process has a capability, given by the kernel's number and its name, as `/proc/self/status` shows;
/// `what` needs it.
pub(super) fn needs_capability(
    machine: &Machine,
    (number, capability): (u32, &str),
    what: &str,
) -> Result<(), Unavailable> {
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let held = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << number) != 0);
    if held {
        return Ok(());
    }
    Err(Unavailable::Capability {
        what: what.into(),
        capability: capability.into(),
    })
}
