//! One change of the machine: what it is, how it is made, how it stands, how it is undone.

use crate::access::Access;
use crate::forbidden::Forbidden;
use crate::gone::GoneBecause;
use crate::machine_writer::{MachineWriter, unfinished};
use crate::refusal::{Meaning, Refusal};
use crate::threads;
use crate::value::ValueKind;
use jitterscope_model::{AnyVersion, CpuId, CpuSet};
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// How often a control file is read again if it does not contain what was written to it.
const READINGS: u32 = 20;
const BETWEEN_READINGS: Duration = Duration::from_millis(1);

/// One change. It contains the original, so that the journal alone suffices to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Op {
    /// A write to a control file.
    Write {
        path: String,
        /// The format of its value.
        kind: ValueKind,
        /// The exact original contents; `None` until an earlier step has created the file.
        from: Option<String>,
        to: String,
        /// The file that shows what is in force, if that may come later.
        effective: Option<String>,
    },
    /// Creates a folder; undoing removes it.
    MakeDir {
        path: String,
        /// Whether it is a cgroup, whose members return to its parent before it is removed.
        cgroup: bool,
    },
    Thread {
        pid: i32,
        tid: i32,
        /// Start time, clock ticks since boot.
        start_time: u64,
        comm: String,
        from: CpuSet,
        to: CpuSet,
    },
    /// Takes a CPU offline and online again.
    Blink { cpu: CpuId },
    /// Installs a complete file: a drop-in.
    PutFile {
        path: String,
        /// The original contents; `None` if the file was missing.
        from: Option<String>,
        to: String,
        /// The original mode and owner; `None` if the file was missing.
        #[serde(default)]
        access: Option<Access>,
    },
}

/// The current state of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As before the change (or it was never made).
    Original,
    /// As the change made it.
    Ours,
    /// Neither: another process has changed it to this.
    Foreign(String),
    /// The target is gone, and why.
    Gone(GoneBecause),
}

/// The result of making a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It is in force.
    Applied { reads: String },
    /// Accepted, but in force only later (an interrupt moves when it next fires).
    Pending {
        /// The value still in force.
        effective: String,
    },
    /// The kernel reported no error but did something else.
    Ignored { reads: String },
    Refused {
        class: Refusal,
        /// The error of the system.
        #[serde(rename = "system")]
        why: String,
        /// The meaning of the error here; `None` if `why` says everything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        means: Option<Meaning>,
    },
    /// The target was gone before it could be changed.
    Gone { cause: AnyVersion<GoneBecause> },
    /// It is not a change of this knob, so it was not attempted.
    Forbidden { cause: AnyVersion<Forbidden> },
}

impl Outcome {
    /// Whether the machine is (or will be) as requested.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(
            self,
            Outcome::Applied { .. } | Outcome::Pending { .. } | Outcome::Gone { .. }
        )
    }

    /// Whether the kernel places the interrupt itself, which only the attempt shows: no failure.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        matches!(
            self,
            Outcome::Refused {
                class: Refusal::Managed,
                ..
            }
        )
    }
}

/// The meaning of the system's error for this change.
#[must_use]
pub fn classify(op: &Op, error: &io::Error) -> (Refusal, Meaning) {
    let errno = error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error);
    let interrupt = matches!(op, Op::Write { path, .. } if path.starts_with("/proc/irq/") && path.ends_with("_list"));
    let thread = matches!(op, Op::Thread { .. });
    use rustix::io::Errno;
    match errno {
        // For an interrupt that they place themselves, kernels return EIO, newer ones EPERM.
        Some(Errno::IO | Errno::PERM) if interrupt => (Refusal::Managed, Meaning::KernelPlaces),
        Some(Errno::INVAL) if thread => (Refusal::Invalid, Meaning::BoundThread),
        Some(Errno::BUSY) if thread => (Refusal::Busy, Meaning::DeadlineThread),
        Some(Errno::INVAL) => (Refusal::Invalid, Meaning::ValueNotTaken),
        Some(Errno::BUSY) => (Refusal::Busy, Meaning::InUse),
        Some(Errno::PERM | Errno::ACCESS) => (Refusal::NotPermitted, Meaning::NeedsRoot),
        Some(Errno::ROFS) => (Refusal::ReadOnly, Meaning::ReadOnly),
        _ => (Refusal::Other, Meaning::SystemTells),
    }
}

/// The exact contents and access of a file that is installed as a whole; `Ok(None)` if it is missing.
pub(crate) fn exact_file(machine: &Machine, path: &str) -> io::Result<Option<(String, Access)>> {
    let Some(text) = exact(machine, path)? else {
        return Ok(None);
    };
    Ok(Some((
        text,
        Access::of(&std::fs::metadata(machine.path(path))?),
    )))
}

/// The exact contents of a file; `Ok(None)` if it is missing.
pub(crate) fn exact(machine: &Machine, path: &str) -> io::Result<Option<String>> {
    match std::fs::read(machine.path(path)) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "it is not text, so it could not be put back exactly",
            )
        }),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// Changes that occur in large numbers: one per thread or per interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFamily {
    Threads,
    Interrupts,
}

impl Op {
    /// What is changed, for display.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Op::Write { path, .. } | Op::MakeDir { path, .. } | Op::PutFile { path, .. } => {
                path.clone()
            }
            Op::Thread { tid, comm, .. } => format!("thread {tid} ({comm})"),
            Op::Blink { cpu } => format!("/sys/devices/system/cpu/cpu{cpu}/online"),
        }
    }

    /// Its family, if it is one of many similar changes.
    #[must_use]
    pub fn family(&self) -> Option<OpFamily> {
        match self {
            Op::Thread { .. } => Some(OpFamily::Threads),
            Op::Write { path, .. } if path.starts_with("/proc/irq/") && path.ends_with("_list") => {
                Some(OpFamily::Interrupts)
            }
            _ => None,
        }
    }

    /// The original, for display.
    #[must_use]
    pub fn from_text(&self) -> String {
        match self {
            Op::Write {
                kind,
                from: Some(from),
                ..
            } => kind.shown(from),
            Op::Write { from: None, .. } => "(made in this step)".into(),
            Op::MakeDir { .. } | Op::PutFile { from: None, .. } => "(none)".into(),
            Op::Thread { from, .. } => from.to_string(),
            Op::Blink { .. } => "online".into(),
            Op::PutFile {
                from: Some(from), ..
            } => format!("{} lines", from.lines().count()),
        }
    }

    /// The new value, for display.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Op::Write { kind, to, .. } => kind.shown(to),
            Op::MakeDir { cgroup: true, .. } => "new cgroup".into(),
            Op::MakeDir { .. } => "new folder".into(),
            Op::Thread { to, .. } => to.to_string(),
            Op::Blink { .. } => "offline, then online".into(),
            Op::PutFile { to, .. } => format!("{} lines", to.lines().count()),
        }
    }

    /// The same change with a freshly read original.
    ///
    /// # Errors
    /// It cannot be read, so it could not be restored.
    pub fn captured(&self, machine: &Machine) -> io::Result<Op> {
        let mut op = self.clone();
        match &mut op {
            Op::Write { path, from, .. } => {
                *from = Some(
                    exact(machine, path)?
                        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?,
                );
            }
            Op::PutFile {
                path, from, access, ..
            } => {
                (*from, *access) = exact_file(machine, path)?.unzip();
            }
            Op::Thread {
                pid,
                tid,
                start_time,
                from,
                ..
            } => {
                let now =
                    threads::read(machine, *pid, *tid).filter(|t| t.start_time == *start_time);
                *from = now
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?
                    .allowed;
            }
            Op::MakeDir { .. } | Op::Blink { .. } => {}
        }
        Ok(op)
    }

    /// Whether the original is the wanted value.
    #[must_use]
    pub fn is_already(&self) -> bool {
        match self {
            Op::Write {
                kind,
                from: Some(from),
                to,
                ..
            } => kind.holds(from, to),
            Op::Thread { from, to, .. } => from == to,
            Op::PutFile {
                from: Some(from),
                to,
                ..
            } => from == to,
            _ => false,
        }
    }

    /// Makes the change and reads back what is in force.
    pub fn perform(&self, hands: &mut dyn MachineWriter) -> Outcome {
        match self.attempt(hands) {
            Ok(()) => self.verified(hands.machine()),
            Err(e) if self.is_gone(&e) => Outcome::Gone {
                cause: GoneBecause::EndedUnmoved.into(),
            },
            Err(e) => self.refused(&e),
        }
    }

    /// The result when the system refuses it with this error.
    pub(crate) fn refused(&self, error: &io::Error) -> Outcome {
        let (class, meaning) = classify(self, error);
        Outcome::Refused {
            class,
            why: error.to_string(),
            means: Some(meaning),
        }
    }

    fn is_gone(&self, error: &io::Error) -> bool {
        matches!(self, Op::Thread { .. })
            && (error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()))
    }

    fn attempt(&self, hands: &mut dyn MachineWriter) -> io::Result<()> {
        match self {
            Op::Write { path, to, .. } => hands.write(path, to),
            Op::MakeDir { path, .. } => hands.make_dir(path),
            Op::Thread { pid, tid, to, .. } => hands.set_affinity(*pid, *tid, to),
            Op::Blink { cpu } => {
                let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
                hands.write(&path, "0\n")?;
                hands.write(&path, "1\n")
            }
            Op::PutFile {
                path, to, access, ..
            } => hands.put_file(path, to, *access),
        }
    }

    fn verified(&self, machine: &Machine) -> Outcome {
        let standing = self.settled(machine, &Standing::Ours);
        if let Op::Write {
            kind,
            effective: Some(effective),
            to,
            ..
        } = self
            && standing == Standing::Ours
            && let Ok(in_force) = machine.read_trimmed(effective)
            && let (Some(now), Some(asked)) = (kind.cpus(&in_force), kind.cpus(to))
            && !now.difference(&asked).is_empty()
        {
            return Outcome::Pending {
                effective: in_force,
            };
        }
        match standing {
            Standing::Ours => Outcome::Applied {
                reads: self.to_text(),
            },
            // A successful blink leaves everything as it was.
            Standing::Original if matches!(self, Op::Blink { .. }) => Outcome::Applied {
                reads: "online".into(),
            },
            Standing::Original => Outcome::Ignored {
                reads: self.from_text(),
            },
            Standing::Foreign(reads) => Outcome::Ignored { reads },
            Standing::Gone(why) => Outcome::Gone { cause: why.into() },
        }
    }

    /// The state once the last write has taken effect. While the kernel moves an interrupt, at its next occurrence, the
    /// file briefly shows the old CPUs again.
    pub(crate) fn settled(&self, machine: &Machine, wanted: &Standing) -> Standing {
        let mut standing = self.standing(machine);
        if matches!(self, Op::Write { .. }) && machine.is_host() {
            for _ in 0..READINGS {
                if standing == *wanted || matches!(standing, Standing::Gone(_)) {
                    break;
                }
                std::thread::sleep(BETWEEN_READINGS);
                standing = self.standing(machine);
            }
        }
        standing
    }

    #[must_use]
    pub fn standing(&self, machine: &Machine) -> Standing {
        match self {
            // Without an original it was never attempted: the original is journaled first.
            Op::Write { from: None, .. } => Standing::Original,
            Op::Write {
                path,
                kind,
                from: Some(from),
                to,
                ..
            } => match exact(machine, path) {
                Ok(Some(now)) if kind.holds(&now, from) => Standing::Original,
                Ok(Some(now)) if kind.holds(&now, to) => Standing::Ours,
                Ok(Some(now)) => Standing::Foreign(kind.shown(&now)),
                Ok(None) => Standing::Gone(GoneBecause::NoFile { path: path.clone() }),
                Err(e) => Standing::Gone(GoneBecause::Unreadable {
                    path: path.clone(),
                    system: e.to_string(),
                }),
            },
            Op::MakeDir { path, .. } => {
                if machine.exists(path) {
                    Standing::Ours
                } else {
                    Standing::Original
                }
            }
            Op::Thread {
                pid,
                tid,
                start_time,
                from,
                to,
                ..
            } => match threads::read(machine, *pid, *tid) {
                Some(now) if now.start_time != *start_time => {
                    Standing::Gone(GoneBecause::ThreadEnded)
                }
                Some(now) if now.allowed == *from => Standing::Original,
                Some(now) if now.allowed == *to => Standing::Ours,
                Some(now) => Standing::Foreign(now.allowed.to_string()),
                None => Standing::Gone(GoneBecause::ThreadEnded),
            },
            Op::Blink { cpu } => {
                match machine.read_trimmed(format!("/sys/devices/system/cpu/cpu{cpu}/online")) {
                    Ok(text) if text == "0" => Standing::Ours,
                    _ => Standing::Original,
                }
            }
            Op::PutFile {
                path,
                from,
                to,
                access,
            } => {
                let half = machine.exists(unfinished(path));
                let (now, now_access) = match exact_file(machine, path) {
                    Ok(now) => now.unzip(),
                    Err(e) => return Standing::Foreign(format!("(unreadable: {e})")),
                };
                match now {
                    now if now == *from && !half => match (access, now_access) {
                        (Some(before), Some(now)) if now != *before => {
                            Standing::Foreign(format!("({})", now.shown()))
                        }
                        _ => Standing::Original,
                    },
                    now if now == *from || now.as_ref() == Some(to) => Standing::Ours,
                    None => Standing::Foreign("(removed)".into()),
                    Some(_) => Standing::Foreign("(edited)".into()),
                }
            }
        }
    }

    /// Restores the original.
    ///
    /// # Errors
    /// The system's error, or the restored value does not read back.
    pub fn undo(&self, hands: &mut dyn MachineWriter) -> io::Result<()> {
        match self {
            Op::Write {
                path,
                kind,
                from: Some(from),
                to,
                ..
            } => hands.write(path, &kind.restoring(from, to))?,
            Op::Write { from: None, .. } => return Ok(()),
            Op::MakeDir { path, cgroup } => {
                if *cgroup {
                    send_members_up(hands, path)?;
                }
                hands.remove_dir(path)?;
            }
            Op::Thread { pid, tid, from, .. } => hands.set_affinity(*pid, *tid, from)?,
            Op::Blink { cpu } => {
                hands.write(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), "1\n")?
            }
            Op::PutFile {
                path, from, access, ..
            } => {
                let half = unfinished(path);
                if hands.machine().exists(&half) {
                    hands.remove_file(&half)?;
                }
                match from {
                    // If no access was recorded, the file keeps its current one.
                    Some(from) => {
                        let now = exact_file(hands.machine(), path)?.map(|(_, now)| now);
                        hands.put_file(path, from, access.or(now))?;
                    }
                    None if hands.machine().exists(path) => hands.remove_file(path)?,
                    None => {}
                }
            }
        }
        match self.settled(hands.machine(), &Standing::Original) {
            Standing::Original | Standing::Gone(_) => Ok(()),
            Standing::Ours => Err(io::Error::other(
                "the machine took it silently and changed nothing",
            )),
            Standing::Foreign(now) => Err(io::Error::other(format!(
                "it was put back, but now reads {now}"
            ))),
        }
    }
}

/// Moves the members of a cgroup to its parent, so that it can be removed.
fn send_members_up(hands: &mut dyn MachineWriter, path: &str) -> io::Result<()> {
    let Some((parent, _)) = path.rsplit_once('/') else {
        return Ok(());
    };
    let partition = format!("{path}/cpuset.cpus.partition");
    if hands.machine().exists(&partition) {
        // Its CPUs become available to all again, even if it cannot be removed.
        hands.write(&partition, "member")?;
    }
    for file in ["tasks", "cgroup.procs"] {
        let from = format!("{path}/{file}");
        let Ok(members) = hands.machine().read(&from) else {
            continue;
        };
        for member in members.split_whitespace() {
            match hands.write(&format!("{parent}/{file}"), member) {
                // The thread ended meanwhile.
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                other => other?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "op_tests.rs"]
mod tests;
