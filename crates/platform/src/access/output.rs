//! Output files that the user names.

use super::dir::HeldDir;
use super::error::{AccessError, in_words};
use super::walk::{is_ours, is_procfs};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The kernel follows as many links to links.
const MOST_LINKS: usize = 40;

/// The place of a named file, existing or not: its folder, held open, and its name there.
#[derive(Debug)]
pub struct OutputPlace {
    dir: HeldDir,
    name: OsString,
    mapped: bool,
}

/// A named file, opened.
#[derive(Debug)]
pub struct OpenedOutput {
    /// Open for writing; its content is unchanged so far.
    pub file: File,
    /// Whether this call made it.
    pub made: bool,
    /// Whether it is a regular file, which can be truncated.
    pub regular: bool,
}

impl OpenedOutput {
    /// Truncates it, if it is a regular file.
    ///
    /// # Errors
    /// The disk fails.
    pub fn empty(&self) -> std::io::Result<()> {
        if self.regular {
            self.file.set_len(0)
        } else {
            Ok(())
        }
    }
}

impl OutputPlace {
    /// The place that `path` names. Its folder must exist.
    ///
    /// # Errors
    /// There is no such folder, or a link of another user is on the way.
    pub fn find(path: &Path) -> Result<OutputPlace, AccessError> {
        let name = path
            .file_name()
            .ok_or_else(|| AccessError::io(path, Errno::ISDIR))?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let dir = HeldDir::for_output(folder, false)?;
        Ok(OutputPlace {
            dir,
            name: name.to_os_string(),
            mapped: false,
        })
    }

    /// Opens the file for mapping: also for reading, and only if it is a regular file.
    #[must_use]
    pub fn mapped(self) -> OutputPlace {
        OutputPlace {
            mapped: true,
            ..self
        }
    }

    #[must_use]
    pub fn folder(&self) -> &HeldDir {
        &self.dir
    }

    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens the file, or makes it. Follows a link of root or of the effective user, and opens a pipe or a character
    /// device of theirs as it is.
    ///
    /// # Errors
    /// The name is a link, a pipe or a device of another user, a file of another user in a folder that others can write
    /// to, a folder, a socket or a disk; or it cannot be opened.
    pub fn open(mut self) -> Result<(OutputPlace, OpenedOutput), AccessError> {
        for _ in 0..MOST_LINKS {
            let stat = match self.dir.stat_of(&self.name) {
                Ok(stat) => stat,
                Err(error) if error.is_absent() => match self.make() {
                    Err(error) if error.io_kind() == Some(std::io::ErrorKind::AlreadyExists) => {
                        continue;
                    }
                    made => return made.map(|opened| (self, opened)),
                },
                Err(error) => return Err(error),
            };
            let path = self.dir.path().join(&self.name);
            let kind = FileType::from_raw_mode(stat.st_mode);
            let foreign = !is_ours(stat.st_uid);
            match kind {
                // The folder's owner may keep files in it, by the rule of the kernel's `protected_regular`.
                FileType::RegularFile
                    if foreign
                        && stat.st_uid != self.dir.stat()?.st_uid
                        && self.dir.is_shared()? =>
                {
                    return Err(AccessError::Foreign {
                        path,
                        what: "a file",
                        owner: stat.st_uid,
                    });
                }
                FileType::Symlink | FileType::Fifo | FileType::CharacterDevice if foreign => {
                    return Err(AccessError::Foreign {
                        path,
                        what: in_words(kind),
                        owner: stat.st_uid,
                    });
                }
                // The folder's owner could have linked an important file under this name.
                FileType::RegularFile if stat.st_nlink > 1 && self.dir.is_shared()? => {
                    return Err(AccessError::NotRegular {
                        path,
                        found: "a file with a second name",
                    });
                }
                FileType::Fifo | FileType::CharacterDevice if self.mapped => {
                    return Err(AccessError::NotRegular {
                        path,
                        found: in_words(kind),
                    });
                }
                FileType::RegularFile | FileType::Fifo | FileType::CharacterDevice => {
                    let opened = self.open_found(&stat)?;
                    return Ok((self, opened));
                }
                FileType::Symlink => match self.follow(&path)? {
                    Followed::To(place) => self = place,
                    Followed::Opened(opened) => return Ok((self, opened)),
                },
                FileType::Directory => return Err(AccessError::io(&path, Errno::ISDIR)),
                _ => {
                    return Err(AccessError::NotRegular {
                        path,
                        found: in_words(kind),
                    });
                }
            }
        }
        Err(AccessError::io(
            &self.dir.path().join(&self.name),
            Errno::LOOP,
        ))
    }

    fn make(&self) -> Result<OpenedOutput, AccessError> {
        let file = self.dir.create_output(&self.name)?;
        Ok(OpenedOutput {
            file,
            made: true,
            regular: true,
        })
    }

    /// Opens the file that was checked, and no file that took its name since: that could be a second name of an
    /// important file.
    fn open_found(&self, seen: &Stat) -> Result<OpenedOutput, AccessError> {
        let error = |e: Errno| AccessError::io(&self.dir.path().join(&self.name), e);
        let kind = FileType::from_raw_mode(seen.st_mode);
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        flags |= match kind {
            // A mapping must be readable, too.
            FileType::RegularFile if self.mapped => OFlags::RDWR | OFlags::NONBLOCK,
            FileType::RegularFile => OFlags::WRONLY | OFlags::NONBLOCK,
            _ => OFlags::WRONLY,
        };
        let fd = openat(&self.dir, &self.name, flags, Mode::empty()).map_err(error)?;
        let stat = fstat(&fd).map_err(error)?;
        if (stat.st_dev, stat.st_ino) != (seen.st_dev, seen.st_ino) {
            return Err(AccessError::Replaced {
                path: self.dir.path().join(&self.name),
            });
        }
        Ok(OpenedOutput {
            file: File::from(fd),
            made: false,
            regular: kind == FileType::RegularFile,
        })
    }

    fn follow(&self, path: &Path) -> Result<Followed, AccessError> {
        let error = |e: Errno| AccessError::io(path, e);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let link = openat(&self.dir, &self.name, flags, Mode::empty()).map_err(error)?;
        if !is_ours(fstat(&link).map_err(error)?.st_uid) {
            return Err(AccessError::Replaced {
                path: path.to_path_buf(),
            });
        }
        if is_procfs(&link) && !self.mapped {
            // One of our own open files, such as the pipe behind /dev/fd/63.
            let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
            let fd = openat(&self.dir, &self.name, flags, Mode::empty()).map_err(error)?;
            let kind = FileType::from_raw_mode(fstat(&fd).map_err(error)?.st_mode);
            return match kind {
                FileType::RegularFile | FileType::Fifo | FileType::CharacterDevice => {
                    let regular = kind == FileType::RegularFile;
                    Ok(Followed::Opened(OpenedOutput {
                        file: File::from(fd),
                        made: false,
                        regular,
                    }))
                }
                _ => Err(AccessError::NotRegular {
                    path: path.to_path_buf(),
                    found: in_words(kind),
                }),
            };
        }
        let target = readlinkat(&link, "", Vec::new()).map_err(error)?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        let place = OutputPlace::find(&self.dir.path().join(target))?;
        Ok(Followed::To(OutputPlace {
            mapped: self.mapped,
            ..place
        }))
    }
}

enum Followed {
    To(OutputPlace),
    Opened(OpenedOutput),
}

impl HeldDir {
    /// A folder that the user names for output. Makes it if it is missing, with the mode of the user's umask.
    ///
    /// # Errors
    /// A link of another user is on the path, it is not a folder, or it cannot be made.
    pub fn named_or_made(path: &Path) -> Result<HeldDir, AccessError> {
        HeldDir::for_output(path, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_given_the_name_since_it_was_looked_at_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let [named, precious] = ["out", "precious"].map(|name| dir.path().join(name));
        fs::write(&named, "old").unwrap();
        fs::write(&precious, "kept").unwrap();
        let place = OutputPlace::find(&named).unwrap();
        let seen = place.dir.stat_of(&place.name).unwrap();
        assert!(place.open_found(&seen).unwrap().regular);
        fs::remove_file(&named).unwrap();
        fs::hard_link(&precious, &named).unwrap();
        assert!(
            matches!(place.open_found(&seen), Err(AccessError::Replaced { path }) if path == named)
        );
    }
}
