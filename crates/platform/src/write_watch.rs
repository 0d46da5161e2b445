//! Detects when files of control groups are written to: inotify reports each write, however soon it is undone.

use crate::machine::Machine;
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;

/// The longest path of a control group that is read, in bytes: users with the right to make groups choose their names.
const LONGEST_PATH: usize = 4096;
const MOST_FILES: usize = 512;
/// Notes read per call, because another process may write all the time.
const MOST_NOTES: usize = 4096;
const BUFFER: usize = 4096;
/// The file that freezes a group of version 1. It reads as the state of the group.
const STATE: &str = "freezer.state";

/// A watched file, identified by the kernel's number of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watched(i32);

/// Watches files for writes.
#[derive(Debug)]
pub struct WriteWatch {
    machine: Machine,
    /// `None` if the kernel has no inotify, or this user has no watches left.
    notes: Option<OwnedFd>,
    /// The watched files, with their paths.
    known: BTreeMap<Watched, String>,
}

impl WriteWatch {
    #[must_use]
    pub fn new(machine: &Machine) -> WriteWatch {
        WriteWatch {
            machine: machine.clone(),
            notes: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok(),
            known: BTreeMap::new(),
        }
    }

    /// Watches a file. `None` if there is no such file, or too many are watched.
    pub fn watch(&mut self, path: &str) -> Option<Watched> {
        let notes = self.notes.as_ref()?;
        // The kernel gives the same file the same number.
        let watched = inotify::add_watch(notes, self.machine.path(path), WatchFlags::MODIFY);
        let file = Watched(watched.ok()?);
        if self.known.len() >= MOST_FILES && !self.known.contains_key(&file) {
            let _ = inotify::remove_watch(notes, file.0);
            return None;
        }
        self.known.entry(file).or_insert_with(|| path.to_owned());
        Some(file)
    }

    /// Watches every file that can freeze a process with these groups, given as in `/proc/PID/cgroup`: those of its own
    /// groups and of every group above.
    pub fn freezers_above(&mut self, groups: &str) -> Vec<Watched> {
        let mut found = Vec::new();
        for line in groups.lines().filter(|line| line.len() <= LONGEST_PATH) {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            // A path that leads up with dots is a group outside of what we can see.
            if path.split('/').any(|component| component == "..") {
                continue;
            }
            let (roots, file): (&[&str], _) = match controllers {
                "" => (
                    &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                    "cgroup.freeze",
                ),
                _ if controllers.split(',').any(|one| one == "freezer") => {
                    (&["/sys/fs/cgroup/freezer"], STATE)
                }
                _ => continue,
            };
            let mut path = path.trim_end_matches('/');
            // The topmost group cannot be frozen.
            while let Some((above, _)) = path.rsplit_once('/') {
                let files = roots.iter().map(|root| format!("{root}{path}/{file}"));
                found.extend(files.filter_map(|file| self.watch(&file)));
                path = above;
            }
        }
        found.sort_unstable();
        found
    }

    /// Whether this is a freezer of version 1 that holds its group frozen now, by itself or by a group above.
    #[must_use]
    pub fn holds(&self, file: Watched) -> bool {
        let path = self.known.get(&file);
        let path = path.filter(|path| path.ends_with(STATE));
        let state = path.and_then(|path| self.machine.read_trimmed(path).ok());
        state.is_some_and(|state| state != "THAWED")
    }

    /// The files that were written to since the last call.
    pub fn written(&mut self) -> BTreeSet<Watched> {
        let mut written = BTreeSet::new();
        let Some(notes) = self.notes.as_ref().filter(|_| !self.known.is_empty()) else {
            return written;
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(notes, &mut buffer);
        for _ in 0..MOST_NOTES {
            match reader.next() {
                // The group is gone. Its slot is free for another one.
                Ok(note) if note.events().contains(ReadFlags::IGNORED) => {
                    self.known.remove(&Watched(note.wd()));
                }
                Ok(note) if self.known.contains_key(&Watched(note.wd())) => {
                    written.insert(Watched(note.wd()));
                }
                // The queue overflowed: any of the files may have been written to.
                Ok(note) if note.wd() < 0 => written.extend(self.known.keys()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn writes_to_the_own_and_upper_groups_are_noticed_on_v1_and_v2() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let old = "sys/fs/cgroup/freezer/box/freezer.state";
        let (own, above, beside) = (
            "sys/fs/cgroup/pod/one/cgroup.freeze",
            "sys/fs/cgroup/pod/cgroup.freeze",
            "sys/fs/cgroup/pod/two/cgroup.freeze",
        );
        for path in [old, own, above, beside] {
            write(path, "0\n");
        }
        let mut watch = WriteWatch::new(&Machine::at(dir.path()));
        assert!(watch.written().is_empty());
        let one = watch.freezers_above("6:freezer:/box\n0::/pod/one\n");
        let two = watch.freezers_above("6:freezer:/\n0::/pod/two\n");
        assert_eq!((one.len(), two.len()), (3, 2));
        assert_eq!(watch.freezers_above("0::/../../pod/one\nnonsense"), []);
        let mut written = |path: &str| {
            write(path, "1\n");
            let all = watch.written();
            [&one, &two].map(|of| of.iter().any(|file| all.contains(file)))
        };
        assert_eq!(written(old), [true, false]);
        assert_eq!(written(own), [true, false]);
        assert_eq!(written(above), [true, true]);
        assert_eq!(written(beside), [false, true]);
        assert!(watch.written().is_empty());
        let held = |state: &str| {
            write(old, state);
            let held = one.iter().filter(|file| watch.holds(**file));
            held.count()
        };
        assert_eq!(["FROZEN\n", "FREEZING\n", "THAWED\n"].map(held), [1, 1, 0]);
    }

    #[test]
    fn a_group_that_is_gone_makes_room_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("sys/fs/cgroup");
        let mut watch = WriteWatch::new(&Machine::at(dir.path()));
        for number in 0..MOST_FILES + 10 {
            let group = root.join(number.to_string());
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.freeze"), "0\n").unwrap();
            assert_eq!(
                watch.freezers_above(&format!("0::/{number}\n")).len(),
                1,
                "{number}"
            );
            fs::remove_dir_all(&group).unwrap();
            assert!(watch.written().is_empty());
        }
        assert!(watch.known.is_empty());
    }
}
