//! What the parent and the child of a disturbance tell each other.
//!
//! The child is given its kind and its [`DisturbSettings`] as JSON on the command line. It prepares
//! itself, writes a [`Line::Header`] to its stdout and waits for a line `go` on its stdin. Then it injects;
//! end of file on its stdin ends that early. At the end come a [`Line::Injection`] for each and one
//! [`Line::Done`]: nothing is written while it disturbs, so that the writing is no disturbance itself.

use super::DisturbKind;
use jitterscope_model::{ClockKind, CpuId, CulpritKind, Nanos, TickRate, Ticks};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a child is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisturbSettings {
    /// The victim's CPU.
    pub cpu: CpuId,
    /// An unmeasured CPU for everything that need not run on the victim's; `None` when there is none.
    pub helper_cpu: Option<CpuId>,
    /// Time from one injection to the next. Keep it away from multiples of the tick's period, else the
    /// injections may all coincide with ticks, or none.
    pub period: Nanos,
    /// Length of one injection, for the kinds that can choose it (`fifo`, `fair`, `stop`, `quota`, `trap`).
    pub length: Nanos,
    /// How many to inject.
    pub count: u32,
    /// The clock of the recording.
    pub clock: ClockKind,
    /// Its rate.
    pub rate: TickRate,
    /// The thread that measures; `None` where it is not known, for the kinds that do not deal with it.
    #[serde(default)]
    pub victim_tid: Option<i32>,
    /// The process that must outlive the child.
    pub parent_pid: u32,
    /// A folder for `writeback`'s file, on a file system that writes back to a disk.
    pub work_dir: PathBuf,
}

/// Who triggered the expected culprit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedSender {
    /// Its thread's name.
    pub comm: String,
    /// Its thread's id.
    pub tid: i32,
}

/// The verdict that a stall must get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// What kind of culprit.
    pub kind: CulpritKind,
    /// Its name.
    pub name: String,
    /// Its sender, where one belongs to the verdict.
    pub sender: Option<ExpectedSender>,
}

/// Who the child is and what it will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What it injects.
    pub kind: DisturbKind,
    /// Its thread id.
    pub tid: i32,
    /// Its thread's name.
    pub comm: String,
    /// What a recording should make of it.
    pub expected: Expectation,
    /// What it was asked to do.
    pub settings: DisturbSettings,
}

/// One injection, on the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// The victim was not disturbed before this.
    pub start_ticks: Ticks,
    /// It was over by then.
    pub end_ticks: Ticks,
    /// How much time the culprit itself took, where the child can know: its own running time, without
    /// what interrupted it.
    pub length_ticks: Option<Ticks>,
}

/// One line of the child's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The child is ready.
    Header(Header),
    /// One injection that was made.
    Injection(Injection),
    /// The end: how many injections were listed.
    Done {
        /// That number.
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
