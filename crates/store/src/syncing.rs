//! Files made safe on disk beside the work: whoever writes rows must not wait for a disk.

use crate::error::StoreError;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Files that wait to be synced at most; beyond it their writer waits, for the disk is too slow for it.
const WAITING: usize = 16;

type Waiting = (File, PathBuf);

struct Thread {
    send: SyncSender<Waiting>,
    /// The folder of its first file, which stands for all of them where the thread itself fails.
    files: PathBuf,
    ended: JoinHandle<Result<(), StoreError>>,
}

/// Syncs files on a thread of its own, which is started with the first of them and keeps to the CPUs of who
/// started it.
#[derive(Default)]
pub(crate) struct Syncing {
    /// `None` before the first file, and where no thread could be had.
    thread: Option<Thread>,
}

impl Syncing {
    /// Makes a file safe on disk by the time of [`Syncing::finish`].
    ///
    /// # Errors
    /// The disk fails. What fails later shows at the end.
    pub(crate) fn add(&mut self, file: File, path: PathBuf) -> Result<(), StoreError> {
        if self.thread.is_none() {
            let (send, receive) = sync_channel(WAITING);
            let files = path.parent().unwrap_or(&path).to_owned();
            let thread = std::thread::Builder::new().name("js-sync".into());
            let started = thread.spawn(move || sync_all(&receive)).ok();
            self.thread = started.map(|ended| Thread { send, files, ended });
        }
        let Some(thread) = &self.thread else { return sync((file, path)) };
        match thread.send.try_send((file, path)) {
            Ok(()) => Ok(()),
            // The disk is behind, or has failed, which the end tells.
            Err(TrySendError::Full(waiting) | TrySendError::Disconnected(waiting)) => sync(waiting),
        }
    }

    /// Waits until all files are safe.
    ///
    /// # Errors
    /// The first error of any of them.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        let Some(Thread { send, files, ended }) = self.thread.take() else { return Ok(()) };
        drop(send);
        // What a thread that did not come to its end had synced is not known.
        ended.join().unwrap_or_else(|_| {
            Err(StoreError::write(&files, std::io::Error::other("the thread that syncs files ended early")))
        })
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        // Nobody is left to report it to.
        let _ = self.finish();
    }
}

fn sync((file, path): Waiting) -> Result<(), StoreError> {
    file.sync_data().map_err(|e| StoreError::write(&path, e))
}

fn sync_all(files: &Receiver<Waiting>) -> Result<(), StoreError> {
    let mut first = Ok(());
    for waiting in files {
        let synced = sync(waiting);
        first = first.and(synced);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_disk_refuses_shows_at_the_end() {
        let mut syncing = Syncing::default();
        let dir = tempfile::tempdir().unwrap();
        for n in 0..3 * WAITING {
            let path = dir.path().join(n.to_string());
            syncing.add(File::create(&path).unwrap(), path).unwrap();
        }
        syncing.finish().unwrap();
        // No disk stands behind a socket.
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        syncing.add(File::from(std::os::fd::OwnedFd::from(socket)), "socket".into()).unwrap();
        assert!(syncing.finish().is_err());
        assert!(syncing.finish().is_ok(), "it was reported");
    }

    #[test]
    fn a_thread_that_ended_early_is_no_success() {
        let (send, _receive) = sync_channel(1);
        let ended = std::thread::spawn(|| std::panic::resume_unwind(Box::new("at once")));
        let mut syncing = Syncing { thread: Some(Thread { send, files: "run".into(), ended }) };
        let error = syncing.finish().unwrap_err();
        assert!(error.to_string().contains("run"), "{error}");
    }
}
