//! The hidden file in which a target is built beside its place. The export locks it while it lives, so that a later one
//! in the same folder recognises and removes the file of a killed export.

use jitterscope_platform::{AccessError, HeldDir, Owner, OwnerLock, owner_of};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;

const END: &str = ".jitterscope";
/// The number of attempts to make the file when another export takes it for a leftover before it is locked.
const TRIES: u32 = 10;

/// A hidden file of an export.
pub(crate) struct PartialFile {
    /// The name in the folder.
    pub(crate) name: OsString,
    pub(crate) file: File,
    /// `None` where the file system has no locks: other exports then leave the file alone.
    pub(crate) lock: Option<OwnerLock>,
}

/// Makes the file for the target `name` in a folder, on the same file system so that the rename is atomic.
pub(crate) fn make(folder: &HeldDir, name: &OsStr) -> Result<PartialFile, AccessError> {
    remove_abandoned(folder);
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}{END}", std::process::id()));
    let mut tries = 0;
    loop {
        // Left by an earlier process with the same id.
        let _ = folder.remove_file(&hidden);
        let file = folder.create_output(&hidden)?;
        match OwnerLock::take(&folder.path().join(&hidden)) {
            Ok(lock) => {
                return Ok(PartialFile {
                    name: hidden,
                    file,
                    lock: Some(lock),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => tries += 1,
            Err(_) => {
                return Ok(PartialFile {
                    name: hidden,
                    file,
                    lock: None,
                });
            }
        }
    }
}

/// Whether [`make`] gives such names: target, process id and suffix.
fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let name = name.strip_prefix(b".").unwrap_or_default();
    let name = name.strip_suffix(END.as_bytes()).unwrap_or_default();
    let dot = name.iter().rposition(|byte| *byte == b'.');
    dot.is_some_and(|dot| {
        let process = &name[dot + 1..];
        dot > 0 && !process.is_empty() && process.iter().all(u8::is_ascii_digit)
    })
}

/// Removes this user's hidden files of killed exports to the same folder.
fn remove_abandoned(folder: &HeldDir) {
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = folder.entries() else {
        return;
    };
    for entry in entries {
        if is_ours(&entry.name)
            && !entry.is_dir
            && entry.owner == user
            && let Owner::Gone(_lock) = owner_of(&folder.path().join(&entry.name))
        {
            // A file that stays does no harm.
            let _ = folder.remove_file(&entry.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_a_killed_export_left_goes_and_what_a_living_one_writes_stays() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldDir::named_or_made(dir.path()).unwrap();
        let at = |name: &str| dir.path().join(name);
        let left = [".x.csv.1.jitterscope", ".y.csv.3.jitterscope"];
        let others = [
            ".x.csv.2.jitterscope",
            ".x.csv.1.partial",
            ".x.csv.z.jitterscope",
            ".1.jitterscope",
            "x.csv",
        ];
        for name in left.iter().chain(&others) {
            fs::write(at(name), "half").unwrap();
        }
        let living = OwnerLock::take(&at(".x.csv.2.jitterscope")).unwrap();
        let ours = make(&folder, OsStr::new("x.csv")).unwrap();
        assert!(matches!(
            owner_of(&at(ours.name.to_str().unwrap())),
            Owner::Living
        ));
        assert!(left.iter().all(|name| !at(name).exists()));
        for name in others {
            assert!(at(name).exists(), "{name}");
        }
        drop((living, ours));
        let _ours = make(&folder, OsStr::new("z.csv")).unwrap();
        assert!(!at(".x.csv.2.jitterscope").exists());
    }

    #[test]
    fn what_another_user_put_there_is_left_alone() {
        use std::os::unix::fs::{chown, symlink};
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give files to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldDir::named_or_made(dir.path()).unwrap();
        let [theirs, link] =
            [".x.1.jitterscope", ".x.2.jitterscope"].map(|name| dir.path().join(name));
        fs::write(&theirs, "theirs").unwrap();
        chown(&theirs, Some(65_533), None).unwrap();
        symlink(&theirs, &link).unwrap();
        let _ours = make(&folder, OsStr::new("x")).unwrap();
        assert!(theirs.exists() && link.is_symlink());
    }
}
