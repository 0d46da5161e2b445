//! Interrupts of devices, from `/proc/irq` and `/sys/kernel/irq`.

use super::files::{cut, value};
use crate::machine::Machine;
use jitterscope_model::{FileForm, MachineEntry, MachineSettings, Reading, Scalar};

/// Interrupts kept at most: machines with many cards have some thousand.
const MOST: usize = 4096;
/// The longest list of names kept, in bytes.
const LONGEST: usize = 128;

pub(super) fn read(machine: &Machine, settings: &mut MachineSettings) {
    let mut numbers: Vec<u32> = machine
        .list("/proc/irq")
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let (mut allowed, mut effective, mut omitted) = (Vec::new(), Vec::new(), 0u64);
    for irq in numbers {
        if allowed.len() == MOST {
            omitted += 1;
            continue;
        }
        let Some(actions) = actions(machine, irq) else {
            continue;
        };
        let entry = |file: &str| MachineEntry {
            of: Some(cut(actions.clone(), LONGEST)),
            number: Some(irq),
            is: value(machine, &format!("/proc/irq/{irq}/{file}"), FileForm::Cpus),
            ..MachineEntry::default()
        };
        allowed.push(entry("smp_affinity_list"));
        effective.push(entry("effective_affinity_list"));
    }
    effective.retain(|entry| entry.is != Reading::Absent && entry.text() != Some(""));
    settings.put("interrupts", allowed);
    settings.put("interrupts.effective", effective);
    if omitted > 0 {
        settings.put("interrupts.omitted", [MachineEntry::new(omitted)]);
    }
}

/// The names of its handlers; `None` if it has none.
fn actions(machine: &Machine, irq: u32) -> Option<String> {
    match value(
        machine,
        &format!("/sys/kernel/irq/{irq}/actions"),
        FileForm::Text,
    ) {
        Reading::Value(Scalar::Text(actions)) => Some(actions),
        // An empty file means no handler; an older kernel has one folder per handler.
        Reading::Absent if !machine.exists(format!("/sys/kernel/irq/{irq}")) => {
            let names = machine.list(format!("/proc/irq/{irq}"));
            let folders: Vec<String> = names
                .into_iter()
                .filter(|name| machine.path(format!("/proc/irq/{irq}/{name}")).is_dir())
                .collect();
            (!folders.is_empty()).then(|| folders.join(","))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    fn settings(machine: &Machine) -> MachineSettings {
        let mut settings = MachineSettings::default();
        read(machine, &mut settings);
        settings
    }

    #[test]
    fn thousands_are_cut_off_and_counted() {
        let mut files: Vec<(String, String)> = Vec::new();
        for irq in 0..4100 {
            files.push((
                format!("/proc/irq/{irq}/smp_affinity_list"),
                "0-63\n".into(),
            ));
            files.push((
                format!("/proc/irq/{irq}/effective_affinity_list"),
                "5\n".into(),
            ));
            files.push((
                format!("/sys/kernel/irq/{irq}/actions"),
                format!("nvme0q{irq}\n"),
            ));
        }
        files.push(("/sys/kernel/irq/0/actions".into(), "\n".into()));
        let (_dir, machine) = fake::machine(&files);
        let found = settings(&machine);
        // One has no handler; three exceed the limit.
        assert_eq!(found.get("interrupts").len(), MOST);
        assert_eq!(found.value("interrupts.omitted"), Some(&3u64.into()));
        let first = &found.get("interrupts")[0];
        assert_eq!(
            (first.number, first.of.as_deref(), first.text()),
            (Some(1), Some("nvme0q1"), Some("0-63"))
        );
        assert_eq!(found.get("interrupts.effective")[0].text(), Some("5"));
        assert!(serde_json::to_string(&found).unwrap().len() < 700 << 10);
    }

    #[test]
    fn an_older_kernel_names_handlers_by_folders() {
        let (dir, machine) = fake::machine(&[("/proc/irq/9/smp_affinity_list", "0\n")]);
        std::fs::create_dir(dir.path().join("proc/irq/9/acpi")).unwrap();
        std::fs::create_dir(dir.path().join("proc/irq/10")).unwrap();
        let found = settings(&machine);
        let rows = found.get("interrupts");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].of.as_deref(), Some("acpi"));
        assert_eq!(found.get("interrupts.effective"), []);
    }
}
