//! The protocol between a disturbing child and its parent.
//!
//! The child gets its kind and its [`DisturbSettings`] as JSON on the command line. It prepares itself, writes a
//! [`Line::Header`] to its stdout and waits for a line `go` on its stdin. Then it injects, or ends early at end of file
//! on its stdin. At the end it writes a [`Line::Injection`] for each and one [`Line::Done`]. It writes nothing during
//! the injections, because the writing would also disturb.

use super::DisturbKind;
use jitterscope_model::{ClockKind, CpuId, CulpritKind, Nanos, TickRate, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisturbSettings {
    pub cpu: CpuId,
    /// An unmeasured CPU for all work that need not run on the victim's CPU; `None` if there is none.
    pub helper_cpu: Option<CpuId>,
    /// Time from one injection to the next. It should not be near a multiple of the tick's period, else all injections
    /// may coincide with ticks, or none.
    pub period: Nanos,
    /// Length of one injection, for the kinds that can choose it (`fifo`, `fair`, `stop`, `quota`, `trap`).
    pub length: Nanos,
    /// The number of injections.
    pub count: u32,
    /// The clock of the recording.
    pub clock: ClockKind,
    pub rate: TickRate,
    /// The shortest stall that is recorded.
    pub threshold: Nanos,
    /// The measuring thread; `None` if unknown, for kinds that do not need it.
    #[serde(default)]
    pub victim_tid: Option<i32>,
    pub parent_pid: u32,
    /// A folder for `writeback`'s file, on a file system with a disk.
    pub work_dir: PathBuf,
}

/// The expected trigger of a culprit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedSender {
    pub comm: String,
    pub tid: i32,
}

/// The expected verdict of a stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    pub kind: CulpritKind,
    pub name: String,
    /// Its sender, if the verdict includes one.
    pub sender: Option<ExpectedSender>,
}

/// The child's identity and its task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub kind: DisturbKind,
    pub tid: i32,
    pub comm: String,
    /// The expected verdict of a recording.
    pub expected: Expectation,
    pub settings: DisturbSettings,
}

/// One injection, on the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// The disturbance began at or after this time.
    pub start_ticks: Ticks,
    /// The disturbance ended at or before this time.
    pub end_ticks: Ticks,
    /// The culprit's own running time without interruptions, if the child can measure it.
    pub length_ticks: Option<Ticks>,
}

/// One line of the child's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The child is ready.
    Header(Header),
    Injection(Injection),
    /// The end, with the number of injections.
    Done {
        injected: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_tagged_json() {
        let line = Line::Injection(Injection {
            start_ticks: Ticks(5),
            end_ticks: Ticks(9),
            length_ticks: None,
        });
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"line":"injection","start_ticks":5,"end_ticks":9,"length_ticks":null}"#
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
