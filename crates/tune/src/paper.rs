//! A machine made of a few files, for the tests beside the code.

use crate::goal::Goal;
use jitterscope_platform::Machine;
use tempfile::TempDir;

/// A machine of these files, (path, text), which lives as long as its folder.
pub(crate) struct Paper {
    pub(crate) machine: Machine,
    _folder: TempDir,
}

impl Paper {
    pub(crate) fn of(files: &[(&str, &str)]) -> Paper {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let paper = Paper {
            machine: Machine::at(folder.path()),
            _folder: folder,
        };
        files.iter().for_each(|(path, text)| paper.put(path, text));
        paper
    }

    /// One more file, or another text.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.machine.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.machine.read(path).unwrap()
    }
}

/// These CPUs isolated, those for housekeeping.
pub(crate) fn goal(isolated: &str, housekeeping: &str) -> Goal {
    Goal {
        isolated: isolated.parse().unwrap(),
        housekeeping: housekeeping.parse().unwrap(),
    }
}
