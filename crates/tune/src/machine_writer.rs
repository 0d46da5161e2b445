//! All changes of the machine go through [`MachineWriter`], so that a test can fail or stop at any step.

use crate::access::{Access, give};
use jitterscope_model::CpuSet;
use jitterscope_platform::{Machine, set_thread_affinity};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The operations on a machine. Paths are absolute, as on the host.
pub trait MachineWriter {
    /// The machine, for reading.
    fn machine(&self) -> &Machine;

    /// Writes an existing control file with one `write`.
    ///
    /// # Errors
    /// The kernel's error.
    fn write(&mut self, path: &str, value: &str) -> io::Result<()>;

    /// Creates a folder (or a cgroup).
    ///
    /// # Errors
    /// The system's error.
    fn make_dir(&mut self, path: &str) -> io::Result<()>;

    /// Removes an empty folder (or a cgroup without members).
    ///
    /// # Errors
    /// The system's error.
    fn remove_dir(&mut self, path: &str) -> io::Result<()>;

    /// Installs a complete file atomically: it is never partial, and other users never get more access than intended.
    /// Without `access` it is a new file.
    ///
    /// # Errors
    /// The system's error.
    fn put_file(&mut self, path: &str, content: &str, access: Option<Access>) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's error.
    fn remove_file(&mut self, path: &str) -> io::Result<()>;

    /// Confines a thread to these CPUs.
    ///
    /// # Errors
    /// The kernel's error.
    fn set_affinity(&mut self, pid: i32, tid: i32, cpus: &CpuSet) -> io::Result<()>;
}

/// The operations on a [`Machine`]. On a fake machine, files with the current choice in brackets behave like the
/// kernel's, and a thread's affinity is the line in its `status` file.
#[derive(Clone, Debug)]
pub struct HostWriter {
    machine: Machine,
}

impl HostWriter {
    #[must_use]
    pub fn new(machine: &Machine) -> HostWriter {
        HostWriter {
            machine: machine.clone(),
        }
    }
}

/// Mode of new folders.
const NEW_FOLDER: u32 = 0o755;

/// Where a file is built before it is renamed into place.
#[must_use]
pub fn unfinished(path: &str) -> String {
    format!("{path}.jitterscope-unfinished")
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl MachineWriter for HostWriter {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        if !self.machine.is_host()
            && let Ok(now) = self.machine.read(path)
            && now.contains('[')
        {
            return write_choice(&self.machine, path, &now, value);
        }
        self.machine.write(path, value).map_err(|e| e.source)
    }

    fn make_dir(&mut self, path: &str) -> io::Result<()> {
        let path = self.machine.path(path);
        fs::create_dir(&path)?;
        // Independent of the umask: no other user may add files to it.
        if fs::symlink_metadata(&path)?.mode() & 0o777 != NEW_FOLDER {
            fs::set_permissions(&path, fs::Permissions::from_mode(NEW_FOLDER))?;
        }
        Ok(())
    }

    fn remove_dir(&mut self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.machine.path(path))
    }

    fn put_file(&mut self, path: &str, content: &str, access: Option<Access>) -> io::Result<()> {
        let (to, from) = (self.machine.path(path), self.machine.path(unfinished(path)));
        // An existing one is removed, not opened, wherever it leads.
        match fs::remove_file(&from) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&from)?;
        file.write_all(content.as_bytes())?;
        give(&file, access)?;
        file.sync_all()?;
        fs::rename(&from, &to)?;
        sync_folder_of(&to)
    }

    fn remove_file(&mut self, path: &str) -> io::Result<()> {
        let path = self.machine.path(path);
        fs::remove_file(&path)?;
        sync_folder_of(&path)
    }

    fn set_affinity(&mut self, pid: i32, tid: i32, cpus: &CpuSet) -> io::Result<()> {
        if self.machine.is_host() {
            return set_thread_affinity(tid, cpus);
        }
        let path = format!("/proc/{pid}/task/{tid}/status");
        let status = self.machine.read(&path).map_err(|e| e.source)?;
        let mut out = String::with_capacity(status.len());
        for line in status.split_inclusive('\n') {
            if line.starts_with("Cpus_allowed_list:") {
                out.push_str(&format!("Cpus_allowed_list:\t{cpus}\n"));
            } else {
                out.push_str(line);
            }
        }
        self.machine.write(&path, &out).map_err(|e| e.source)
    }
}

fn write_choice(machine: &Machine, path: &str, now: &str, value: &str) -> io::Result<()> {
    let value = value.trim();
    let plain = now.replace(['[', ']'], "");
    if !plain.split_whitespace().any(|word| word == value) {
        return Err(io::Error::from(rustix::io::Errno::INVAL));
    }
    // Only whole words count: `defer` is part of `defer+madvise`.
    let text: Vec<String> = plain
        .split(' ')
        .map(|word| {
            let (body, end) = word
                .strip_suffix('\n')
                .map_or((word, ""), |body| (body, "\n"));
            if body == value {
                format!("[{body}]{end}")
            } else {
                word.to_owned()
            }
        })
        .collect();
    machine.write(path, &text.join(" ")).map_err(|e| e.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_machine::FakeMachine;

    #[test]
    fn a_choice_is_one_of_the_whole_words_that_are_offered() {
        for (now, value, reads) in [
            (
                "always [madvise] never\n",
                "never",
                Some("always madvise [never]\n"),
            ),
            (
                "always [madvise] never\n",
                "always\n",
                Some("[always] madvise never\n"),
            ),
            (
                "[defer] defer+madvise madvise\n",
                "madvise",
                Some("defer defer+madvise [madvise]\n"),
            ),
            ("[a] b\n", "b", Some("a [b]\n")),
            ("[a] b\n", "c", None),
        ] {
            let fake = FakeMachine::of(&[("/choice", now)]);
            let made = HostWriter::new(&fake.machine).write("/choice", value);
            assert_eq!(made.is_ok(), reads.is_some(), "{now}: {value}");
            assert_eq!(fake.text("/choice"), reads.unwrap_or(now));
        }
        // Without brackets it is not a choice.
        let fake = FakeMachine::of(&[("/text", "a b\n")]);
        HostWriter::new(&fake.machine).write("/text", "c").unwrap();
        assert_eq!(fake.text("/text"), "c");
    }

    #[test]
    fn a_file_is_put_in_place_whole_and_what_an_earlier_one_left_goes() {
        let fake = FakeMachine::of(&[("/etc/x", "old"), ("/etc/x.jitterscope-unfinished", "half")]);
        let mut hands = HostWriter::new(&fake.machine);
        hands.put_file("/etc/x", "new", None).unwrap();
        assert_eq!(fake.text("/etc/x"), "new");
        assert_eq!(fake.machine.list("/etc"), ["x"]);
        assert_eq!(
            fs::metadata(fake.machine.path("/etc/x")).unwrap().mode() & 0o7777,
            0o644
        );
        hands.remove_file("/etc/x").unwrap();
        assert!(fake.machine.list("/etc").is_empty());
        // An obstacle that cannot be removed leaves the file unchanged.
        fs::create_dir(fake.machine.path("/etc/x.jitterscope-unfinished")).unwrap();
        let error = hands.put_file("/etc/x", "new", None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn folders_come_and_go_and_a_full_one_stays() {
        let fake = FakeMachine::of(&[("/a/file", "")]);
        let mut hands = HostWriter::new(&fake.machine);
        hands.make_dir("/b").unwrap();
        assert_eq!(
            fs::metadata(fake.machine.path("/b")).unwrap().mode() & 0o7777,
            NEW_FOLDER
        );
        assert!(hands.make_dir("/b").is_err(), "it is there");
        hands.remove_dir("/b").unwrap();
        assert!(!fake.machine.exists("/b"));
        assert!(hands.remove_dir("/a").is_err());
    }
}
