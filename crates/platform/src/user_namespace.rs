//! The user namespace of this process.
//!
//! In a user namespace (a container without root, `unshare --user`) a process can be user 0 and hold every capability,
//! and still be an ordinary user of the machine. The kernel checks capabilities for its events, names and clocks
//! against the machine's own namespace, so those of another one do not count there. What counts is who owns a file:
//! there the process is the user that the namespace maps it to.

use crate::machine::Machine;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

/// The machine's own namespace: the kernel gives it this number (`PROC_USER_INIT_INO`).
const MACHINES_OWN: &str = "user:[4026531837]";

/// Folders on the way to our own ones that belong to root on every machine.
const ROOTS: [&str; 14] = [
    "/",
    "/dev",
    "/dev/shm",
    "/home",
    "/mnt",
    "/opt",
    "/run",
    "/run/user",
    "/srv",
    "/tmp",
    "/usr",
    "/var",
    "/var/lib",
    "/var/tmp",
];
/// Folders of root's recordings and changes. Only root can make them, because only root can write to their parents.
const OF_ROOT: [&str; 2] = ["/run/jitterscope", "/var/lib/jitterscope"];

/// A user namespace that is not the machine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserNamespace {
    /// The user that this process is outside; `None` if the namespace does not map it.
    pub user: Option<u32>,
}

impl UserNamespace {
    /// The namespace of this process; `None` if it is the machine's own, or unknown because procfs is not mounted.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<UserNamespace> {
        let namespace = fs::read_link(machine.path("/proc/self/ns/user")).ok()?;
        if namespace == Path::new(MACHINES_OWN) {
            return None;
        }
        Some(UserNamespace {
            user: outside(&map(machine), rustix::process::geteuid().as_raw()),
        })
    }
}

/// The number outside of this process's user namespace of a user that has `user` inside; `None` if the namespace does
/// not map it. In the machine's own namespace, the same number.
#[must_use]
pub fn user_outside(machine: &Machine, user: u32) -> Option<u32> {
    match UserNamespace::of(machine) {
        Some(_) => outside(&map(machine), user),
        None => Some(user),
    }
}

fn map(machine: &Machine) -> String {
    machine.read("/proc/self/uid_map").unwrap_or_default()
}

/// The effective user as the machine numbers it. In a nested namespace, as the namespace around it does.
#[must_use]
pub fn own_user(machine: &Machine) -> u32 {
    let user = rustix::process::geteuid().as_raw();
    user_outside(machine, user).unwrap_or(user)
}

/// What an error about a missing capability adds in a user namespace.
pub(crate) fn none_counts() -> &'static str {
    match UserNamespace::of(&Machine::host()) {
        Some(_) => "; the capabilities of this user namespace do not count",
        None => "",
    }
}

/// The outer number of a user, by the lines of a `uid_map`: first inner number, first outer number, how many.
fn outside(map: &str, user: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let mut number = || numbers.next()?.ok();
        let (inner, outer, count) = (number()?, number()?, number()?);
        let at = user.checked_sub(inner).filter(|at| *at < count)?;
        outer.checked_add(at)
    })
}

/// The number as which the machine's root appears here, together with every other user that this namespace does not
/// map; `None` if root appears as itself.
pub(crate) fn hidden_root() -> Option<u32> {
    static HIDDEN: OnceLock<Option<u32>> = OnceLock::new();
    *HIDDEN.get_or_init(|| {
        let machine = Machine::host();
        UserNamespace::of(&machine)?;
        let unmapped = machine.read_trimmed("/proc/sys/kernel/overflowuid").ok()?;
        let unmapped = unmapped.parse().ok()?;
        let root = fs::symlink_metadata("/").ok()?;
        (root.uid() == unmapped).then_some(unmapped)
    })
}

/// Whether a file is the machine's root's, although the namespace does not map root. Nothing distinguishes root there
/// from other users of the machine, so only folders that are root's everywhere are trusted.
pub(crate) fn is_hidden_roots(path: &Path, owner: u32) -> bool {
    Some(owner) == hidden_root() && is_roots(path)
}

fn is_roots(path: &Path) -> bool {
    ROOTS.iter().any(|root| path == Path::new(root))
        || OF_ROOT.iter().any(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn machine(namespace: &str, map: &str) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("proc/self");
        fs::create_dir_all(own.join("ns")).unwrap();
        symlink(namespace, own.join("ns/user")).unwrap();
        fs::write(own.join("uid_map"), map).unwrap();
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    #[test]
    fn another_namespace_than_the_machines_is_found_with_the_user_outside() {
        let user = rustix::process::geteuid().as_raw();
        let (_dir, own) = machine(MACHINES_OWN, "0 0 4294967295\n");
        assert_eq!(
            (UserNamespace::of(&own), own_user(&own)),
            (None, user),
            "the machine's own"
        );
        let map = format!("         {user}       4000          1\n");
        let (_dir, other) = machine("user:[4026532177]", &map);
        let mapped = UserNamespace { user: Some(4000) };
        assert_eq!(
            (UserNamespace::of(&other), own_user(&other)),
            (Some(mapped), 4000)
        );
        assert_eq!(user_outside(&other, user + 1), None);
        assert_eq!(user_outside(&own, user + 1), Some(user + 1));
        let (_dir, unmapped) = machine("user:[4026532177]", "");
        assert_eq!(
            (UserNamespace::of(&unmapped), own_user(&unmapped)),
            (Some(UserNamespace { user: None }), user)
        );
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(UserNamespace::of(&Machine::at(dir.path())), None);
    }

    #[test]
    fn a_user_is_counted_from_the_begin_of_its_range() {
        let map = "0 1000 1\n1 100000 65536\n4294967295 7 1\nx y z\n";
        assert_eq!(outside(map, 0), Some(1000));
        assert_eq!(outside(map, 1), Some(100_000));
        assert_eq!(outside(map, 65_536), Some(165_535));
        assert_eq!(outside(map, 65_537), None);
        assert_eq!(outside("0 4294967295 2", 1), None);
    }

    #[test]
    fn of_unmapped_owners_only_roots_own_folders_are_roots() {
        for path in ["/", "/tmp", "/var/lib", "/run/jitterscope/cpus/cpu1"] {
            assert!(is_roots(Path::new(path)), "{path}");
        }
        for path in [
            "/home/bob",
            "/tmp/x",
            "/run/jitterscope-of-bob",
            "/srv/a",
            "",
        ] {
            assert!(!is_roots(Path::new(path)), "{path}");
        }
    }
}
