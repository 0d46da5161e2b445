//! A culprit as reports have it.

use crate::ours::RecorderThread;
use jitterscope_model::{CpuId, ExecutionContext, Name, Nanos, Subject};
use serde::{Deserialize, Serialize};

/// One culprit, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CulpritRow {
    /// What: all that its stalls have in common.
    #[serde(flatten)]
    pub subject: Subject,
    /// How many threads or workers it is about: 0 for what has none, 64 for that many or more.
    pub threads: u64,
    /// The names that its threads bear beside that of their process, by which they go here; 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_names: Vec<Name>,
    /// Which thread of the recorder itself it is; absent of all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<RecorderThread>,
    /// Of the row that has the rest of a kind: how many culprits have rows of their own; absent of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_apart: Option<usize>,
    /// What it is, in words; empty until the view of it is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// Who most often triggered it.
    pub sender: Option<SenderRow>,
    /// How often it is known who triggered it. Of the rest nobody is known: it may have been the
    /// same ones.
    pub senders_known: u64,
    /// Stalls in which it had a part.
    pub count: u64,
    /// Of them, in a second of the run.
    pub per_sec: f64,
    /// Its parts, summed.
    pub total_ns: Nanos,
    /// That, of all stalled time.
    pub share: f64,
    /// Mean part of a stall.
    pub mean_ns: Nanos,
    /// Largest part of a stall.
    pub max_ns: Nanos,
}

/// Who triggered a culprit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderRow {
    /// Whether it was the thread itself, or what ran on top of it.
    pub context: ExecutionContext,
    /// Its thread's name; null when it was gone before it could be asked, and where no thread had
    /// a part in it.
    pub comm: Option<Name>,
    /// Its thread id; null when several of that name were seen, and where no thread had a part in it.
    pub tid: Option<i32>,
    /// The CPU it ran on; null when it was several.
    pub cpu: Option<CpuId>,
    /// The kernel function through which it was sent.
    pub via: Option<Name>,
    /// How many of the culprit's parts it triggered.
    pub count: u64,
}
