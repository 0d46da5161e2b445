//! Files made safe on disk beside the work: whoever writes rows must not wait for a disk.

use crate::error::StoreError;
use jitterscope_platform::HeldDir;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Files that wait open to be synced at most; beyond it the disk is too slow for them, and they are synced at the end.
const WAITING: usize = 16;

/// Files that are left for the end and stay open: what the kernel could not write of one is told to whoever has it open.
/// Beyond that they are opened again.
const KEPT_OPEN: usize = 256;

type Waiting = (File, PathBuf);

struct Thread {
    send: SyncSender<Waiting>,
    /// The folder of its first file, which stands for all of them where the thread itself fails.
    files: PathBuf,
    ended: JoinHandle<Result<(), StoreError>>,
}

/// Syncs files of a folder on a thread of its own, which is started with the first of them and keeps to the CPUs of
/// who started it.
#[derive(Default)]
pub(crate) struct Syncing {
    /// `None` before the first file, and where no thread could be had.
    thread: Option<Thread>,
    /// Those that are left for the end, by name.
    later: Vec<(String, Option<File>)>,
    /// What waits is of no use any more.
    given_up: Arc<AtomicBool>,
}

impl Syncing {
    /// Makes a file, which is there under this name, safe on disk by the time of [`Syncing::finish`]. Waits for
    /// nothing.
    pub(crate) fn add(&mut self, file: File, path: PathBuf, name: String) {
        if self.thread.is_none() {
            let (send, receive) = sync_channel(WAITING);
            let files = path.parent().unwrap_or(&path).to_owned();
            let given_up = Arc::clone(&self.given_up);
            let thread = std::thread::Builder::new().name("js-sync".into());
            let started = thread.spawn(move || sync_all(&receive, &given_up)).ok();
            self.thread = started.map(|ended| Thread { send, files, ended });
        }
        // Where the disk is behind, or has failed, which the end tells.
        let unsent = match &self.thread {
            Some(thread) => thread
                .send
                .try_send((file, path))
                .err()
                .map(|error| match error {
                    TrySendError::Full(waiting) | TrySendError::Disconnected(waiting) => waiting.0,
                }),
            None => Some(file),
        };
        if let Some(file) = unsent {
            let keep = self.later.len() < KEPT_OPEN;
            self.later.push((name, keep.then_some(file)));
        }
    }

    /// A file is about to be removed: it is closed, for it keeps its room on disk until then, unless it is being synced.
    pub(crate) fn forget(&mut self, name: &str) {
        self.later.retain(|(of, _)| of != name);
    }

    /// Waits until all files that are still in the folder are safe.
    ///
    /// # Errors
    /// The first error of any of them.
    pub(crate) fn finish(&mut self, folder: &HeldDir) -> Result<(), StoreError> {
        let mut first = self.join();
        for (name, kept) in self.later.drain(..) {
            let file = match kept.map_or_else(|| folder.open_file(&name), Ok) {
                Err(error) if error.is_absent() => continue,
                other => other.map_err(StoreError::writing),
            };
            let synced = file.and_then(|file| sync((file, folder.path().join(name))));
            first = first.and(synced);
        }
        first
    }

    /// Closes all files; those that wait are not made safe. Waits for one at most.
    pub(crate) fn give_up(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.later.clear();
        // Its files are given up, too.
        let _ = self.join();
    }

    fn join(&mut self) -> Result<(), StoreError> {
        let Some(Thread { send, files, ended }) = self.thread.take() else {
            return Ok(());
        };
        drop(send);
        // What a thread that did not come to its end had synced is not known.
        ended.join().unwrap_or_else(|_| {
            Err(StoreError::write(
                &files,
                std::io::Error::other("the thread that syncs files ended early"),
            ))
        })
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        // Of a run that was not closed.
        self.give_up();
    }
}

fn sync((file, path): Waiting) -> Result<(), StoreError> {
    file.sync_data().map_err(|e| StoreError::write(&path, e))
}

fn sync_all(files: &Receiver<Waiting>, given_up: &AtomicBool) -> Result<(), StoreError> {
    let mut first = Ok(());
    for waiting in files {
        if given_up.load(Ordering::Relaxed) {
            continue;
        }
        let synced = sync(waiting);
        first = first.and(synced);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, HeldDir) {
        let dir = tempfile::tempdir().unwrap();
        let held = HeldDir::trusted(dir.path()).unwrap();
        (dir, held)
    }

    /// No disk stands behind it: it cannot be synced.
    fn socket() -> File {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        File::from(std::os::fd::OwnedFd::from(socket))
    }

    #[test]
    fn what_the_disk_refuses_shows_at_the_end() {
        let mut syncing = Syncing::default();
        let (dir, held) = folder();
        for n in 0..3 * WAITING {
            let path = dir.path().join(n.to_string());
            syncing.add(File::create(&path).unwrap(), path, n.to_string());
        }
        syncing.finish(&held).unwrap();
        syncing.add(socket(), "socket".into(), "socket".into());
        assert!(syncing.finish(&held).is_err());
        assert!(syncing.finish(&held).is_ok(), "it was reported");
    }

    #[test]
    fn who_adds_a_file_syncs_nothing_and_what_found_no_room_is_synced_at_the_end() {
        let (dir, held) = folder();
        let (send, receive) = sync_channel(1);
        let given_up = Arc::new(AtomicBool::new(false));
        let (go, may) = sync_channel::<()>(0);
        let never = Arc::clone(&given_up);
        let ended = std::thread::spawn(move || {
            may.recv().unwrap();
            sync_all(&receive, &never)
        });
        let thread = Some(Thread {
            send,
            files: "run".into(),
            ended,
        });
        // As many as stay open wait already.
        let later = (0..KEPT_OPEN)
            .map(|n| (format!("gone {n}"), None))
            .collect();
        let mut syncing = Syncing {
            thread,
            later,
            given_up,
        };
        let path = dir.path().join("first");
        syncing.add(File::create(&path).unwrap(), path, "first".into());
        // An error if it were synced here: once that of a file that is there, once of one that is gone by the end.
        std::fs::write(dir.path().join("second"), "x").unwrap();
        for name in ["second", "removed"] {
            syncing.add(socket(), name.into(), name.into());
        }
        let added: Vec<_> = syncing.later[KEPT_OPEN..]
            .iter()
            .map(|(name, of)| (&**name, of.is_some()))
            .collect();
        assert_eq!(added, [("second", false), ("removed", false)]);
        go.send(()).unwrap();
        syncing.finish(&held).unwrap();
        assert!(syncing.later.is_empty());
        // What cannot be opened is told.
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        syncing.later.push(("folder".into(), None));
        assert!(syncing.finish(&held).is_err());
    }

    #[test]
    fn few_files_that_are_left_for_the_end_stay_open_and_tell_what_went_wrong() {
        let (dir, held) = folder();
        // A disk that is so slow that none fits any more.
        let (send, receive) = sync_channel(0);
        let thread = Some(Thread {
            send,
            files: "run".into(),
            ended: std::thread::spawn(|| Ok(())),
        });
        let mut syncing = Syncing {
            thread,
            later: Vec::new(),
            given_up: Arc::default(),
        };
        std::fs::write(dir.path().join("there"), "x").unwrap();
        syncing.add(socket(), "there".into(), "there".into());
        // One that is removed is not kept open, nor remembered.
        syncing.add(socket(), "removed".into(), "removed".into());
        syncing.forget("removed");
        assert_eq!(syncing.later.len(), 1);
        drop(receive);
        // The file of that name could be synced; the one that was written cannot.
        assert!(syncing.finish(&held).is_err());
    }

    #[test]
    fn what_is_given_up_is_closed_and_not_synced() {
        let (_dir, held) = folder();
        let (send, receive) = sync_channel(2);
        let given_up = Arc::new(AtomicBool::new(false));
        let (go, may) = sync_channel::<()>(0);
        let never = Arc::clone(&given_up);
        let ended = std::thread::spawn(move || {
            may.recv().unwrap();
            let synced = sync_all(&receive, &never);
            assert!(synced.is_ok(), "it was synced: {synced:?}");
            synced
        });
        let thread = Some(Thread {
            send,
            files: "run".into(),
            ended,
        });
        let mut syncing = Syncing {
            thread,
            later: vec![("gone".into(), None)],
            given_up,
        };
        syncing.add(socket(), "socket".into(), "socket".into());
        syncing.given_up.store(true, Ordering::Relaxed);
        go.send(()).unwrap();
        assert!(syncing.join().is_ok());
        syncing.give_up();
        syncing.finish(&held).unwrap();
    }

    #[test]
    fn a_thread_that_ended_early_is_no_success() {
        let (_dir, held) = folder();
        let (send, _receive) = sync_channel(1);
        let ended = std::thread::spawn(|| std::panic::resume_unwind(Box::new("at once")));
        let thread = Some(Thread {
            send,
            files: "run".into(),
            ended,
        });
        let mut syncing = Syncing {
            thread,
            later: Vec::new(),
            given_up: Arc::default(),
        };
        let error = syncing.finish(&held).unwrap_err();
        assert!(error.to_string().contains("run"), "{error}");
    }
}
