//! A stall, split among culprits.

use crate::{CpuId, Culprit, Evidence, Nanos, Phase, StallId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// What a newer version wrote.
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

    /// The placement of this name.
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

/// How sure the verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "String")]
pub enum Confidence {
    /// What a newer version wrote.
    Unknown,
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
            Confidence::Unknown => "unknown",
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }

    /// The confidence of this name.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Who. The same few have a part in stall after stall, and share it.
    #[serde(flatten)]
    pub culprit: Arc<Culprit>,
    /// Where on the victim's way; `None` of a victim that spins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The CPU from which the victim was moved meanwhile.
    #[serde(
        rename = "moved_from_cpu",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub moved_from: Option<CpuId>,
    /// Time in which it was the innermost thing running.
    #[serde(rename = "net_ns")]
    pub net: Nanos,
    /// Time from its first entry to its last exit, nested others included, clipped to the stall.
    #[serde(rename = "gross_ns")]
    pub gross: Nanos,
    /// Where in the stall (that of its longest piece).
    pub placement: Placement,
    /// How sure.
    pub confidence: Confidence,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// Other measured CPUs that stalled at the same instant, of a stall without kernel events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_stalled: Option<u32>,
}

impl Part {
    /// All of a stall of this length.
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

    /// Time that was seen to begin and end.
    #[must_use]
    pub fn inside(culprit: impl Into<Arc<Culprit>>, net: Nanos, evidence: Evidence) -> Part {
        Part {
            culprit: culprit.into(),
            phase: None,
            moved_from: None,
            net,
            gross: net,
            placement: Placement::Inside,
            confidence: Confidence::High,
            evidence,
            others_stalled: None,
        }
    }

    /// The same, in this phase.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Part {
        Part {
            phase: Some(phase),
            ..self
        }
    }
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
        self.parts
            .iter()
            .filter(|p| p.culprit.kind().is_explained())
            .map(|p| p.net)
            .sum()
    }
}
