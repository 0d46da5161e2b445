//! Conditions on whose threads took the time: `culprit(unit:cron.service)>1%`.

use super::Quantity;
use super::doubts::{doubts, proven};
use super::pattern::matches;
use super::quantities::{Answer, Measured, whole_time};
use super::reason::{GateNote, GateReason};
use crate::RunSummary;
use jitterscope_model::{GroupPath, Nanos, Subject, Task};

/// The number of seen owners that a note lists.
const REPORTED: usize = 3;

/// The fact that a pattern is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Unit,
    Container,
    Pod,
    Cgroup,
    User,
}

const FIELDS: [(&str, Field); 5] = [
    ("unit:", Field::Unit),
    ("container:", Field::Container),
    ("pod:", Field::Pod),
    ("cgroup:", Field::Cgroup),
    ("user:", Field::User),
];

/// A pattern for owners of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnerPattern<'p> {
    field: Field,
    pattern: &'p str,
}

impl<'p> OwnerPattern<'p> {
    /// `None` for a pattern of names.
    pub(super) fn of(pattern: &'p str) -> Option<OwnerPattern<'p>> {
        FIELDS.into_iter().find_map(|(prefix, field)| {
            let pattern = pattern.strip_prefix(prefix)?;
            Some(OwnerPattern { field, pattern })
        })
    }

    /// Whether it matches; `None` if the fact is unknown. A container is also matched by the beginning of its id.
    fn matches(self, cgroup: Option<&str>, uid: Option<u32>) -> Option<bool> {
        let is = |fact: Option<&str>| fact.is_some_and(|fact| matches(self.pattern, fact));
        if self.field == Field::User {
            return uid.map(|uid| is(Some(&uid.to_string())));
        }
        let path = cgroup?;
        let group = GroupPath(path);
        Some(match self.field {
            Field::Unit => is(group.unit()),
            Field::Container => group.container().is_some_and(|id| {
                is(Some(id)) || self.pattern.len() >= 12 && id.starts_with(self.pattern)
            }),
            Field::Pod => is(group.pod().as_deref()),
            _ => is(Some(path)),
        })
    }

    fn matches_task(self, task: &Task) -> Option<bool> {
        if task.kernel == Some(true) {
            return Some(false);
        }
        let uid = task.owner.as_ref().and_then(|owner| owner.uid);
        self.matches(task.group().map(|group| group.0), uid)
    }

    /// Whether a culprit is known to be a thread of this owner.
    pub(super) fn is_meant(self, subject: &Subject) -> bool {
        matches!(subject, Subject::Thread(task) if self.matches_task(task) == Some(true))
    }

    /// The time of matching threads, and that of threads whose owner is unknown.
    fn times(self, run: &RunSummary) -> (Nanos, Nanos) {
        let (mut taken, mut unknown) = (Nanos::ZERO, Nanos::ZERO);
        let mut add = |is: Option<bool>, time: Nanos| match is {
            Some(true) => taken += time,
            Some(false) => {}
            None => unknown += time,
        };
        let accounts = run.threads.iter().flat_map(|thread| &thread.ran_instead);
        let watched = run.passive.iter().flat_map(|cpu| &cpu.ran_instead);
        for row in accounts.chain(watched) {
            if let Subject::Thread(task) = &row.subject {
                add(self.matches_task(task), row.total_ns);
            }
        }
        if run.threads.is_empty() && run.passive.is_empty() {
            for row in run.attribution.iter().flat_map(|of| &of.owners) {
                add(self.matches(row.cgroup.as_deref(), row.uid), row.total_ns);
            }
        }
        (taken, unknown)
    }

    /// The owners that were seen, if this is none of them.
    pub(super) fn note(self, run: &RunSummary) -> Option<GateNote> {
        if self.times(run).0 > Nanos::ZERO {
            return None;
        }
        let owners = run.attribution.iter().flat_map(|of| &of.owners);
        let groups = owners.filter_map(|row| row.cgroup.as_deref());
        let seen: Vec<String> = groups
            .filter(|path| *path != "/")
            .map(|path| GroupPath(path).to_string())
            .take(REPORTED)
            .collect();
        Some(match seen.is_empty() {
            true => GateNote::Nobody,
            false => GateNote::Others(seen),
        })
    }

    /// The share of the measured time that its threads took.
    pub(super) fn measure(self, quantity: &Quantity, run: &RunSummary) -> Answer {
        proven(run)?;
        let all = whole_time(run);
        if all == Nanos::ZERO {
            return Err(GateReason::NothingMeasured);
        }
        let (taken, unknown) = self.times(run);
        let share = |time: Nanos| time.0 as f64 / all.0 as f64;
        let unseen = doubts(quantity, run);
        let at_most = match unseen {
            Some(_) => f64::INFINITY,
            None => share(taken + unknown),
        };
        let unknown = (unknown > Nanos::ZERO).then(|| GateReason::OwnerUnknown(share(unknown)));
        Ok(Measured {
            value: share(taken),
            doubt: unseen.or(unknown),
            at_least: share(taken),
            at_most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Owner;

    fn thread(cgroup: Option<&str>, uid: u32, kernel: bool) -> Subject {
        Subject::Thread(Task {
            comm: "x".into(),
            owner: Some(Owner {
                cgroup: cgroup.map(Into::into),
                ..Owner::user(uid)
            }),
            kernel: Some(kernel),
            ..Task::default()
        })
    }

    #[test]
    fn owners_are_matched_by_unit_container_pod_group_and_user() {
        let id = "0123456789abcdef".repeat(4);
        let uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
        let service = thread(Some("/system.slice/cron.service"), 7, false);
        let pod = thread(Some(&format!("/kubepods/pod{uid}/{id}")), 7, false);
        for (pattern, subject, is) in [
            ("unit:cron.service", &service, true),
            ("unit:cron*", &service, true),
            ("unit:cron", &service, false),
            ("unit:*", &pod, false),
            ("cgroup:/system.slice/*", &service, true),
            ("user:7", &service, true),
            ("user:8", &service, false),
            (&format!("container:{}", &id[..12]), &pod, true),
            ("container:0123", &pod, false),
            (&format!("pod:{uid}"), &pod, true),
            ("unit:*", &thread(None, 7, false), false),
            ("cgroup:/*", &thread(Some("/"), 0, true), false),
            ("cgroup:*", &Subject::Ipi("x".into()), false),
        ] {
            let owner = OwnerPattern::of(pattern).unwrap();
            assert_eq!(owner.is_meant(subject), is, "{pattern} {subject:?}");
        }
        assert_eq!(OwnerPattern::of("kworker"), None);
    }
}
