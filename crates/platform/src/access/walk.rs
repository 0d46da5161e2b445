//! From a path to an open folder, one component at a time.

use super::error::AccessError;
use crate::user_namespace::{hidden_root, is_hidden_roots};
use rustix::fs::{
    CWD, FileType, Mode, OFlags, Stat, chmod, fstat, fstatfs, mkdirat, openat, readlinkat,
};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The kernel follows as many links in one path.
const MOST_LINKS: usize = 40;
/// `f_type` of procfs (`PROC_SUPER_MAGIC`), whose links may lead to things without a name.
const PROCFS: u64 = 0x9fa0;

/// Which folders and links a path may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Folders that only root and the effective user can change, and the links in them.
    Trusted,
    /// Any folder; links of root and of the effective user.
    OwnLinks,
}

/// Opens the folder at `path`. Makes missing folders if `make` gives a mode. Also returns the path without links.
pub(super) fn folder(
    path: &Path,
    rule: Rule,
    make: Option<Mode>,
) -> Result<(OwnedFd, PathBuf), AccessError> {
    let mut walk = Walk::begin(path, rule)?;
    walk.make = make;
    while let Some(name) = walk.pending.pop_front() {
        walk.step(&name)?;
    }
    let (fd, path) = walk.here();
    // So far it is held with O_PATH, which allows neither listing nor syncing.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(fd, ".", flags, Mode::empty()).map_err(|e| AccessError::io(path, e))?;
    Ok((fd, path.to_path_buf()))
}

struct Walk {
    rule: Rule,
    make: Option<Mode>,
    links: usize,
    /// The folders from `/` to the current one.
    stack: Vec<(OwnedFd, PathBuf)>,
    pending: VecDeque<OsString>,
}

impl Walk {
    fn begin(path: &Path, rule: Rule) -> Result<Walk, AccessError> {
        let absolute = std::path::absolute(path).map_err(|e| AccessError::io(path, e))?;
        let root = PathBuf::from("/");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, &root, flags, Mode::empty()).map_err(|e| AccessError::io(&root, e))?;
        let mut walk = Walk {
            rule,
            make: None,
            links: 0,
            stack: Vec::new(),
            pending: components(&absolute),
        };
        walk.enter(fd, root)?;
        Ok(walk)
    }

    fn here(&self) -> (&OwnedFd, &Path) {
        // `begin` pushes the root, and `step` never pops it.
        let (fd, path) = &self.stack[self.stack.len() - 1];
        (fd, path)
    }

    fn enter(&mut self, fd: OwnedFd, path: PathBuf) -> Result<(), AccessError> {
        if self.rule == Rule::Trusted {
            let stat = fstat(&fd).map_err(|e| AccessError::io(&path, e))?;
            if let Some(why) = changeable_by_others(&path, &stat) {
                return Err(AccessError::Changeable {
                    component: path,
                    why,
                });
            }
        }
        self.stack.push((fd, path));
        Ok(())
    }

    fn step(&mut self, name: &OsStr) -> Result<(), AccessError> {
        if name == ".." {
            self.stack.truncate((self.stack.len() - 1).max(1));
            return Ok(());
        }
        let (here, at) = self.here();
        let path = at.join(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(here, name, flags, Mode::empty());
        let fd = match open() {
            Err(Errno::NOENT) => match self.make.map(|mode| (mode, mkdirat(here, name, mode))) {
                None => Err(Errno::NOENT),
                // The tool's own folders get exactly this mode; outputs follow the umask.
                Some((mode, Ok(()))) if self.rule == Rule::Trusted => open().and_then(|made| {
                    // A descriptor with O_PATH has no `fchmod`; this name of it works.
                    chmod(format!("/proc/self/fd/{}", made.as_raw_fd()), mode)?;
                    Ok(made)
                }),
                Some((_, Ok(()) | Err(Errno::EXIST))) => open(),
                Some((_, Err(error))) => Err(error),
            },
            other => other,
        };
        let fd = fd.map_err(|e| AccessError::io(&path, e))?;
        let stat = fstat(&fd).map_err(|e| AccessError::io(&path, e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.enter(fd, path),
            FileType::Symlink => self.follow(name, &fd, &stat, path),
            _ => Err(AccessError::io(&path, Errno::NOTDIR)),
        }
    }

    fn follow(
        &mut self,
        name: &OsStr,
        fd: &OwnedFd,
        stat: &Stat,
        path: PathBuf,
    ) -> Result<(), AccessError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(AccessError::io(&path, Errno::LOOP));
        }
        // A link there is root's, like the folder that it lies in.
        let roots = self.here().1 == Path::new("/") && is_hidden_roots(Path::new("/"), stat.st_uid);
        if !is_ours(stat.st_uid) && !roots {
            return Err(AccessError::Foreign {
                path,
                what: "a symbolic link",
                owner: stat.st_uid,
            });
        }
        if is_procfs(fd) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let target = openat(self.here().0, name, flags, Mode::empty());
            let target = target.map_err(|e| AccessError::io(&path, e))?;
            return self.enter(target, path);
        }
        let target = readlinkat(fd, "", Vec::new()).map_err(|e| AccessError::io(&path, e))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            self.stack.truncate(1);
        }
        for name in components(&target).into_iter().rev() {
            self.pending.push_front(name);
        }
        Ok(())
    }
}

fn components(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Whether a file in it belongs to procfs, where a link may lead to something without a name, such as a pipe.
pub(super) fn is_procfs(fd: &OwnedFd) -> bool {
    fstatfs(fd).is_ok_and(|found| found.f_type as u64 == PROCFS)
}

/// Root counts as us, because it can change everything anyway.
pub(super) fn is_ours(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

/// Which other user can rename or replace the folder's entries; `None` if no other user can.
///
/// In a sticky folder only the owner of the file and the owner of the folder can. Distributions with umask 002 give
/// every user a group of the same number that has no other member; root's group is no such group.
pub(super) fn changeable_by_others(path: &Path, folder: &Stat) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let hidden = hidden_root();
    if !is_ours(folder.st_uid) && !is_hidden_roots(path, folder.st_uid) {
        return Some(match Some(folder.st_uid) == hidden {
            true => "belongs to a user that this user namespace does not map".into(),
            false => format!("belongs to user {}", folder.st_uid),
        });
    }
    if folder.st_mode & 0o1000 != 0 {
        return None;
    }
    if folder.st_mode & 0o002 != 0 {
        return Some("can be written to by every user".into());
    }
    // The root of a user namespace is an ordinary user outside.
    let is_root = user == 0 && hidden.is_none();
    let own_group = !is_root && folder.st_uid == user && folder.st_gid == user;
    (folder.st_mode & 0o020 != 0 && !own_group)
        .then(|| format!("can be written to by the users of group {}", folder.st_gid))
}

/// Checks that a name is a single path component, so that it leads nowhere else.
pub(super) fn plain_name(name: &OsStr, folder: &Path) -> Result<(), AccessError> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(AccessError::io(&folder.join(name), Errno::INVAL));
    }
    Ok(())
}
