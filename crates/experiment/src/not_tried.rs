//! Why a knob that is advised is not tried, as data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why it is not tried. In JSON it has its stable `id` beside its fields. How long its undoing takes stands in the
/// knob's declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum NotTried {
    /// Its undoing takes longer than is waited for, or no time limits it.
    UndoneTooLate,
    /// It does not, and the budget leaves no time for it.
    NoTimeLeft,
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
            (json!({"id": "undone_too_late"}), Some(NotTried::UndoneTooLate)),
            (json!({"id": "no_time_left"}), Some(NotTried::NoTimeLeft)),
            (json!("undone at the next boot"), Some(NotTried::Worded("undone at the next boot".into()))),
            (json!({"id": "sun_spots", "seen": 3}), None),
        ] {
            let read: NotTried = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, NotTried::Unknown(_)), "{read:?}"),
            }
        }
    }
}
