//! One recording per CPU: a recording claims the CPUs that it measures, so that no second one measures them meanwhile.
//!
//! Two probes on one CPU would preempt each other all the time, and each report would blame the other probe. A claim is
//! a lock on a file of its user, mode 0600, in a folder that only this user can write to. It ends with its process,
//! even if that is killed. Any user who can open a file can lock it, so access to the file decides who can block a recording:
//!
//! | user of the recording | is stopped by claims of |
//! |---|---|
//! | root | root |
//! | another user | root, and the same user |

use crate::held_lock::HeldLock;
use crate::machine::Machine;
use crate::run_folder::{ROOTS, own_run_folder};
use crate::user_namespace::{is_hidden_roots, own_user};
use jitterscope_model::{CpuId, CpuSet};
use std::fs::{self, File, Metadata, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long to wait for a recording that is just ending, or about to fail.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two checks of root's claims.
const PAUSE: Duration = Duration::from_millis(20);

/// The folder of claims, with one file per CPU.
const CLAIMS: &str = "cpus";
/// The same for CPUs that are being watched: whoever watches takes no CPU from a recording, but two histories of one CPU
/// are one too many.
const WATCHED: &str = "watched";

/// Claimed CPUs. Dropping this releases them.
#[derive(Debug)]
pub struct CpuClaim {
    _locks: Vec<HeldLock>,
}

/// Another recording measures a CPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "CPU {cpu} is being {}{holder}: {}. Wait for it, end it, or choose another CPU with --cpus",
    if *watched { "watched by another watch" } else { "measured by another recording" },
    if *watched { "one history of a CPU is enough" } else { "two on one CPU would measure each other" }
)]
pub struct CpuClaimed {
    pub cpu: CpuId,
    pub holder: ClaimHolder,
    /// Whether it was claimed to be watched.
    pub watched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimHolder {
    /// A living process that has the claim's file open.
    Process(i32),
    /// A recording of root, as another user sees it.
    Root,
    /// A process that is not visible from here.
    Unseen,
}

impl std::fmt::Display for ClaimHolder {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClaimHolder::Process(pid) => write!(to, " (process {pid})"),
            ClaimHolder::Root => to.write_str(" of root"),
            ClaimHolder::Unseen => Ok(()),
        }
    }
}

impl CpuClaim {
    /// Claims these CPUs. Waits up to two seconds for a CPU that another recording is about to release. If this user
    /// has no folder for claims, only root's claims are checked.
    ///
    /// # Errors
    /// Root or the same user has claimed one of them; then none is claimed.
    pub fn take(machine: &Machine, cpus: &CpuSet) -> Result<CpuClaim, CpuClaimed> {
        CpuClaim::take_as(machine, cpus, own_user(machine), CLAIMS)
    }

    /// Claims these CPUs for a watch. A recording may measure them meanwhile.
    ///
    /// # Errors
    /// Another watch of root or of the same user has one of them; then none is claimed.
    pub fn take_to_watch(machine: &Machine, cpus: &CpuSet) -> Result<CpuClaim, CpuClaimed> {
        CpuClaim::take_as(machine, cpus, own_user(machine), WATCHED)
    }

    fn take_as(
        machine: &Machine,
        cpus: &CpuSet,
        user: u32,
        claims: &'static str,
    ) -> Result<CpuClaim, CpuClaimed> {
        let watched = claims == WATCHED;
        let folder = own_run_folder(machine, user, claims).ok();
        let mut locks = Vec::new();
        for cpu in cpus.iter() {
            if user != 0 {
                leave_to_root(machine, cpu, claims)?;
            }
            let Some(Ok(file)) = folder.as_ref().map(|it| it.lock_file(&name_of(cpu))) else {
                continue;
            };
            match HeldLock::take(file, PATIENCE) {
                Ok(held) => locks.push(held),
                Err((file, TryLockError::WouldBlock)) => {
                    let holder = holder(machine, &file);
                    return Err(CpuClaimed {
                        cpu,
                        holder,
                        watched,
                    });
                }
                // The file system has no locks.
                Err((_, TryLockError::Error(_))) => {}
            }
        }
        Ok(CpuClaim { _locks: locks })
    }
}

fn name_of(cpu: CpuId) -> String {
    format!("cpu{cpu}")
}

/// Waits while root claims a CPU, and fails if root keeps it. Other users cannot open root's files, so this reads the
/// kernel's list of locks.
fn leave_to_root(machine: &Machine, cpu: CpuId, claims: &'static str) -> Result<(), CpuClaimed> {
    let path = machine.path(ROOTS).join(claims).join(name_of(cpu));
    let begun = Instant::now();
    loop {
        let of_root = |of: &Metadata| of.uid() == 0 || is_hidden_roots(&path, of.uid());
        let root = fs::symlink_metadata(&path).ok().filter(of_root);
        if root.is_none_or(|of| lockers(machine, &of).is_empty()) {
            return Ok(());
        }
        if begun.elapsed() >= PATIENCE {
            return Err(CpuClaimed {
                cpu,
                holder: ClaimHolder::Root,
                watched: claims == WATCHED,
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Who holds the lock on an open file. The kernel lists the process that took the lock. That process may have ended and
/// passed the open file to another process, and its id may be in use again. So it is named only if it has the file
/// open.
fn holder(machine: &Machine, file: &File) -> ClaimHolder {
    let Ok(wanted) = file.metadata() else {
        return ClaimHolder::Unseen;
    };
    let has_it_open = |pid: &i32| {
        let open = fs::read_dir(machine.path(format!("/proc/{pid}/fd")));
        open.into_iter().flatten().flatten().any(|entry| {
            fs::metadata(entry.path())
                .is_ok_and(|of| (of.dev(), of.ino()) == (wanted.dev(), wanted.ino()))
        })
    };
    lockers(machine, &wanted)
        .into_iter()
        .find(has_it_open)
        .map_or(ClaimHolder::Unseen, ClaimHolder::Process)
}

/// Processes that took a lock on a file, by `/proc/locks`; 0 is a process that is not visible from here.
fn lockers(machine: &Machine, file: &Metadata) -> Vec<i32> {
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", file.ino());
    let locks = machine.read("/proc/locks").unwrap_or_default();
    let locker = |line: &str| {
        // `1: FLOCK  ADVISORY  WRITE 1234 00:15:7777 0 EOF`; a waiting lock has `->` before its kind.
        let mut words = line.split_whitespace().skip(1);
        let (kind, pid) = (words.next()?, words.nth(2)?);
        let is_it = kind == "FLOCK" && words.next()? == wanted;
        is_it.then(|| pid.parse().unwrap_or(0))
    };
    locks.lines().filter_map(locker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::Path;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// A fake machine whose `/tmp` is shared, as usual.
    fn machine() -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (folder, mode) in [("run", 0o755), ("tmp", 0o1777), ("proc", 0o755)] {
            fs::create_dir(dir.path().join(folder)).unwrap();
            fs::set_permissions(dir.path().join(folder), fs::Permissions::from_mode(mode)).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    fn is_root() -> bool {
        let root = rustix::process::geteuid().is_root();
        if !root {
            jitterscope_testing::skip("it needs root");
        }
        root
    }

    /// Adds a lock of process 4711 on a file to `/proc/locks`.
    fn list_lock(machine: &Machine, file: &Path) {
        let of = fs::metadata(file).unwrap();
        let (major, minor, inode) = (
            rustix::fs::major(of.dev()),
            rustix::fs::minor(of.dev()),
            of.ino(),
        );
        let locks = format!(
            "1: POSIX  ADVISORY  WRITE 9 {major:02x}:{minor:02x}:{inode} 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE 8 ff:{minor:02x}:{inode} 0 EOF\n\
             3: FLOCK  ADVISORY  WRITE 4711 {major:02x}:{minor:02x}:{inode} 0 EOF\n"
        );
        fs::write(machine.path("/proc/locks"), locks).unwrap();
    }

    #[test]
    fn a_cpu_is_claimed_once_until_the_claim_ends() {
        let (_dir, machine) = machine();
        let first = CpuClaim::take(&machine, &set("1")).unwrap();
        let refused = CpuClaim::take(&machine, &set("0-1")).unwrap_err();
        assert_eq!(
            (refused.cpu, refused.holder),
            (CpuId(1), ClaimHolder::Unseen)
        );
        // CPU 0 was released again.
        let other = CpuClaim::take(&machine, &set("0,7")).unwrap();
        drop((first, other));
        CpuClaim::take(&machine, &set("0-1")).unwrap();
    }

    #[test]
    fn a_recording_may_measure_a_cpu_that_is_watched_and_no_second_watch_may_watch_it() {
        let (_dir, machine) = machine();
        let watch = CpuClaim::take_to_watch(&machine, &set("1-2")).unwrap();
        let recording = CpuClaim::take(&machine, &set("1")).unwrap();
        let refused = CpuClaim::take_to_watch(&machine, &set("2-3")).unwrap_err();
        assert_eq!((refused.cpu, refused.watched), (CpuId(2), true));
        assert!(refused.to_string().contains("another watch"), "{refused}");
        drop((watch, recording));
        CpuClaim::take_to_watch(&machine, &set("2-3")).unwrap();
    }

    #[test]
    fn the_files_of_claims_are_for_their_user_alone() {
        let (dir, machine) = machine();
        let user = rustix::process::geteuid().as_raw();
        let _claim = CpuClaim::take(&machine, &set("3")).unwrap();
        let path = match user {
            0 => dir.path().join("run/jitterscope/cpus/cpu3"),
            user => dir.path().join(format!("tmp/jitterscope-{user}/cpus/cpu3")),
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()) & 0o022, 0);
    }

    #[test]
    fn a_process_is_named_only_while_it_has_the_file_open() {
        if !is_root() {
            return;
        }
        let (dir, machine) = machine();
        let _first = CpuClaim::take(&machine, &set("1")).unwrap();
        let file = dir.path().join("run/jitterscope/cpus/cpu1");
        list_lock(&machine, &file);
        // Process 4711 is gone; then another process has its id; then it is the holder.
        let holder = || CpuClaim::take(&machine, &set("1")).unwrap_err().holder;
        assert_eq!(holder(), ClaimHolder::Unseen);
        let open = dir.path().join("proc/4711/fd");
        fs::create_dir_all(&open).unwrap();
        symlink(dir.path().join("run"), open.join("3")).unwrap();
        assert_eq!(holder(), ClaimHolder::Unseen);
        symlink(&file, open.join("4")).unwrap();
        assert_eq!(holder(), ClaimHolder::Process(4711));
        let text = CpuClaim::take(&machine, &set("1")).unwrap_err().to_string();
        assert!(text.contains("process 4711"), "{text}");
    }

    #[test]
    fn a_user_leaves_a_cpu_to_root_and_only_to_root() {
        if !is_root() {
            return;
        }
        let (dir, machine) = machine();
        let roots = CpuClaim::take(&machine, &set("1")).unwrap();
        let file = dir.path().join("run/jitterscope/cpus/cpu1");
        list_lock(&machine, &file);
        let other = |cpus| CpuClaim::take_as(&machine, &set(cpus), 65_533, CLAIMS);
        assert_eq!(other("0-1").unwrap_err().holder, ClaimHolder::Root);
        let _theirs = other("0").unwrap();
        // A file with the name of root's file that does not belong to root has no effect.
        chown(&file, Some(65_533), None).unwrap();
        drop(other("1").unwrap());
        drop(roots);
    }

    #[test]
    fn no_other_user_blocks_a_claim() {
        if !is_root() {
            return;
        }
        let (dir, machine) = machine();
        // Another user's locks: on the CPU's folder in sysfs, and in that user's own folder of claims.
        let sysfs = dir.path().join("sys/devices/system/cpu/cpu1");
        fs::create_dir_all(&sysfs).unwrap();
        let on_sysfs = HeldLock::take(File::open(&sysfs).unwrap(), Duration::ZERO).unwrap();
        let theirs = CpuClaim::take_as(&machine, &set("1"), 65_533, CLAIMS).unwrap();
        drop(CpuClaim::take(&machine, &set("1")).unwrap());
        drop(CpuClaim::take_as(&machine, &set("1"), 65_532, CLAIMS).unwrap());
        drop((on_sysfs, theirs));
        // A third user made the folder for another user's claims: it is not used, and blocks no recording.
        let squatted = dir.path().join("tmp/jitterscope-65531/cpus");
        fs::create_dir_all(&squatted).unwrap();
        fs::write(squatted.join("cpu1"), "").unwrap();
        let taken = File::open(squatted.join("cpu1")).unwrap();
        let _taken = HeldLock::take(taken, Duration::ZERO).unwrap();
        chown(squatted.parent().unwrap(), Some(65_533), None).unwrap();
        let begun = Instant::now();
        CpuClaim::take_as(&machine, &set("1"), 65_531, CLAIMS).unwrap();
        assert!(begun.elapsed() < PATIENCE);
    }
}
