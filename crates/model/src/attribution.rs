//! A stall, split among culprits.

use crate::{Culprit, Nanos, StallId};
use serde::{Deserialize, Serialize};

/// Where in its stall a part lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Inside a frame that was seen to begin and end.
    Inside,
    /// Between the start of the stall and its first kernel event.
    Lead,
    /// Between two events, with no frame open.
    Hole,
    /// Between the last event and the end of the stall.
    Trail,
    /// The whole stall: it has no event inside.
    Whole,
}

impl Placement {
    /// Its name in stored runs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Placement::Inside => "inside",
            Placement::Lead => "lead",
            Placement::Hole => "hole",
            Placement::Trail => "trail",
            Placement::Whole => "whole",
        }
    }

    /// The placement of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Placement> {
        [Placement::Inside, Placement::Lead, Placement::Hole, Placement::Trail, Placement::Whole]
            .into_iter()
            .find(|p| p.as_str() == name)
    }
}

/// How sure the verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A guess by exclusion.
    Low,
    /// Exclusion with supporting evidence.
    Medium,
    /// Seen: recorded events begin and end it.
    High,
}

impl Confidence {
    /// Its name in stored runs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }

    /// The confidence of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Confidence> {
        [Confidence::Low, Confidence::Medium, Confidence::High].into_iter().find(|c| c.as_str() == name)
    }
}

/// One culprit's part of one stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Who.
    pub culprit: Culprit,
    /// Time in which it was the innermost thing running.
    pub net: Nanos,
    /// Time from its first entry to its last exit, nested others included, clipped to the stall.
    pub gross: Nanos,
    /// Where in the stall (that of its longest piece).
    pub placement: Placement,
    /// How sure.
    pub confidence: Confidence,
    /// What the verdict rests on, in a few words: `irq_vectors:local_timer, timer:hrtimer_expire`.
    pub evidence: String,
}

/// A stall split, nanosecond by nanosecond: the parts' `net` sum to the stall's length exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// Which stall.
    pub stall: StallId,
    /// In order of first appearance within the stall.
    pub parts: Vec<Part>,
}

impl Attribution {
    /// Sum of the parts.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.parts.iter().map(|p| p.net).sum()
    }

    /// Sum of the explained parts.
    #[must_use]
    pub fn explained(&self) -> Nanos {
        self.parts.iter().filter(|p| p.culprit.kind.is_explained()).map(|p| p.net).sum()
    }
}
