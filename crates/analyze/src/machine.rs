//! Differences between the machines of two runs, and their importance.

use DifferenceClass::{Incomparable, Informational, Matters};
use jitterscope_model::{
    AppliedTuning, CpuLoad, FrequencyPolicy, IdlePolicy, IdleState, Interrupts, KnobFinding,
    KnobSetting, MachineState, MemoryState, PerCpu, Reading, SettingValue, TuningState,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The effect of a difference on a comparison of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceClass {
    /// The runs are of different machines: their figures do not show the effect of a setting.
    Incomparable,
    /// The property affects stalls: it may cause a difference, so it should be the only difference.
    Matters,
    Informational,
}

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

#[derive(Clone, Debug, PartialEq)]
pub struct MachineDifference {
    pub class: DifferenceClass,
    /// The property, as a path within `machine.json`: `processors.microcode`, `tuning.settings.vmstat`.
    pub what: String,
    /// In the first run; `None` if it did not have the property.
    pub before: Option<MachineValue>,
    /// In the second run; `None` if it did not have the property.
    pub after: Option<MachineValue>,
}

/// A difference of this much in the load of the other CPUs matters, in shares of one CPU.
const LOAD: f64 = 0.05;
/// The number of differences kept for each kind: a machine with other cards has different interrupts throughout.
const MOST_OF_A_KIND: usize = 64;

/// All differences, sorted by class, the most important first, and within a class in the order of the file. A property
/// that only one run has is a difference.
#[must_use]
pub fn compare_machines(before: &MachineState, after: &MachineState) -> Vec<MachineDifference> {
    let mut found = Differences::default();
    hardware(&mut found, before, after);
    kernel(&mut found, before, after);
    governors(&mut found, before, after);
    memory(&mut found, before, after);
    interrupts(&mut found, &before.interrupts, &after.interrupts);
    placement(&mut found, before, after);
    tuning(&mut found, before, after);
    load(&mut found, before, after);
    found.0.sort_by_key(|difference| difference.class);
    found.0
}

#[derive(Default)]
struct Differences(Vec<MachineDifference>);

impl Differences {
    fn push(
        &mut self,
        class: DifferenceClass,
        what: String,
        before: Option<MachineValue>,
        after: Option<MachineValue>,
    ) {
        if before != after {
            self.0.push(MachineDifference {
                class,
                what,
                before,
                after,
            });
        }
    }

    fn plain(
        &mut self,
        class: DifferenceClass,
        what: &str,
        before: impl ToString,
        after: impl ToString,
    ) {
        let [before, after] = [before.to_string(), after.to_string()].map(MachineValue::Text);
        self.push(class, what.to_owned(), Some(before), Some(after));
    }

    /// A value or its absence. A property that was unreadable in one of the runs does not count as different.
    fn reading<T: Valued>(
        &mut self,
        class: DifferenceClass,
        what: &str,
        before: &Reading<T>,
        after: &Reading<T>,
    ) {
        match (before, after) {
            (Reading::Value(_) | Reading::Absent, Reading::Value(_) | Reading::Absent) => {
                let of = |reading: &Reading<T>| reading.value().map(Valued::to_value);
                self.push(class, what.to_owned(), of(before), of(after));
            }
            // If one side is denied, nothing is known.
            (Reading::Value(_) | Reading::Absent, _) | (_, Reading::Value(_) | Reading::Absent) => {
                self.push(
                    Informational,
                    what.to_owned(),
                    Some(state(before)),
                    Some(state(after)),
                );
            }
            _ => {}
        }
    }

    fn map(
        &mut self,
        class: impl Fn(&str) -> DifferenceClass,
        what: &str,
        before: &BTreeMap<String, MachineValue>,
        after: &BTreeMap<String, MachineValue>,
    ) {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut listed = 0;
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old != new && listed < MOST_OF_A_KIND {
                listed += 1;
                self.push(
                    class(name),
                    format!("{what}.{name}"),
                    old.cloned(),
                    new.cloned(),
                );
            }
        }
    }
}

fn state<T: Valued>(reading: &Reading<T>) -> MachineValue {
    match reading {
        Reading::Value(value) => value.to_value(),
        Reading::Absent => MachineValue::Absent,
        Reading::Denied => MachineValue::Denied,
        Reading::Unreadable(_) => MachineValue::Unreadable,
        Reading::Newer(word) => word.to_value(),
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

/// The part of a reading's value that is kept.
trait Valued {
    fn to_value(&self) -> MachineValue;
}

impl Valued for String {
    fn to_value(&self) -> MachineValue {
        MachineValue::Text(self.clone())
    }
}

impl Valued for u32 {
    fn to_value(&self) -> MachineValue {
        MachineValue::Number(u64::from(*self))
    }
}

impl Valued for u64 {
    fn to_value(&self) -> MachineValue {
        MachineValue::Number(*self)
    }
}

impl Valued for bool {
    fn to_value(&self) -> MachineValue {
        MachineValue::Switch(*self)
    }
}

impl Valued for jitterscope_model::CpuSet {
    fn to_value(&self) -> MachineValue {
        MachineValue::Text(self.to_string())
    }
}

impl Valued for MachineValue {
    fn to_value(&self) -> MachineValue {
        self.clone()
    }
}

impl<T: Valued> Valued for PerCpu<T> {
    /// The common value, or each value with its CPUs.
    fn to_value(&self) -> MachineValue {
        if let [only] = self.0.as_slice() {
            return only.value.to_value();
        }
        let groups = self
            .0
            .iter()
            .map(|group| with(group.value.to_value(), &group.cpus));
        MachineValue::Several(groups.collect())
    }
}

fn hardware(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.processors, &after.processors);
    found.plain(
        Incomparable,
        "kernel.arch",
        &before.kernel.arch,
        &after.kernel.arch,
    );
    let model = "processors.model".to_owned();
    found.push(
        Incomparable,
        model,
        Some(old.model.to_value()),
        Some(new.model.to_value()),
    );
    found.reading(
        Incomparable,
        "kernel.hypervisor",
        &before.kernel.hypervisor,
        &after.kernel.hypervisor,
    );
    found.reading(
        Incomparable,
        "processors.sockets",
        &old.sockets,
        &new.sockets,
    );
    found.reading(Incomparable, "processors.cores", &old.cores, &new.cores);
    found.reading(
        Matters,
        "processors.microcode",
        &old.microcode,
        &new.microcode,
    );
    found.plain(Matters, "processors.online", &old.online, &new.online);
    found.plain(Matters, "processors.isolated", &old.isolated, &new.isolated);
    found.plain(
        Matters,
        "processors.nohz_full",
        &old.nohz_full,
        &new.nohz_full,
    );
    found.reading(
        Matters,
        "processors.smt.active",
        &old.smt.active,
        &new.smt.active,
    );
    found.reading(
        Informational,
        "processors.smt.control",
        &old.smt.control,
        &new.smt.control,
    );
    let (old, new) = (&before.firmware, &after.firmware);
    found.reading(Matters, "firmware.vendor", &old.vendor, &new.vendor);
    found.reading(Matters, "firmware.product", &old.product, &new.product);
    found.reading(Informational, "firmware.board", &old.board, &new.board);
    found.reading(
        Informational,
        "firmware.bios_vendor",
        &old.bios_vendor,
        &new.bios_vendor,
    );
    found.reading(
        Matters,
        "firmware.bios_version",
        &old.bios_version,
        &new.bios_version,
    );
    found.reading(
        Informational,
        "firmware.bios_date",
        &old.bios_date,
        &new.bios_date,
    );
}

fn kernel(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.kernel, &after.kernel);
    found.plain(Matters, "kernel.release", &old.release, &new.release);
    found.plain(Informational, "kernel.version", &old.version, &new.version);
    found.reading(Matters, "kernel.boot_line", &old.boot_line, &new.boot_line);
    found.reading(
        Matters,
        "kernel.preemption",
        &old.preemption,
        &new.preemption,
    );
    found.reading(Matters, "kernel.realtime", &old.realtime, &new.realtime);
    found.reading(
        Matters,
        "kernel.clocksource",
        &old.clocksource,
        &new.clocksource,
    );
    if let (Reading::Value(old), Reading::Value(new)) = (&old.config, &new.config) {
        found.map(|_| Matters, "kernel.config", &texts(old), &texts(new));
    }
    if let (Reading::Value(old), Reading::Value(new)) = (&old.mitigations, &new.mitigations) {
        found.map(|_| Matters, "kernel.mitigations", &texts(old), &texts(new));
    }
}

fn texts(all: &BTreeMap<String, String>) -> BTreeMap<String, MachineValue> {
    all.iter()
        .map(|(name, value)| (name.clone(), value.to_value()))
        .collect()
}

fn governors(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.processors, &after.processors);
    found.reading(Matters, "processors.boost", &old.boost, &new.boost);
    let field = |frequency: &Reading<PerCpu<FrequencyPolicy>>,
                 of: fn(&FrequencyPolicy) -> MachineValue| {
        frequency.clone().map(|policies| {
            let each = policies
                .0
                .iter()
                .flat_map(|g| g.cpus.iter().map(move |cpu| (cpu, of(&g.value))));
            each.collect::<PerCpu<MachineValue>>()
        })
    };
    type Field = (&'static str, fn(&FrequencyPolicy) -> MachineValue);
    let fields: [Field; 5] = [
        ("processors.frequency.driver", |p| state(&p.driver)),
        ("processors.frequency.governor", |p| state(&p.governor)),
        ("processors.frequency.min_khz", |p| state(&p.min_khz)),
        ("processors.frequency.max_khz", |p| state(&p.max_khz)),
        ("processors.frequency.energy_preference", |p| {
            state(&p.energy_preference)
        }),
    ];
    for (what, of) in fields {
        found.reading(
            Matters,
            what,
            &field(&old.frequency, of),
            &field(&new.frequency, of),
        );
    }
    found.reading(
        Matters,
        "processors.idle.driver",
        &old.idle.driver,
        &new.idle.driver,
    );
    found.reading(
        Matters,
        "processors.idle.governor",
        &old.idle.governor,
        &new.idle.governor,
    );
    let states = |idle: &IdlePolicy| -> PerCpu<String> {
        let usable = |states: &[IdleState]| {
            let on = states
                .iter()
                .filter(|s| s.disabled != Reading::Value(true))
                .map(|s| s.name.as_str());
            on.collect::<Vec<_>>().join(",")
        };
        let each = idle
            .states
            .0
            .iter()
            .flat_map(|g| g.cpus.iter().map(move |cpu| (cpu, usable(&g.value))));
        each.collect()
    };
    let [old, new] = [old, new].map(|of| Some(states(&of.idle).to_value()));
    found.push(Matters, "processors.idle.states".to_owned(), old, new);
}

fn memory(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.memory, &after.memory);
    found.reading(
        Informational,
        "memory.total_kib",
        &old.total_kib,
        &new.total_kib,
    );
    found.reading(Matters, "memory.swap_kib", &old.swap_kib, &new.swap_kib);
    found.reading(
        Matters,
        "memory.transparent_huge_pages",
        &old.transparent_huge_pages,
        &new.transparent_huge_pages,
    );
    found.reading(
        Matters,
        "memory.transparent_defrag",
        &old.transparent_defrag,
        &new.transparent_defrag,
    );
    found.reading(
        Matters,
        "memory.same_page_merging",
        &old.same_page_merging,
        &new.same_page_merging,
    );
    let sizes = |memory: &MemoryState| -> BTreeMap<String, MachineValue> {
        let all = memory.huge_pages.value().into_iter().flatten();
        all.map(|size| (format!("{} KiB", size.size_kib), state(&size.pages)))
            .collect()
    };
    found.map(
        |_| Informational,
        "memory.huge_pages",
        &sizes(old),
        &sizes(new),
    );
    let nodes = |machine: &MachineState| -> BTreeMap<String, MachineValue> {
        let all = machine.processors.numa.value().into_iter().flatten();
        all.map(|node| (node.id.to_string(), node.cpus.to_value()))
            .collect()
    };
    found.map(
        |_| Matters,
        "processors.numa",
        &nodes(before),
        &nodes(after),
    );
}

fn interrupts(found: &mut Differences, before: &Interrupts, after: &Interrupts) {
    found.reading(
        Matters,
        "interrupts.default_affinity",
        &before.default_affinity,
        &after.default_affinity,
    );
    // By name, because numbers change from boot to boot. Interrupts of one name count together.
    let places = |interrupts: &Interrupts| -> BTreeMap<String, MachineValue> {
        let mut by_name: BTreeMap<String, BTreeSet<MachineValue>> = BTreeMap::new();
        for row in &interrupts.rows {
            by_name
                .entry(row.actions.clone())
                .or_default()
                .insert(state(&row.affinity));
        }
        by_name
            .into_iter()
            .map(|(name, places)| (name, several(places)))
            .collect()
    };
    found.map(|_| Matters, "interrupts", &places(before), &places(after));
}

fn placement(found: &mut Differences, before: &MachineState, after: &MachineState) {
    found.reading(
        Matters,
        "workqueues.unbound",
        &before.workqueues.unbound,
        &after.workqueues.unbound,
    );
    let queues = |machine: &MachineState| -> BTreeMap<String, MachineValue> {
        let all = machine.workqueues.queues.iter();
        all.map(|queue| (queue.name.clone(), state(&queue.cpus)))
            .collect()
    };
    found.map(|_| Matters, "workqueues", &queues(before), &queues(after));
    found.reading(
        Matters,
        "cpusets.own",
        &before.cpusets.own,
        &after.cpusets.own,
    );
    let groups = |machine: &MachineState| -> BTreeMap<String, MachineValue> {
        let all = machine.cpusets.groups.iter();
        all.map(|group| {
            let partition = group.partition.value().filter(|p| *p != "member");
            let value = match partition {
                Some(partition) => with(state(&group.cpus), partition),
                None => state(&group.cpus),
            };
            (group.path.clone(), value)
        })
        .collect()
    };
    found.map(|_| Matters, "cpusets", &groups(before), &groups(after));
}

fn tuning(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (Reading::Value(old), Reading::Value(new)) = (&before.tuning, &after.tuning) else {
        return;
    };
    found.map(
        |_| Matters,
        "tuning.settings",
        &settings(&old.settings),
        &settings(&new.settings),
    );
    // An audit is about the CPUs that it was run for.
    if old.cpus == new.cpus {
        found.map(
            |_| Informational,
            "tuning.findings",
            &findings(&old.findings),
            &findings(&new.findings),
        );
    }
    let names = |state: &TuningState| {
        let sorted: BTreeSet<&str> = state.competitors.iter().map(String::as_str).collect();
        Vec::from_iter(sorted).join(", ")
    };
    found.plain(Matters, "tuning.competitors", names(old), names(new));
    found.map(
        |_| Matters,
        "tuning.applied",
        &applied(&old.applied),
        &applied(&new.applied),
    );
}

/// Values of files. The words of an audit are left out: they name and count threads, and so differ every time.
fn settings(all: &[KnobSetting]) -> BTreeMap<String, MachineValue> {
    let value = |value: &SettingValue| match &value.cpus {
        Some(cpus) => with(state(&value.value), cpus),
        None => state(&value.value),
    };
    let of_files =
        |setting: &&KnobSetting| setting.values.iter().any(|value| !value.path.is_empty());
    all.iter()
        .filter(of_files)
        .map(|setting| {
            (
                setting.knob.clone(),
                several(setting.values.iter().map(value).collect()),
            )
        })
        .collect()
}

fn findings(all: &[KnobFinding]) -> BTreeMap<String, MachineValue> {
    let verdict = |finding: &KnobFinding| MachineValue::Text(finding.verdict.as_str().to_owned());
    all.iter()
        .map(|finding| (finding.knob.clone(), verdict(finding)))
        .collect()
}

fn applied(applied: &Reading<AppliedTuning>) -> BTreeMap<String, MachineValue> {
    let mut by_knob: BTreeMap<String, BTreeSet<MachineValue>> = BTreeMap::new();
    for change in applied
        .value()
        .into_iter()
        .flat_map(|applied| &applied.changes)
    {
        let asked = with(change.asked.to_value(), change.now.as_str());
        by_knob
            .entry(change.knob.clone())
            .or_default()
            .insert(asked);
    }
    by_knob
        .into_iter()
        .map(|(knob, asked)| (knob, several(asked)))
        .collect()
}

fn load(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (Reading::Value(old), Reading::Value(new)) = (&before.load, &after.load) else {
        return;
    };
    type Share = (&'static str, fn(&CpuLoad) -> f64);
    let shares: [Share; 2] = [
        ("busy", |load| load.busy_share),
        ("steal", |load| load.steal_share),
    ];
    for (name, of) in shares {
        // The mean, because work moves between CPUs from run to run. A run that measured all CPUs has no others.
        let mean = |loads: &[CpuLoad]| {
            let sum: f64 = loads.iter().map(of).sum();
            (!loads.is_empty()).then(|| sum / loads.len() as f64)
        };
        let (Some(old), Some(new)) = (mean(old), mean(new)) else {
            return;
        };
        if (old - new).abs() >= LOAD {
            let of = |share: f64| MachineValue::Thousandths((share * 1000.0).round() as u64);
            found.push(
                Matters,
                format!("load.{name}"),
                Some(of(old)),
                Some(of(new)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;

    #[test]
    fn what_all_cpus_have_stands_alone_and_what_some_have_stands_with_them() {
        let text = |text: &str| MachineValue::Text(text.into());
        let of: PerCpu<String> = [(0, "a"), (1, "a"), (2, "b")]
            .map(|(cpu, of)| (CpuId(cpu), of.to_owned()))
            .into_iter()
            .collect();
        assert_eq!(
            of.to_value(),
            MachineValue::Several(vec![with(text("a"), "0-1"), with(text("b"), "2")])
        );
        let alike: PerCpu<String> = [0, 1]
            .map(|cpu| (CpuId(cpu), "a".to_owned()))
            .into_iter()
            .collect();
        assert_eq!(alike.to_value(), text("a"));
        assert_eq!(state(&Reading::Value(7u32)), MachineValue::Number(7));
        assert_eq!(state::<u32>(&Reading::Newer("later".into())), text("later"));
    }
}
