//! Interrupts of devices, from `/proc/irq` and `/sys/kernel/irq`.

use super::{cpu_list, cpu_mask, cut, text};
use crate::machine::Machine;
use jitterscope_model::{InterruptRow, Interrupts, Reading};

/// Interrupts kept at most: machines with many cards have some thousand.
const MOST: usize = 4096;
/// The longest list of names kept, in bytes.
const LONGEST: usize = 128;

pub(super) fn read(machine: &Machine) -> Interrupts {
    let mut numbers: Vec<u32> = machine
        .list("/proc/irq")
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let mut found = Interrupts {
        default_affinity: cpu_mask(machine, "/proc/irq/default_smp_affinity"),
        ..Interrupts::default()
    };
    for irq in numbers {
        if found.rows.len() == MOST {
            found.omitted += 1;
            continue;
        }
        let Some(actions) = actions(machine, irq) else {
            continue;
        };
        found.rows.push(InterruptRow {
            irq,
            actions: cut(actions, LONGEST),
            affinity: cpu_list(machine, &format!("/proc/irq/{irq}/smp_affinity_list")),
            effective: match cpu_list(machine, &format!("/proc/irq/{irq}/effective_affinity_list"))
            {
                Reading::Value(cpus) if cpus.is_empty() => Reading::Absent,
                known => known,
            },
        });
    }
    found
}

/// The names of its handlers; `None` if it has none.
fn actions(machine: &Machine, irq: u32) -> Option<String> {
    match text(machine, &format!("/sys/kernel/irq/{irq}/actions")) {
        Reading::Value(actions) => Some(actions),
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

    #[test]
    fn thousands_are_cut_off_and_counted() {
        let mut files = vec![(
            "/proc/irq/default_smp_affinity".to_owned(),
            "ff\n".to_owned(),
        )];
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
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let (_dir, machine) = fake::machine(&files);
        let found = read(&machine);
        assert_eq!(found.default_affinity.value().unwrap().to_string(), "0-7");
        // One has no handler; three exceed the limit.
        assert_eq!((found.rows.len(), found.omitted), (MOST, 3));
        assert_eq!(
            (found.rows[0].irq, found.rows[0].actions.as_str()),
            (1, "nvme0q1")
        );
        assert_eq!(found.rows[0].effective.value().unwrap().to_string(), "5");
        assert!(serde_json::to_string(&found).unwrap().len() < 500 << 10);
    }

    #[test]
    fn an_older_kernel_names_handlers_by_folders() {
        let (dir, machine) = fake::machine(&[("/proc/irq/9/smp_affinity_list", "0\n")]);
        std::fs::create_dir(dir.path().join("proc/irq/9/acpi")).unwrap();
        std::fs::create_dir(dir.path().join("proc/irq/10")).unwrap();
        let found = read(&machine);
        assert_eq!(found.rows.len(), 1);
        assert_eq!(found.rows[0].actions, "acpi");
        assert_eq!(found.rows[0].effective, Reading::Absent);
    }
}
