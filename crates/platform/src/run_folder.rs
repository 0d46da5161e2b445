//! Folders for data that is useless after a reboot, or after its process ends.

use crate::machine::Machine;
use crate::trusted_folder::{TrustError, TrustedFolder};

pub(crate) const ROOTS: &str = "/run/jitterscope";

/// A user's folder `name`. Makes it if it is missing: below `/run/jitterscope` for root, in the folder of the login
/// session for others, or below `/tmp` if there is no such folder.
///
/// # Errors
/// Another user can change it, or it cannot be made.
pub fn own_run_folder(
    machine: &Machine,
    user: u32,
    name: &str,
) -> Result<TrustedFolder, TrustError> {
    if user == 0 {
        return TrustedFolder::make(&machine.path(ROOTS).join(name));
    }
    // Only the system makes the folder of a session.
    let session = machine.path(format!("/run/user/{user}"));
    if session.is_dir()
        && let Ok(folder) = TrustedFolder::make(&session.join("jitterscope").join(name))
    {
        return Ok(folder);
    }
    TrustedFolder::make(&machine.path(format!("/tmp/jitterscope-{user}")).join(name))
}
