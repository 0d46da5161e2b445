//! Why a change was refused, as data.

use serde::{Deserialize, Serialize};

/// Why the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// An interrupt whose affinity the kernel manages.
    Managed,
    /// EINVAL: a value that it does not take, or a thread bound to its CPU.
    Invalid,
    /// EBUSY: in use, or taken by another.
    Busy,
    /// EPERM or EACCES.
    NotPermitted,
    /// EROFS.
    ReadOnly,
    /// Anything else.
    Other,
}

/// What a refusal means for the change that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// The kernel places this interrupt itself.
    KernelPlaces,
    /// The thread is bound to its CPU, or its cpuset does not allow these.
    BoundThread,
    /// A deadline thread needs its reserved CPUs.
    DeadlineThread,
    /// The kernel does not take this value.
    ValueNotTaken,
    /// Somebody else is using it.
    InUse,
    /// It needs root, or the kernel forbids it even so.
    NeedsRoot,
    /// The file system is read-only.
    ReadOnly,
    /// Nothing but what the system said.
    SystemTells,
    /// It is there already, made by somebody else; what the system said is its path.
    MadeByOthers,
    /// The kernel made another value of it; what the system said is that value.
    MadeOtherwise,
    /// What a newer version wrote.
    #[serde(other)]
    Unknown,
}
