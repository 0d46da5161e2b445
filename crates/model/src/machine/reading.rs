//! A value of the machine, or why it is missing.

use crate::AnyVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an existing value is unknown. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum ReadingFlaw {
    System {
        system: String,
    },
    /// It is not a number.
    NoNumber {
        /// Its text, possibly cut.
        text: String,
    },
    /// It is neither 0 nor 1.
    NoSwitch {
        /// Its text, possibly cut.
        text: String,
    },
    /// It is not a list of CPUs.
    NoCpus {
        /// Its text, possibly cut.
        text: String,
    },
}

/// A value as read, or why it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ReadingOf{T}")]
pub enum Reading<T> {
    Value(T),
    /// This machine has no such value.
    #[default]
    Absent,
    /// It exists, but this user may not read it.
    Denied,
    /// It exists, but cannot be read or parsed.
    Unreadable(AnyVersion<ReadingFlaw>),
    /// A word that a newer version wrote.
    #[serde(untagged)]
    Newer(String),
}

impl<T> Reading<T> {
    /// The system refused to read it, with this error.
    #[must_use]
    pub fn refused(system: String) -> Reading<T> {
        Reading::Unreadable(ReadingFlaw::System { system }.into())
    }

    /// The value, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Converts the value, if there is one.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Value(make(value)))
    }

    /// Converts the value, if there is one; the conversion may fail.
    pub fn and_then<U>(self, make: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Reading::Value(value) => make(value),
            Reading::Absent => Reading::Absent,
            Reading::Denied => Reading::Denied,
            Reading::Unreadable(why) => Reading::Unreadable(why),
            Reading::Newer(word) => Reading::Newer(word),
        }
    }
}

impl<T> From<Option<T>> for Reading<T> {
    /// `None` is [`Reading::Absent`].
    fn from(value: Option<T>) -> Reading<T> {
        value.map_or(Reading::Absent, Reading::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_absence_survives_a_file_and_a_newer_word_is_kept() {
        let flaw = ReadingFlaw::NoNumber {
            text: "many".into(),
        };
        let all: [Reading<u64>; 4] = [
            Reading::Value(3),
            Reading::Absent,
            Reading::Denied,
            Reading::Unreadable(flaw.into()),
        ];
        for reading in all {
            let text = serde_json::to_string(&reading).unwrap();
            assert_eq!(
                serde_json::from_str::<Reading<u64>>(&text).unwrap(),
                reading,
                "{text}"
            );
        }
        let newer: Reading<u64> = serde_json::from_str("\"withheld\"").unwrap();
        assert_eq!(newer, Reading::Newer("withheld".into()));
        assert_eq!(serde_json::to_string(&newer).unwrap(), "\"withheld\"");
    }
}
