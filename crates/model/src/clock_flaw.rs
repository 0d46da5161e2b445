//! Why a clock is not used, or is used despite doubts, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An argument against measuring with the TSC. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum TscFlaw {
    /// None: the user chose another clock.
    NotWanted,
    /// This architecture has no TSC.
    NoTsc,
    /// The kernel keeps time by another clock.
    OtherClockSource {
        /// The kernel's name of that clock.
        source: String,
    },
    /// The kernel's clock source cannot be read.
    ClockSourceUnreadable { system: String },
    /// The kernel keeps time by it, but the CPU does not guarantee a constant rate.
    NotConstant,
    /// The kernel keeps time by it, but the CPU does not guarantee that it runs in deep idle states.
    StopsInIdle,
}

/// Why no clock can be used. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum ClockFailure {
    /// The clock did not advance while it was calibrated.
    Stuck,
}
