//! A control file changed for a while, and put back whatever happens: by the guard when it is dropped,
//! or, after a SIGKILL, by [`restore_leftovers`] at the next start, from a note written before the change.
//!
//! A note makes root write to a control file: it is believed only in a folder that nobody else can write
//! to, and only about a file that a disturbance changes.

use super::DisturbError;
use jitterscope_platform::{FileError, HeldLock, Machine, TaskStat, TrustError, TrustedFolder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::TryLockError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the notes lie. They are of no use after a reboot, which resets every control file.
const NOTES: &str = "/run/jitterscope/disturb";

/// Held beside the notes as long as something is changed. The kernel releases it when its holder ends, and it
/// is seen from every PID namespace, where the process ids in the notes say nothing.
const LOCK: &str = "lock";
/// Who only looks for leftovers holds it for a moment.
const PATIENCE: Duration = Duration::from_millis(500);

/// Which CPUs write dirty pages back.
pub(super) const WRITEBACK_MASK: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";
/// What disturbances change: each holds a CPU mask.
const MASKS: [&str; 1] = [WRITEBACK_MASK];

/// What to put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The boot in which the change was made.
    boot_id: String,
    /// Who made it: process id, and start time in clock ticks since boot, since ids are used again.
    pid: u32,
    started: u64,
    /// The control file.
    file: PathBuf,
    /// What it held.
    original: String,
    /// What we wrote.
    changed: String,
}

impl Note {
    /// What is wrong with it; a note that a disturbance wrote has nothing wrong.
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

/// A control file that holds another value until this is dropped.
#[derive(Debug)]
pub(super) struct TemporaryValue {
    machine: Machine,
    note: Note,
    folder: TrustedFolder,
    name: String,
    /// Two at once would each take the other's value for the original.
    _lock: HeldLock,
}

impl TemporaryValue {
    /// Writes `value` to `file`, having noted what was there.
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
        // From here on the drop puts back, even if the write is refused half-way.
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
        // On failure the note stays, for the next start to try again.
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
    /// The control file; the note itself where it cannot be understood.
    pub file: PathBuf,
    /// What it held before the child changed it; empty where that is not known.
    pub original: String,
    /// How it stands, or what was done about it.
    pub state: LeftoverState,
}

/// How a leftover stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftoverState {
    /// It still holds what the child wrote.
    Changed,
    /// It was put back.
    Restored,
    /// Somebody else has changed or removed it since, so that it is left alone.
    Foreign,
    /// It could not be put back, and why; the note is kept, so that calling again tries again.
    Failed(String),
}

/// What children that were killed left changed; nothing is touched. A note of another boot is none.
///
/// # Errors
/// The folder of the notes can be written to by others, or cannot be read.
pub fn leftovers(machine: &Machine) -> Result<Vec<Leftover>, TrustError> {
    each_note(machine, |_, found| found.leftover)
}

/// Puts back what children left changed because they were killed. Children that live are left alone, and
/// so is a file that no longer holds what the child wrote, or is gone. One that cannot be put back does
/// not keep the others from it.
///
/// # Errors
/// The folder of the notes can be written to by others, or cannot be read.
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
    /// `None` when there is nothing to put back, and the note is of no more use.
    leftover: Option<Leftover>,
}

fn each_note(
    machine: &Machine,
    mut take: impl FnMut(&TrustedFolder, Found) -> Option<Leftover>,
) -> Result<Vec<Leftover>, TrustError> {
    let Some(folder) = TrustedFolder::open(&machine.path(NOTES))? else {
        return Ok(Vec::new());
    };
    // Held until all are settled: nobody begins a change meanwhile. Who may not open it goes by the ids.
    let lock = folder
        .lock_file(LOCK)
        .ok()
        .map(|lock| HeldLock::take(lock, Duration::ZERO));
    if matches!(lock, Some(Err((_, TryLockError::WouldBlock)))) {
        // Somebody is at it, and what an earlier one left can wait for him.
        return Ok(Vec::new());
    }
    let mut leftovers = Vec::new();
    for name in folder
        .names()?
        .into_iter()
        .filter(|name| name.ends_with(".json"))
    {
        let leftover = match folder.read(&name) {
            // It ended, and removed its note, while we looked.
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

/// What a note says.
enum Look {
    /// Its child lives.
    Alive,
    /// There is nothing to put back.
    Nothing,
    /// There is.
    Left(Leftover),
}

fn look(machine: &Machine, path: &Path, bytes: &[u8]) -> Look {
    // A note that is not whole was never acted upon: the change comes after the note.
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

/// As the kernel prints a mask; no mask is longer than a page.
fn is_mask(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 4096
        && text.chars().all(|c| c.is_ascii_hexdigit() || c == ',')
}

/// The kernel prints masks padded with zeros, and does not mind how they are written.
fn same_value(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.replace(',', "").trim_start_matches('0').to_owned();
    plain(a) == plain(b)
}

fn boot_id(machine: &Machine) -> Result<String, FileError> {
    machine.read_trimmed("/proc/sys/kernel/random/boot_id")
}

/// When a process was started; `None` when there is no such process, or only its corpse.
fn start_time(machine: &Machine, pid: u32) -> Option<u64> {
    TaskStat::of(machine, pid)
        .filter(|stat| stat.has_ended() == Some(false))?
        .start_time()
}

/// Under a temporary name first: a note is there whole, or not at all.
fn write_note(folder: &TrustedFolder, name: &str, note: &Note) -> Result<(), DisturbError> {
    let temporary = format!("{name}.new");
    let error = |source| FileError {
        path: folder.path().join(&temporary),
        source,
    };
    let text = serde_json::to_vec(note).map_err(|e| error(e.into()))?;
    // A killed child's that had our process id.
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
