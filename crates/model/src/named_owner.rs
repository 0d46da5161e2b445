//! Who was named as the one that watched CPUs belong to, as data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whose threads belong on watched CPUs, as the user named them. In JSON it has its stable, hyphenated `id` beside its
/// fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum NamedOwner {
    /// The threads of a process.
    Process {
        /// Its id.
        pid: i32,
    },
    /// Threads of a name.
    Named {
        /// The name.
        name: String,
    },
    /// In the words of an earlier version; empty where nobody was named.
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
            (json!({"id": "process", "pid": 7}), Some(NamedOwner::Process { pid: 7 })),
            (json!({"id": "named", "name": "redis"}), Some(NamedOwner::Named { name: "redis".into() })),
            (json!("process 7"), Some(NamedOwner::Worded("process 7".into()))),
            (json!({"id": "user", "uid": 0}), None),
        ] {
            let read: NamedOwner = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, NamedOwner::Unknown(_)), "{read:?}"),
            }
        }
    }
}
