//! A folder held open.

use super::error::{AccessError, in_words};
use super::walk::{self, Rule, changeable_by_others, is_ours, plain_name};
use jitterscope_model::PutInOrder;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A folder that is held open. Its names keep their meaning even if its path changes. No access follows a link.
#[derive(Debug)]
pub struct HeldDir {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: OsString,
    /// Whether it is itself a folder, and not a link to one.
    pub is_dir: bool,
    /// The user id of its owner.
    pub owner: u32,
}

impl HeldDir {
    /// Opens a folder for reading, anywhere.
    ///
    /// # Errors
    /// It is not a folder, or cannot be opened.
    pub fn open(path: &Path) -> Result<HeldDir, AccessError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|e| AccessError::io(path, e))?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// Opens a folder that only root and the effective user can change, which also holds for every folder on its path.
    ///
    /// # Errors
    /// Another user can change one of them, it is not a folder, or it cannot be opened.
    pub fn trusted(path: &Path) -> Result<HeldDir, AccessError> {
        let (fd, _) = walk::folder(path, Rule::Trusted, None)?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// [`HeldDir::trusted`], but makes missing folders with mode 0700.
    ///
    /// # Errors
    /// As [`HeldDir::trusted`]; or a folder cannot be made.
    pub fn trusted_or_made(path: &Path) -> Result<HeldDir, AccessError> {
        let (fd, _) = walk::folder(path, Rule::Trusted, Some(Mode::RWXU))?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// [`HeldDir::trusted_or_made`] with another mode for new folders.
    ///
    /// # Errors
    /// As [`HeldDir::trusted`]; or a folder cannot be made.
    pub fn trusted_or_made_with(path: &Path, mode: Mode) -> Result<HeldDir, AccessError> {
        let (fd, _) = walk::folder(path, Rule::Trusted, Some(mode))?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    pub(super) fn for_output(path: &Path, make: bool) -> Result<HeldDir, AccessError> {
        // The user's umask decides the mode.
        let make = make.then_some(Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let (fd, path) = walk::folder(path, Rule::OwnLinks, make)?;
        Ok(HeldDir { fd, path })
    }

    /// Holds it a second time.
    ///
    /// # Errors
    /// Too many files are open.
    pub fn reopen(&self) -> Result<HeldDir, AccessError> {
        let fd = self.fd.try_clone();
        Ok(HeldDir {
            fd: fd.map_err(|source| AccessError::Io {
                path: self.path.clone(),
                source,
            })?,
            path: self.path.clone(),
        })
    }

    /// The path it was opened by, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn of<'a>(&'a self, name: &'a OsStr) -> impl FnOnce(Errno) -> AccessError + use<'a> {
        move |error| AccessError::io(&self.path.join(name), error)
    }

    pub(super) fn stat(&self) -> Result<Stat, AccessError> {
        fstat(&self.fd).map_err(|e| AccessError::io(&self.path, e))
    }

    pub(super) fn stat_of(&self, name: &OsStr) -> Result<Stat, AccessError> {
        plain_name(name, &self.path)?;
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(self.of(name))
    }

    pub(super) fn open_at(
        &self,
        name: &OsStr,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, AccessError> {
        plain_name(name, &self.path)?;
        // Without NONBLOCK, opening a named pipe waits until another process opens the other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        match openat(&self.fd, name, flags, mode) {
            Err(Errno::LOOP) => {
                let path = self.path.join(name);
                Err(AccessError::NotRegular {
                    path,
                    found: in_words(FileType::Symlink),
                })
            }
            other => other.map_err(self.of(name)),
        }
    }

    /// Whether this name exists, even as a broken link.
    #[must_use]
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        self.stat_of(name.as_ref()).is_ok()
    }

    /// Whether other users can put files into it.
    ///
    /// # Errors
    /// Its status cannot be read.
    pub fn is_shared(&self) -> Result<bool, AccessError> {
        let stat = self.stat()?;
        Ok(stat.st_mode & 0o1000 != 0 && stat.st_mode & 0o022 != 0
            || changeable_by_others(&self.path, &stat).is_some())
    }

    /// Its entries, sorted by name. Entries that disappear during the read are left out.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn entries(&self) -> Result<Vec<DirEntry>, AccessError> {
        let error = |e: Errno| AccessError::io(&self.path, e);
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(error)? {
            let entry = entry.map_err(error)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Ok(stat) = self.stat_of(name) else {
                continue;
            };
            let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            entries.push(DirEntry {
                name: name.to_os_string(),
                is_dir,
                owner: stat.st_uid,
            });
        }
        entries.order_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Makes a folder in it, mode 0700, and opens the new folder.
    ///
    /// # Errors
    /// The name is taken, or the folder cannot be made.
    pub fn make_dir(&self, name: impl AsRef<OsStr>) -> Result<HeldDir, AccessError> {
        let name = name.as_ref();
        plain_name(name, &self.path)?;
        mkdirat(&self.fd, name, Mode::RWXU).map_err(self.of(name))?;
        let made = self.open_dir(name)?;
        // In a sticky folder of another owner, that owner could have renamed and replaced it.
        if !is_ours(made.stat()?.st_uid) {
            return Err(AccessError::Replaced {
                path: self.path.join(name),
            });
        }
        Ok(made)
    }

    /// Opens a folder in it.
    ///
    /// # Errors
    /// There is none, it is a link, or it cannot be opened.
    pub fn open_dir(&self, name: impl AsRef<OsStr>) -> Result<HeldDir, AccessError> {
        let name = name.as_ref();
        let fd = self.open_at(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(HeldDir {
            fd,
            path: self.path.join(name),
        })
    }

    /// Makes a file in it for reading and writing, mode 0600.
    ///
    /// # Errors
    /// The name is taken, or the file cannot be made.
    pub fn create_new(&self, name: impl AsRef<OsStr>) -> Result<File, AccessError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(File::from(self.open_at(
            name.as_ref(),
            flags,
            Mode::RUSR | Mode::WUSR,
        )?))
    }

    /// Makes a file as [`HeldDir::create_new`] does, but with the mode of the user's umask: an output.
    ///
    /// # Errors
    /// As [`HeldDir::create_new`].
    pub fn create_output(&self, name: impl AsRef<OsStr>) -> Result<File, AccessError> {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(File::from(self.open_at(name.as_ref(), flags, mode)?))
    }

    /// Opens a regular file in it for reading.
    ///
    /// # Errors
    /// There is none, it is not a regular file, or it cannot be opened.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> Result<File, AccessError> {
        let name = name.as_ref();
        let file = File::from(self.open_at(name, OFlags::RDONLY, Mode::empty())?);
        self.regular(&file, name)?;
        Ok(file)
    }

    /// Opens a file of our own for reading and appending, such as a journal or a lock. Makes it, mode 0600, if it is
    /// missing.
    ///
    /// # Errors
    /// It is not a regular file, has a second name, belongs to another user, or cannot be opened.
    pub fn open_own(&self, name: impl AsRef<OsStr>) -> Result<File, AccessError> {
        let name = name.as_ref();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let file = File::from(self.open_at(name, flags, Mode::RUSR | Mode::WUSR)?);
        let stat = self.regular(&file, name)?;
        let path = || self.path.join(name);
        if !is_ours(stat.st_uid) {
            return Err(AccessError::Foreign {
                path: path(),
                what: "a file",
                owner: stat.st_uid,
            });
        }
        if stat.st_nlink > 1 {
            return Err(AccessError::NotRegular {
                path: path(),
                found: "a file with a second name",
            });
        }
        Ok(file)
    }

    fn regular(&self, file: &File, name: &OsStr) -> Result<Stat, AccessError> {
        let stat = fstat(file).map_err(self.of(name))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(stat),
            other => Err(AccessError::NotRegular {
                path: self.path.join(name),
                found: in_words(other),
            }),
        }
    }

    /// Reads a whole regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`HeldDir::open_file`]; or it is larger, or cannot be read.
    pub fn read(&self, name: impl AsRef<OsStr>, limit: u64) -> Result<Vec<u8>, AccessError> {
        let name = name.as_ref();
        super::regular::read_bounded_from(&self.open_file(name)?, &self.path.join(name), limit)
    }

    /// Renames `from` to `to` in it, and replaces any existing `to`.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn rename(
        &self,
        from: impl AsRef<OsStr>,
        to: impl AsRef<OsStr>,
    ) -> Result<(), AccessError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        plain_name(from, &self.path)?;
        plain_name(to, &self.path)?;
        rustix::fs::renameat(&self.fd, from, &self.fd, to).map_err(self.of(from))
    }

    /// Moves `name` into another folder, under the same name, and replaces what has it there.
    ///
    /// # Errors
    /// It cannot be moved.
    pub fn move_to(&self, name: impl AsRef<OsStr>, to: &HeldDir) -> Result<(), AccessError> {
        let name = name.as_ref();
        plain_name(name, &self.path)?;
        rustix::fs::renameat(&self.fd, name, &to.fd, name).map_err(self.of(name))
    }

    /// Renames `held`, whose name here is `from`, to `to`, which must be free.
    ///
    /// Linux renames names, not open files. So this checks before and after whether the name still means `held`. In a
    /// folder that [`HeldDir::trusted`] opened, no other user can interfere in between.
    ///
    /// # Errors
    /// A name means something else, `to` is taken, or the rename fails.
    pub fn rename_held(
        &self,
        held: &HeldDir,
        from: impl AsRef<OsStr>,
        to: impl AsRef<OsStr>,
    ) -> Result<(), AccessError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        plain_name(to, &self.path)?;
        self.is_still(held, from)?;
        match rustix::fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
            // This file system has no rename that refuses to replace.
            Err(Errno::INVAL | Errno::NOSYS) if !self.has(to) => {
                rustix::fs::renameat(&self.fd, from, &self.fd, to)
            }
            other => other,
        }
        .map_err(self.of(to))?;
        self.is_still(held, to)
    }

    /// Checks that a name in it still means the folder that is held.
    pub(super) fn is_still(&self, held: &HeldDir, name: &OsStr) -> Result<(), AccessError> {
        let (wanted, found) = (held.stat()?, self.stat_of(name)?);
        if (wanted.st_dev, wanted.st_ino) == (found.st_dev, found.st_ino) {
            return Ok(());
        }
        Err(AccessError::Replaced {
            path: self.path.join(name),
        })
    }

    /// Removes a name that is not a folder.
    ///
    /// # Errors
    /// There is none, or it cannot be removed.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<(), AccessError> {
        let name = name.as_ref();
        plain_name(name, &self.path)?;
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).map_err(self.of(name))
    }

    /// Syncs its names to disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> Result<(), AccessError> {
        rustix::fs::fsync(&self.fd).map_err(|e| AccessError::io(&self.path, e))
    }

    /// Bytes that this user can still write to its file system.
    ///
    /// # Errors
    /// The file system does not tell.
    pub fn free_bytes(&self) -> Result<u64, AccessError> {
        let stat = rustix::fs::fstatvfs(&self.fd).map_err(|e| AccessError::io(&self.path, e))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl AsFd for HeldDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
