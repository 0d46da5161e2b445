//! A control file changed for a while, and put back whatever happens: by the guard when it is dropped,
//! or, after a SIGKILL, by [`restore_leftovers`] at the next start, from a note written before the change.

use crate::{FileError, Machine};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the notes lie. They are of no use after a reboot, which resets every control file.
const NOTES: &str = "/run/jitterscope/disturb";

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

/// A control file that holds another value until this is dropped.
#[derive(Debug)]
pub(super) struct TemporaryValue {
    machine: Machine,
    note: Note,
    note_path: PathBuf,
}

impl TemporaryValue {
    /// Writes `value` to `file`, having noted what was there.
    pub(super) fn set(machine: &Machine, file: &Path, value: &str) -> Result<TemporaryValue, FileError> {
        let pid = std::process::id();
        let note = Note {
            boot_id: boot_id(machine)?,
            pid,
            started: start_time(machine, pid).unwrap_or(0),
            file: file.to_path_buf(),
            original: machine.read_trimmed(file)?,
            changed: value.to_owned(),
        };
        let note_path = machine.path(NOTES).join(format!("{pid}.json"));
        write_note(&note_path, &note).map_err(|source| FileError { path: note_path.clone(), source })?;
        // From here on the drop puts back, even if the write is refused half-way.
        let guard = TemporaryValue { machine: machine.clone(), note, note_path };
        machine.write(file, value)?;
        Ok(guard)
    }
}

impl Drop for TemporaryValue {
    fn drop(&mut self) {
        // On failure the note stays, for the next start to try again.
        if self.machine.write(&self.note.file, &self.note.original).is_ok() {
            let _ = fs::remove_file(&self.note_path);
        }
    }
}

/// What [`restore_leftovers`] did about one note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The control file.
    pub file: PathBuf,
    /// What it held before a killed child changed it.
    pub original: String,
    /// Whether it was put back; false when somebody else had changed or removed it since.
    pub restored: bool,
}

/// Puts back what children left changed because they were killed. Children that live are left alone, and
/// so is a file that no longer holds what the child wrote, or is gone.
///
/// # Errors
/// A control file or a note could not be written or removed; the note is kept, so that calling again
/// tries again.
pub fn restore_leftovers(machine: &Machine) -> Result<Vec<Leftover>, FileError> {
    let mut leftovers = Vec::new();
    for name in machine.list(NOTES).into_iter().filter(|name| name.ends_with(".json")) {
        let path = machine.path(NOTES).join(&name);
        // A note that is not whole was never acted upon: the change comes after the note.
        let note = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
        if let Some(note) = note {
            let alive = start_time(machine, note.pid).is_some_and(|started| started == note.started);
            let this_boot = boot_id(machine)? == note.boot_id;
            if alive && this_boot {
                continue;
            }
            if this_boot {
                let restored = match machine.read_trimmed(&note.file) {
                    Ok(value) => same_value(&value, &note.changed),
                    Err(error) if error.is_absent() => false,
                    Err(error) => return Err(error),
                };
                if restored {
                    machine.write(&note.file, &note.original)?;
                }
                leftovers.push(Leftover { file: note.file, original: note.original, restored });
            }
        }
        fs::remove_file(&path).map_err(|source| FileError { path, source })?;
    }
    Ok(leftovers)
}

/// The kernel prints masks padded with zeros, and does not mind how they are written.
fn same_value(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.replace(',', "").trim_start_matches('0').to_owned();
    plain(a) == plain(b)
}

fn boot_id(machine: &Machine) -> Result<String, FileError> {
    machine.read_trimmed("/proc/sys/kernel/random/boot_id")
}

/// A process's start time: field 22 of its `stat`, counted behind the name, which may hold anything.
/// `None` when there is no such process, or only its corpse.
fn start_time(machine: &Machine, pid: u32) -> Option<u64> {
    let stat = machine.read(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Under a temporary name first: a note is there whole, or not at all.
fn write_note(path: &Path, note: &Note) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, serde_json::to_vec(note)?)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        machine.list(NOTES).len()
    }

    fn change_and_be_killed(machine: &Machine) {
        std::mem::forget(TemporaryValue::set(machine, Path::new(KNOB), "2").unwrap());
        assert_eq!((machine.read_trimmed(KNOB).unwrap().as_str(), notes(machine)), ("2", 1));
    }

    fn end_process(machine: &Machine) {
        fs::remove_file(machine.path(format!("/proc/{}/stat", std::process::id()))).unwrap();
    }

    #[test]
    fn dropping_the_guard_puts_the_value_back() {
        let (_dir, machine) = fake();
        let guard = TemporaryValue::set(&machine, Path::new(KNOB), "2").unwrap();
        assert_eq!((machine.read_trimmed(KNOB).unwrap().as_str(), notes(&machine)), ("2", 1));
        drop(guard);
        assert_eq!((machine.read_trimmed(KNOB).unwrap().as_str(), notes(&machine)), ("3", 0));
    }

    #[test]
    fn the_next_start_puts_back_what_a_killed_child_left() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        assert_eq!(restore_leftovers(&machine).unwrap(), [], "a living child is left alone");
        assert_eq!(machine.read_trimmed(KNOB).unwrap(), "2");
        end_process(&machine);
        let put_back = Leftover { file: KNOB.into(), original: "3".into(), restored: true };
        assert_eq!(restore_leftovers(&machine).unwrap(), [put_back]);
        assert_eq!((machine.read_trimmed(KNOB).unwrap().as_str(), notes(&machine)), ("3", 0));
        assert_eq!(restore_leftovers(&machine).unwrap(), []);
    }

    #[test]
    fn a_process_id_used_again_does_not_protect_the_leftover() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        let stat = "9 (other) S 1 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9999 0";
        fs::write(machine.path(format!("/proc/{}/stat", std::process::id())), stat).unwrap();
        assert!(restore_leftovers(&machine).unwrap()[0].restored);
    }

    #[test]
    fn a_value_that_somebody_else_set_since_stays() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        end_process(&machine);
        machine.write(KNOB, "1").unwrap();
        assert!(!restore_leftovers(&machine).unwrap()[0].restored);
        assert_eq!((machine.read_trimmed(KNOB).unwrap().as_str(), notes(&machine)), ("1", 0));
    }

    #[test]
    fn a_control_file_that_is_gone_keeps_no_note_alive() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        end_process(&machine);
        fs::remove_file(machine.path(KNOB)).unwrap();
        assert!(!restore_leftovers(&machine).unwrap()[0].restored);
        assert_eq!(notes(&machine), 0);
    }

    #[test]
    fn notes_of_another_boot_or_torn_ones_are_only_removed() {
        let (_dir, machine) = fake();
        change_and_be_killed(&machine);
        machine.write("/proc/sys/kernel/random/boot_id", "next-boot").unwrap();
        fs::write(machine.path(NOTES).join("1.json"), "{\"boot_id\":").unwrap();
        assert_eq!(restore_leftovers(&machine).unwrap(), []);
        assert_eq!((machine.read_trimmed(KNOB).unwrap().as_str(), notes(&machine)), ("2", 0));
    }

    #[test]
    fn masks_are_compared_by_value() {
        assert!(same_value("00000002", "2"));
        assert!(same_value("0001,00000000", "1,00000000"));
        assert!(!same_value("20", "2"));
    }
}
