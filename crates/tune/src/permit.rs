//! Which changes a knob permits. A journal is only text, so before one of its steps is undone, and before a step is
//! made, it must be a change that the knob's own declaration makes.

use crate::catalogue;
use crate::forbidden::{Forbidden, ValueFlaw};
use crate::glob;
use crate::knob::{Mechanism, Place, Setting, ThreadFamily};
use crate::op::Op;
use crate::partition;
use crate::persist::{self, PERSIST};
use crate::settings::sibling;
use crate::threads;
use crate::value::ValueKind;
use jitterscope_platform::Machine;
use std::io;
use std::path::Path;

/// A control file accepts and returns at most a page.
const LONGEST_VALUE: usize = 4096;
/// Maximum size of a drop-in.
const LONGEST_FILE: usize = 1 << 20;

/// Whether this knob makes such a change on this machine.
///
/// # Errors
/// It does not, and why.
pub fn check(machine: &Machine, knob: &str, op: &Op) -> Result<(), Forbidden> {
    let root = declared(machine, knob, op)?;
    values(op)?;
    match (op, root) {
        (Op::Write { path, .. } | Op::MakeDir { path, .. }, Some(root)) => {
            stays(machine, path, &root, true)
        }
        // Writing would replace a link with the file, and the link would be lost.
        (Op::PutFile { path, .. }, Some(root)) => stays(machine, path, &root, false),
        _ => Ok(()),
    }
}

/// Checks that the knob's declaration makes such a change. Returns the root that its path must lie under, if it has
/// one.
fn declared(machine: &Machine, knob: &str, op: &Op) -> Result<Option<String>, Forbidden> {
    let not_its_change = || Forbidden::NotItsChange {
        knob: knob.to_owned(),
    };
    if knob == PERSIST {
        return if persist::may_make(op) {
            Ok(Some("/etc".into()))
        } else {
            Err(not_its_change())
        };
    }
    let Some(found) = catalogue::find(knob) else {
        return Err(Forbidden::UnknownKnob {
            knob: knob.to_owned(),
        });
    };
    match (&found.mechanism, op) {
        (
            Mechanism::Files(settings),
            Op::Write {
                path,
                kind,
                effective,
                ..
            },
        ) if settings
            .iter()
            .any(|s| writes(s, path, *kind, effective.as_deref())) =>
        {
            // `/proc` or `/sys`: every declaration begins with one of them.
            let top = path.split('/').nth(1).unwrap_or_default();
            Ok(Some(format!("/{top}")))
        }
        (
            Mechanism::Threads(family),
            Op::Thread {
                pid,
                tid,
                start_time,
                ..
            },
        ) if *pid > 0 && *tid > 0 && is_of(machine, *family, (*pid, *tid, *start_time)) => Ok(None),
        (Mechanism::Partition, op) => {
            let root = partition::may_make(machine, op);
            let plain = |root: &String| match op {
                Op::Write { path, .. } | Op::MakeDir { path, .. } => {
                    path.strip_prefix(root.as_str()).is_some_and(is_plain)
                }
                _ => false,
            };
            root.filter(plain).map(Some).ok_or_else(not_its_change)
        }
        (Mechanism::Blink, Op::Blink { .. }) => Ok(None),
        _ => Err(not_its_change()),
    }
}

fn writes(setting: &Setting, path: &str, kind: ValueKind, effective: Option<&str>) -> bool {
    let (Place::Files(pattern) | Place::PerCpu(pattern, _)) = setting.place;
    glob::matches_path(pattern, path)
        && setting.kind == kind
        && setting.effective.map(|name| sibling(path, name)).as_deref() == effective
}

/// Whether the thread, if it still runs, is one that this knob moves.
fn is_of(machine: &Machine, family: ThreadFamily, (pid, tid, start_time): (i32, i32, u64)) -> bool {
    threads::read(machine, pid, tid)
        .filter(|thread| thread.start_time == start_time)
        .is_none_or(|thread| thread.kernel == (family == ThreadFamily::Kernel))
}

/// Whether the path is absolute and contains nothing that leads back up.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(|c| !matches!(c, "" | "." | "..")))
}

fn values(op: &Op) -> Result<(), Forbidden> {
    let (texts, longest) = match op {
        Op::Write { from, to, .. } => ([from.as_deref(), Some(to.as_str())], LONGEST_VALUE),
        Op::PutFile {
            from, to, access, ..
        } => {
            if access.is_some_and(|access| !access.is_plain()) {
                return Err(Forbidden::Value {
                    flaw: ValueFlaw::OwnersRights,
                });
            }
            ([from.as_deref(), Some(to.as_str())], LONGEST_FILE)
        }
        Op::Thread { from, to, .. } if from.is_empty() || to.is_empty() => {
            return Err(Forbidden::Value {
                flaw: ValueFlaw::NoCpus,
            });
        }
        _ => return Ok(()),
    };
    for text in texts.into_iter().flatten() {
        if text.len() > longest {
            return Err(Forbidden::Value {
                flaw: ValueFlaw::TooLong,
            });
        }
        if text.contains('\0') {
            return Err(Forbidden::Value {
                flaw: ValueFlaw::NulByte,
            });
        }
    }
    Ok(())
}

/// Whether `path` is still below `root` after every link in its existing part is resolved.
fn stays(
    machine: &Machine,
    path: &str,
    root: &str,
    last_may_be_link: bool,
) -> Result<(), Forbidden> {
    let lost = |e: io::Error| Forbidden::Lost {
        system: e.to_string(),
    };
    let away = |to: &Path| Forbidden::LeadsAway {
        to: to.display().to_string(),
        root: root.to_owned(),
    };
    let file = machine.path(path);
    // The existing part of the path; a dangling link exists, too.
    let mut there = Some(file.as_path());
    while let Some(part) = there {
        match std::fs::symlink_metadata(part) {
            Ok(found) if found.is_symlink() && part == file && !last_may_be_link => {
                return Err(away(&std::fs::read_link(part).map_err(lost)?));
            }
            Ok(_) => break,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                there = part.parent();
            }
            Err(e) => return Err(lost(e)),
        }
    }
    let Some(part) = there else { return Ok(()) };
    let top = machine.path(root);
    let real = std::fs::canonicalize(part).map_err(lost)?;
    // Nothing of it exists, so nothing can be written.
    let Ok(real_top) = std::fs::canonicalize(&top) else {
        return Ok(());
    };
    if real.starts_with(&real_top) {
        Ok(())
    } else {
        Err(away(&real))
    }
}
