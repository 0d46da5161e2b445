//! Control files: what they read, what is wanted, what to write.

use crate::glob;
use crate::goal::Goal;
use crate::knob::{Place, Scope, Setting, Spot, Want};
use crate::op::Op;
use crate::value::ValueKind;
use jitterscope_model::CpuSet;
use jitterscope_platform::{FileError, Machine};

/// One control file, looked at.
#[derive(Debug)]
pub struct Reading {
    /// The file.
    pub path: String,
    /// How it holds its value.
    pub kind: ValueKind,
    /// What it reads, exactly.
    pub current: Result<String, FileError>,
    /// What is in force, where another file says so.
    pub in_force: Option<String>,
    /// The change that would set it right; `None` when it is right or cannot be told.
    pub op: Option<Op>,
}

/// The files that a setting speaks of on this machine.
#[must_use]
pub fn paths(machine: &Machine, goal: &Goal, place: Place) -> Vec<String> {
    match place {
        Place::Files(pattern) => glob::files(machine, pattern),
        Place::PerCpu(pattern, scope) => {
            let cpus: Vec<_> = match scope {
                Scope::Isolated => goal.isolated.iter().collect(),
                Scope::All => {
                    let all: CpuSet = goal.isolated.iter().chain(goal.housekeeping.iter()).collect();
                    all.iter().collect()
                }
            };
            cpus.into_iter()
                .flat_map(|cpu| glob::files(machine, &pattern.replace("{cpu}", &cpu.to_string())))
                .collect()
        }
    }
}

/// Looks at every file of a setting. A file that is there but has nothing to read (a device that
/// answers ENOENT or EOPNOTSUPP) is left out; one that is not for this user is not.
#[must_use]
pub fn read(machine: &Machine, goal: &Goal, setting: &Setting) -> Vec<Reading> {
    paths(machine, goal, setting.place)
        .into_iter()
        .map(|path| read_one(machine, goal, setting, path))
        .filter(|reading| reading.current.as_ref().err().is_none_or(FileError::is_denied))
        .collect()
}

fn read_one(machine: &Machine, goal: &Goal, setting: &Setting, path: String) -> Reading {
    let effective = setting.effective.map(|name| sibling(&path, name));
    let in_force =
        effective.as_ref().and_then(|file| machine.read_trimmed(file).ok()).filter(|t| !t.is_empty());
    let current = machine.read(&path);
    let op = current.as_ref().ok().and_then(|now| {
        let to = wanted(machine, goal, setting, &path, now)?;
        Some(Op::Write {
            path: path.clone(),
            kind: setting.kind,
            from: Some(now.clone()),
            to,
            effective: effective.clone(),
        })
    });
    Reading { path, kind: setting.kind, current, in_force, op }
}

/// What to write there; `None` when it is right.
fn wanted(machine: &Machine, goal: &Goal, setting: &Setting, path: &str, now: &str) -> Option<String> {
    let kind = setting.kind;
    match setting.want {
        Want::OneOf(values) => {
            let first = values.first()?;
            (!values.iter().any(|v| kind.holds(now, v))).then(|| (*first).to_owned())
        }
        Want::AtLeast { enough, write } => {
            let n: i64 = now.trim().parse().ok()?;
            (n < enough).then(|| write.to_string())
        }
        Want::AtMost { enough, write } => {
            let n: i64 = now.trim().parse().ok()?;
            (n > enough).then(|| write.to_string())
        }
        Want::OffIsolated => {
            let cpus = kind.cpus(now)?;
            if cpus.intersection(&goal.isolated).is_empty() {
                return None;
            }
            // CPUs that are offline or do not exist stay named only if there is nothing else.
            let rest = cpus.intersection(&goal.housekeeping);
            let to = if rest.is_empty() { &goal.housekeeping } else { &rest };
            (!to.is_empty()).then(|| kind.spell_cpus(to))
        }
        Want::SameAs(file) => {
            let other = machine.read_trimmed(sibling(path, file)).ok()?;
            (!kind.holds(now, &other)).then_some(other)
        }
        Want::By(_, ask) => ask(Spot { machine, goal, path, current: now.trim() }),
    }
}

/// The file of this name in the same folder.
pub fn sibling(path: &str, name: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_owned(),
    }
}
