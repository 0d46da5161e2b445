//! A machine made of a few files, for unit tests.

use crate::goal::Goal;
use jitterscope_platform::Machine;
use tempfile::TempDir;

/// A machine with these files, (path, text), for as long as its folder exists.
pub(crate) struct FakeMachine {
    pub(crate) machine: Machine,
    _folder: TempDir,
}

impl FakeMachine {
    pub(crate) fn of(files: &[(&str, &str)]) -> FakeMachine {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let fake = FakeMachine {
            machine: Machine::at(folder.path()),
            _folder: folder,
        };
        files.iter().for_each(|(path, text)| fake.put(path, text));
        fake
    }

    /// Adds or replaces a file.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.machine.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.machine.read(path).unwrap()
    }
}

/// A goal with these isolated and housekeeping CPUs.
pub(crate) fn goal(isolated: &str, housekeeping: &str) -> Goal {
    Goal {
        isolated: isolated.parse().unwrap(),
        housekeeping: housekeeping.parse().unwrap(),
    }
}
