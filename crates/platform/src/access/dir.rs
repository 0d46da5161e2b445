//! A folder held open.

use super::error::{AccessError, in_words};
use super::walk::{self, Rule, changeable_by_others, is_ours, plain_name};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A folder held open: whatever becomes of its path, names in it mean what they meant. Nothing in it is
/// reached through a link.
#[derive(Debug)]
pub struct HeldDir {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
}

/// What is in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// Whether it is itself a folder, not a link to one.
    pub is_dir: bool,
    /// The number of the user to whom it belongs.
    pub owner: u32,
}

impl HeldDir {
    /// A folder to read from, wherever it is.
    ///
    /// # Errors
    /// It is no folder, or cannot be opened.
    pub fn open(path: &Path) -> Result<HeldDir, AccessError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|e| AccessError::io(path, e))?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// A folder that only root and the effective user may change, nor any on its way.
    ///
    /// # Errors
    /// Another user may change one of them, it is no folder, or it cannot be opened.
    pub fn trusted(path: &Path) -> Result<HeldDir, AccessError> {
        let (fd, _) = walk::folder(path, Rule::Trusted, None)?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// [`HeldDir::trusted`], with mode 0700 where there is none, as any that are missing on its way.
    ///
    /// # Errors
    /// As [`HeldDir::trusted`]; it cannot be made.
    pub fn trusted_or_made(path: &Path) -> Result<HeldDir, AccessError> {
        let (fd, _) = walk::folder(path, Rule::Trusted, Some(Mode::RWXU))?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// [`HeldDir::trusted_or_made`] with another mode for what is made.
    ///
    /// # Errors
    /// As [`HeldDir::trusted`]; it cannot be made.
    pub fn trusted_or_made_with(path: &Path, mode: Mode) -> Result<HeldDir, AccessError> {
        let (fd, _) = walk::folder(path, Rule::Trusted, Some(mode))?;
        Ok(HeldDir {
            fd,
            path: path.to_path_buf(),
        })
    }

    pub(super) fn for_output(path: &Path, make: bool) -> Result<HeldDir, AccessError> {
        // As the user's umask says.
        let make = make.then_some(Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let (fd, path) = walk::folder(path, Rule::OwnLinks, make)?;
        Ok(HeldDir { fd, path })
    }

    /// What it was opened as, for telling people.
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
        // Without NONBLOCK, opening a named pipe waits for whoever opens its other end.
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

    /// Whether anything has this name, be it a link that leads nowhere.
    #[must_use]
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        self.stat_of(name.as_ref()).is_ok()
    }

    /// Whether others may put something into it.
    ///
    /// # Errors
    /// The system does not say.
    pub fn is_shared(&self) -> Result<bool, AccessError> {
        let stat = self.stat()?;
        Ok(stat.st_mode & 0o1000 != 0 && stat.st_mode & 0o022 != 0
            || changeable_by_others(&stat).is_some())
    }

    /// What is in it, in order of names, without what went away meanwhile.
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
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Makes a folder in it, mode 0700, and opens that one.
    ///
    /// # Errors
    /// There is something of that name, or it cannot be made.
    pub fn make_dir(&self, name: impl AsRef<OsStr>) -> Result<HeldDir, AccessError> {
        let name = name.as_ref();
        plain_name(name, &self.path)?;
        mkdirat(&self.fd, name, Mode::RWXU).map_err(self.of(name))?;
        let made = self.open_dir(name)?;
        // In a sticky folder of which others are the owners it could have been renamed and replaced.
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

    /// Makes a file in it, mode 0600, to be written and read.
    ///
    /// # Errors
    /// There is something of that name, or it cannot be made.
    pub fn create_new(&self, name: impl AsRef<OsStr>) -> Result<File, AccessError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(File::from(self.open_at(
            name.as_ref(),
            flags,
            Mode::RUSR | Mode::WUSR,
        )?))
    }

    /// Makes a file in it as [`HeldDir::create_new`] does, but for whom the user's umask says: an output.
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
    /// There is none, it is something else, or it cannot be opened.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> Result<File, AccessError> {
        let name = name.as_ref();
        let file = File::from(self.open_at(name, OFlags::RDONLY, Mode::empty())?);
        self.regular(&file, name)?;
        Ok(file)
    }

    /// Opens a file of our own in it for reading and writing at its end, and makes it, mode 0600, where
    /// there is none: a journal or a lock.
    ///
    /// # Errors
    /// It is no regular file, has another name besides, belongs to another user, or cannot be opened.
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

    /// All of a regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`HeldDir::open_file`]; it is larger, or cannot be read.
    pub fn read(&self, name: impl AsRef<OsStr>, limit: u64) -> Result<Vec<u8>, AccessError> {
        let name = name.as_ref();
        super::regular::read_bounded_from(&self.open_file(name)?, &self.path.join(name), limit)
    }

    /// Renames `from` to `to` in it; what was called `to` is replaced.
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

    /// Gives `held`, which is in it under the name `from`, the name `to`, which must be free.
    ///
    /// Linux renames names, not open files, so it is looked at before and after whether the name means
    /// what is held. Nobody else can come in between in a folder that [`HeldDir::trusted`] opened.
    ///
    /// # Errors
    /// A name means something else, `to` is taken, or the system refuses.
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
            // A file system that cannot refuse to replace.
            Err(Errno::INVAL | Errno::NOSYS) if !self.has(to) => {
                rustix::fs::renameat(&self.fd, from, &self.fd, to)
            }
            other => other,
        }
        .map_err(self.of(to))?;
        self.is_still(held, to)
    }

    /// Whether a name in it still means a folder that is held.
    pub(super) fn is_still(&self, held: &HeldDir, name: &OsStr) -> Result<(), AccessError> {
        let (wanted, found) = (held.stat()?, self.stat_of(name)?);
        if (wanted.st_dev, wanted.st_ino) == (found.st_dev, found.st_ino) {
            return Ok(());
        }
        Err(AccessError::Replaced {
            path: self.path.join(name),
        })
    }

    /// Removes a name that is no folder.
    ///
    /// # Errors
    /// There is none, or it cannot be removed.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<(), AccessError> {
        let name = name.as_ref();
        plain_name(name, &self.path)?;
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).map_err(self.of(name))
    }

    /// Makes names in it safe on disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> Result<(), AccessError> {
        rustix::fs::fsync(&self.fd).map_err(|e| AccessError::io(&self.path, e))
    }

    /// Bytes that this user may still write to its file system.
    ///
    /// # Errors
    /// The system does not say.
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
