//! Why something cannot be injected on a machine.

use jitterscope_platform::Machine;
use serde::{Deserialize, Serialize};

/// Why disturbances of a kind cannot be injected, or not be named, on this machine: an error, so it tells what was
/// wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum Unavailable {
    /// It comes from another CPU than the victim's.
    #[error("it comes from another CPU, and no unmeasured one is left")]
    NoHelper,
    /// Nobody said which thread to disturb.
    #[error("the thread that measures is not known")]
    NoVictim,
    /// The kernel was built without it.
    #[error("this kernel {lacks}")]
    Kernel {
        /// `has no` or `cannot`, what, and the option that it would need.
        lacks: String,
    },
    /// The kernel has no event to name it by.
    #[error("this kernel has no event that says {tell} ({})", .events.join(", "))]
    NoEvents {
        /// What the events would tell.
        tell: String,
        /// Those that are missing, as `system:event`.
        events: Vec<String>,
    },
    /// The process may not.
    #[error("{what} needs {capability}")]
    Capability {
        /// What was wanted.
        what: String,
        /// By its name in capabilities(7).
        capability: String,
    },
    /// A control file cannot be opened.
    #[error("{path}: {error}; {what} needs root")]
    ControlFile {
        /// Its path.
        path: String,
        /// What the system said.
        error: String,
        /// What it is for.
        what: String,
    },
    /// The system refused.
    #[error("{error}")]
    Refused {
        /// What the system said.
        error: String,
    },
    /// What is written there is never written back.
    #[error("{folder} is on {file_system}, which is never written back")]
    InMemory {
        /// The folder.
        folder: String,
        /// Its file system.
        file_system: String,
    },
}

impl Unavailable {
    /// A kernel that lacks something.
    pub(super) fn kernel(lacks: impl Into<String>) -> Unavailable {
        Unavailable::Kernel {
            lacks: lacks.into(),
        }
    }

    /// A control file that was refused.
    pub(super) fn file(path: &str, error: &std::io::Error, what: &str) -> Unavailable {
        Unavailable::ControlFile {
            path: path.into(),
            error: error.to_string(),
            what: what.into(),
        }
    }

    /// The system's refusal.
    pub(super) fn refused(error: impl std::fmt::Display) -> Unavailable {
        Unavailable::Refused {
            error: error.to_string(),
        }
    }
}

/// A capability by the kernel's number and its name, for `what`: whether this process holds it, as
/// `/proc/self/status` says.
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
