//! The knobs of the machine as `audit` and `tune` know them, by value.

use super::Reading;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Every knob of the catalogue on this machine, seen for the measured CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TuningState {
    /// CPUs that the findings are about.
    pub cpus: CpuSet,
    /// What each knob is set to, by id.
    pub settings: Vec<KnobSetting>,
    /// What the audit says of each, most useful first.
    pub findings: Vec<KnobFinding>,
    /// Programs that write the same settings and ran.
    pub competitors: Vec<String>,
    /// What `tune` had applied; absent when nothing is in force.
    pub applied: Reading<AppliedTuning>,
}

/// What a knob is set to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnobSetting {
    /// The knob's id.
    pub knob: String,
    /// Its values, those of equal files together; empty when this machine has none of its files.
    pub values: Vec<SettingValue>,
    /// How many more values there are.
    pub omitted: u64,
}

/// One value of a knob, and which files have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingValue {
    /// The file; `{cpu}` stands for the number of each of `cpus`, `*` for any name. Empty when the value is
    /// put together from several places.
    pub path: String,
    /// CPUs whose file has the value, where it is a CPU's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// How many files have it.
    pub files: u64,
    /// The value, in one spelling.
    pub value: Reading<String>,
    /// What is in force, where another file says so and it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
}

/// How a knob stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnobVerdict {
    /// Not as the CPUs want it.
    Wrong,
    /// As they want it.
    Fine,
    /// This machine has no such thing.
    #[default]
    Unavailable,
    /// It does not concern this machine or cannot be determined by looking.
    NotApplicable,
    /// It is there, but not for this user.
    Unreadable,
    /// What a newer version wrote.
    #[serde(untagged)]
    Newer(String),
}

impl KnobVerdict {
    /// The word for it in files.
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

/// What the audit says of one knob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnobFinding {
    /// The knob's id.
    pub knob: String,
    /// How it stands.
    pub verdict: KnobVerdict,
    /// Why, where it is neither wrong nor fine.
    pub reason: String,
    /// What there is, in words.
    pub current: String,
    /// What is wanted, in words.
    pub wanted: String,
}

/// What `tune` had applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppliedTuning {
    /// The applies in force, oldest first.
    pub applies: Vec<TuningApply>,
    /// Their changes, in the order in which they were made.
    pub changes: Vec<AppliedChange>,
    /// How many more there are.
    pub omitted: u64,
}

/// One apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TuningApply {
    /// Login name of who asked, where known.
    pub user: Option<String>,
    /// The command line.
    pub command: String,
    /// When, nanoseconds since the epoch.
    pub at_realtime_ns: u64,
    /// CPUs to be quiet.
    pub isolated: CpuSet,
    /// Whether it came to its end; otherwise it was cut off.
    pub finished: bool,
    /// Whether it was in an earlier boot.
    pub before_reboot: bool,
}

/// How an applied change stood when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeNow {
    /// As applied.
    #[default]
    InForce,
    /// As applied, but not in force yet.
    Pending,
    /// As it was before.
    Original,
    /// Changed by somebody else.
    Drifted,
    /// Gone.
    Gone,
    /// Refused when it was applied.
    Refused,
    /// Undone by a reboot.
    UndoneByReboot,
    /// What a newer version wrote.
    #[serde(untagged)]
    Newer(String),
}

impl ChangeNow {
    /// The word for it in files.
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

/// One applied change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppliedChange {
    /// The knob's id.
    pub knob: String,
    /// What was changed: a file, a thread.
    pub what: String,
    /// Before.
    pub original: String,
    /// What was asked for.
    pub asked: String,
    /// How it stood.
    pub now: ChangeNow,
    /// When it was asked for, nanoseconds since the epoch.
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
