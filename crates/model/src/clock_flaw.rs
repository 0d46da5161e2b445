//! Why a clock is not used, or used in doubt, as data.

use serde::{Deserialize, Serialize};

/// What there is against measuring with the TSC. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum TscFlaw {
    /// Nothing: another clock was asked for.
    NotWanted,
    /// This architecture has none.
    NoTsc,
    /// The kernel keeps time by another clock.
    OtherClockSource {
        /// The kernel's name of that.
        source: String,
    },
    /// Which clock the kernel keeps time by cannot be read.
    ClockSourceUnreadable {
        /// What the system said.
        system: String,
    },
    /// The kernel keeps time by it, and the CPU does not promise that its rate is constant.
    NotConstant,
    /// The kernel keeps time by it, and the CPU does not promise that it goes on in deep idle states.
    StopsInIdle,
}

/// Why no clock can be used. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum ClockFailure {
    /// The clock did not advance while it was calibrated.
    Stuck,
}
