//! Detects writes to the control files of our instances: inotify reports each one, even if the value is restored at
//! once.

use jitterscope_platform::Machine;
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;

/// Files without effect on our settings: writes to them add records of their own.
const HARMLESS: [&str; 2] = ["trace_marker", "trace_marker_raw"];
/// Maximum of notifications per check, because another process may write all the time.
const MOST_NOTES: usize = 4096;
/// Buffer size in bytes: room for many notifications with file names.
const BUFFER: usize = 4096;

#[derive(Debug)]
pub(super) struct Watch {
    notes: OwnedFd,
    folders: HashMap<i32, String>,
    /// Keeps the folders open, because the kernel drops folders of events that no process holds, and makes new ones.
    _held: Vec<File>,
}

impl Watch {
    /// Watches folders of a machine, each with a name for its notifications.
    ///
    /// # Errors
    /// The kernel has no inotify, or this user has no watches or open files left.
    pub(super) fn of(
        machine: &Machine,
        folders: impl Iterator<Item = (String, String)>,
    ) -> io::Result<Watch> {
        let notes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let (mut watched, mut held) = (HashMap::new(), Vec::new());
        for (path, name) in folders {
            let path = machine.path(path);
            held.push(File::open(&path)?);
            let id = inotify::add_watch(&notes, &path, WatchFlags::MODIFY | WatchFlags::ONLYDIR)?;
            watched.insert(id, name);
        }
        Ok(Watch {
            notes,
            folders: watched,
            _held: held,
        })
    }

    /// The files that were written to since the last call.
    pub(super) fn written(&self) -> BTreeSet<String> {
        let mut written = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(&self.notes, &mut buffer);
        for _ in 0..MOST_NOTES {
            let note = match reader.next() {
                Ok(note) => note,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                // If notifications cannot be read, any file may have changed.
                Err(_) => {
                    written.insert(String::new());
                    break;
                }
            };
            let file = note.file_name().map(|name| name.to_string_lossy());
            let file = file.as_deref().unwrap_or_default();
            let is_write = note.events().contains(ReadFlags::MODIFY);
            if is_write && HARMLESS.contains(&file) {
                continue;
            }
            // The queue overflowed, or a folder is gone: the file is unknown.
            let folder = self.folders.get(&note.wd()).map_or("", String::as_str);
            written.insert(
                format!("{folder}/{file}")
                    .trim_matches('/')
                    .replace("//", "/"),
            );
        }
        written
    }
}
