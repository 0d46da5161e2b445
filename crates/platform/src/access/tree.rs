//! Removing a folder with its contents.

use super::dir::HeldDir;
use super::error::AccessError;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Deepest nesting that is removed; our own folders are two deep.
const DEEPEST: usize = 64;

impl HeldDir {
    /// Removes the folder `name` with its contents. Removes links without following them, and does not enter other file
    /// systems.
    ///
    /// # Errors
    /// There is none, another file system is mounted in it, or something cannot be removed.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> Result<(), AccessError> {
        let name = name.as_ref();
        let held = self.open_dir(name)?;
        self.remove_held(&held, name)
    }

    /// [`HeldDir::remove_tree`] of a folder that is held. If its name now means something else, this empties the held
    /// folder and leaves the name alone.
    ///
    /// # Errors
    /// As [`HeldDir::remove_tree`]; or the name means something else.
    pub fn remove_held(&self, held: &HeldDir, name: impl AsRef<OsStr>) -> Result<(), AccessError> {
        let name = name.as_ref();
        if held.stat()?.st_dev != self.stat()?.st_dev {
            return Err(AccessError::io(&self.path.join(name), Errno::XDEV));
        }
        empty(held, DEEPEST)?;
        self.is_still(held, name)?;
        rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR).map_err(self.of(name))
    }
}

fn empty(folder: &HeldDir, deeper: usize) -> Result<(), AccessError> {
    let Some(deeper) = deeper.checked_sub(1) else {
        return Err(AccessError::io(&PathBuf::from(folder.path()), Errno::LOOP));
    };
    for entry in folder.entries()? {
        if entry.is_dir {
            let inner = folder.open_dir(&entry.name)?;
            if inner.stat()?.st_dev != folder.stat()?.st_dev {
                return Err(AccessError::io(inner.path(), Errno::XDEV));
            }
            empty(&inner, deeper)?;
            rustix::fs::unlinkat(&folder.fd, &entry.name, AtFlags::REMOVEDIR)
                .map_err(folder.of(&entry.name))?;
        } else {
            folder.remove_file(&entry.name)?;
        }
    }
    Ok(())
}
