//! A stall, split among culprits.

use crate::{CpuId, Culprit, Evidence, Nanos, Phase, StallId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where in its stall a part lies.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Inside a frame whose beginning and end are recorded.
    Inside,
    /// Between the start of the stall and its first kernel event.
    Lead,
    /// Between two events, with no frame open.
    Hole,
    /// Between the last event and the end of the stall.
    Trail,
    /// The whole stall, which has no event inside.
    Whole,
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
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
            Placement::Unknown => "unknown",
        }
    }

    #[must_use]
    pub fn from_word(name: &str) -> Placement {
        [
            Placement::Inside,
            Placement::Lead,
            Placement::Hole,
            Placement::Trail,
            Placement::Whole,
        ]
        .into_iter()
        .find(|p| p.as_str() == name)
        .unwrap_or(Placement::Unknown)
    }
}

/// How certain the verdict is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case", from = "String")]
pub enum Confidence {
    /// Written by a newer version.
    Unknown,
    /// A guess by exclusion.
    Low,
    /// By exclusion, with supporting evidence.
    Medium,
    /// Recorded events mark its beginning and end.
    High,
}

impl Confidence {
    /// Its name in stored runs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Confidence::Unknown => "unknown",
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }

    #[must_use]
    pub fn from_word(name: &str) -> Confidence {
        let known = [Confidence::Low, Confidence::Medium, Confidence::High];
        known
            .into_iter()
            .find(|c| c.as_str() == name)
            .unwrap_or(Confidence::Unknown)
    }
}

impl From<String> for Confidence {
    fn from(word: String) -> Confidence {
        Confidence::from_word(&word)
    }
}

/// One culprit's part of one stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The culprit. Few culprits recur in stall after stall, so parts share the value.
    #[serde(flatten)]
    pub culprit: Arc<Culprit>,
    /// What the victim was waiting for; `None` for a spinning victim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The CPU that the victim was moved away from meanwhile.
    #[serde(
        rename = "moved_from_cpu",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub moved_from: Option<CpuId>,
    /// Time in which it was the innermost frame.
    #[serde(rename = "net_ns")]
    pub net: Nanos,
    /// Time from its first entry to its last exit, including nested frames, clipped to the stall.
    #[serde(rename = "gross_ns")]
    pub gross: Nanos,
    /// The number of stretches of time that it sums: how often the culprit came to have the time, without a break. A
    /// turn that something else interrupts counts once for each of its pieces. At most `u32::MAX`.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub turns: u32,
    /// The placement of its longest piece.
    pub placement: Placement,
    pub confidence: Confidence,
    /// The evidence for the verdict.
    pub evidence: Evidence,
    /// For a stall without kernel events: other measured CPUs that stalled at the same instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_stalled: Option<u32>,
}

/// Most parts are of one stretch, so only other numbers are written.
fn once() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_once(turns: &u32) -> bool {
    *turns == once()
}

impl Part {
    /// A part that fills a stall of this length, in one stretch.
    #[must_use]
    pub fn whole(
        culprit: impl Into<Arc<Culprit>>,
        net: Nanos,
        confidence: Confidence,
        evidence: Evidence,
    ) -> Part {
        Part {
            placement: Placement::Whole,
            confidence,
            ..Part::inside(culprit, net, evidence)
        }
    }

    /// A part of one stretch, whose beginning and end are recorded.
    #[must_use]
    pub fn inside(culprit: impl Into<Arc<Culprit>>, net: Nanos, evidence: Evidence) -> Part {
        Part {
            culprit: culprit.into(),
            phase: None,
            moved_from: None,
            net,
            gross: net,
            turns: 1,
            placement: Placement::Inside,
            confidence: Confidence::High,
            evidence,
            others_stalled: None,
        }
    }

    /// The same part, in this phase.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Part {
        Part {
            phase: Some(phase),
            ..self
        }
    }
}

/// A split stall: the parts' `net` sum to the stall's length exactly, to the nanosecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
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
        self.parts
            .iter()
            .filter(|p| p.culprit.kind().is_explained())
            .map(|p| p.net)
            .sum()
    }
}
