//! The note written before a command of the user changes the machine, so that the change can be undone even if both the
//! experiment and its guard were killed.
//!
//! A note makes root run a command, so it is trusted only in a folder that no other user can write to.

use crate::leader::shell_in;
use crate::note_error::NoteError;
use crate::{ExperimentError, Leader};
use jitterscope_platform::{HeldLock, TrustedFolder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::TryLockError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The note, in the folder of the journal of `tune`.
const NOTE: &str = "experiment.json";
/// The note while it is being written.
const NEW: &str = "experiment.json.new";
/// Held by the experiment, and then by its guard: a process that can lock it knows that both are gone.
const LOCK: &str = "experiment.lock";
/// How long a process that only reads holds the lock.
const LOOKING: Duration = Duration::from_millis(6);
const VERSION: u32 = 1;

/// A change that a command of the user made or was about to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    version: u32,
    /// The command that undoes it, run by `sh -c`; empty if knobs are changed.
    pub revert: String,
    pub folder: PathBuf,
    /// The process group that makes or undoes the change; it may still run.
    #[serde(default)]
    leader: Option<Leader>,
    /// The changed knobs, if no command makes the change.
    #[serde(default)]
    pub knobs: Vec<String>,
}

/// Access to the note, held by one process at a time.
#[derive(Debug)]
pub struct Notes {
    folder: TrustedFolder,
    _lock: HeldLock,
}

impl Notes {
    /// The path of the note.
    #[must_use]
    pub fn place(state: &Path) -> PathBuf {
        state.join(NOTE)
    }

    /// Locks the note; creates the folder if necessary.
    ///
    /// # Errors
    /// The folder is unsuitable, or another process holds the lock for longer than `patience`.
    pub fn take(state: &Path, patience: Duration) -> Result<Notes, NoteError> {
        Notes::of(TrustedFolder::make(state)?, patience)
    }

    /// Locks the note if the folder exists and no process holds it.
    ///
    /// # Errors
    /// The folder cannot be trusted.
    pub fn left(state: &Path) -> Result<Option<Notes>, NoteError> {
        let Some(folder) = TrustedFolder::open(state)? else {
            return Ok(None);
        };
        if folder.open_file(NOTE, OFlags::RDONLY)?.is_none() {
            return Ok(None);
        }
        match Notes::of(folder, LOOKING) {
            Ok(notes) => Ok(Some(notes)),
            Err(NoteError::Busy) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(folder: TrustedFolder, patience: Duration) -> Result<Notes, NoteError> {
        let lock = folder.lock_file(LOCK)?;
        match HeldLock::take(lock, patience) {
            Ok(lock) => Ok(Notes {
                folder,
                _lock: lock,
            }),
            Err((_, TryLockError::WouldBlock)) => Err(NoteError::Busy),
            Err((_, TryLockError::Error(source))) => Err(NoteError::Io {
                path: folder.path().join(LOCK),
                source,
            }),
        }
    }

    /// The change to undo.
    ///
    /// # Errors
    /// It cannot be read, or is invalid.
    pub fn read(&self) -> Result<Option<Note>, NoteError> {
        let Some(text) = self.folder.read(NOTE)? else {
            return Ok(None);
        };
        let damaged = |why: String| NoteError::Damaged {
            path: self.folder.path().join(NOTE),
            why,
        };
        let note: Note =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if note.version != VERSION {
            return Err(damaged(format!("it is of version {}", note.version)));
        }
        Ok(Some(note))
    }

    /// Notes how to undo a change that is about to be made; on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written: then nothing may be changed.
    pub fn write(
        &self,
        revert: &str,
        folder: &Path,
        leader: Option<&Leader>,
    ) -> Result<(), NoteError> {
        self.put(&Note {
            version: VERSION,
            revert: revert.to_owned(),
            folder: folder.to_owned(),
            leader: leader.cloned(),
            knobs: Vec::new(),
        })
    }

    /// Notes knobs that are about to be changed, which the journal of `tune` undoes.
    ///
    /// # Errors
    /// It cannot be written: then nothing may be changed.
    pub fn write_knobs(&self, knobs: &[String]) -> Result<(), NoteError> {
        let (revert, folder) = (String::new(), PathBuf::from("/"));
        self.put(&Note {
            version: VERSION,
            revert,
            folder,
            leader: None,
            knobs: knobs.to_vec(),
        })
    }

    fn put(&self, note: &Note) -> Result<(), NoteError> {
        let failed = |source: io::Error| NoteError::Io {
            path: self.folder.path().join(NEW),
            source,
        };
        let text = serde_json::to_vec(note).map_err(|error| failed(error.into()))?;
        self.folder.remove(NEW)?;
        let mut file = self.folder.make_file(NEW, OFlags::WRONLY, 0o600)?;
        file.write_all(&text)
            .and_then(|()| file.sync_data())
            .map_err(failed)?;
        self.folder.rename(NEW, NOTE)?;
        Ok(self.folder.sync()?)
    }

    /// Adds the process group that undoes it, if that can be written: not undoing because of a full disk would be
    /// worse.
    pub(crate) fn reverting(&self, revert: &str, folder: &Path, leader: &Leader) {
        // The earlier note stays.
        let _ = self.write(revert, folder, Some(leader));
    }

    /// The change is undone: removes the note.
    ///
    /// # Errors
    /// The note cannot be removed.
    pub fn remove(&self) -> Result<(), NoteError> {
        Ok(self.folder.remove(NOTE)?)
    }

    /// Undoes the noted change, if there is one, and removes the note: knobs by `knobs`, everything else by its
    /// command. First ends the process group that still makes or undoes the change.
    ///
    /// # Errors
    /// The process group cannot be ended, or the undoing fails: the note stays.
    pub fn undo(
        &self,
        knobs: &mut dyn FnMut(&[String]) -> Result<(), ExperimentError>,
    ) -> Result<Option<Note>, ExperimentError> {
        let Some(note) = self.read()? else {
            return Ok(None);
        };
        if let Some(leader) = &note.leader {
            leader.end_group()?;
        }
        if note.knobs.is_empty() {
            let mut noted = |leader: &Leader| {
                self.reverting(&note.revert, &note.folder, leader);
                Ok(())
            };
            shell_in(&note.revert, Some(&note.folder), &mut noted)?;
        } else {
            knobs(&note.knobs)?;
        }
        self.remove()?;
        Ok(Some(note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SOON: Duration = Duration::from_millis(50);

    fn undo(notes: &Notes) -> Result<Option<Note>, ExperimentError> {
        notes.undo(&mut |knobs| panic!("{knobs:?} were not noted"))
    }

    #[test]
    fn what_nobody_undid_is_found_and_undone_where_it_was_meant() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert!(Notes::left(&state).unwrap().is_none());
        let notes = Notes::take(&state, SOON).unwrap();
        assert_eq!(notes.read().unwrap(), None);
        fs::write(dir.path().join("changed"), "").unwrap();
        notes.write("rm changed", dir.path(), None).unwrap();
        assert!(
            Notes::left(&state).unwrap().is_none(),
            "its experiment lives"
        );
        assert!(matches!(Notes::take(&state, SOON), Err(NoteError::Busy)));
        drop(notes);
        let left = Notes::left(&state).unwrap().expect("nobody holds it");
        assert_eq!(undo(&left).unwrap().unwrap().revert, "rm changed");
        assert!(!dir.path().join("changed").exists());
        assert_eq!(undo(&left).unwrap(), None, "once");
    }

    #[test]
    fn a_note_stays_until_its_command_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes::take(dir.path(), SOON).unwrap();
        notes.write("test -e ready", dir.path(), None).unwrap();
        assert!(
            undo(&notes)
                .unwrap_err()
                .to_string()
                .contains("test -e ready")
        );
        fs::write(dir.path().join("ready"), "").unwrap();
        assert!(undo(&notes).unwrap().is_some());
        fs::write(
            dir.path().join(NOTE),
            r#"{"version":9,"revert":"x","folder":"/"}"#,
        )
        .unwrap();
        assert!(undo(&notes).unwrap_err().to_string().contains("version 9"));
    }

    #[test]
    fn knobs_are_undone_by_the_journal_and_by_no_command() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes::take(dir.path(), SOON).unwrap();
        notes.write_knobs(&["vmstat".to_owned()]).unwrap();
        let refused = notes.undo(&mut |_| Err(ExperimentError::NotApplied("busy".into())));
        assert!(refused.is_err());
        let mut undone = Vec::new();
        let note = notes.undo(&mut |knobs| {
            undone.extend(knobs.to_vec());
            Ok(())
        });
        assert_eq!(
            (note.unwrap().unwrap().knobs, undone),
            (vec!["vmstat".into()], vec!["vmstat".to_owned()])
        );
        assert_eq!(undo(&notes).unwrap(), None);
    }

    #[test]
    fn a_note_that_others_could_have_written_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        Notes::take(dir.path(), SOON)
            .unwrap()
            .write("true", dir.path(), None)
            .unwrap();
        let note = dir.path().join(NOTE);
        fs::set_permissions(&note, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Notes::left(dir.path()).is_err());
    }
}
