//! Control files: their values, the wanted values, and what to write.

use crate::glob;
use crate::goal::Goal;
use crate::knob::{Place, Scope, Setting, Spot, Want};
use crate::op::Op;
use crate::value::ValueKind;
use jitterscope_model::CpuSet;
use jitterscope_platform::{FileError, Machine};

/// The state of one control file.
#[derive(Debug)]
pub struct Reading {
    pub path: String,
    /// The format of its value.
    pub kind: ValueKind,
    pub current: Result<String, FileError>,
    /// The value in force, if another file shows it.
    pub in_force: Option<String>,
    /// The change that would correct it; `None` if it is right or unknown.
    pub op: Option<Op>,
}

/// The files of a setting on this machine.
#[must_use]
pub fn paths(machine: &Machine, goal: &Goal, place: Place) -> Vec<String> {
    match place {
        Place::Files(pattern) => glob::files(machine, pattern),
        Place::PerCpu(pattern, scope) => {
            let cpus: Vec<_> = match scope {
                Scope::Isolated => goal.isolated.iter().collect(),
                Scope::All => {
                    let all: CpuSet = goal
                        .isolated
                        .iter()
                        .chain(goal.housekeeping.iter())
                        .collect();
                    all.iter().collect()
                }
            };
            cpus.into_iter()
                .flat_map(|cpu| glob::files(machine, &pattern.replace("{cpu}", &cpu.to_string())))
                .collect()
        }
    }
}

/// Reads every file of a setting. Leaves out files that exist but cannot be read for any user (a device that returns
/// ENOENT or EOPNOTSUPP), but not files that this user may not read.
#[must_use]
pub fn read(machine: &Machine, goal: &Goal, setting: &Setting) -> Vec<Reading> {
    paths(machine, goal, setting.place)
        .into_iter()
        .map(|path| read_one(machine, goal, setting, path))
        .filter(|reading| {
            reading
                .current
                .as_ref()
                .err()
                .is_none_or(FileError::is_denied)
        })
        .collect()
}

fn read_one(machine: &Machine, goal: &Goal, setting: &Setting, path: String) -> Reading {
    let effective = setting.effective.map(|name| sibling(&path, name));
    let in_force = effective
        .as_ref()
        .and_then(|file| machine.read_trimmed(file).ok())
        .filter(|t| !t.is_empty());
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
    Reading {
        path,
        kind: setting.kind,
        current,
        in_force,
        op,
    }
}

/// What to write there; `None` if it is right.
fn wanted(
    machine: &Machine,
    goal: &Goal,
    setting: &Setting,
    path: &str,
    now: &str,
) -> Option<String> {
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
            // CPUs that are offline or do not exist stay only if nothing else is left.
            let rest = cpus.intersection(&goal.housekeeping);
            let to = if rest.is_empty() {
                &goal.housekeeping
            } else {
                &rest
            };
            (!to.is_empty()).then(|| kind.spell_cpus(to))
        }
        Want::SameAs(file) => {
            let other = machine.read_trimmed(sibling(path, file)).ok()?;
            (!kind.holds(now, &other)).then_some(other)
        }
        Want::By(_, ask) => ask(Spot {
            machine,
            goal,
            path,
            current: now.trim(),
        }),
    }
}

/// The file with this name in the same folder.
pub fn sibling(path: &str, name: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_machine::{FakeMachine, goal};

    /// What would be written to a file that reads `now`.
    fn want(kind: ValueKind, want: Want, now: &str) -> Option<String> {
        let fake = FakeMachine::of(&[("/a/file", now), ("/a/other", "7\n")]);
        let setting = Setting::file("/a/file", kind, want);
        let mut found = read(&fake.machine, &goal("2-3", "0-1"), &setting);
        assert_eq!(found.len(), 1);
        let op = found.remove(0).op?;
        let Op::Write { path, from, to, .. } = op else {
            panic!("{op:?}")
        };
        assert_eq!((path.as_str(), from.as_deref()), ("/a/file", Some(now)));
        Some(to)
    }

    #[test]
    fn a_limit_is_met_by_the_limit_itself() {
        let least = |now| {
            want(
                ValueKind::Number,
                Want::AtLeast {
                    enough: 10,
                    write: 99,
                },
                now,
            )
        };
        assert_eq!(
            [least("9\n"), least("10\n"), least("11\n"), least("x\n")],
            [Some("99".into()), None, None, None]
        );
        let most = |now| {
            want(
                ValueKind::Number,
                Want::AtMost {
                    enough: 10,
                    write: 0,
                },
                now,
            )
        };
        assert_eq!(
            [most("9\n"), most("10\n"), most("11\n"), most("x\n")],
            [None, None, Some("0".into()), None]
        );
    }

    #[test]
    fn of_several_good_values_any_will_do_and_the_first_is_written() {
        let one_of = |now| want(ValueKind::Text, Want::OneOf(&["a", "b"]), now);
        assert_eq!(
            [one_of("a\n"), one_of("b\n"), one_of("c\n")],
            [None, None, Some("a".into())]
        );
        let same = |now| want(ValueKind::Number, Want::SameAs("other"), now);
        assert_eq!([same("7\n"), same("8\n")], [None, Some("7".into())]);
        let none = |now| want(ValueKind::Number, Want::SameAs("missing"), now);
        assert_eq!(none("7\n"), None);
        let by = |now| {
            want(
                ValueKind::Text,
                Want::By("", |spot| Some(format!("{}!", spot.current))),
                now,
            )
        };
        assert_eq!(by(" x \n").as_deref(), Some("x!"));
    }

    #[test]
    fn isolated_cpus_are_taken_out_and_housekeeping_ones_stay() {
        let list = |now| want(ValueKind::CpuList, Want::OffIsolated, now);
        assert_eq!(list("0-3\n").as_deref(), Some("0-1"));
        assert_eq!(list("1,3\n").as_deref(), Some("1"));
        assert_eq!(list("2-3\n").as_deref(), Some("0-1"));
        // CPUs that do not exist stay if nothing must change, and are removed otherwise.
        assert_eq!([list("0,7\n"), list("2,7\n")], [None, Some("0-1".into())]);
        assert_eq!(list("nonsense\n"), None);
        let mask = |now| want(ValueKind::CpuMask, Want::OffIsolated, now);
        assert_eq!((mask("f\n").as_deref(), mask("3\n")), (Some("3"), None));
        // No CPU is left to take over.
        let fake = FakeMachine::of(&[("/a/file", "0-3\n")]);
        let setting = Setting::file("/a/file", ValueKind::CpuList, Want::OffIsolated);
        assert!(
            read(&fake.machine, &goal("0-3", ""), &setting)[0]
                .op
                .is_none()
        );
    }

    #[test]
    fn a_family_is_looked_at_on_the_cpus_that_it_is_for() {
        let files = ["/c/cpu0/x", "/c/cpu2/x", "/c/cpu3/x", "/c/cpu9/x"].map(|path| (path, "1\n"));
        let fake = FakeMachine::of(&files);
        let of = |scope| {
            paths(
                &fake.machine,
                &goal("2-3", "0-1"),
                Place::PerCpu("/c/cpu{cpu}/x", scope),
            )
        };
        assert_eq!(of(Scope::Isolated), ["/c/cpu2/x", "/c/cpu3/x"]);
        assert_eq!(of(Scope::All), ["/c/cpu0/x", "/c/cpu2/x", "/c/cpu3/x"]);
        let all = paths(&fake.machine, &goal("2-3", "0-1"), Place::Files("/c/*/x"));
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn what_is_in_force_is_read_beside_it_and_a_folder_is_no_setting() {
        let irq = |effective| {
            let fake = FakeMachine::of(&[("/i/5/list", "0-3\n"), ("/i/5/effective", effective)]);
            std::fs::create_dir_all(fake.machine.path("/i/6/list")).unwrap();
            let place = Place::Files("/i/*/list");
            let setting = Setting::new(place, ValueKind::CpuList, Want::OffIsolated);
            let setting = Setting {
                effective: Some("effective"),
                ..setting
            };
            let mut found = read(&fake.machine, &goal("2-3", "0-1"), &setting);
            assert_eq!(found.len(), 1, "a folder has nothing to read: {found:?}");
            found.remove(0)
        };
        let found = irq("2\n");
        assert_eq!(found.in_force.as_deref(), Some("2"));
        let Some(Op::Write { effective, .. }) = found.op else {
            panic!()
        };
        assert_eq!(effective.as_deref(), Some("/i/5/effective"));
        assert_eq!(irq("\n").in_force, None);
        assert_eq!(
            (sibling("/a/b", "c"), sibling("b", "c")),
            ("/a/c".into(), "c".into())
        );
    }
}
