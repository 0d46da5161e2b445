//! A host against a declared state.

use super::{Expected, is_known, words};
use jitterscope_analyze::{MachineFact, MachineValue};
use jitterscope_model::{DifferenceClass, PutInOrder, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// A declared state, and where this host deviates from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Checked {
    /// Version of this structure.
    pub schema_version: u32,
    /// The file of the declared state.
    pub file: String,
    /// The number of declared settings.
    pub declared: usize,
    /// Whether a property of the machine itself deviates: its architecture, processor, or hypervisor.
    pub other_type: bool,
    /// Where this host deviates, the most important first.
    pub deviations: Vec<Deviation>,
}

/// A declared setting that this host does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deviation {
    /// The setting, as a path within `machine.json`.
    pub what: String,
    /// Its line in the file, from 1.
    pub line: usize,
    pub state: DeviationState,
    /// The effect on stalls; null if this host does not have the setting.
    pub class: Option<DifferenceClass>,
    /// The declared value.
    pub declared: String,
    /// This host's value; null if it has none, or it could not be read.
    pub here: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviationState {
    /// This host has another value.
    Differs,
    /// This host has no such setting, so the declaration does not apply.
    NotHere,
    /// The user may not read it here.
    Unreadable,
}

/// The word for a setting that a machine does not have.
const ABSENT: &str = "absent";

impl Expected {
    /// Compares each declared setting with this host's. `file`: the name of the declaration, for reports.
    #[must_use]
    pub fn check(&self, file: &str, facts: &[MachineFact]) -> Checked {
        let facts: HashMap<&str, &MachineFact> = facts
            .iter()
            .map(|fact| (fact.what.as_str(), fact))
            .collect();
        let mut deviations = Vec::new();
        for of in &self.declared {
            let fact = facts.get(of.what.as_str());
            let fact = fact.filter(|fact| fact.value != MachineValue::Absent);
            let (state, here) = match fact {
                Some(fact) if !is_known(&fact.value) => (DeviationState::Unreadable, None),
                Some(fact) => (DeviationState::Differs, Some(words(fact))),
                None if of.value == ABSENT => continue,
                None => (DeviationState::NotHere, None),
            };
            if here.as_ref() == Some(&of.value) {
                continue;
            }
            deviations.push(Deviation {
                what: of.what.clone(),
                line: of.line,
                state,
                class: fact.map(|fact| fact.class),
                declared: of.value.clone(),
                here,
            });
        }
        let rank = |of: &Deviation| (of.state, of.class, of.line);
        deviations.order_by_key(rank);
        let incomparable = Some(DifferenceClass::Incomparable);
        Checked {
            schema_version: SCHEMA_VERSION,
            file: file.to_owned(),
            declared: self.declared.len(),
            other_type: deviations
                .iter()
                .any(|of| of.state == DeviationState::Differs && of.class == incomparable),
            deviations,
        }
    }
}

impl Checked {
    /// The number of deviations of a kind.
    #[must_use]
    pub fn count(&self, state: DeviationState) -> usize {
        self.deviations
            .iter()
            .filter(|of| of.state == state)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, DifferenceClass, MachineValue)]) -> Vec<MachineFact> {
        let fact = |(what, class, value): &(&str, DifferenceClass, MachineValue)| MachineFact {
            class: *class,
            what: (*what).into(),
            value: value.clone(),
        };
        all.iter().map(fact).collect()
    }

    #[test]
    fn each_declared_setting_is_as_declared_or_deviates_in_one_way() {
        use DifferenceClass::{Incomparable, Matters};
        let expected = Expected::parse(
            "version = 1\n[machine]\n'kernel.arch' = 'x86_64'\n'kernel.release' = '6.1'\n\
             'kernel.preemption' = 'full'\n'kernel.realtime' = 'absent'\n'interrupts.eth0' = '0-3'\n\
             'processors.isolated' = '2-3'\n[knobs]\nvmstat = '60'\n",
        )
        .unwrap();
        let text = |text: &str| MachineValue::Text(text.into());
        let here = facts(&[
            ("kernel.arch", Incomparable, text("aarch64")),
            ("kernel.release", Matters, text("6.1")),
            ("kernel.preemption", Matters, MachineValue::Denied),
            ("kernel.realtime", Matters, MachineValue::Absent),
            ("processors.isolated", Matters, text("3")),
            ("tuning.settings.vmstat", Matters, text("1")),
        ]);
        let checked = expected.check("golden.toml", &here);
        let found: Vec<(&str, DeviationState, Option<&str>)> = checked
            .deviations
            .iter()
            .map(|of| (of.what.as_str(), of.state, of.here.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                ("kernel.arch", DeviationState::Differs, Some("aarch64")),
                ("processors.isolated", DeviationState::Differs, Some("3")),
                ("tuning.settings.vmstat", DeviationState::Differs, Some("1")),
                ("interrupts.eth0", DeviationState::NotHere, None),
                ("kernel.preemption", DeviationState::Unreadable, None),
            ]
        );
        assert_eq!((checked.declared, checked.other_type), (7, true));
        // A value that is read as declared, and a declared absence, do not deviate.
        assert_eq!(checked.count(DeviationState::Differs), 3);
    }
}
