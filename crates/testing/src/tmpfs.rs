use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a file inherited by another test's child may keep the disk busy.
const BUSY: Duration = Duration::from_secs(20);

/// Set for a test that runs again in its own namespace, so that it does not recurse.
const INSIDE: &str = "JITTERSCOPE_TEST_NAMESPACE";
/// A user namespace in which mounting is allowed. The user gets the overflow id, the id of files of unmapped users: the
/// parent folders are then the user's own, and the checks of who may change them give the same results as outside.
const NAMESPACE: [&str; 5] = [
    "--user",
    "--map-user=65534",
    "--map-group=65534",
    "--keep-caps",
    "--mount",
];

/// A file system of a known size in memory; unmounted when dropped.
pub struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// Mounts one of this size in bytes. Returns `None`, and reports the test as skipped, if that is not possible.
    ///
    /// # Panics
    /// If no temporary folder can be made.
    pub fn mount(bytes: u64) -> Option<Tmpfs> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let options = format!("size={bytes},mode=0755");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &options, "jitterscope-test"])
            .arg(dir.path());
        if mount
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
        {
            return Some(Tmpfs(dir));
        }
        crate::skip("no tmpfs can be mounted (it needs root)");
        None
    }

    /// Like [`Tmpfs::mount`], for a test that needs root only for mounting. If it may not mount, the test runs again in
    /// a user namespace in which it may, and `None` means that it has passed there. If the kernel grants no such
    /// namespace, returns `None` and reports the test as skipped.
    ///
    /// # Panics
    /// If the test fails in its namespace, or no temporary folder can be made.
    pub fn mount_or_run_where_it_can(bytes: u64) -> Option<Tmpfs> {
        let name = std::thread::current().name().map(str::to_owned);
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(NAMESPACE);
            command
        };
        let can = || {
            unshare()
                .arg("true")
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        let root = rustix::process::geteuid().is_root();
        let name =
            name.filter(|name| name != "main" && !root && env::var_os(INSIDE).is_none() && can());
        let (Some(name), Ok(program)) = (name, env::current_exe()) else {
            return Tmpfs::mount(bytes);
        };
        let again = unshare()
            .arg(program)
            .args(["--exact", &name])
            .env(INSIDE, "1")
            .output();
        let again = again.expect("the test can be started once more");
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success(), "in a namespace of its own:\n{said}");
        assert!(
            said.contains("1 passed"),
            "the test's name is not '{name}':\n{said}"
        );
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    /// Retries the unmount: it fails while a child just started by another thread of the test binary has our files
    /// open, until the child executes its program. A file that stays open is a defect of the test, and panics.
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
    fn a_test_that_may_not_mount_passes_or_fails_in_a_namespace() {
        let Some(disk) = Tmpfs::mount_or_run_where_it_can(1 << 20) else {
            return;
        };
        let large = vec![1; 2 << 20];
        let full = std::fs::write(disk.path().join("large"), large).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_disk_that_is_busy_for_a_moment_is_unmounted_after_it() {
        let Some(disk) = Tmpfs::mount(1 << 20) else {
            return;
        };
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
