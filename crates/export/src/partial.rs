//! The hidden file in which a target is built beside its place. It is locked as long as its export lives, so
//! that the next one to the same place can tell what a killed one left, and removes it.

use jitterscope_platform::{AccessError, HeldDir, Owner, OwnerLock, owner_of};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;

const END: &str = ".partial";
/// Times that it is made again when another export takes it for a leftover before it is locked.
const TRIES: u32 = 10;

/// A hidden file of ours.
pub(crate) struct PartialFile {
    /// Its name in the folder.
    pub(crate) name: OsString,
    pub(crate) file: File,
    /// `None` where the file system has no locks: others then leave it alone.
    pub(crate) lock: Option<OwnerLock>,
}

/// Makes it for the target `name` in a folder, on the same file system so that the rename is atomic.
pub(crate) fn make(folder: &HeldDir, name: &OsStr) -> Result<PartialFile, AccessError> {
    remove_abandoned(folder, name);
    let mut hidden = start(name);
    hidden.push(format!("{}{END}", std::process::id()));
    let mut tries = 0;
    loop {
        // Of an earlier process with our number.
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

/// What stands before the process id.
fn start(name: &OsStr) -> OsString {
    let mut start = OsString::from(".");
    start.push(name);
    start.push(".");
    start
}

/// Removes what killed exports to the same target left.
fn remove_abandoned(folder: &HeldDir, name: &OsStr) {
    let start = start(name);
    let is_ours = |other: &OsStr| {
        let id = other
            .as_encoded_bytes()
            .strip_prefix(start.as_encoded_bytes());
        let id = id.and_then(|rest| rest.strip_suffix(END.as_bytes()));
        id.is_some_and(|id| !id.is_empty() && id.iter().all(u8::is_ascii_digit))
    };
    let Ok(entries) = std::fs::read_dir(folder.path()) else {
        return;
    };
    for entry in entries.flatten() {
        let other = entry.file_name();
        if is_ours(&other)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Owner::Gone(_lock) = owner_of(&entry.path())
        {
            // What cannot be removed hinders nobody.
            let _ = folder.remove_file(&other);
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
        for name in [
            ".x.csv.1.partial",
            ".x.csv.2.partial",
            ".y.csv.1.partial",
            ".x.csv.z.partial",
            "x.csv",
        ] {
            fs::write(at(name), "half").unwrap();
        }
        let living = OwnerLock::take(&at(".x.csv.2.partial")).unwrap();
        let ours = make(&folder, OsStr::new("x.csv")).unwrap();
        assert!(matches!(
            owner_of(&at(ours.name.to_str().unwrap())),
            Owner::Living
        ));
        assert!(!at(".x.csv.1.partial").exists());
        for name in [
            ".x.csv.2.partial",
            ".y.csv.1.partial",
            ".x.csv.z.partial",
            "x.csv",
        ] {
            assert!(at(name).exists(), "{name}");
        }
        drop((living, ours));
        let _ours = make(&folder, OsStr::new("x.csv")).unwrap();
        assert!(!at(".x.csv.2.partial").exists());
    }
}
