//! One recording a CPU: a measured CPU is claimed, so that no second recording measures it at the same time.
//!
//! Two probes on one CPU take it from each other all the time, and each report would blame the other's. The claim
//! is a lock on the CPU's folder in sysfs: it makes no file, ends with its process however that ends, and is seen by
//! all processes of the machine.

use crate::held_lock::HeldLock;
use crate::machine::Machine;
use jitterscope_model::{CpuId, CpuSet};
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// A recording that is just ending, or about to fail, is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// CPUs that are claimed until this is dropped.
#[derive(Debug)]
pub struct CpuClaim {
    _locks: Vec<HeldLock>,
}

/// Somebody else measures a CPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "CPU {cpu} is being measured by another recording{}: two on one CPU would measure each other. Wait for it, end \
     it, or choose another CPU with --cpus",
    holder.map(|pid| format!(" (process {pid})")).unwrap_or_default()
)]
pub struct CpuClaimed {
    /// Which.
    pub cpu: CpuId,
    /// Its process, where that is known.
    pub holder: Option<i32>,
}

impl CpuClaim {
    /// Claims these CPUs; waits for up to two seconds for one that another recording is about to let go. Where the
    /// kernel shows no folder of a CPU, or does not lock it, there is nothing to claim.
    ///
    /// # Errors
    /// Another recording has claimed one of them; none is claimed then.
    pub fn take(machine: &Machine, cpus: &CpuSet) -> Result<CpuClaim, CpuClaimed> {
        let mut locks = Vec::new();
        for cpu in cpus.iter() {
            let Ok(folder) = File::open(machine.path(format!("/sys/devices/system/cpu/cpu{cpu}")))
            else {
                continue;
            };
            match HeldLock::take(folder, PATIENCE) {
                Ok(held) => locks.push(held),
                // Anybody may lock that folder, and nobody's lock but root's may keep root from measuring.
                Err((folder, TryLockError::WouldBlock))
                    if is_root() && is_of_another(machine, &folder) => {}
                Err((folder, TryLockError::WouldBlock)) => {
                    return Err(CpuClaimed {
                        cpu,
                        holder: holder(machine, &folder),
                    });
                }
                Err((_, TryLockError::Error(_))) => {}
            }
        }
        Ok(CpuClaim { _locks: locks })
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the lock is known to be held by a process that is not root's.
fn is_of_another(machine: &Machine, folder: &File) -> bool {
    let process = holder(machine, folder).map(|pid| machine.path(format!("/proc/{pid}")));
    process
        .and_then(|path| path.metadata().ok())
        .is_some_and(|of| of.uid() != 0)
}

/// Who holds the lock on an open file, by `/proc/locks`.
fn holder(machine: &Machine, file: &File) -> Option<i32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = machine.read("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 1234 00:15:7777 0 EOF`
        let mut words = line.split_whitespace().skip(1);
        let (kind, pid) = (words.next()?, words.nth(2)?);
        let of = words.next()?.rsplit(':').next()?;
        // 0: a process that is not seen from here.
        (kind == "FLOCK" && of == inode).then(|| pid.parse().ok().filter(|pid| *pid > 0))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_claimed_once_and_free_again_when_the_claim_ends() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        for cpu in ["cpu0", "cpu1"] {
            std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu").join(cpu)).unwrap();
        }
        let set = |list: &str| list.parse::<CpuSet>().unwrap();
        let first = CpuClaim::take(&machine, &set("1")).unwrap();
        let refused = CpuClaim::take(&machine, &set("0-1")).unwrap_err();
        assert_eq!((refused.cpu, refused.holder), (CpuId(1), None));
        // CPU 0 was let go again, and one that has no folder cannot be claimed.
        let other = CpuClaim::take(&machine, &set("0,7")).unwrap();
        drop((first, other));
        CpuClaim::take(&machine, &set("0-1")).unwrap();
    }

    #[test]
    fn another_users_lock_does_not_keep_root_from_measuring() {
        if !is_root() {
            eprintln!("skipped: only root can give files to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sys/devices/system/cpu/cpu1");
        let process = dir.path().join("proc/4711");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(&process).unwrap();
        let inode = std::fs::metadata(&folder).unwrap().ino();
        let locks = format!("1: FLOCK  ADVISORY  WRITE 4711 00:15:{inode} 0 EOF\n");
        std::fs::write(dir.path().join("proc/locks"), locks).unwrap();
        let machine = Machine::at(dir.path());
        let _theirs = CpuClaim::take(&machine, &"1".parse().unwrap()).unwrap();
        CpuClaim::take(&machine, &"1".parse().unwrap()).unwrap_err();
        std::os::unix::fs::chown(&process, Some(65_533), None).unwrap();
        CpuClaim::take(&machine, &"1".parse().unwrap()).unwrap();
    }

    #[test]
    fn who_holds_it_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sys/devices/system/cpu/cpu1");
        std::fs::create_dir_all(&folder).unwrap();
        let inode = std::fs::metadata(&folder).unwrap().ino();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        let locks = format!(
            "1: POSIX  ADVISORY  WRITE 9 00:15:{inode} 0 EOF\n2: FLOCK  ADVISORY  WRITE 4711 00:15:{inode} 0 EOF\n"
        );
        std::fs::write(dir.path().join("proc/locks"), locks).unwrap();
        let machine = Machine::at(dir.path());
        let _first = CpuClaim::take(&machine, &"1".parse().unwrap()).unwrap();
        let refused = CpuClaim::take(&machine, &"1".parse().unwrap()).unwrap_err();
        assert_eq!(refused.holder, Some(4711));
        assert!(refused.to_string().contains("process 4711"), "{refused}");
    }
}
