//! Why a CPU was not measured to the end, as data.

use crate::CpuId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why the measurement of a CPU ended before its time. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum EndedEarly {
    /// The probe was moved to another CPU.
    Moved {
        /// Where it measured.
        cpu: CpuId,
        /// Where it found itself.
        to_cpu: CpuId,
        /// Why; null where that was not looked for.
        because: Option<MovedBecause>,
    },
    /// The CPU went offline.
    Offline,
    /// In the words of an earlier version.
    #[serde(untagged)]
    Worded(String),
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// Why a probe was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedBecause {
    /// The CPU went offline; otherwise it was changed where the probe may run.
    pub offline: bool,
    /// The thread that had the probe moved, where that is known.
    pub by: Option<Mover>,
}

/// Who had a probe moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    /// The name of the thread.
    pub comm: String,
    /// Its id.
    pub tid: i32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_every_version_wrote_is_read_and_kept() {
        let because =
            Some(MovedBecause { offline: false, by: Some(Mover { comm: "taskset".into(), tid: 812 }) });
        let moved = EndedEarly::Moved { cpu: CpuId(1), to_cpu: CpuId(0), because };
        let by = json!({"comm": "taskset", "tid": 812});
        for (text, meant) in [
            (
                json!({"id": "moved", "cpu": 1, "to_cpu": 0, "because": {"offline": false, "by": by}}),
                Some(moved),
            ),
            (json!({"id": "offline"}), Some(EndedEarly::Offline)),
            (json!("the CPU went offline"), Some(EndedEarly::Worded("the CPU went offline".into()))),
            (json!({"id": "sold", "to": "somebody"}), None),
        ] {
            let read: EndedEarly = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, EndedEarly::Unknown(_)), "{read:?}"),
            }
        }
    }
}
