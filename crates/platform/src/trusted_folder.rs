//! A folder whose files control what root does. It is held open, and used only if no user but root and ourselves can
//! have written to it.
//!
//! It is stricter with its files than [`HeldDir`]: they are no links, belong to us, have no second name, and have
//! exactly their intended mode, regardless of the umask.

use crate::access::{AccessError, HeldDir};
use crate::user_namespace::is_hidden_roots;
use jitterscope_model::PutInOrder;
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// For new folders: everyone can read them, only the owner can change them.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
/// Bits that let users other than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In bytes. A longer file is not ours.
const LONGEST_FILE: u64 = 64 << 20;

/// What is wrong with a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// It is a symbolic link, which another user may have put in its place.
    #[error("it is a symbolic link, and none is followed here: name the place itself")]
    Link,
    /// It belongs neither to root nor to this user.
    #[error(
        "it belongs to user {owner}, who could change what we rely on: make sure of what is in it, then give it to user {wanted} (chown), or name another folder"
    )]
    Owner {
        owner: u32,
        /// The expected owner.
        wanted: u32,
    },
    /// Other users can write to it.
    #[error(
        "others may write to it (mode {mode:04o}), so what is there may be somebody else's doing: make sure of what is in it, then run chmod -R go-w on it"
    )]
    Writable { mode: u32 },
    /// It is a device, a pipe or a folder.
    #[error("it is not a regular file")]
    NotAFile,
    /// It has a second name elsewhere.
    #[error(
        "it has {names} names (hard links), so it may be somebody else's file: remove it if it is not yours"
    )]
    OtherNames { names: u64 },
    /// It is longer than any such file can be.
    #[error("it is {bytes} bytes long, which no such file is")]
    TooLong { bytes: u64 },
}

/// Why a folder or a file in it is not used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Other users can change a folder on the path.
    #[error(transparent)]
    Access(AccessError),
    /// Another user may have changed it.
    #[error("{} is not to be trusted: {reason}", path.display())]
    Distrusted {
        path: PathBuf,
        /// Why, and what to do.
        reason: Distrust,
    },
}

impl TrustError {
    fn io(path: &Path, source: impl Into<io::Error>) -> TrustError {
        TrustError::Io {
            path: path.to_owned(),
            source: source.into(),
        }
    }

    fn distrusted(path: &Path, reason: Distrust) -> TrustError {
        TrustError::Distrusted {
            path: path.to_owned(),
            reason,
        }
    }
}

/// A folder that only root or this user can have written to, and that no other user can write to meanwhile.
#[derive(Debug)]
pub struct TrustedFolder {
    path: PathBuf,
    folder: HeldDir,
}

impl From<AccessError> for TrustError {
    fn from(error: AccessError) -> TrustError {
        match error {
            AccessError::Io { path, source } => TrustError::Io { path, source },
            other => TrustError::Access(other),
        }
    }
}

impl TrustedFolder {
    /// Opens the folder at `path`; `None` if it, or a folder above it, does not exist.
    ///
    /// # Errors
    /// Other users can change it or a folder above it, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Option<TrustedFolder>, TrustError> {
        match fs_look(path)? {
            None => Ok(None),
            Some(()) => match HeldDir::trusted(path) {
                Err(error) if error.is_absent() => Ok(None),
                other => held(path, other?).map(Some),
            },
        }
    }

    /// [`TrustedFolder::open`], but makes missing folders, with mode 0755.
    ///
    /// # Errors
    /// As for opening; or a folder cannot be made.
    pub fn make(path: &Path) -> Result<TrustedFolder, TrustError> {
        fs_look(path)?;
        held(path, HeldDir::trusted_or_made_with(path, FOLDER_MODE)?)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file of the folder with these flags; `None` if it does not exist.
    ///
    /// # Errors
    /// It is a link or not a regular file, other users can change it, or it cannot be opened.
    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<File>, TrustError> {
        match self.open_any(name, flags)? {
            None => Ok(None),
            Some((file, stat)) => {
                let path = self.path.join(name);
                not_writable_by_others(stat.st_mode)
                    .map_err(|reason| TrustError::distrusted(&path, reason))?;
                Ok(Some(file))
            }
        }
    }

    /// Opens a file of the folder with these flags; makes it with `mode` if it does not exist.
    ///
    /// # Errors
    /// As [`TrustedFolder::open_file`]; or it cannot be made.
    pub fn open_or_make(&self, name: &str, flags: OFlags, mode: u32) -> Result<File, TrustError> {
        match self.open_file(name, flags)? {
            Some(file) => Ok(file),
            None => self.make_file(name, flags, mode),
        }
    }

    /// Makes a new file with exactly `mode`.
    ///
    /// # Errors
    /// It exists already, or cannot be made.
    pub fn make_file(&self, name: &str, flags: OFlags, mode: u32) -> Result<File, TrustError> {
        let path = self.path.join(name);
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| TrustError::io(&path, e))?;
        sys::fchmod(&file, Mode::from_raw_mode(mode)).map_err(|e| TrustError::io(&path, e))?;
        Ok(File::from(file))
    }

    /// Opens a file only to lock it; makes it if it does not exist. Sets its mode to 0600, because any user who can
    /// open a file can lock it, and so block all others.
    ///
    /// # Errors
    /// It is a link, is not a regular file, belongs to another user, or cannot be made.
    pub fn lock_file(&self, name: &str) -> Result<File, TrustError> {
        const MODE: u32 = 0o600;
        match self.open_any(name, OFlags::RDWR)? {
            // Nothing is read from it, so earlier writers do not matter.
            Some((file, _)) => {
                sys::fchmod(&file, Mode::from_raw_mode(MODE))
                    .map_err(|e| TrustError::io(&self.path.join(name), e))?;
                Ok(file)
            }
            None => self.make_file(name, OFlags::RDWR, MODE),
        }
    }

    /// Reads a whole file; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`TrustedFolder::open_file`]; or it is longer than 64 MiB.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, TrustError> {
        let path = self.path.join(name);
        let Some(file) = self.open_file(name, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(LONGEST_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| TrustError::io(&path, e))?;
        match bytes.len() as u64 {
            length if length > LONGEST_FILE => Err(TrustError::distrusted(
                &path,
                Distrust::TooLong { bytes: length },
            )),
            _ => Ok(Some(bytes)),
        }
    }

    /// Renames a file in the folder, and replaces an existing one; false if there is no such file.
    ///
    /// # Errors
    /// The rename fails.
    pub fn rename(&self, from: &str, to: &str) -> Result<bool, TrustError> {
        match sys::renameat(&self.folder, from, &self.folder, to) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(TrustError::io(&self.path.join(from), e)),
        }
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// The removal fails.
    pub fn remove(&self, name: &str) -> Result<(), TrustError> {
        match sys::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(TrustError::io(&self.path.join(name), e)),
        }
    }

    /// Names in the folder, sorted. Leaves out names that are not UTF-8, because ours are.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self) -> Result<Vec<String>, TrustError> {
        let error = |e: Errno| TrustError::io(&self.path, e);
        let mut names = Vec::new();
        for entry in sys::Dir::read_from(&self.folder).map_err(error)? {
            let entry = entry.map_err(error)?;
            names.extend(
                entry
                    .file_name()
                    .to_str()
                    .ok()
                    .filter(|n| !matches!(*n, "." | ".."))
                    .map(str::to_owned),
            );
        }
        names.put_in_order();
        Ok(names)
    }

    /// Syncs the folder's entries to disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> Result<(), TrustError> {
        Ok(self.folder.sync()?)
    }

    fn open_any(&self, name: &str, flags: OFlags) -> Result<Option<(File, Stat)>, TrustError> {
        let path = self.path.join(name);
        // Non-blocking, so that opening a pipe does not wait.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match sys::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(TrustError::distrusted(&path, Distrust::Link)),
            Err(Errno::ISDIR | Errno::NXIO) => {
                return Err(TrustError::distrusted(&path, Distrust::NotAFile));
            }
            Err(e) => return Err(TrustError::io(&path, e)),
        };
        let stat = sys::fstat(&file).map_err(|e| TrustError::io(&path, e))?;
        check_file(&path, &stat).map_err(|reason| TrustError::distrusted(&path, reason))?;
        Ok(Some((file, stat)))
    }
}

/// Checks everything but write permissions.
fn check_file(path: &Path, stat: &Stat) -> Result<(), Distrust> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Distrust::NotAFile);
    }
    owned(path, stat.st_uid)?;
    #[allow(
        clippy::unnecessary_cast,
        reason = "its width differs between architectures"
    )]
    match stat.st_nlink as u64 {
        0 | 1 => Ok(()),
        names => Err(Distrust::OtherNames { names }),
    }
}

/// Checks the folder itself before it is opened, because this check can give better reasons. The opened folder is
/// checked again. `None` if it does not exist.
fn fs_look(path: &Path) -> Result<Option<()>, TrustError> {
    let found: Metadata = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(TrustError::io(path, e)),
    };
    let sound = match found.is_symlink() {
        true => Err(Distrust::Link),
        false => owned(path, found.uid())
            .and_then(|()| not_writable_by_others(found.permissions().mode())),
    };
    sound
        .map(Some)
        .map_err(|reason| TrustError::distrusted(path, reason))
}

/// A sticky folder is allowed on the path, but not as this folder: others could put files into it.
fn held(path: &Path, folder: HeldDir) -> Result<TrustedFolder, TrustError> {
    let stat = sys::fstat(&folder).map_err(|e| TrustError::io(path, e))?;
    owned(path, stat.st_uid)
        .and_then(|()| not_writable_by_others(stat.st_mode))
        .map_err(|reason| TrustError::distrusted(path, reason))?;
    Ok(TrustedFolder {
        path: path.to_owned(),
        folder,
    })
}

fn owned(path: &Path, uid: u32) -> Result<(), Distrust> {
    let wanted = rustix::process::geteuid().as_raw();
    match uid {
        0 => Ok(()),
        owner if owner == wanted || is_hidden_roots(path, owner) => Ok(()),
        owner => Err(Distrust::Owner { owner, wanted }),
    }
}

fn not_writable_by_others(mode: u32) -> Result<(), Distrust> {
    match mode & 0o7777 {
        mode if mode & WRITABLE_BY_OTHERS != 0 => Err(Distrust::Writable { mode }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn reason<T: std::fmt::Debug>(result: Result<T, TrustError>) -> Distrust {
        match result {
            Err(TrustError::Distrusted { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_made_has_its_mode_and_can_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        assert!(TrustedFolder::open(&path).unwrap().is_none());
        let folder = TrustedFolder::make(&path).unwrap();
        folder
            .open_or_make("one", OFlags::WRONLY, 0o644)
            .unwrap()
            .write_all(b"x")
            .unwrap();
        drop(folder.lock_file("lock").unwrap());
        assert_eq!([path.parent().unwrap(), &path].map(mode), [0o755; 2]);
        assert_eq!(
            ["one", "lock"].map(|name| mode(&path.join(name))),
            [0o644, 0o600]
        );
        assert_eq!(folder.names().unwrap(), ["lock", "one"]);
        assert_eq!(folder.read("one").unwrap().unwrap(), b"x");
        assert!(folder.read("two").unwrap().is_none());
        assert!(folder.rename("one", "two").unwrap() && !folder.rename("one", "two").unwrap());
        folder.remove("two").unwrap();
        folder.remove("two").unwrap();
        assert_eq!(folder.names().unwrap(), ["lock"]);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused_anywhere_on_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("above/state");
        TrustedFolder::make(&path).unwrap();
        for (at, bits, fine) in [
            (path.clone(), 0o777, false),
            (path.clone(), 0o775, false),
            // The sticky bit prevents replacing entries, not adding them.
            (path.clone(), 0o1777, false),
            (dir.path().join("above"), 0o777, false),
            (dir.path().join("above"), 0o1777, true),
            (dir.path().join("above"), 0o711, true),
        ] {
            let before = mode(&at);
            set_mode(&at, bits);
            match TrustedFolder::open(&path) {
                Ok(Some(_)) => assert!(fine, "{} {bits:o}", at.display()),
                Err(TrustError::Access(AccessError::Changeable { component, .. })) => {
                    assert_eq!((component, fine), (at.clone(), false));
                    assert_ne!(at, path);
                }
                other => {
                    assert_eq!(
                        (reason(other), fine),
                        (Distrust::Writable { mode: bits }, false)
                    );
                }
            }
            set_mode(&at, before);
        }
    }

    #[test]
    fn links_are_followed_on_the_way_only_and_files_never_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real/state");
        let folder = TrustedFolder::make(&real).unwrap();
        symlink("real", dir.path().join("way")).unwrap();
        assert!(
            TrustedFolder::open(&dir.path().join("way/state"))
                .unwrap()
                .is_some()
        );
        assert!(
            TrustedFolder::open(&dir.path().join("way/../real/./state"))
                .unwrap()
                .is_some()
        );
        symlink(&real, dir.path().join("end")).unwrap();
        assert_eq!(
            reason(TrustedFolder::open(&dir.path().join("end"))),
            Distrust::Link
        );
        assert_eq!(
            reason(TrustedFolder::make(&dir.path().join("end"))),
            Distrust::Link
        );
        symlink("round", dir.path().join("round")).unwrap();
        assert!(TrustedFolder::open(&dir.path().join("round/state")).is_err());

        let victim = dir.path().join("victim");
        fs::write(&victim, "theirs").unwrap();
        symlink(&victim, real.join("lock")).unwrap();
        assert_eq!(reason(folder.lock_file("lock")), Distrust::Link);
        assert_eq!(reason(folder.read("lock")), Distrust::Link);
        symlink(dir.path().join("not-there"), real.join("dangling")).unwrap();
        assert_eq!(
            reason(folder.open_or_make("dangling", OFlags::WRONLY, 0o644)),
            Distrust::Link
        );
        fs::hard_link(&victim, real.join("hard")).unwrap();
        assert_eq!(
            reason(folder.open_or_make("hard", OFlags::WRONLY, 0o644)),
            Distrust::OtherNames { names: 2 }
        );
        fs::create_dir(real.join("folder")).unwrap();
        assert_eq!(reason(folder.read("folder")), Distrust::NotAFile);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            real.join("pipe"),
            FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        assert_eq!(reason(folder.read("pipe")), Distrust::NotAFile);
        assert_eq!(reason(folder.lock_file("pipe")), Distrust::NotAFile);
        fs::write(real.join("loose"), "").unwrap();
        set_mode(&real.join("loose"), 0o666);
        assert_eq!(
            reason(folder.read("loose")),
            Distrust::Writable { mode: 0o666 }
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    }

    #[test]
    fn another_users_folder_and_file_are_refused() {
        if !rustix::process::geteuid().is_root() {
            jitterscope_testing::skip("giving a file away needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let folder = TrustedFolder::make(&path).unwrap();
        fs::write(path.join("file"), "").unwrap();
        chown(path.join("file"), Some(65_534), None).unwrap();
        let theirs = Distrust::Owner {
            owner: 65_534,
            wanted: 0,
        };
        assert_eq!(reason(folder.read("file")), theirs);
        assert_eq!(reason(folder.lock_file("file")), theirs);
        chown(&path, Some(65_534), None).unwrap();
        assert_eq!(reason(TrustedFolder::make(&path)), theirs);
        let below = TrustedFolder::make(&path.join("deeper"));
        assert!(
            matches!(
                below,
                Err(TrustError::Access(AccessError::Changeable { .. }))
            ),
            "{below:?}"
        );
        assert!(!path.join("deeper").exists());
    }
}
