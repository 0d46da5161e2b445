use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a file that another test's child has inherited may keep the disk busy.
const BUSY: Duration = Duration::from_secs(20);

/// Set for a test that runs once more in a namespace of its own, so that it does not do so again there.
const INSIDE: &str = "JITTERSCOPE_TEST_NAMESPACE";
/// A user namespace in which mounting is allowed. The user is called as files of unmapped users are (the overflow
/// id): the folders above are then his own, and the checks of who may change them say what they say outside.
const NAMESPACE: [&str; 5] = [
    "--user",
    "--map-user=65534",
    "--map-group=65534",
    "--keep-caps",
    "--mount",
];

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
        eprintln!("skipped: no tmpfs can be mounted (this test needs root)");
        None
    }

    /// As [`Tmpfs::mount`], for a test that needs root for nothing but mounting. Where it may not mount, it runs once
    /// more in a user namespace in which it may, and `None` says that it has passed there; where the kernel gives
    /// nobody such a namespace, `None` and a word that the test is skipped.
    ///
    /// # Panics
    /// When the test fails in its namespace, or no temporary folder can be made.
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
