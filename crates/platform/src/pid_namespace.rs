//! The namespace of process ids.

use crate::machine::Machine;
use std::fs;
use std::path::Path;

/// The machine's own namespace: the kernel gives it this number (`PROC_PID_INIT_INO`).
const MACHINES_OWN: &str = "pid:[4026531836]";

/// Whether this process has another id for the machine than for itself, as in a container. The kernel's records have the
/// machine's ids, and `/proc` has those of this namespace, so neither explains the other.
#[must_use]
pub fn is_in_pid_namespace(machine: &Machine) -> bool {
    let namespace = fs::read_link(machine.path("/proc/self/ns/pid"));
    namespace.is_ok_and(|namespace| namespace != Path::new(MACHINES_OWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_namespace_has_a_number_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        assert!(!is_in_pid_namespace(&machine), "without procfs");
        let folder = dir.path().join("proc/self/ns");
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join("pid");
        for (namespace, is_inside) in [(MACHINES_OWN, false), ("pid:[4026532201]", true)] {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(namespace, &link).unwrap();
            assert_eq!(is_in_pid_namespace(&machine), is_inside, "{namespace}");
        }
    }
}
