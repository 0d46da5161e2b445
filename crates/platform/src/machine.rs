//! The machine's files behind one root, so that a test can hand over a fake machine.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file of the machine that could not be read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Whether the file is not there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether it is there, but not for this user.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
}

/// The machine whose `/proc`, `/sys`, `/dev` and `/etc` are read and written. [`Machine::host`] is the
/// one we run on; [`Machine::at`] is a tree of files that looks like one.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine we run on.
    #[must_use]
    pub fn host() -> Machine {
        Machine {
            root: PathBuf::from("/"),
        }
    }

    /// A fake machine below `root`.
    #[must_use]
    pub fn at(root: &Path) -> Machine {
        Machine {
            root: root.to_path_buf(),
        }
    }

    /// Whether this is the machine we run on, so that system calls speak of the same one.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where `path` (absolute as on the host, or relative to the root) lies.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The whole text of a file; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, FileError> {
        let path = self.path(path);
        // Some kernel files (tracefs' `header_page`) give their text in the first read or never, and
        // `fs::read` begins with a small one. A `File` would be asked for its length first, two calls for what the
        // kernel's files do not tell; what is taken of it is not.
        let mut bytes = Vec::with_capacity(8192);
        match fs::File::open(&path).and_then(|file| file.take(u64::MAX).read_to_end(&mut bytes)) {
            Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(source) => Err(FileError { path, source }),
        }
    }

    /// [`Machine::read`] without surrounding white space.
    ///
    /// # Errors
    /// As [`Machine::read`].
    pub fn read_trimmed(&self, path: impl AsRef<Path>) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    /// Writes `value` to a file that exists, in one `write`, as the kernel's control files want it.
    ///
    /// # Errors
    /// The file cannot be opened, or the kernel refuses the value.
    pub fn write(&self, path: impl AsRef<Path>, value: &str) -> Result<(), FileError> {
        let path = self.path(path);
        let result = fs::OpenOptions::new()
            .write(true)
            .truncate(!self.is_host())
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()));
        result.map_err(|source| FileError { path, source })
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Names in a folder, sorted; empty when it cannot be read.
    #[must_use]
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(path))
            .map(|dir| {
                dir.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                    .collect()
            })
            .unwrap_or_default();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // However long, and where the room for it is just filled.
        for length in [0, 1, 8191, 8192, 8193, 100_000] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            fs::write(dir.path().join("long"), &text).unwrap();
            assert_eq!(machine.read("/long").unwrap(), text);
        }
        assert!(!machine.is_host());
    }
}
