//! Why a change was refused, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// An interrupt whose affinity the kernel manages.
    Managed,
    /// EINVAL: a value that it does not accept, or a thread bound to its CPU.
    Invalid,
    /// EBUSY: in use, or taken by another process.
    Busy,
    /// EPERM or EACCES.
    NotPermitted,
    /// EROFS.
    ReadOnly,
    Other,
}

/// The meaning of a refusal for its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// The kernel places this interrupt itself.
    KernelPlaces,
    /// The thread is bound to its CPU, or its cpuset excludes these CPUs.
    BoundThread,
    /// A deadline thread needs its reserved CPUs.
    DeadlineThread,
    /// The kernel does not accept this value.
    ValueNotTaken,
    /// Another process is using it.
    InUse,
    /// It needs root, or the kernel forbids it even to root.
    NeedsRoot,
    /// The file system is read-only.
    ReadOnly,
    /// Only the system's error is known.
    SystemTells,
    /// Another process has already created it; the system's error is its path.
    MadeByOthers,
    /// The kernel changed the value; the system's error is the result.
    MadeOtherwise,
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}
