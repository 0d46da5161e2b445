//! The state of the machine's knobs, as `audit` and `tune` see them.

use super::Reading;
use crate::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every knob of the catalogue on this machine, checked for the measured CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TuningState {
    /// CPUs that the findings apply to.
    pub cpus: CpuSet,
    /// The setting of each knob, by id.
    pub settings: Vec<KnobSetting>,
    /// The audit's finding on each knob, most useful first.
    pub findings: Vec<KnobFinding>,
    /// Running programs that write the same settings.
    pub competitors: Vec<String>,
    /// Changes that `tune` applied; absent if none is in force.
    pub applied: Reading<AppliedTuning>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KnobSetting {
    pub knob: String,
    /// Its values, one entry for files with equal values; empty if this machine has none of its files.
    pub values: Vec<SettingValue>,
    /// The number of further values.
    pub omitted: u64,
}

/// One value of a knob, and the files that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SettingValue {
    /// The file; `{cpu}` is the number of each of `cpus`, `*` any name. Empty if the value is composed from several
    /// places.
    pub path: String,
    /// CPUs whose file has the value, for a file per CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// The number of files with this value.
    pub files: u64,
    /// The value, in a normalized spelling.
    pub value: Reading<String>,
    /// The value in force, if another file shows it and it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
}

/// The audit's verdict on a knob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnobVerdict {
    /// Not as the CPUs need it.
    Wrong,
    /// As the CPUs need it.
    Fine,
    /// This machine has no such knob.
    #[default]
    Unavailable,
    /// It does not apply to this machine or cannot be determined by reading.
    NotApplicable,
    /// It exists, but this user may not read it.
    Unreadable,
    /// Written by a newer version.
    #[serde(untagged)]
    Newer(String),
}

impl KnobVerdict {
    /// Its word in files.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            KnobVerdict::Wrong => "wrong",
            KnobVerdict::Fine => "fine",
            KnobVerdict::Unavailable => "unavailable",
            KnobVerdict::NotApplicable => "not_applicable",
            KnobVerdict::Unreadable => "unreadable",
            KnobVerdict::Newer(word) => word,
        }
    }
}

/// The audit's finding on one knob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KnobFinding {
    pub knob: String,
    pub verdict: KnobVerdict,
    /// The reason, if it is neither wrong nor fine.
    pub reason: String,
    /// The current value, in words.
    pub current: String,
    /// The recommended value, in words.
    pub wanted: String,
}

/// Changes that `tune` applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AppliedTuning {
    /// The applies in force, oldest first.
    pub applies: Vec<TuningApply>,
    /// Their changes, in the order of application.
    pub changes: Vec<AppliedChange>,
    /// The number of further changes.
    pub omitted: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TuningApply {
    /// Login name of its user, if known.
    pub user: Option<String>,
    pub command: String,
    /// Its time, nanoseconds since the epoch.
    pub at_realtime_ns: u64,
    /// CPUs that it keeps undisturbed.
    pub isolated: CpuSet,
    /// Whether it completed.
    pub finished: bool,
    /// Whether it happened before the last reboot.
    pub before_reboot: bool,
}

/// The state of an applied change when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeNow {
    /// Still as applied.
    #[default]
    InForce,
    /// As applied, but not yet in force.
    Pending,
    /// As before the apply.
    Original,
    /// Changed by another program.
    Drifted,
    Gone,
    /// Refused when it was applied.
    Refused,
    UndoneByReboot,
    /// Written by a newer version.
    #[serde(untagged)]
    Newer(String),
}

impl ChangeNow {
    /// Its word in files.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            ChangeNow::InForce => "in_force",
            ChangeNow::Pending => "pending",
            ChangeNow::Original => "original",
            ChangeNow::Drifted => "drifted",
            ChangeNow::Gone => "gone",
            ChangeNow::Refused => "refused",
            ChangeNow::UndoneByReboot => "undone_by_reboot",
            ChangeNow::Newer(word) => word,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AppliedChange {
    pub knob: String,
    /// The changed file or thread.
    pub what: String,
    pub original: String,
    pub asked: String,
    pub now: ChangeNow,
    /// The time of the request, nanoseconds since the epoch.
    pub since_realtime_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_file() {
        for now in [
            ChangeNow::InForce,
            ChangeNow::UndoneByReboot,
            ChangeNow::Newer("parked".into()),
        ] {
            assert_eq!(
                serde_json::to_string(&now).unwrap(),
                format!("\"{}\"", now.as_str())
            );
        }
        for verdict in [
            KnobVerdict::NotApplicable,
            KnobVerdict::Wrong,
            KnobVerdict::Newer("moot".into()),
        ] {
            assert_eq!(
                serde_json::to_string(&verdict).unwrap(),
                format!("\"{}\"", verdict.as_str())
            );
        }
    }
}
