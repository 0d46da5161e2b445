//! The machine's files behind one root, so that a test can use a fake machine.

use jitterscope_model::PutInOrder;
use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of the machine that could not be read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Whether the file does not exist.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether it exists, but this user may not use it.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
}

/// The machine whose `/proc`, `/sys`, `/dev` and `/etc` are read and written. [`Machine::host`] is the one that we run
/// on; [`Machine::at`] is a tree of files that looks like one.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    held: Option<Arc<HeldFolder>>,
}

/// A folder that is accessed through its descriptor.
#[derive(Debug)]
struct HeldFolder {
    /// Its path on the machine, without the leading slash.
    at: PathBuf,
    folder: File,
}

impl Machine {
    /// The machine that we run on.
    #[must_use]
    pub fn host() -> Machine {
        Machine::at(Path::new("/"))
    }

    /// A fake machine below `root`.
    #[must_use]
    pub fn at(root: &Path) -> Machine {
        Machine {
            root: root.to_path_buf(),
            held: None,
        }
    }

    /// The same machine with one folder held open. All paths below it go through the descriptor, so they lead to the
    /// same files even if the folder is unmounted, moved or covered by another mount.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn holding(&self, folder: impl AsRef<Path>) -> io::Result<Machine> {
        let at = folder.as_ref();
        let held = HeldFolder {
            at: at.strip_prefix("/").unwrap_or(at).to_path_buf(),
            // O_PATH: a user who may enter the folder need not be allowed to list it.
            folder: open(
                self.path(at),
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?
            .into(),
        };
        Ok(Machine {
            root: self.root.clone(),
            held: Some(Arc::new(held)),
        })
    }

    /// The same machine without the held folder.
    #[must_use]
    pub fn letting_go(&self) -> Machine {
        Machine::at(&self.root)
    }

    /// Whether this is the machine that we run on, so that system calls refer to the same one.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The real path of `path`, which is absolute as on the host, or relative to the root.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        let path = path.strip_prefix("/").unwrap_or(path);
        match &self.held {
            Some(held) => match path.strip_prefix(&held.at) {
                Ok(below) => {
                    PathBuf::from(format!("/proc/self/fd/{}", held.folder.as_raw_fd())).join(below)
                }
                Err(_) => self.root.join(path),
            },
            None => self.root.join(path),
        }
    }

    /// The same path, for messages.
    #[must_use]
    pub fn shown(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Reads a whole file as text; replaces bytes that are not UTF-8.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, FileError> {
        // Some kernel files (tracefs' `header_page`) give their text only in the first read, and `fs::read` begins with
        // a small one. Reading a `File` directly would first query its length and position, two system calls that tell
        // nothing about kernel files; reading from `take` does not.
        let mut bytes = Vec::with_capacity(8192);
        let file = File::open(self.path(&path));
        match file.and_then(|file| file.take(u64::MAX).read_to_end(&mut bytes)) {
            Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(source) => Err(FileError {
                path: self.shown(path),
                source,
            }),
        }
    }

    /// [`Machine::read`] without surrounding white space.
    ///
    /// # Errors
    /// As [`Machine::read`].
    pub fn read_trimmed(&self, path: impl AsRef<Path>) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    /// Writes `value` to an existing file, in one `write`, as the kernel's control files require.
    ///
    /// # Errors
    /// The file cannot be opened, or the kernel refuses the value.
    pub fn write(&self, path: impl AsRef<Path>, value: &str) -> Result<(), FileError> {
        let result = fs::OpenOptions::new()
            .write(true)
            .truncate(!self.is_host())
            .open(self.path(&path))
            .and_then(|mut file| file.write_all(value.as_bytes()));
        result.map_err(|source| FileError {
            path: self.shown(path),
            source,
        })
    }

    /// Whether this file or folder exists.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Names in a folder, sorted; empty if it cannot be read.
    #[must_use]
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(path))
            .map(|dir| {
                dir.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                    .collect()
            })
            .unwrap_or_default();
        names.put_in_order();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_folder_stays_the_same_wherever_it_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/tracing/instances")).unwrap();
        fs::write(dir.path().join("sys/tracing/on"), "1").unwrap();
        fs::write(dir.path().join("sys/tracingother"), "x").unwrap();
        let machine = Machine::at(dir.path()).holding("/sys/tracing").unwrap();
        fs::rename(dir.path().join("sys/tracing"), dir.path().join("away")).unwrap();
        assert_eq!(machine.read("/sys/tracing/on").unwrap(), "1");
        machine.write("/sys/tracing/on", "0").unwrap();
        assert_eq!(machine.list("sys/tracing"), ["instances", "on"]);
        assert_eq!(machine.read("/sys/tracingother").unwrap(), "x");
        let error = machine.read("/sys/tracing/none").unwrap_err();
        assert_eq!(error.path, dir.path().join("sys/tracing/none"));
        assert!(!machine.letting_go().exists("/sys/tracing/on"));
        assert_eq!(fs::read_to_string(dir.path().join("away/on")).unwrap(), "0");
    }

    #[test]
    fn a_fake_machine_stays_below_its_root() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/sys/vm")).unwrap();
        fs::write(dir.path().join("proc/sys/vm/stat_interval"), "1\n").unwrap();
        let machine = Machine::at(dir.path());
        machine.write("/proc/sys/vm/stat_interval", "3600").unwrap();
        assert_eq!(
            machine.read_trimmed("proc/sys/vm/stat_interval").unwrap(),
            "3600"
        );
        assert!(machine.read("/proc/none").unwrap_err().is_absent());
        // Any length, also where the text just fills the buffer.
        for length in [0, 1, 8191, 8192, 8193, 100_000] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            fs::write(dir.path().join("long"), &text).unwrap();
            assert_eq!(machine.read("/long").unwrap(), text);
        }
        assert!(!machine.is_host());
    }
}
