//! What a profile demands of a CPU, as data.

use crate::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the profile of a recording demands of its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileLimit {
    /// The work, for a sentence: `a servo at 1 kHz`.
    pub title: String,
    /// The longest time that a CPU may be away, or a wake-up may be late.
    pub limit_ns: Nanos,
    /// The limit in the profile, if the user's own `--fail-above` replaced it; null otherwise.
    pub replaces_ns: Option<Nanos>,
    /// The largest share of the measured time that stalls may take, in parts per million; null if the profile has none.
    pub taken_ppm: Option<u32>,
}
