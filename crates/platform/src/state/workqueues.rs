//! Masks of unbound workqueues, from `/sys/devices/virtual/workqueue`.

use super::{cpu_mask, cut};
use crate::machine::Machine;
use jitterscope_model::{WorkqueueMask, Workqueues};

const FOLDER: &str = "/sys/devices/virtual/workqueue";
/// Queues kept at most: a kernel has some dozen.
const MOST: usize = 256;

pub(super) fn read(machine: &Machine) -> Workqueues {
    let queues = machine
        .list(FOLDER)
        .into_iter()
        .filter(|name| machine.exists(format!("{FOLDER}/{name}/cpumask")))
        .take(MOST)
        .map(|name| WorkqueueMask {
            cpus: cpu_mask(machine, &format!("{FOLDER}/{name}/cpumask")),
            name: cut(name, 64),
        })
        .collect();
    Workqueues {
        unbound: cpu_mask(machine, &format!("{FOLDER}/cpumask")),
        queues,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    #[test]
    fn masks_become_sets() {
        let (_dir, machine) = fake::machine(&[
            ("/sys/devices/virtual/workqueue/cpumask", "ff,ffffffff\n"),
            ("/sys/devices/virtual/workqueue/writeback/cpumask", "3\n"),
            ("/sys/devices/virtual/workqueue/power/control", "auto\n"),
        ]);
        let found = read(&machine);
        assert_eq!(found.unbound.value().unwrap().to_string(), "0-39");
        assert_eq!(found.queues.len(), 1);
        assert_eq!(found.queues[0].cpus.value().unwrap().to_string(), "0-1");
    }
}
