//! Why a step is not a change that its knob makes, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a step is neither made nor undone. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Forbidden {
    /// The catalogue has no such knob.
    UnknownKnob {
        /// In the journal's words.
        knob: String,
    },
    /// The knob is changed in another way.
    NotItsChange {
        knob: String,
    },
    /// A link leads elsewhere.
    LeadsAway {
        to: String,
        /// Where it should be.
        root: String,
    },
    Lost {
        system: String,
    },
    /// A value that is never written.
    Value {
        flaw: ValueFlaw,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueFlaw {
    /// The file would run with its owner's rights.
    OwnersRights,
    /// It is an empty set of CPUs.
    NoCpus,
    TooLong,
    /// It contains a NUL byte.
    NulByte,
}
