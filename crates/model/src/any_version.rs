//! What is stored as data and was text in earlier versions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something that is an object in JSON: as this version knows it, in the words of an earlier version, or as a newer
/// version wrote it. All three are written as they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnyVersion<T> {
    /// As this version knows it.
    Known(T),
    /// In the words of an earlier version.
    Worded(String),
    /// What a newer version wrote.
    Unknown(Map<String, Value>),
}

impl<T> AnyVersion<T> {
    /// What it is, where this version knows it.
    pub fn known(&self) -> Option<&T> {
        match self {
            AnyVersion::Known(known) => Some(known),
            AnyVersion::Worded(_) | AnyVersion::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for AnyVersion<T> {
    fn from(known: T) -> AnyVersion<T> {
        AnyVersion::Known(known)
    }
}

impl<T: PartialEq> PartialEq<T> for AnyVersion<T> {
    /// Only what this version knows is something that it knows.
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "id", rename_all = "kebab-case")]
    enum Example {
        TooHot,
        Moved { to_cpu: u32 },
    }

    #[test]
    fn what_every_version_wrote_is_read_and_kept() {
        for (text, meant) in [
            (json!({"id": "too-hot"}), Example::TooHot.into()),
            (
                json!({"id": "moved", "to_cpu": 3}),
                Example::Moved { to_cpu: 3 }.into(),
            ),
            (
                json!("it was too hot"),
                AnyVersion::Worded("it was too hot".into()),
            ),
            (json!({"id": "sold", "to": "somebody"}), {
                let newer = json!({"id": "sold", "to": "somebody"});
                AnyVersion::Unknown(newer.as_object().unwrap().clone())
            }),
            // Of what is known, with a field that says something else now.
            (json!({"id": "moved", "to_cpu": "the third"}), {
                let newer = json!({"id": "moved", "to_cpu": "the third"});
                AnyVersion::Unknown(newer.as_object().unwrap().clone())
            }),
        ] {
            let read: AnyVersion<Example> = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(read, meant);
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
        }
    }
}
