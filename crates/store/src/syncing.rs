//! Syncs files in the background, so that the thread that writes rows never waits for a disk.

use crate::error::StoreError;
use jitterscope_platform::HeldDir;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// The largest number of open files that wait for the thread. Beyond it the disk is too slow; the rest is synced at the
/// end.
const WAITING: usize = 16;

/// The largest number of files left for the end that stay open: the kernel reports a failed write-back only to open
/// descriptors. Files beyond it are opened again.
const KEPT_OPEN: usize = 256;

type Waiting = (File, PathBuf);

struct Thread {
    send: SyncSender<Waiting>,
    /// The folder of the first file. Names the files in an error of the thread itself.
    files: PathBuf,
    ended: JoinHandle<Result<(), StoreError>>,
}

/// Syncs files of a folder on its own thread. The first file starts the thread, which inherits the CPUs of its creator.
#[derive(Default)]
pub(crate) struct Syncing {
    /// `None` before the first file, and if the thread failed to start.
    thread: Option<Thread>,
    /// Files left for the end, by name.
    later: Vec<(String, Option<File>)>,
    /// Set when the waiting files are no longer needed.
    given_up: Arc<AtomicBool>,
}

impl Syncing {
    /// Queues a file with this name to be synced before [`Syncing::finish`] returns. Never blocks.
    pub(crate) fn add(&mut self, file: File, path: PathBuf, name: String) {
        if self.thread.is_none() {
            let (send, receive) = sync_channel(WAITING);
            let files = path.parent().unwrap_or(&path).to_owned();
            let given_up = Arc::clone(&self.given_up);
            let thread = std::thread::Builder::new().name("js-sync".into());
            let started = thread.spawn(move || sync_all(&receive, &given_up)).ok();
            self.thread = started.map(|ended| Thread { send, files, ended });
        }
        // The queue is full, or the thread has failed; `finish` reports that error.
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

    /// Closes a file that is about to be removed, because an open file keeps its disk space. A file that the thread
    /// holds stays open until it is synced.
    pub(crate) fn forget(&mut self, name: &str) {
        self.later.retain(|(of, _)| of != name);
    }

    /// Waits until all files that are still in the folder are synced.
    ///
    /// # Errors
    /// The first error of any file.
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

    /// Closes all files without syncing those that wait. Waits for at most one sync.
    pub(crate) fn give_up(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.later.clear();
        // The thread's error no longer matters.
        let _ = self.join();
    }

    fn join(&mut self) -> Result<(), StoreError> {
        let Some(Thread { send, files, ended }) = self.thread.take() else {
            return Ok(());
        };
        drop(send);
        // It is unknown what a panicked thread synced.
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
        // The run was not closed.
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

    /// A file without a disk: it cannot be synced.
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
    fn adding_a_file_syncs_nothing_and_overflow_syncs_at_the_end() {
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
        // The list of open files is full.
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
        // Syncing it would fail: once the file of that name exists at the end, once it is gone.
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
        // A file that does not open is an error.
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        syncing.later.push(("folder".into(), None));
        assert!(syncing.finish(&held).is_err());
    }

    #[test]
    fn few_files_stay_open_until_the_end_and_report_errors() {
        let (dir, held) = folder();
        // A disk so slow that the queue accepts no file.
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
        // A removed file is neither kept open nor remembered.
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
