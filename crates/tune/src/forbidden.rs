//! Why a step is no change of a knob, as data.

use serde::{Deserialize, Serialize};

/// Why a step is neither taken nor undone. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Forbidden {
    /// The catalogue has no such knob.
    UnknownKnob {
        /// As the journal says.
        knob: String,
    },
    /// The knob is turned in another way.
    NotItsChange {
        /// The knob.
        knob: String,
    },
    /// A link leads somewhere else.
    LeadsAway {
        /// Where to.
        to: String,
        /// Where it should be.
        root: String,
    },
    /// Following the path failed.
    Lost {
        /// What the system said.
        system: String,
    },
    /// No such value is ever written.
    Value {
        /// What is wrong with it.
        flaw: ValueFlaw,
    },
}

/// What is wrong with a value that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueFlaw {
    /// The file would run with its owner's rights.
    OwnersRights,
    /// It is an empty set of CPUs.
    NoCpus,
    /// It is too long.
    TooLong,
    /// It has a NUL byte.
    NulByte,
}
