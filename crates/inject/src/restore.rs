//! A control file that is changed temporarily and always restored: by the guard when it is dropped, or, after a
//! SIGKILL, by [`restore_leftovers`] at the next start, from a note that was written before the change.
//!
//! A note makes root write to a control file. So notes count only in a folder that no other user can write to, and only
//! for a file that a disturbance changes.

use super::DisturbError;
use jitterscope_platform::{FileError, HeldLock, Machine, TaskStat, TrustError, TrustedFolder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::TryLockError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of notes. They are useless after a reboot, which resets every control file.
const NOTES: &str = "/run/jitterscope/disturb";

/// Locked during every change. The kernel releases the lock when its holder ends, and it works across PID namespaces,
/// unlike the process ids in the notes.
const LOCK: &str = "lock";
/// How long to wait for a process that only checks for leftovers, which takes a moment.
const PATIENCE: Duration = Duration::from_millis(500);

/// The CPUs that write dirty pages back.
pub(super) const WRITEBACK_MASK: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";
/// The files that disturbances change: each holds a CPU mask.
const MASKS: [&str; 1] = [WRITEBACK_MASK];

/// How to restore a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The boot in which the change was made.
    boot_id: String,
    /// The process that made it: id, and start time in clock ticks since boot, because ids are reused.
    pid: u32,
    started: u64,
    file: PathBuf,
    original: String,
    changed: String,
}

impl Note {
    /// What is wrong with it; nothing is wrong with a note that a disturbance wrote.
    fn fault(&self) -> Option<&'static str> {
        if !MASKS.iter().any(|mask| Path::new(mask) == self.file) {
            return Some("no disturbance changes that file");
        }
        if !is_mask(&self.original) || !is_mask(&self.changed) {
            return Some("what it says the file held is no CPU mask");
        }
        None
    }
}

/// A control file with a temporary value; dropping this restores the file.
#[derive(Debug)]
pub(super) struct TemporaryValue {
    machine: Machine,
    note: Note,
    folder: TrustedFolder,
    name: String,
    /// Prevents concurrent changes, which would take each other's value for the original.
    _lock: HeldLock,
}

impl TemporaryValue {
    /// Stores the file's original value in a note, and writes `value` to it.
    pub(super) fn set(
        machine: &Machine,
        file: &Path,
        value: &str,
    ) -> Result<TemporaryValue, DisturbError> {
        let folder = TrustedFolder::make(&machine.path(NOTES))?;
        let lock = folder.lock_file(LOCK)?;
        let lock = HeldLock::take(lock, PATIENCE).map_err(|(_, error)| match error {
            TryLockError::WouldBlock => {
                let why = format!(
                    "another selftest is changing {}: wait for it",
                    file.display()
                );
                DisturbError::Unavailable(why)
            }
            TryLockError::Error(error) => {
                DisturbError::refused("locking the notes of what is changed")(error)
            }
        })?;
        let pid = std::process::id();
        let note = Note {
            boot_id: boot_id(machine)?,
            pid,
            started: start_time(machine, pid).unwrap_or(0),
            file: file.to_path_buf(),
            original: machine.read_trimmed(file)?,
            changed: value.to_owned(),
        };
        let name = format!("{pid}.json");
        write_note(&folder, &name, &note)?;
        // From here on the drop restores the file, even if the write fails half-way.
        let guard = TemporaryValue {
            machine: machine.clone(),
            note,
            folder,
            name,
            _lock: lock,
        };
        machine.write(file, value)?;
        Ok(guard)
    }
}

impl Drop for TemporaryValue {
    fn drop(&mut self) {
        // On failure the note stays, for a retry at the next start.
        if self
            .machine
            .write(&self.note.file, &self.note.original)
            .is_ok()
        {
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// A control file that a killed child left changed, as [`leftovers`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The control file; the note itself if it cannot be parsed.
    pub file: PathBuf,
    /// Its content before the child's change; empty if unknown.
    pub original: String,
    /// Its state, or the result of restoring it.
    pub state: LeftoverState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftoverState {
    /// It still has the child's value.
    Changed,
    /// It was put back.
    Restored,
    /// Another process has changed or removed it since, so it is left alone.
    Foreign,
    /// Restoring failed, with the reason; the note stays, so a later call tries again.
    Failed(String),
}

/// Finds changes that killed children left, without touching them. Ignores notes of another boot.
///
/// # Errors
/// Other users can write to the folder of the notes, or it cannot be read.
pub fn leftovers(machine: &Machine) -> Result<Vec<Leftover>, TrustError> {
    each_note(machine, |_, found| found.leftover)
}

/// Restores files that killed children left changed. Skips living children, and files that no longer have the child's
/// value, or are gone. A failure to restore one file does not affect the others.
///
/// # Errors
/// Other users can write to the folder of the notes, or it cannot be read.
pub fn restore_leftovers(machine: &Machine) -> Result<Vec<Leftover>, TrustError> {
    each_note(machine, |folder, found| {
        let mut leftover = found.leftover;
        if let Some(leftover) = &mut leftover
            && leftover.state == LeftoverState::Changed
        {
            leftover.state = match machine.write(&leftover.file, &leftover.original) {
                Ok(()) => LeftoverState::Restored,
                Err(error) => LeftoverState::Failed(error.to_string()),
            };
        }
        if leftover
            .as_ref()
            .is_some_and(|l| matches!(l.state, LeftoverState::Failed(_)))
        {
            return leftover;
        }
        if let Err(error) = folder.remove(&found.name) {
            let done = if leftover.is_some() {
                "that is settled, but its note stays"
            } else {
                "a spent note stays"
            };
            let file = leftover.map_or_else(|| folder.path().join(&found.name), |l| l.file);
            return Some(failed(file, format!("{done}: {error}")));
        }
        leftover
    })
}

/// A note whose child is gone.
struct Found {
    name: String,
    /// `None` if there is nothing to restore, and the note is useless.
    leftover: Option<Leftover>,
}

fn each_note(
    machine: &Machine,
    mut take: impl FnMut(&TrustedFolder, Found) -> Option<Leftover>,
) -> Result<Vec<Leftover>, TrustError> {
    let Some(folder) = TrustedFolder::open(&machine.path(NOTES))? else {
        return Ok(Vec::new());
    };
    // Held until all notes are processed, so that no process begins a change meanwhile. If this user may not open the
    // lock, the process ids in the notes decide.
    let lock = folder
        .lock_file(LOCK)
        .ok()
        .map(|lock| HeldLock::take(lock, Duration::ZERO));
    if matches!(lock, Some(Err((_, TryLockError::WouldBlock)))) {
        // Another process is changing files; older leftovers can wait until it ends.
        return Ok(Vec::new());
    }
    let mut leftovers = Vec::new();
    for name in folder
        .names()?
        .into_iter()
        .filter(|name| name.ends_with(".json"))
    {
        let leftover = match folder.read(&name) {
            // It ended, and removed its note, during this scan.
            Ok(None) => continue,
            Ok(Some(bytes)) => match look(machine, &folder.path().join(&name), &bytes) {
                Look::Alive => continue,
                Look::Nothing => None,
                Look::Left(leftover) => Some(leftover),
            },
            Err(error) => Some(failed(folder.path().join(&name), error.to_string())),
        };
        leftovers.extend(take(&folder, Found { name, leftover }));
    }
    Ok(leftovers)
}

fn failed(file: PathBuf, why: String) -> Leftover {
    Leftover {
        file,
        original: String::new(),
        state: LeftoverState::Failed(why),
    }
}

/// The result of checking a note.
enum Look {
    Alive,
    /// There is nothing to restore.
    Nothing,
    Left(Leftover),
}

fn look(machine: &Machine, path: &Path, bytes: &[u8]) -> Look {
    // An incomplete note had no effect, because the change comes after the note.
    let Ok(note) = serde_json::from_slice::<Note>(bytes) else {
        return Look::Nothing;
    };
    match boot_id(machine) {
        Ok(boot) if boot != note.boot_id => return Look::Nothing,
        Ok(_) => {}
        Err(error) => return Look::Left(failed(note.file, error.to_string())),
    }
    if start_time(machine, note.pid).is_some_and(|started| started == note.started) {
        return Look::Alive;
    }
    if let Some(fault) = note.fault() {
        return Look::Left(failed(
            note.file,
            format!(
                "{fault}: remove {}, which no disturbance wrote",
                path.display()
            ),
        ));
    }
    let state = match machine.read_trimmed(&note.file) {
        Ok(value) if same_value(&value, &note.changed) => LeftoverState::Changed,
        Ok(_) => LeftoverState::Foreign,
        Err(error) if error.is_absent() => LeftoverState::Foreign,
        Err(error) => LeftoverState::Failed(error.to_string()),
    };
    Look::Left(Leftover {
        file: note.file,
        original: note.original,
        state,
    })
}

/// A mask in the kernel's format, which is at most a page long.
fn is_mask(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 4096
        && text.chars().all(|c| c.is_ascii_hexdigit() || c == ',')
}

/// The kernel pads masks with zeros, and accepts any form.
fn same_value(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.replace(',', "").trim_start_matches('0').to_owned();
    plain(a) == plain(b)
}

fn boot_id(machine: &Machine) -> Result<String, FileError> {
    machine.read_trimmed("/proc/sys/kernel/random/boot_id")
}

/// When a process started; `None` if it does not exist, or is a zombie.
fn start_time(machine: &Machine, pid: u32) -> Option<u64> {
    TaskStat::of(machine, pid)
        .filter(|stat| stat.has_ended() == Some(false))?
        .start_time()
}

/// Writes to a temporary name first, so that a note is complete or absent.
fn write_note(folder: &TrustedFolder, name: &str, note: &Note) -> Result<(), DisturbError> {
    let temporary = format!("{name}.new");
    let error = |source| FileError {
        path: folder.path().join(&temporary),
        source,
    };
    let text = serde_json::to_vec(note).map_err(|e| error(e.into()))?;
    // A leftover of a killed child with our process id.
    folder.remove(&temporary)?;
    folder
        .make_file(&temporary, OFlags::WRONLY, 0o644)?
        .write_all(&text)
        .map_err(error)?;
    folder.rename(&temporary, name)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const KNOB: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";

    fn fake() -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        let put = |path: &str, text: &str| {
            let path = machine.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(KNOB, "3\n");
        put("/proc/sys/kernel/random/boot_id", "this-boot\n");
        put(
            &format!("/proc/{}/stat", std::process::id()),
            "9 (a ) b) S 1 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0",
        );
        (dir, machine)
    }

    fn notes(machine: &Machine) -> usize {
        machine
            .list(NOTES)
            .iter()
            .filter(|name| name.ends_with(".json"))
            .count()
    }

    fn change_and_be_killed(machine: &Machine) {
        let killed = TemporaryValue::set(machine, Path::new(KNOB), "2").unwrap();
        killed._lock.file().unlock().unwrap();
        std::mem::forget(killed);
        assert_eq!(
            (machine.read_trimmed(KNOB).unwrap().as_str(), notes(machine)),
            ("2", 1)
        );
    }

    fn end_process(machine: &Machine) {
        fs::remove_file(machine.path(format!("/proc/{}/stat", std::process::id()))).unwrap();
    }

    #[test]
    fn dropping_the_guard_puts_the_value_back() {
        let (_dir, machine) = fake();
        let guard = TemporaryValue::set(&machine, Path::new(KNOB), "2").unwrap();
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("2", 1)
        );
        drop(guard);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("3", 0)
        );
    }

    #[test]
    fn the_next_start_puts_back_what_a_killed_child_left() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        assert_eq!(
            restore_leftovers(&machine).unwrap(),
            [],
            "a living child is left alone"
        );
        assert_eq!(machine.read_trimmed(KNOB).unwrap(), "2");
        end_process(&machine);
        let put_back = Leftover {
            file: KNOB.into(),
            original: "3".into(),
            state: LeftoverState::Restored,
        };
        assert_eq!(restore_leftovers(&machine).unwrap(), [put_back]);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("3", 0)
        );
        assert_eq!(restore_leftovers(&machine).unwrap(), []);
    }

    #[test]
    fn a_living_child_of_another_pid_namespace_is_left_alone() {
        let (_dir, machine) = fake();
        let guard = TemporaryValue::set(&machine, Path::new(KNOB), "2").unwrap();
        end_process(&machine);
        assert_eq!(leftovers(&machine).unwrap(), []);
        assert_eq!(restore_leftovers(&machine).unwrap(), []);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("2", 1)
        );
        drop(guard);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("3", 0)
        );
    }

    #[test]
    fn a_process_id_used_again_does_not_protect_the_leftover() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        let stat = "9 (other) S 1 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9999 0";
        fs::write(
            machine.path(format!("/proc/{}/stat", std::process::id())),
            stat,
        )
        .unwrap();
        assert_eq!(
            restore_leftovers(&machine).unwrap()[0].state,
            LeftoverState::Restored
        );
    }

    #[test]
    fn a_value_that_somebody_else_set_since_stays() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        end_process(&machine);
        machine.write(KNOB, "1").unwrap();
        assert_eq!(
            restore_leftovers(&machine).unwrap()[0].state,
            LeftoverState::Foreign
        );
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("1", 0)
        );
    }

    #[test]
    fn a_control_file_that_is_gone_keeps_no_note_alive() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        end_process(&machine);
        fs::remove_file(machine.path(KNOB)).unwrap();
        assert_eq!(
            restore_leftovers(&machine).unwrap()[0].state,
            LeftoverState::Foreign
        );
        assert_eq!(notes(&machine), 0);
    }

    #[test]
    fn notes_of_another_boot_or_torn_ones_are_only_removed() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        machine
            .write("/proc/sys/kernel/random/boot_id", "next-boot")
            .unwrap();
        fs::write(machine.path(NOTES).join("1.json"), "{\"boot_id\":").unwrap();
        assert_eq!(restore_leftovers(&machine).unwrap(), []);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("2", 0)
        );
    }

    #[test]
    fn masks_are_compared_by_value() {
        assert!(same_value("00000002", "2"));
        assert!(same_value("0001,00000000", "1,00000000"));
        assert!(!same_value("20", "2"));
    }

    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn two_at_once_do_not_take_each_others_value_for_the_original() {
        let (_dir, machine) = fake();
        let guard = TemporaryValue::set(&machine, Path::new(KNOB), "2").unwrap();
        let second = TemporaryValue::set(&machine, Path::new(KNOB), "1");
        assert!(
            matches!(second, Err(DisturbError::Unavailable(_))),
            "{second:?}"
        );
        assert_eq!(machine.read_trimmed(KNOB).unwrap(), "2");
        drop(guard);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("3", 0)
        );
    }

    #[test]
    fn looking_touches_nothing() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        assert_eq!(leftovers(&machine).unwrap(), []);
        end_process(&machine);
        let changed = Leftover {
            file: KNOB.into(),
            original: "3".into(),
            state: LeftoverState::Changed,
        };
        assert_eq!(leftovers(&machine).unwrap(), [changed]);
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("2", 1)
        );
    }

    #[test]
    fn a_note_about_anything_else_is_not_obeyed_and_keeps_no_other_from_it() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        end_process(&machine);
        let real: Note = {
            let name = machine.list(NOTES).remove(0);
            serde_json::from_slice(&fs::read(machine.path(NOTES).join(name)).unwrap()).unwrap()
        };
        let victim = "/proc/sys/kernel/core_pattern";
        fs::create_dir_all(machine.path(victim).parent().unwrap()).unwrap();
        fs::write(machine.path(victim), "2").unwrap();
        for (name, note) in [
            (
                "0.json",
                Note {
                    file: victim.into(),
                    ..real.clone()
                },
            ),
            (
                "00.json",
                Note {
                    original: "|/tmp/x".into(),
                    ..real.clone()
                },
            ),
        ] {
            fs::write(
                machine.path(NOTES).join(name),
                serde_json::to_vec(&note).unwrap(),
            )
            .unwrap();
        }
        let found = restore_leftovers(&machine).unwrap();
        let states: Vec<bool> = found
            .iter()
            .map(|l| matches!(l.state, LeftoverState::Failed(_)))
            .collect();
        assert_eq!(states, [true, true, false], "{found:?}");
        assert_eq!(machine.read_trimmed(victim).unwrap(), "2");
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("3", 2)
        );
    }

    #[test]
    fn notes_that_others_could_have_written_are_not_read() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        end_process(&machine);
        set_mode(&machine.path(NOTES), 0o777);
        assert!(matches!(
            restore_leftovers(&machine),
            Err(TrustError::Distrusted { .. })
        ));
        assert_eq!(machine.read_trimmed(KNOB).unwrap(), "2");
        set_mode(&machine.path(NOTES), 0o755);
        let note = machine.path(NOTES).join(machine.list(NOTES).remove(0));
        set_mode(&note, 0o666);
        let found = restore_leftovers(&machine).unwrap();
        assert!(
            matches!(found[0].state, LeftoverState::Failed(_)),
            "{found:?}"
        );
        assert_eq!(
            (
                machine.read_trimmed(KNOB).unwrap().as_str(),
                notes(&machine)
            ),
            ("2", 1)
        );
    }
}
