//! Who may use the tracing instances made in a folder.

use super::TraceError;
use jitterscope_platform::{Machine, user_outside};
use rustix::fs::{Access, AtFlags, CWD, Stat, accessat, stat};

/// A folder whose users may make and remove entries.
const USABLE: Access = Access::WRITE_OK.union(Access::EXEC_OK);
/// Write permission of the group and of others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Whether this user may make instances and use them. The kernel gives an instance the owner and group of its parent
/// folder, whoever makes it, and gives its files mode 0640. So a user who may write to the folder only as a member of
/// its group can make an instance and read its files, but cannot start it.
///
/// # Errors
/// This user may not make instances, or could not use them.
pub(super) fn may_use(machine: &Machine, root: &str) -> Result<(), TraceError> {
    let folder = format!("{root}/instances");
    // A file with the same mode as those of an instance.
    let file = machine.path(format!("{root}/trace_clock"));
    let makes = permits(&machine.path(&folder), USABLE);
    let path = machine.shown(&folder);
    let Ok(found) = stat(machine.path(&folder)) else {
        return Err(TraceError::NoPermission { path });
    };
    if makes && (is_own(&found) || permits(&file, Access::WRITE_OK)) {
        return Ok(());
    }
    // Root can still give away a folder of its own that nobody else may enter. Otherwise the error names the owner.
    let given = found.st_uid != 0;
    Err(match makes || given {
        true => TraceError::InstancesOfOwner {
            path,
            owner: user_outside(machine, found.st_uid),
        },
        false => TraceError::NoPermission { path },
    })
}

/// Whether what is made in the folder belongs to this user; or whether a capability let the user in, because the folder
/// lets nobody but its owner write.
fn is_own(folder: &Stat) -> bool {
    folder.st_uid == rustix::process::geteuid().as_raw() || folder.st_mode & WRITABLE_BY_OTHERS == 0
}

/// Checks the effective capabilities: plain access(2) ignores those of an ordinary user.
fn permits(path: &std::path::Path, access: Access) -> bool {
    accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
}
