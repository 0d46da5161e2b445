//! What differs between the machines of two runs, and how much that matters.

use DifferenceClass::{Incomparable, Informational, Matters};
use jitterscope_model::{
    AppliedTuning, CpuLoad, FrequencyPolicy, IdlePolicy, IdleState, Interrupts, KnobFinding, KnobSetting,
    MachineState, MemoryState, PerCpu, Reading, SettingValue, TuningState,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a difference means for comparing two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceClass {
    /// The runs are of different machines: their figures do not tell what a setting did.
    Incomparable,
    /// It bears on stalls: it may be the cause of a difference, and should be the only one.
    Matters,
    /// Worth knowing.
    Informational,
}

/// One thing that was not the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineDifference {
    /// How much it matters.
    pub class: DifferenceClass,
    /// What, as a path within `machine.json`: `processors.microcode`, `tuning.settings.vmstat`.
    pub what: String,
    /// In the first run; null where there was none.
    pub before: Option<String>,
    /// In the second run; null where there was none.
    pub after: Option<String>,
}

/// Load of the other CPUs that differs by this much, in shares of one CPU, matters.
const LOAD: f64 = 0.05;
/// Differences of one kind kept: a machine with other cards has other interrupts throughout.
const MOST_OF_A_KIND: usize = 64;

/// All differences, those that matter most first and in the order of the file within a class. What one run
/// has and the other has not is a difference; what neither has is none.
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
    fn push(&mut self, class: DifferenceClass, what: String, before: Option<String>, after: Option<String>) {
        if before != after {
            self.0.push(MachineDifference { class, what, before, after });
        }
    }

    fn plain(&mut self, class: DifferenceClass, what: &str, before: impl ToString, after: impl ToString) {
        self.push(class, what.to_owned(), Some(before.to_string()), Some(after.to_string()));
    }

    /// A value or its absence. What could not be read in one of the runs is no difference that is known.
    fn reading<T: Shown>(
        &mut self,
        class: DifferenceClass,
        what: &str,
        before: &Reading<T>,
        after: &Reading<T>,
    ) {
        match (before, after) {
            (Reading::Value(_) | Reading::Absent, Reading::Value(_) | Reading::Absent) => {
                let shown = |reading: &Reading<T>| reading.value().map(Shown::shown);
                self.push(class, what.to_owned(), shown(before), shown(after));
            }
            // Denied here and there: nothing is known, and nothing is said.
            (Reading::Value(_) | Reading::Absent, _) | (_, Reading::Value(_) | Reading::Absent) => {
                self.push(Informational, what.to_owned(), Some(state(before)), Some(state(after)));
            }
            _ => {}
        }
    }

    fn map(
        &mut self,
        class: impl Fn(&str) -> DifferenceClass,
        what: &str,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut listed = 0;
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old != new && listed < MOST_OF_A_KIND {
                listed += 1;
                self.push(class(name), format!("{what}.{name}"), old.cloned(), new.cloned());
            }
        }
    }
}

fn state<T: Shown>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Value(value) => value.shown(),
        Reading::Absent => "absent".into(),
        Reading::Denied => "denied".into(),
        Reading::Unreadable(_) => "unreadable".into(),
        Reading::Newer(word) => word.clone(),
    }
}

/// A value in a few words.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for String {
    fn shown(&self) -> String {
        self.clone()
    }
}

impl Shown for u32 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for bool {
    fn shown(&self) -> String {
        if *self { "yes" } else { "no" }.into()
    }
}

impl Shown for jitterscope_model::CpuSet {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl<T: Shown> Shown for PerCpu<T> {
    /// `powersave`, or `powersave (0-6); performance (7)`.
    fn shown(&self) -> String {
        if let [only] = self.0.as_slice() {
            return only.value.shown();
        }
        let groups: Vec<String> =
            self.0.iter().map(|group| format!("{} ({})", group.value.shown(), group.cpus)).collect();
        groups.join("; ")
    }
}

fn hardware(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.processors, &after.processors);
    found.plain(Incomparable, "kernel.arch", &before.kernel.arch, &after.kernel.arch);
    found.plain(Incomparable, "processors.model", old.model.shown(), new.model.shown());
    found.reading(Incomparable, "kernel.hypervisor", &before.kernel.hypervisor, &after.kernel.hypervisor);
    found.reading(Incomparable, "processors.sockets", &old.sockets, &new.sockets);
    found.reading(Incomparable, "processors.cores", &old.cores, &new.cores);
    found.reading(Matters, "processors.microcode", &old.microcode, &new.microcode);
    found.plain(Matters, "processors.online", &old.online, &new.online);
    found.plain(Matters, "processors.isolated", &old.isolated, &new.isolated);
    found.plain(Matters, "processors.nohz_full", &old.nohz_full, &new.nohz_full);
    found.reading(Matters, "processors.smt.active", &old.smt.active, &new.smt.active);
    found.reading(Informational, "processors.smt.control", &old.smt.control, &new.smt.control);
    let (old, new) = (&before.firmware, &after.firmware);
    found.reading(Matters, "firmware.vendor", &old.vendor, &new.vendor);
    found.reading(Matters, "firmware.product", &old.product, &new.product);
    found.reading(Informational, "firmware.board", &old.board, &new.board);
    found.reading(Informational, "firmware.bios_vendor", &old.bios_vendor, &new.bios_vendor);
    found.reading(Matters, "firmware.bios_version", &old.bios_version, &new.bios_version);
    found.reading(Informational, "firmware.bios_date", &old.bios_date, &new.bios_date);
}

fn kernel(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.kernel, &after.kernel);
    found.plain(Matters, "kernel.release", &old.release, &new.release);
    found.plain(Informational, "kernel.version", &old.version, &new.version);
    found.reading(Matters, "kernel.boot_line", &old.boot_line, &new.boot_line);
    found.reading(Matters, "kernel.preemption", &old.preemption, &new.preemption);
    found.reading(Matters, "kernel.realtime", &old.realtime, &new.realtime);
    found.reading(Matters, "kernel.clocksource", &old.clocksource, &new.clocksource);
    if let (Reading::Value(old), Reading::Value(new)) = (&old.config, &new.config) {
        found.map(|_| Matters, "kernel.config", old, new);
    }
    if let (Reading::Value(old), Reading::Value(new)) = (&old.mitigations, &new.mitigations) {
        found.map(|_| Matters, "kernel.mitigations", old, new);
    }
}

fn governors(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.processors, &after.processors);
    found.reading(Matters, "processors.boost", &old.boost, &new.boost);
    let field = |frequency: &Reading<PerCpu<FrequencyPolicy>>, of: fn(&FrequencyPolicy) -> String| {
        frequency.clone().map(|policies| {
            let each = policies.0.iter().flat_map(|g| g.cpus.iter().map(move |cpu| (cpu, of(&g.value))));
            each.collect::<PerCpu<String>>()
        })
    };
    type Field = (&'static str, fn(&FrequencyPolicy) -> String);
    let fields: [Field; 5] = [
        ("processors.frequency.driver", |p| state(&p.driver)),
        ("processors.frequency.governor", |p| state(&p.governor)),
        ("processors.frequency.min_khz", |p| state(&p.min_khz)),
        ("processors.frequency.max_khz", |p| state(&p.max_khz)),
        ("processors.frequency.energy_preference", |p| state(&p.energy_preference)),
    ];
    for (what, of) in fields {
        found.reading(Matters, what, &field(&old.frequency, of), &field(&new.frequency, of));
    }
    found.reading(Matters, "processors.idle.driver", &old.idle.driver, &new.idle.driver);
    found.reading(Matters, "processors.idle.governor", &old.idle.governor, &new.idle.governor);
    let states = |idle: &IdlePolicy| -> PerCpu<String> {
        let usable = |states: &[IdleState]| {
            let on = states.iter().filter(|s| s.disabled != Reading::Value(true)).map(|s| s.name.as_str());
            on.collect::<Vec<_>>().join(",")
        };
        let each = idle.states.0.iter().flat_map(|g| g.cpus.iter().map(move |cpu| (cpu, usable(&g.value))));
        each.collect()
    };
    found.plain(Matters, "processors.idle.states", states(&old.idle).shown(), states(&new.idle).shown());
}

fn memory(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (old, new) = (&before.memory, &after.memory);
    found.reading(Informational, "memory.total_kib", &old.total_kib, &new.total_kib);
    found.reading(Matters, "memory.swap_kib", &old.swap_kib, &new.swap_kib);
    found.reading(
        Matters,
        "memory.transparent_huge_pages",
        &old.transparent_huge_pages,
        &new.transparent_huge_pages,
    );
    found.reading(Matters, "memory.transparent_defrag", &old.transparent_defrag, &new.transparent_defrag);
    found.reading(Matters, "memory.same_page_merging", &old.same_page_merging, &new.same_page_merging);
    let sizes = |memory: &MemoryState| -> BTreeMap<String, String> {
        let all = memory.huge_pages.value().into_iter().flatten();
        all.map(|size| (format!("{} KiB", size.size_kib), state(&size.pages))).collect()
    };
    found.map(|_| Informational, "memory.huge_pages", &sizes(old), &sizes(new));
    let nodes = |machine: &MachineState| -> BTreeMap<String, String> {
        let all = machine.processors.numa.value().into_iter().flatten();
        all.map(|node| (node.id.to_string(), node.cpus.to_string())).collect()
    };
    found.map(|_| Matters, "processors.numa", &nodes(before), &nodes(after));
}

fn interrupts(found: &mut Differences, before: &Interrupts, after: &Interrupts) {
    found.reading(Matters, "interrupts.default_affinity", &before.default_affinity, &after.default_affinity);
    // By name: numbers change from boot to boot. Of several with one name all places count together.
    let places = |interrupts: &Interrupts| -> BTreeMap<String, String> {
        let mut by_name: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in &interrupts.rows {
            by_name.entry(row.actions.clone()).or_default().insert(state(&row.affinity));
        }
        by_name.into_iter().map(|(name, places)| (name, Vec::from_iter(places).join("; "))).collect()
    };
    found.map(|_| Matters, "interrupts", &places(before), &places(after));
}

fn placement(found: &mut Differences, before: &MachineState, after: &MachineState) {
    found.reading(Matters, "workqueues.unbound", &before.workqueues.unbound, &after.workqueues.unbound);
    let queues = |machine: &MachineState| -> BTreeMap<String, String> {
        let all = machine.workqueues.queues.iter();
        all.map(|queue| (queue.name.clone(), state(&queue.cpus))).collect()
    };
    found.map(|_| Matters, "workqueues", &queues(before), &queues(after));
    found.reading(Matters, "cpusets.own", &before.cpusets.own, &after.cpusets.own);
    let groups = |machine: &MachineState| -> BTreeMap<String, String> {
        let all = machine.cpusets.groups.iter();
        all.map(|group| {
            let partition = group.partition.value().filter(|p| *p != "member");
            let text = match partition {
                Some(partition) => format!("{} ({partition})", state(&group.cpus)),
                None => state(&group.cpus),
            };
            (group.path.clone(), text)
        })
        .collect()
    };
    found.map(|_| Matters, "cpusets", &groups(before), &groups(after));
}

fn tuning(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (Reading::Value(old), Reading::Value(new)) = (&before.tuning, &after.tuning) else { return };
    found.map(|_| Matters, "tuning.settings", &settings(&old.settings), &settings(&new.settings));
    // A verdict is about the CPUs that it was asked for.
    if old.cpus == new.cpus {
        found.map(|_| Informational, "tuning.findings", &findings(&old.findings), &findings(&new.findings));
    }
    let names = |state: &TuningState| {
        let sorted: BTreeSet<&str> = state.competitors.iter().map(String::as_str).collect();
        Vec::from_iter(sorted).join(", ")
    };
    found.plain(Matters, "tuning.competitors", names(old), names(new));
    found.map(|_| Matters, "tuning.applied", &applied(&old.applied), &applied(&new.applied));
}

/// Values of files; what an audit says in words names threads and counts them, and is never twice the same.
fn settings(all: &[KnobSetting]) -> BTreeMap<String, String> {
    let value = |value: &SettingValue| match &value.cpus {
        Some(cpus) => format!("{} ({cpus})", state(&value.value)),
        None => state(&value.value),
    };
    let of_files = |setting: &&KnobSetting| setting.values.iter().any(|value| !value.path.is_empty());
    all.iter()
        .filter(of_files)
        .map(|setting| {
            let values: BTreeSet<String> = setting.values.iter().map(value).collect();
            (setting.knob.clone(), Vec::from_iter(values).join("; "))
        })
        .collect()
}

fn findings(all: &[KnobFinding]) -> BTreeMap<String, String> {
    all.iter().map(|finding| (finding.knob.clone(), finding.verdict.as_str().to_owned())).collect()
}

fn applied(applied: &Reading<AppliedTuning>) -> BTreeMap<String, String> {
    let mut by_knob: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for change in applied.value().into_iter().flat_map(|applied| &applied.changes) {
        by_knob.entry(change.knob.clone()).or_default().insert(format!(
            "{} ({})",
            change.asked,
            change.now.as_str()
        ));
    }
    by_knob.into_iter().map(|(knob, asked)| (knob, Vec::from_iter(asked).join("; "))).collect()
}

fn load(found: &mut Differences, before: &MachineState, after: &MachineState) {
    let (Reading::Value(old), Reading::Value(new)) = (&before.load, &after.load) else { return };
    type Share = (&'static str, fn(&CpuLoad) -> f64);
    let shares: [Share; 2] = [("busy", |load| load.busy_share), ("steal", |load| load.steal_share)];
    for (name, of) in shares {
        // The mean: work moves between CPUs from run to run. A run that measured all CPUs has none beside them.
        let mean = |loads: &[CpuLoad]| {
            let sum: f64 = loads.iter().map(of).sum();
            (!loads.is_empty()).then(|| sum / loads.len() as f64)
        };
        let (Some(old), Some(new)) = (mean(old), mean(new)) else { return };
        if (old - new).abs() >= LOAD {
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            found.plain(Matters, &format!("load.{name}"), percent(old), percent(new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;

    #[test]
    fn readings_are_told_in_a_few_words() {
        assert_eq!([state(&Reading::Value(7u32)), state(&Reading::Value(7u64))], ["7", "7"]);
        assert_eq!([state(&Reading::Value(true)), state(&Reading::Value(false))], ["yes", "no"]);
        assert_eq!(state(&Reading::Value("performance".to_owned())), "performance");
        assert_eq!([state::<u32>(&Reading::Absent), state::<u32>(&Reading::Denied)], ["absent", "denied"]);
        assert_eq!(state::<u32>(&Reading::Newer("later".into())), "later");
        let cpus: PerCpu<String> =
            [(0, "a"), (1, "a"), (2, "b")].map(|(cpu, of)| (CpuId(cpu), of.to_owned())).into_iter().collect();
        assert_eq!(cpus.shown(), "a (0-1); b (2)");
        let alike: PerCpu<String> = [0, 1].map(|cpu| (CpuId(cpu), "a".to_owned())).into_iter().collect();
        assert_eq!(alike.shown(), "a");
    }
}
