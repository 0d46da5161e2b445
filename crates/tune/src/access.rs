//! Owner and permissions of files that we install, which a change and its undoing keep.

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

/// Mode of a new file: readable by all, as usual in those folders.
const NEW_FILE: u32 = 0o644;

/// A file's owner and permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Permission bits, including set-id and sticky.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

impl Access {
    /// The access of an existing file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Access {
        Access {
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
        }
    }

    /// Whether it has only read, write and execute bits: only such a mode is ever restored.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.mode & !0o777 == 0
    }

    /// As displayed, e.g. by `ls`.
    #[must_use]
    pub fn shown(self) -> String {
        format!("mode {:04o}, owner {}:{}", self.mode, self.uid, self.gid)
    }
}

/// Gives an open file this access, or the default if it is new, independently of the umask.
///
/// # Errors
/// The system refuses: changing the owner needs root.
pub(crate) fn give(file: &File, access: Option<Access>) -> io::Result<()> {
    let mode = access.map_or(NEW_FILE, |a| a.mode);
    if let Some(access) = access
        && let now = Access::of(&file.metadata()?)
        && (now.uid, now.gid) != (access.uid, access.gid)
    {
        // Before the mode, because changing the owner clears some of its bits.
        fchown(
            file,
            Some(Uid::from_raw(access.uid)),
            Some(Gid::from_raw(access.gid)),
        )?;
    }
    fchmod(file, Mode::from_raw_mode(mode))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn access_is_shown_as_people_write_it_and_is_plain_without_further_bits() {
        for (mode, shown, plain) in [
            (0o644, "mode 0644, owner 1:20", true),
            (0o777, "mode 0777, owner 1:20", true),
            (0o1777, "mode 1777, owner 1:20", false),
            (0o4755, "mode 4755, owner 1:20", false),
            (0, "mode 0000, owner 1:20", true),
        ] {
            let access = Access {
                mode,
                uid: 1,
                gid: 20,
            };
            assert_eq!((access.shown().as_str(), access.is_plain()), (shown, plain));
        }
    }

    #[test]
    fn a_file_is_given_its_access_or_that_of_a_new_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = || Access::of(&file.as_file().metadata().unwrap());
        let owner = now();
        file.as_file()
            .set_permissions(PermissionsExt::from_mode(0o600))
            .unwrap();
        give(file.as_file(), None).unwrap();
        assert_eq!(
            now(),
            Access {
                mode: NEW_FILE,
                ..owner
            }
        );
        give(
            file.as_file(),
            Some(Access {
                mode: 0o640,
                ..owner
            }),
        )
        .unwrap();
        assert_eq!(
            now(),
            Access {
                mode: 0o640,
                ..owner
            }
        );
    }
}
