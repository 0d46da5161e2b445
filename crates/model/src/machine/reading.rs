//! A value of the machine, or why there is none.

use crate::AnyVersion;
use serde::{Deserialize, Serialize};

/// Why something that is there is not known. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum ReadingFlaw {
    /// It cannot be read.
    System {
        /// What the system said.
        system: String,
    },
    /// It is no number.
    NoNumber {
        /// What it reads, or the beginning of that.
        text: String,
    },
    /// It is neither 0 nor 1.
    NoSwitch {
        /// What it reads, or the beginning of that.
        text: String,
    },
    /// It names no CPUs.
    NoCpus {
        /// What it reads, or the beginning of that.
        text: String,
    },
}

/// A value as read, or what kept it from being read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// As read.
    Value(T),
    /// This machine has no such thing.
    #[default]
    Absent,
    /// It is there, but not for this user.
    Denied,
    /// It is there and cannot be read, or makes no sense; why.
    Unreadable(AnyVersion<ReadingFlaw>),
    /// What a newer version wrote here in a word.
    #[serde(untagged)]
    Newer(String),
}

impl<T> Reading<T> {
    /// It cannot be read, for what the system said.
    #[must_use]
    pub fn refused(system: String) -> Reading<T> {
        Reading::Unreadable(ReadingFlaw::System { system }.into())
    }

    /// The value, where there is one.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The same reading of something made of the value.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Value(make(value)))
    }

    /// The same, where making it may find that there is none after all.
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
        let earlier: Reading<u64> =
            serde_json::from_str(r#"{"unreadable":"'many' is no number"}"#).unwrap();
        let worded = AnyVersion::Worded("'many' is no number".into());
        assert_eq!(earlier, Reading::Unreadable(worded));
        let newer: Reading<u64> = serde_json::from_str("\"withheld\"").unwrap();
        assert_eq!(newer, Reading::Newer("withheld".into()));
        assert_eq!(serde_json::to_string(&newer).unwrap(), "\"withheld\"");
    }
}
