//! The values of a machine's settings.

use super::{MACHINE_SETTINGS, MachineSetting, Reading};
use crate::{CpuId, CpuSet};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// A value of the machine. Lists of CPUs are texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    Switch(bool),
    Number(u64),
    /// A share of a CPU's time, from 0 to 1.
    Share(f64),
    Text(String),
    Words(Vec<String>),
}

impl From<u64> for Scalar {
    fn from(number: u64) -> Scalar {
        Scalar::Number(number)
    }
}

impl From<bool> for Scalar {
    fn from(on: bool) -> Scalar {
        Scalar::Switch(on)
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Scalar {
        Scalar::Text(text.to_owned())
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Scalar {
        Scalar::Text(text)
    }
}

impl From<&CpuSet> for Scalar {
    fn from(cpus: &CpuSet) -> Scalar {
        Scalar::Text(cpus.to_string())
    }
}

/// A value, and what has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineEntry {
    /// The name, for a setting of many: an interrupt's handler, an option of the kernel's build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its number, if several can have one name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The CPUs that have the value, for a setting of each CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    pub is: Reading<Scalar>,
    /// An addition to the value: the kind of a cpuset's partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

impl MachineEntry {
    pub fn new(value: impl Into<Scalar>) -> MachineEntry {
        Reading::Value(value.into()).into()
    }

    #[must_use]
    pub fn of(self, name: impl Into<String>) -> MachineEntry {
        MachineEntry {
            of: Some(name.into()),
            ..self
        }
    }

    #[must_use]
    pub fn on(self, cpus: CpuSet) -> MachineEntry {
        MachineEntry {
            cpus: Some(cpus),
            ..self
        }
    }

    /// Its text, if it has one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.is.value() {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }
}

impl From<Reading<Scalar>> for MachineEntry {
    fn from(is: Reading<Scalar>) -> MachineEntry {
        MachineEntry {
            is,
            ..MachineEntry::default()
        }
    }
}

/// The entries of each setting, in the order of [`MACHINE_SETTINGS`]. A setting that this machine does not have has no
/// entry; settings of other versions are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineSettings(BTreeMap<usize, Vec<MachineEntry>>);

impl MachineSettings {
    /// The entries of a setting.
    #[must_use]
    pub fn get(&self, name: &str) -> &[MachineEntry] {
        place(name)
            .and_then(|at| self.0.get(&at))
            .map_or(&[], Vec::as_slice)
    }

    /// The value of a setting that the whole machine has.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Scalar> {
        self.get(name).first()?.is.value()
    }

    /// Replaces the entries of a setting.
    pub fn put(&mut self, name: &str, entries: impl Into<Vec<MachineEntry>>) {
        let (at, entries) = (place(name), entries.into());
        debug_assert!(at.is_some(), "{name} is not declared");
        let absent = match entries.as_slice() {
            [only] => *only == MachineEntry::default(),
            entries => entries.is_empty(),
        };
        match at {
            Some(at) if absent => drop(self.0.remove(&at)),
            Some(at) => drop(self.0.insert(at, entries)),
            None => {}
        }
    }

    /// Replaces the entries by those with a value for each CPU; CPUs with equal values share one, in the order of their
    /// lowest CPU. A machine of 256 equal CPUs has one entry.
    pub fn put_each(&mut self, name: &str, each: impl IntoIterator<Item = (CpuId, MachineEntry)>) {
        let mut groups: Vec<MachineEntry> = Vec::new();
        for (cpu, mut entry) in each {
            let alike = groups.iter_mut().find(|group| {
                (&group.of, &group.is, &group.with) == (&entry.of, &entry.is, &entry.with)
            });
            match alike.and_then(|group| group.cpus.as_mut()) {
                Some(cpus) => {
                    cpus.insert(cpu);
                }
                None => {
                    entry.cpus = Some([cpu].into_iter().collect());
                    groups.push(entry);
                }
            }
        }
        // CPUs without the value count only if others have it.
        if groups.iter().any(|group| group.is != Reading::Absent) {
            self.put(name, groups);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static MachineSetting, &[MachineEntry])> {
        self.0
            .iter()
            .filter_map(|(at, entries)| Some((MACHINE_SETTINGS.get(*at)?, entries.as_slice())))
    }
}

fn place(name: &str) -> Option<usize> {
    MACHINE_SETTINGS
        .iter()
        .position(|setting| setting.name == name)
}

impl Serialize for MachineSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.iter()
                .map(|(setting, entries)| (setting.name, entries)),
        )
    }
}

impl<'de> Deserialize<'de> for MachineSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MachineSettings, D::Error> {
        let all = BTreeMap::<String, Vec<MachineEntry>>::deserialize(deserializer)?;
        let known = all
            .into_iter()
            .filter_map(|(name, entries)| Some((place(&name)?, entries)));
        Ok(MachineSettings(known.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_entry() {
        let mut settings = MachineSettings::default();
        let governor = "processors.frequency.governor";
        let word = |n: u32| {
            if n.is_multiple_of(2) {
                "performance"
            } else {
                "powersave"
            }
        };
        settings.put_each(
            governor,
            (0..256).map(|n| (CpuId(n), MachineEntry::new(word(n)))),
        );
        let entries = settings.get(governor);
        assert_eq!(entries.len(), 2);
        assert!(entries[1].cpus.as_ref().unwrap().contains(CpuId(3)));
        assert_eq!(entries[1].text(), Some("powersave"));
        settings.put_each(
            governor,
            (0..256).map(|n| (CpuId(n), MachineEntry::new(word(0)))),
        );
        assert_eq!(
            serde_json::to_string(&settings).unwrap(),
            r#"{"processors.frequency.governor":[{"cpus":"0-255","is":{"value":"performance"}}]}"#
        );
    }

    #[test]
    fn values_come_back_and_settings_of_other_versions_are_ignored() {
        let mut settings = MachineSettings::default();
        settings.put(
            "load.busy",
            [Scalar::Share(1.0), Scalar::Share(0.25)].map(MachineEntry::new),
        );
        settings.put("memory.swap_kib", [MachineEntry::new(7)]);
        settings.put("kernel.config", [MachineEntry::new("250").of("HZ")]);
        let words = Scalar::Words(vec!["tsc".into()]);
        settings.put("kernel.clocksources", [MachineEntry::new(words)]);
        settings.put("kernel.realtime", [MachineEntry::from(Reading::Denied)]);
        let mut value = serde_json::to_value(&settings).unwrap();
        value["moon.phase"] = serde_json::json!([{"is": {"value": "full"}}]);
        let read: MachineSettings = serde_json::from_value(value).unwrap();
        assert_eq!(read, settings);
        assert_eq!(read.value("memory.swap_kib"), Some(&Scalar::Number(7)));
        assert_eq!(read.get("memory.total_kib"), []);
    }

    #[test]
    fn no_setting_is_declared_twice() {
        let names: std::collections::BTreeSet<_> = MACHINE_SETTINGS
            .iter()
            .map(|setting| setting.name)
            .collect();
        assert_eq!(names.len(), MACHINE_SETTINGS.len());
    }
}
