//! Why a clock is not used, or used in doubt, as data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What there is against measuring with the TSC. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum TscFlaw {
    /// Nothing: another clock was asked for.
    NotWanted,
    /// This architecture has none.
    NoTsc,
    /// The kernel keeps time by another clock.
    OtherClockSource {
        /// The kernel's name of that.
        source: String,
    },
    /// Which clock the kernel keeps time by cannot be read.
    ClockSourceUnreadable {
        /// What the system said.
        system: String,
    },
    /// The kernel keeps time by it, and the CPU does not promise that its rate is constant.
    NotConstant,
    /// The kernel keeps time by it, and the CPU does not promise that it goes on in deep idle states.
    StopsInIdle,
    /// In the words of an earlier version.
    #[serde(untagged)]
    Worded(String),
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// Why no clock can be used. In JSON it has its stable, hyphenated `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum ClockFailure {
    /// The clock did not advance while it was calibrated.
    Stuck,
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
        let other = TscFlaw::OtherClockSource { source: "hpet".into() };
        let earlier = "the kernel's clock source is hpet, not tsc";
        for (text, meant) in [
            (json!({"id": "other-clock-source", "source": "hpet"}), Some(other)),
            (json!({"id": "stops-in-idle"}), Some(TscFlaw::StopsInIdle)),
            (json!(earlier), Some(TscFlaw::Worded(earlier.into()))),
            (json!({"id": "runs-backwards", "by": 3}), None),
        ] {
            let read: TscFlaw = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
            match meant {
                Some(meant) => assert_eq!(read, meant),
                None => assert!(matches!(read, TscFlaw::Unknown(_)), "{read:?}"),
            }
        }
        for text in [json!({"id": "stuck"}), json!("it stood still"), json!({"id": "sold"})] {
            let read: ClockFailure = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
        }
    }
}
