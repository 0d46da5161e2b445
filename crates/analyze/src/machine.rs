//! Differences between the machines of two runs, and their importance.

use DifferenceClass::{Informational, Matters};
use jitterscope_model::{
    AppliedTuning, Compared, DifferenceClass, KnobFinding, KnobSetting, MACHINE_SETTINGS,
    MachineEntry, MachineState, PutInOrder, Reading, Scalar, SettingValue, TuningState,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One or several values of a machine's property.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineValue {
    /// In the machine's own words: a word, a list of CPUs.
    Text(String),
    /// A number, in the unit that the property's name gives.
    Number(u64),
    Switch(bool),
    /// A share of a CPU's time, in thousandths.
    Thousandths(u64),
    /// The property does not exist.
    Absent,
    /// The user may not read it.
    Denied,
    /// It cannot be read.
    Unreadable,
    /// A value with an addition: its CPUs, a partition's type, the state of a change.
    With {
        value: Box<MachineValue>,
        /// The addition, in the machine's words or by its name in JSON.
        with: String,
    },
    Several(Vec<MachineValue>),
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineDifference {
    pub class: DifferenceClass,
    /// The property, as a path within `machine.json`: `processors.microcode`, `tuning.settings.vmstat`.
    pub what: String,
    /// In the first run; `None` if it did not have the property. In JSON, view adds both in words.
    #[serde(skip)]
    pub before: Option<MachineValue>,
    /// In the second run; `None` if it did not have the property.
    #[serde(skip)]
    pub after: Option<MachineValue>,
}

/// A property of one machine, as comparisons see it.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFact {
    /// The effect of a difference.
    pub class: DifferenceClass,
    /// The property, as a path within `machine.json`.
    pub what: String,
    pub value: MachineValue,
}

/// The declared settings of a machine and the files of its knobs, in the order of `machine.json`. Its load, findings of
/// an audit and programs that run are no part of its declared state.
#[must_use]
pub fn machine_facts(machine: &MachineState) -> Vec<MachineFact> {
    let mut found = Vec::new();
    let mut add = |class, what: String, value| found.push(MachineFact { class, what, value });
    for setting in MACHINE_SETTINGS {
        let (what, entries) = (setting.name, machine.settings.get(setting.name));
        match setting.compared {
            Compared::Not | Compared::Mean(_) => {}
            Compared::Whole(class) => {
                if let Some(value) = whole(entries) {
                    add(class, what.to_owned(), value);
                }
            }
            Compared::ByName(class) | Compared::ByNameIfBoth(class) => {
                for (name, value) in by_name(entries) {
                    add(class, format!("{what}.{name}"), value);
                }
            }
        }
    }
    if let Reading::Value(tuning) = &machine.tuning {
        for (knob, value) in settings(&tuning.settings) {
            add(Matters, format!("{KNOBS}.{knob}"), value);
        }
    }
    found
}

/// The path of the knobs' values in `machine.json`.
pub const KNOBS: &str = "tuning.settings";
/// A difference of this much in the load of the other CPUs matters, in shares of one CPU.
const LOAD: f64 = 0.05;
/// The number of differences kept for each kind: a machine with other cards has different interrupts throughout.
const MOST_OF_A_KIND: usize = 64;

/// All differences, sorted by class, the most important first, and within a class in the order of the file. A property
/// that only one run has is a difference.
#[must_use]
pub fn compare_machines(before: &MachineState, after: &MachineState) -> Vec<MachineDifference> {
    let mut found = properties(before, after);
    means(&mut found, &[before], &[after]);
    found.0.order_by_key(|difference| difference.class);
    found.0
}

fn properties(before: &MachineState, after: &MachineState) -> Differences {
    let mut found = Differences::default();
    for setting in MACHINE_SETTINGS {
        let what = setting.name;
        let [old, new] = [before, after].map(|machine| machine.settings.get(what));
        match setting.compared {
            // Means are compared over all runs.
            Compared::Not | Compared::Mean(_) => {}
            Compared::Whole(class) => found.whole(class, what, old, new),
            Compared::ByName(class) => found.map(class, what, &by_name(old), &by_name(new)),
            Compared::ByNameIfBoth(class) => {
                let [old, new] = [old, new].map(by_name);
                if !old.is_empty() && !new.is_empty() {
                    found.map(class, what, &old, &new);
                }
            }
        }
    }
    tuning(&mut found, before, after);
    found
}

/// As [`compare_machines`], for the machines of several runs on each side: the median of the numbers and shares of a
/// side's runs, and the most frequent of other values, the first of equals. Empty if a side has none.
#[must_use]
pub fn compare_machines_of_runs(
    before: &[&MachineState],
    after: &[&MachineState],
) -> Vec<MachineDifference> {
    let (Some(base), Some(_)) = (before.first(), after.first()) else {
        return Vec::new();
    };
    let of = |runs: &[&MachineState]| -> Vec<Vec<MachineDifference>> {
        runs.iter().map(|run| properties(base, run).0).collect()
    };
    let sides = [of(before), of(after)];
    let mut known: BTreeMap<&str, &MachineDifference> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for difference in sides.iter().flatten().flatten() {
        if known.insert(&difference.what, difference).is_none() {
            order.push(&difference.what);
        }
    }
    let mut found = Differences::default();
    for what in order {
        let difference = known[what];
        // What does not differ from the first run's machine is as there.
        let usual = |runs: &[Vec<MachineDifference>]| {
            let value = |run: &Vec<MachineDifference>| {
                let of = run.iter().find(|of| of.what == what);
                of.map_or(difference.before.clone(), |of| of.after.clone())
            };
            usual(runs.iter().map(value).collect())
        };
        let [old, new] = sides.each_ref().map(|runs| usual(runs));
        found.push(difference.class, what, old, new);
    }
    means(&mut found, before, after);
    found.0.order_by_key(|difference| difference.class);
    found.0
}

/// The median of numbers, else the most frequent value.
fn usual(mut values: Vec<Option<MachineValue>>) -> Option<MachineValue> {
    let is_number = |value: &Option<MachineValue>| matches!(value, Some(MachineValue::Number(_)));
    if values.iter().all(is_number) {
        values.put_in_order();
        return values.swap_remove((values.len() - 1) / 2);
    }
    let count = |of: &Option<MachineValue>| values.iter().filter(|value| *value == of).count();
    let most = values.iter().map(count).max()?;
    values.iter().find(|value| count(value) == most)?.clone()
}

/// The middle of at least one value.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let low = values.get(values.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*low, values[values.len() / 2]))
}

#[derive(Default)]
struct Differences(Vec<MachineDifference>);

impl Differences {
    fn push(
        &mut self,
        class: DifferenceClass,
        what: &str,
        before: Option<MachineValue>,
        after: Option<MachineValue>,
    ) {
        if before != after {
            self.0.push(MachineDifference {
                class,
                what: what.to_owned(),
                before,
                after,
            });
        }
    }

    /// A setting that was unreadable in one of the runs does not count as different.
    fn whole(
        &mut self,
        class: DifferenceClass,
        what: &str,
        before: &[MachineEntry],
        after: &[MachineEntry],
    ) {
        let known = |entries: &[MachineEntry]| match entries {
            [only] => matches!(only.is, Reading::Value(_) | Reading::Absent),
            _ => true,
        };
        match (known(before), known(after)) {
            (true, true) => self.push(class, what, whole(before), whole(after)),
            (false, false) => {}
            // If one side is denied, nothing is known.
            _ => {
                let of = |entries| whole(entries).or(Some(MachineValue::Absent));
                self.push(Informational, what, of(before), of(after));
            }
        }
    }

    fn map(
        &mut self,
        class: DifferenceClass,
        what: &str,
        before: &BTreeMap<String, MachineValue>,
        after: &BTreeMap<String, MachineValue>,
    ) {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let different = names
            .into_iter()
            .map(|name| (name, before.get(name), after.get(name)))
            .filter(|(_, old, new)| old != new);
        for (name, old, new) in different.take(MOST_OF_A_KIND) {
            self.push(class, &format!("{what}.{name}"), old.cloned(), new.cloned());
        }
    }
}

fn mean(entries: &[MachineEntry]) -> Option<f64> {
    let (mut sum, mut cpus) = (0.0, 0.0);
    for entry in entries {
        if let Reading::Value(Scalar::Share(share)) = entry.is {
            let of = entry.cpus.as_ref().map_or(1, |cpus| cpus.len()) as f64;
            (sum, cpus) = (sum + share * of, cpus + of);
        }
    }
    (cpus > 0.0).then(|| sum / cpus)
}

/// The value of the whole machine, or each value with its CPUs.
fn whole(entries: &[MachineEntry]) -> Option<MachineValue> {
    match entries {
        [] => None,
        [only] => Some(value(only)),
        several => Some(MachineValue::Several(
            several
                .iter()
                .map(|entry| match &entry.cpus {
                    Some(cpus) => with(value(entry), cpus),
                    None => value(entry),
                })
                .collect(),
        )),
    }
}

/// The values of each name. Several entries of one name count together.
fn by_name(entries: &[MachineEntry]) -> BTreeMap<String, MachineValue> {
    let named = entries
        .iter()
        .filter_map(|entry| Some((entry.of.clone()?, value(entry))));
    grouped(named)
}

fn grouped(all: impl Iterator<Item = (String, MachineValue)>) -> BTreeMap<String, MachineValue> {
    let mut by_name: BTreeMap<String, BTreeSet<MachineValue>> = BTreeMap::new();
    for (name, value) in all {
        by_name.entry(name).or_default().insert(value);
    }
    by_name
        .into_iter()
        .map(|(name, values)| (name, several(values)))
        .collect()
}

fn value(entry: &MachineEntry) -> MachineValue {
    match &entry.with {
        Some(addition) => with(state(&entry.is), addition),
        None => state(&entry.is),
    }
}

fn state(reading: &Reading<Scalar>) -> MachineValue {
    match reading {
        Reading::Value(Scalar::Switch(on)) => MachineValue::Switch(*on),
        Reading::Value(Scalar::Number(number)) => MachineValue::Number(*number),
        Reading::Value(Scalar::Share(share)) => {
            MachineValue::Thousandths((share * 1000.0).round() as u64)
        }
        Reading::Value(Scalar::Text(text)) | Reading::Newer(text) => {
            MachineValue::Text(text.clone())
        }
        Reading::Value(Scalar::Words(words)) => MachineValue::Text(words.join(",")),
        Reading::Absent => MachineValue::Absent,
        Reading::Denied => MachineValue::Denied,
        Reading::Unreadable(_) => MachineValue::Unreadable,
    }
}

/// All distinct values; a single one stands alone.
fn several(values: BTreeSet<MachineValue>) -> MachineValue {
    let mut values = Vec::from_iter(values);
    match values.len() {
        1 => values.remove(0),
        _ => MachineValue::Several(values),
    }
}

fn with(value: MachineValue, with: impl ToString) -> MachineValue {
    MachineValue::With {
        value: Box::new(value),
        with: with.to_string(),
    }
}

fn tuning(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (Reading::Value(old), Reading::Value(new)) = (&before.tuning, &after.tuning) else {
        return;
    };
    let [old_values, new_values] = [old, new].map(|of| settings(&of.settings));
    found.map(Matters, KNOBS, &old_values, &new_values);
    // An audit is about the CPUs that it was run for.
    if old.cpus == new.cpus {
        let [old, new] = [old, new].map(|of| findings(&of.findings));
        found.map(Informational, "tuning.findings", &old, &new);
    }
    let names = |state: &TuningState| {
        let sorted: BTreeSet<&str> = state.competitors.iter().map(String::as_str).collect();
        Some(MachineValue::Text(Vec::from_iter(sorted).join(", ")))
    };
    found.push(Matters, "tuning.competitors", names(old), names(new));
    let [old, new] = [old, new].map(|of| applied(&of.applied));
    found.map(Matters, "tuning.applied", &old, &new);
}

/// Values of files. The words of an audit are left out: they name and count threads, and so differ every time.
fn settings(all: &[KnobSetting]) -> BTreeMap<String, MachineValue> {
    let value = |value: &SettingValue| {
        let is = state(&value.value.clone().map(Scalar::Text));
        match &value.cpus {
            Some(cpus) => with(is, cpus),
            None => is,
        }
    };
    grouped(
        all.iter()
            .filter(|setting| setting.values.iter().any(|value| !value.path.is_empty()))
            .flat_map(|setting| {
                setting
                    .values
                    .iter()
                    .map(|of| (setting.knob.clone(), value(of)))
            }),
    )
}

fn findings(all: &[KnobFinding]) -> BTreeMap<String, MachineValue> {
    let verdict = |finding: &KnobFinding| MachineValue::Text(finding.verdict.as_str().to_owned());
    all.iter()
        .map(|finding| (finding.knob.clone(), verdict(finding)))
        .collect()
}

fn applied(applied: &Reading<AppliedTuning>) -> BTreeMap<String, MachineValue> {
    let changes = applied.value().into_iter().flat_map(|of| &of.changes);
    grouped(changes.map(|change| {
        let asked = MachineValue::Text(change.asked.clone());
        (change.knob.clone(), with(asked, change.now.as_str()))
    }))
}

/// Compares means over CPUs, because work moves between CPUs from run to run, and medians of them over a side's runs. A
/// run that measured all CPUs has no others.
fn means(found: &mut Differences, before: &[&MachineState], after: &[&MachineState]) {
    for setting in MACHINE_SETTINGS {
        let Compared::Mean(class) = setting.compared else {
            continue;
        };
        let what = setting.name;
        let usual = |runs: &[&MachineState]| {
            let each = runs.iter().filter_map(|run| mean(run.settings.get(what)));
            median(each.collect())
        };
        let (Some(old), Some(new)) = (usual(before), usual(after)) else {
            continue;
        };
        if (old - new).abs() >= LOAD {
            let of = |share: f64| MachineValue::Thousandths((share * 1000.0).round() as u64);
            found.push(class, what, Some(of(old)), Some(of(new)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_run_does_not_speak_for_its_side() {
        let of = |busy: f64, release: &str| {
            let mut state = MachineState::default();
            let settings = &mut state.settings;
            settings.put("kernel.release", [MachineEntry::new(release)]);
            settings.put("load.busy", [MachineEntry::new(Scalar::Share(busy))]);
            state
        };
        let quiet = of(0.10, "6.1");
        let odd = of(0.90, "6.2");
        let names = |before: &[&MachineState], after: &[&MachineState]| -> Vec<String> {
            let found = compare_machines_of_runs(before, after);
            found.into_iter().map(|of| of.what).collect()
        };
        assert_eq!(names(&[&odd], &[&quiet]), ["kernel.release", "load.busy"]);
        let first_is_odd = [&odd, &quiet, &quiet];
        assert_eq!(names(&first_is_odd, &[&quiet; 3]), Vec::<String>::new());
        assert_eq!(names(&[&quiet; 3], &[&odd, &quiet, &odd]).len(), 2);
        assert_eq!(names(&[], &[&odd]), Vec::<String>::new());
    }

    #[test]
    fn what_all_cpus_have_stands_alone_and_what_some_have_stands_with_them() {
        let text = |text: &str| MachineValue::Text(text.into());
        let on = |value: &str, cpus: &str| MachineEntry::new(value).on(cpus.parse().unwrap());
        assert_eq!(
            whole(&[on("a", "0-1"), on("b", "2")]),
            Some(MachineValue::Several(vec![
                with(text("a"), "0-1"),
                with(text("b"), "2")
            ]))
        );
        assert_eq!(whole(&[on("a", "0-1")]), Some(text("a")));
        let number = Reading::Value(Scalar::Number(7));
        assert_eq!(state(&number), MachineValue::Number(7));
        assert_eq!(state(&Reading::Newer("later".into())), text("later"));
    }
}
