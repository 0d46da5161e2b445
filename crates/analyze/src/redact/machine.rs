//! Redacts the machine's state. [`MACHINE_SETTINGS`](jitterscope_model::MACHINE_SETTINGS) declares what stays.

use super::words;
use super::{Redactor, is_slug, kernel_version, listed, processor, release};
use jitterscope_model::{
    AnyVersion, AppliedChange, AppliedTuning, ChangeNow, CpuSet, KeptNames, KeptText, KnobFinding,
    KnobSetting, KnobVerdict, MachineEntry, MachineSetting, MachineSettings, MachineState, Reading,
    Scalar, SettingValue, TuningApply, TuningState,
};

/// The value of a redacted reading.
const LEFT_OUT: &str = "left_out";

impl Redactor {
    /// The redacted machine of a run.
    #[must_use]
    pub fn machine(&mut self, machine: &MachineState) -> MachineState {
        let mut settings = MachineSettings::default();
        for (setting, entries) in machine.settings.iter() {
            let kept = entries
                .iter()
                .filter_map(|entry| self.entry(setting, entry));
            settings.put(setting.name, kept.collect::<Vec<_>>());
        }
        MachineState {
            settings,
            tuning: kept(&machine.tuning, |tuning| Some(knobs(tuning))),
        }
    }

    fn entry(&mut self, setting: &MachineSetting, entry: &MachineEntry) -> Option<MachineEntry> {
        let of = match &entry.of {
            Some(name) => Some(self.name(setting.names, name)?),
            None => None,
        };
        Some(MachineEntry {
            of,
            number: entry.number,
            cpus: entry.cpus.clone(),
            is: kept(&entry.is, |scalar| kept_scalar(setting.kept, scalar)),
            with: entry.with.as_deref().map(word),
        })
    }

    /// What is kept of an entry's name; `None` if the entry is left out.
    fn name(&mut self, names: KeptNames, name: &str) -> Option<String> {
        match names {
            KeptNames::Nothing => None,
            KeptNames::Numbers => {
                let unit = name.trim_start_matches(|c: char| c.is_ascii_digit());
                (name.len() <= 24 && ["", "kB"].contains(&unit)).then(|| name.to_owned())
            }
            KeptNames::Words => Some(word(name)),
            KeptNames::BuildOptions => listed(words::OPTIONS, name),
            KeptNames::Flaws => listed(words::FLAWS, name),
            KeptNames::Devices => Some(self.device(name)),
            KeptNames::Queues => {
                let known = listed(words::QUEUES, name);
                Some(known.unwrap_or_else(|| self.queues.of(name, "workqueue")))
            }
            KeptNames::Groups => Some(self.groups.of(name, "group")),
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

fn kept_scalar(keep: KeptText, scalar: &Scalar) -> Option<Scalar> {
    match scalar {
        _ if keep == KeptText::Nothing => None,
        Scalar::Switch(_) | Scalar::Number(_) | Scalar::Share(_) => Some(scalar.clone()),
        Scalar::Words(all) => Some(Scalar::Words(all.iter().map(|text| word(text)).collect())),
        Scalar::Text(text) => kept_text(keep, text).map(Scalar::Text),
    }
}

fn kept_text(keep: KeptText, text: &str) -> Option<String> {
    match keep {
        KeptText::Nothing => None,
        KeptText::Words => value(text),
        KeptText::Date => value(&text.replace('/', "-")),
        KeptText::Hexadecimal => {
            let digits = text.strip_prefix("0x")?;
            let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            (digits.len() <= 16 && digits.bytes().all(hex)).then(|| text.to_owned())
        }
        KeptText::Makers => listed(words::MAKERS, text),
        KeptText::Hypervisors => listed(words::HYPERVISORS, text),
        KeptText::Architectures => listed(words::ARCHITECTURES, text),
        KeptText::Processors => Some(processor(text)),
        KeptText::Releases => Some(release(text)),
        KeptText::KernelVersions => Some(kernel_version(text)),
        KeptText::Mitigations => ["Not affected", "Mitigation", "Vulnerable", "Unknown"]
            .into_iter()
            .find(|state| text.starts_with(state))
            .map(str::to_owned),
    }
}

/// A setting's value: a listed word, numbers, or lists of them.
fn value(text: &str) -> Option<String> {
    let numbers = text.len() <= 256
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b"-,:. \n".contains(&b));
    let cpus = || {
        text.parse::<CpuSet>()
            .is_ok_and(|cpus| cpus.to_string() == text)
    };
    (numbers || words::VALUES.contains(&text) || cpus()).then(|| text.to_owned())
}

fn word(text: &str) -> String {
    value(text).unwrap_or_else(|| LEFT_OUT.into())
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
        value: kept(&one.value, |text| value(text)),
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
    let change = |change: &AppliedChange| AppliedChange {
        knob: knob(&change.knob),
        what: String::new(),
        original: word(change.original.trim()),
        asked: word(change.asked.trim()),
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
