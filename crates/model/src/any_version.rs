//! Stored data that any version may have written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The id of a value that a redacted report leaves out.
const LEFT_OUT: &str = "left-out";

/// A JSON object, as this version knows it or as a newer version wrote it. Both are written back as they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "{T}OfAnyVersion")]
pub enum AnyVersion<T> {
    Known(T),
    /// Written by a newer version.
    Unknown(Map<String, Value>),
}

impl<T> AnyVersion<T> {
    /// The value, if this version knows it.
    pub fn known(&self) -> Option<&T> {
        match self {
            AnyVersion::Known(known) => Some(known),
            AnyVersion::Unknown(_) => None,
        }
    }

    /// A value that a redacted report leaves out.
    #[must_use]
    pub fn left_out() -> AnyVersion<T> {
        AnyVersion::Unknown(Map::from_iter([("id".to_owned(), LEFT_OUT.into())]))
    }

    /// Whether a redacted report left it out.
    pub fn is_left_out(&self) -> bool {
        matches!(self, AnyVersion::Unknown(fields) if fields.get("id").is_some_and(|id| id == LEFT_OUT))
    }
}

impl<T> From<T> for AnyVersion<T> {
    fn from(known: T) -> AnyVersion<T> {
        AnyVersion::Known(known)
    }
}

impl<T: PartialEq> PartialEq<T> for AnyVersion<T> {
    /// Only a known value can equal `other`.
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
    fn what_a_newer_version_wrote_is_read_and_kept() {
        let newer = |of: &Value| AnyVersion::Unknown(of.as_object().unwrap().clone());
        let sold = json!({"id": "sold", "to": "somebody"});
        // A known id, but with a field of another type.
        let moved = json!({"id": "moved", "to_cpu": "the third"});
        for (text, meant) in [
            (json!({"id": "too-hot"}), Example::TooHot.into()),
            (
                json!({"id": "moved", "to_cpu": 3}),
                Example::Moved { to_cpu: 3 }.into(),
            ),
            (sold.clone(), newer(&sold)),
            (moved.clone(), newer(&moved)),
            (json!({"id": "left-out"}), AnyVersion::left_out()),
        ] {
            let read: AnyVersion<Example> = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(read, meant);
            assert_eq!(read.is_left_out(), text["id"] == "left-out");
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
        }
    }
}
