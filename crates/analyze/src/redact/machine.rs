//! Redacts the machine's state.

use super::words;
use super::{Redactor, is_slug, kernel_version, listed, processor, release};
use jitterscope_model::{
    AnyVersion, AppliedChange, AppliedTuning, CpusetGroup, Cpusets, Firmware, FrequencyPolicy,
    HugePages, IdlePolicy, IdleState, InterruptRow, Interrupts, KernelState, KnobFinding,
    KnobSetting, MachineState, MemoryState, NumaNode, PerCpu, Processors, Reading, SettingValue,
    Smt, TuningApply, TuningState, WorkqueueMask, Workqueues,
};
use jitterscope_model::{ChangeNow, CpuGroup, Hierarchy, KnobVerdict};
use std::collections::BTreeMap;

/// The value of a redacted reading.
const LEFT_OUT: &str = "left_out";

impl Redactor {
    /// The redacted machine of a run.
    #[must_use]
    pub fn machine(&mut self, machine: &MachineState) -> MachineState {
        MachineState {
            firmware: firmware(&machine.firmware),
            processors: processors(&machine.processors),
            kernel: kernel(&machine.kernel),
            memory: memory(&machine.memory),
            interrupts: self.interrupts(&machine.interrupts),
            workqueues: self.workqueues(&machine.workqueues),
            cpusets: self.cpusets(&machine.cpusets),
            load: plain(&machine.load),
            tuning: kept(&machine.tuning, |tuning| Some(knobs(tuning))),
        }
    }

    fn interrupts(&mut self, interrupts: &Interrupts) -> Interrupts {
        let row = |row: &InterruptRow| InterruptRow {
            irq: row.irq,
            actions: self.device(&row.actions),
            affinity: plain(&row.affinity),
            effective: plain(&row.effective),
        };
        Interrupts {
            default_affinity: plain(&interrupts.default_affinity),
            rows: interrupts.rows.iter().map(row).collect(),
            omitted: interrupts.omitted,
        }
    }

    fn workqueues(&mut self, workqueues: &Workqueues) -> Workqueues {
        let queue = |queue: &WorkqueueMask| WorkqueueMask {
            name: listed(words::QUEUES, &queue.name)
                .unwrap_or_else(|| self.queues.of(&queue.name, "workqueue")),
            cpus: plain(&queue.cpus),
        };
        Workqueues {
            unbound: plain(&workqueues.unbound),
            queues: workqueues.queues.iter().map(queue).collect(),
        }
    }

    fn cpusets(&mut self, cpusets: &Cpusets) -> Cpusets {
        let group = |group: &CpusetGroup| CpusetGroup {
            path: self.groups.of(&group.path, "group"),
            hierarchy: match &group.hierarchy {
                Hierarchy::Newer(_) => Hierarchy::Newer(LEFT_OUT.into()),
                known => known.clone(),
            },
            cpus: plain(&group.cpus),
            effective: plain(&group.effective),
            partition: word(&group.partition),
            exclusive: plain(&group.exclusive),
            balanced: plain(&group.balanced),
        };
        Cpusets {
            own: plain(&cpusets.own),
            groups: cpusets.groups.iter().map(group).collect(),
            omitted: cpusets.omitted,
        }
    }
}

/// The reading with the value that `keep` allows. Reasons are system texts and are removed.
fn kept<T, U>(reading: &Reading<T>, keep: impl FnOnce(&T) -> Option<U>) -> Reading<U> {
    match reading {
        Reading::Value(value) => {
            keep(value).map_or_else(|| Reading::Newer(LEFT_OUT.into()), Reading::Value)
        }
        Reading::Absent => Reading::Absent,
        Reading::Denied => Reading::Denied,
        Reading::Unreadable(_) => Reading::Unreadable(AnyVersion::left_out()),
        Reading::Newer(_) => Reading::Newer(LEFT_OUT.into()),
    }
}

/// Numbers, sets of CPUs and switches.
fn plain<T: Clone>(reading: &Reading<T>) -> Reading<T> {
    kept(reading, |value| Some(value.clone()))
}

fn word(reading: &Reading<String>) -> Reading<String> {
    kept(reading, |text| value(text))
}

/// A setting's value: a listed word, or numbers and lists of them.
fn value(text: &str) -> Option<String> {
    let numbers = text.len() <= 256
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b"-,:. \n".contains(&b));
    (numbers || words::VALUES.contains(&text)).then(|| text.to_owned())
}

fn maker(reading: &Reading<String>) -> Reading<String> {
    kept(reading, |text| listed(words::MAKERS, text))
}

fn each<T, U>(values: &PerCpu<T>, keep: impl Fn(&T) -> U) -> PerCpu<U> {
    let groups = values.0.iter();
    PerCpu(
        groups
            .map(|group| CpuGroup {
                cpus: group.cpus.clone(),
                value: keep(&group.value),
            })
            .collect(),
    )
}

fn firmware(firmware: &Firmware) -> Firmware {
    Firmware {
        vendor: maker(&firmware.vendor),
        // Clouds and appliances put their customers' names here.
        product: kept(&firmware.product, |_| None),
        board: kept(&firmware.board, |_| None),
        bios_vendor: maker(&firmware.bios_vendor),
        bios_version: kept(&firmware.bios_version, |text| value(text)),
        bios_date: kept(&firmware.bios_date, |text| value(&text.replace('/', "-"))),
    }
}

fn processors(processors: &Processors) -> Processors {
    let microcode = |revision: &String| {
        let hex = revision.strip_prefix("0x").is_some_and(|digits| {
            digits.len() <= 16
                && digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        if hex {
            revision.clone()
        } else {
            LEFT_OUT.into()
        }
    };
    Processors {
        model: each(&processors.model, |model| processor(model)),
        microcode: kept(&processors.microcode, |all| Some(each(all, microcode))),
        online: processors.online.clone(),
        isolated: processors.isolated.clone(),
        nohz_full: processors.nohz_full.clone(),
        sockets: plain(&processors.sockets),
        cores: plain(&processors.cores),
        smt: Smt {
            control: word(&processors.smt.control),
            active: plain(&processors.smt.active),
        },
        numa: kept(&processors.numa, |nodes| {
            let node = |node: &NumaNode| NumaNode {
                id: node.id,
                cpus: node.cpus.clone(),
                memory_kib: plain(&node.memory_kib),
            };
            Some(nodes.iter().map(node).collect())
        }),
        frequency: kept(&processors.frequency, |all| Some(each(all, frequency))),
        boost: word(&processors.boost),
        idle: IdlePolicy {
            driver: word(&processors.idle.driver),
            governor: word(&processors.idle.governor),
            states: each(&processors.idle.states, |states| {
                states.iter().map(idle_state).collect()
            }),
        },
    }
}

fn frequency(policy: &FrequencyPolicy) -> FrequencyPolicy {
    FrequencyPolicy {
        driver: word(&policy.driver),
        governor: word(&policy.governor),
        min_khz: plain(&policy.min_khz),
        max_khz: plain(&policy.max_khz),
        energy_preference: word(&policy.energy_preference),
    }
}

fn idle_state(state: &IdleState) -> IdleState {
    IdleState {
        name: value(&state.name).unwrap_or_else(|| LEFT_OUT.into()),
        latency_us: plain(&state.latency_us),
        disabled: plain(&state.disabled),
    }
}

fn kernel(kernel: &KernelState) -> KernelState {
    let listed_only = |all: &BTreeMap<String, String>, names: &[&str], keep: fn(&str) -> String| {
        let known = all
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()));
        Some(
            known
                .map(|(name, text)| (name.clone(), keep(text)))
                .collect(),
        )
    };
    KernelState {
        release: release(&kernel.release),
        version: kernel_version(&kernel.version),
        arch: listed(words::ARCHITECTURES, &kernel.arch).unwrap_or_default(),
        boot_line: kept(&kernel.boot_line, |_| None),
        hypervisor: kept(&kernel.hypervisor, |text| listed(words::HYPERVISORS, text)),
        preemption: word(&kernel.preemption),
        realtime: plain(&kernel.realtime),
        config: kept(&kernel.config, |all| {
            listed_only(all, words::OPTIONS, |text| {
                value(text).unwrap_or_else(|| LEFT_OUT.into())
            })
        }),
        clocksource: word(&kernel.clocksource),
        clocksources: kept(&kernel.clocksources, |all| {
            Some(all.iter().filter_map(|name| value(name)).collect())
        }),
        mitigations: kept(&kernel.mitigations, |all| {
            listed_only(all, words::FLAWS, mitigation)
        }),
    }
}

/// Whether the flaw exists and is mitigated; the means are the kernel's prose.
fn mitigation(text: &str) -> String {
    let known = ["Not affected", "Mitigation", "Vulnerable", "Unknown"];
    known
        .into_iter()
        .find(|state| text.starts_with(state))
        .unwrap_or(LEFT_OUT)
        .to_owned()
}

fn memory(memory: &MemoryState) -> MemoryState {
    MemoryState {
        total_kib: plain(&memory.total_kib),
        swap_kib: plain(&memory.swap_kib),
        huge_pages: kept(&memory.huge_pages, |sizes| {
            let size = |size: &HugePages| HugePages {
                size_kib: size.size_kib,
                pages: plain(&size.pages),
            };
            Some(sizes.iter().map(size).collect())
        }),
        transparent_huge_pages: word(&memory.transparent_huge_pages),
        transparent_defrag: word(&memory.transparent_defrag),
        same_page_merging: word(&memory.same_page_merging),
    }
}

fn knobs(tuning: &TuningState) -> TuningState {
    TuningState {
        cpus: tuning.cpus.clone(),
        settings: tuning.settings.iter().map(setting).collect(),
        findings: tuning.findings.iter().map(finding).collect(),
        competitors: tuning
            .competitors
            .iter()
            .filter_map(|name| listed(words::COMPETITORS, name))
            .collect(),
        applied: kept(&tuning.applied, |applied| Some(applied_tuning(applied))),
    }
}

fn knob(id: &str) -> String {
    if is_slug(id) {
        id.to_owned()
    } else {
        LEFT_OUT.into()
    }
}

fn setting(setting: &KnobSetting) -> KnobSetting {
    let one = |one: &SettingValue| SettingValue {
        path: String::new(),
        cpus: one.cpus.clone(),
        files: one.files,
        value: word(&one.value),
        in_force: one.in_force.as_deref().and_then(value),
    };
    KnobSetting {
        knob: knob(&setting.knob),
        values: setting.values.iter().map(one).collect(),
        omitted: setting.omitted,
    }
}

fn finding(finding: &KnobFinding) -> KnobFinding {
    KnobFinding {
        knob: knob(&finding.knob),
        verdict: match &finding.verdict {
            KnobVerdict::Newer(_) => KnobVerdict::Newer(LEFT_OUT.into()),
            known => known.clone(),
        },
        ..KnobFinding::default()
    }
}

fn applied_tuning(applied: &AppliedTuning) -> AppliedTuning {
    let apply = |apply: &TuningApply| TuningApply {
        at_realtime_ns: apply.at_realtime_ns,
        isolated: apply.isolated.clone(),
        finished: apply.finished,
        before_reboot: apply.before_reboot,
        ..TuningApply::default()
    };
    let text = |text: &str| value(text.trim()).unwrap_or_else(|| LEFT_OUT.into());
    let change = |change: &AppliedChange| AppliedChange {
        knob: knob(&change.knob),
        what: String::new(),
        original: text(&change.original),
        asked: text(&change.asked),
        now: match &change.now {
            ChangeNow::Newer(_) => ChangeNow::Newer(LEFT_OUT.into()),
            known => known.clone(),
        },
        since_realtime_ns: change.since_realtime_ns,
    };
    AppliedTuning {
        applies: applied.applies.iter().map(apply).collect(),
        changes: applied.changes.iter().map(change).collect(),
        omitted: applied.omitted,
    }
}
