//! Who may do what with a file that we put in place: it survives the change and its undoing.

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

/// Of a file that was not there before: everybody may read it, as all in those folders.
const NEW_FILE: u32 = 0o644;

/// A file's owner and permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Permission bits, those for set-id and sticky included.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Access {
    /// Of a file that is there.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Access {
        Access {
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
        }
    }

    /// Whether it gives no more than reading, writing and executing: nothing else is ever put back.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.mode & !0o777 == 0
    }

    /// As people write it.
    #[must_use]
    pub fn shown(self) -> String {
        format!("mode {:04o}, owner {}:{}", self.mode, self.uid, self.gid)
    }
}

/// Gives an open file this access, or, when it is new, the usual one, whatever the umask is.
///
/// # Errors
/// The system refuses: giving a file to somebody else needs root.
pub(crate) fn give(file: &File, access: Option<Access>) -> io::Result<()> {
    let mode = access.map_or(NEW_FILE, |a| a.mode);
    if let Some(access) = access
        && let now = Access::of(&file.metadata()?)
        && (now.uid, now.gid) != (access.uid, access.gid)
    {
        // Before the mode, some bits of which go with a change of owner.
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
