//! Why the CPUs of a recording were chosen, as data.

use crate::CpuSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why these CPUs are measured, where the user named none. In JSON it has its stable, hyphenated `id` beside its
/// fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum CpusBecause {
    /// They are isolated.
    Isolated {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// No CPU is isolated, and this is the highest one that this process may use.
    HighestAllowed,
    /// What was tuned here keeps them undisturbed.
    KeptByTune {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// In the words of an earlier version.
    #[serde(untagged)]
    Worded(String),
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_every_version_wrote_is_read_and_kept() {
        for (text, meant) in [
            (
                json!({"id": "isolated", "cpus": "2-3"}),
                Some(CpusBecause::Isolated { cpus: "2-3".parse().unwrap() }),
            ),
            (json!({"id": "highest-allowed"}), Some(CpusBecause::HighestAllowed)),
            (json!("CPUs 2-3 are isolated"), Some(CpusBecause::Worded("CPUs 2-3 are isolated".into()))),
            (json!({"id": "coldest", "celsius": 31}), None),
        ] {
            let read: CpusBecause = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, CpusBecause::Unknown(_)), "{read:?}"),
            }
        }
    }
}
