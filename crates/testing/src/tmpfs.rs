use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a file that another test's child has inherited may keep the disk busy.
const BUSY: Duration = Duration::from_secs(20);

/// A file system of a known size, in memory; unmounted when dropped.
pub struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// Mounts one of so many bytes; `None`, and a word that the test is skipped, where that cannot be had.
    ///
    /// # Panics
    /// When no temporary folder can be made.
    pub fn mount(bytes: u64) -> Option<Tmpfs> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let options = format!("size={bytes},mode=0755");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "jitterscope-test"]).arg(dir.path());
        if mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return Some(Tmpfs(dir));
        }
        eprintln!("skipped: no tmpfs can be mounted (this test needs root)");
        None
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    /// A child that another thread of the test binary is just starting has our files open until it runs its
    /// program, and unmounting fails meanwhile: it is tried again. A file that somebody keeps open is a
    /// defect of the test, and panics.
    fn drop(&mut self) {
        let start = Instant::now();
        let mut why = String::new();
        while start.elapsed() < BUSY {
            match Command::new("umount").arg(self.path()).output() {
                Ok(output) if output.status.success() => return,
                Ok(output) => why = String::from_utf8_lossy(&output.stderr).into_owned(),
                Err(error) => why = error.to_string(),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if !std::thread::panicking() {
            panic!("{}: {why}", self.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_disk_that_is_busy_for_a_moment_is_unmounted_after_it() {
        let Some(disk) = Tmpfs::mount(1 << 20) else { return };
        let path = disk.path().to_owned();
        let file = File::create(path.join("open")).unwrap();
        let holder = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(file);
        });
        drop(disk);
        holder.join().unwrap();
        assert!(!path.exists(), "unmounted, and its folder removed");
    }
}
