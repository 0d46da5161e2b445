//! Whose threads took the time: stalled time by control group, in bounded memory.

use crate::cpu::share;
use jitterscope_model::{CulpritSums, GroupPath, KeyLevel, Name, Nanos, Part, PutInOrder, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of separate control groups.
const MOST_GROUPS: usize = 1024;
/// The number of names that a row lists.
const NAMES: usize = 3;

/// A control group's threads, and the time that they took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnerRow {
    /// The path of the group; null for threads whose group is unknown.
    pub cgroup: Option<Name>,
    /// Its unit of systemd, if it belongs to one.
    pub unit: Option<Name>,
    /// Its container's id, if it belongs to one.
    pub container: Option<Name>,
    /// Its pod's uid, if it belongs to one.
    pub pod: Option<Name>,
    /// The user id, if all its threads have the same.
    pub uid: Option<u32>,
    /// Names of its threads, at most three.
    pub threads: Vec<Name>,
    /// The number of stalls that they had part in.
    pub count: u64,
    pub total_ns: Nanos,
    /// The share of the stalled time.
    pub share: f64,
    /// The longest time that they took in one stall.
    pub max_ns: Nanos,
}

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    total: Nanos,
    max: Nanos,
    /// In the current stall.
    now: Nanos,
}

/// Sums the parts of user threads by control group.
#[derive(Debug)]
pub(crate) struct OwnerTable {
    sums: CulpritSums<(), Sum>,
    /// The rows of the current stall.
    touched: Vec<usize>,
}

impl Default for OwnerTable {
    fn default() -> OwnerTable {
        OwnerTable {
            sums: CulpritSums::new(KeyLevel::Cgroup, MOST_GROUPS),
            touched: Vec::new(),
        }
    }
}

impl OwnerTable {
    /// Adds the parts of one stall.
    pub(crate) fn add<'p>(&mut self, parts: impl IntoIterator<Item = (&'p Part, Nanos)>) {
        for (part, net) in parts {
            match &part.culprit.subject {
                Subject::Thread(task) if task.kernel != Some(true) => {}
                _ => continue,
            }
            let at = self.sums.position_of((), &part.culprit);
            let sum = self.sums.at(at);
            sum.now += net;
            if !self.touched.contains(&at) {
                self.touched.push(at);
            }
        }
        for at in self.touched.drain(..) {
            let sum = self.sums.at(at);
            let now = std::mem::take(&mut sum.now);
            sum.count += 1;
            sum.total += now;
            sum.max = sum.max.max(now);
        }
    }

    /// The rows by total.
    pub(crate) fn finish(self, stalled: Nanos) -> Vec<OwnerRow> {
        let mut rows: Vec<OwnerRow> = self
            .sums
            .into_rows()
            .into_iter()
            .map(|row| {
                let task = row.subject.task();
                let group = task.and_then(|task| task.group());
                OwnerRow {
                    cgroup: group.map(|group| group.0.into()),
                    unit: group.and_then(GroupPath::unit).map(Name::from),
                    container: group.and_then(GroupPath::container).map(Name::from),
                    pod: group
                        .and_then(GroupPath::pod)
                        .map(|pod| pod.as_ref().into()),
                    uid: task.and_then(|task| task.owner.as_ref()?.uid),
                    threads: row.thread_names().take(NAMES).cloned().collect(),
                    count: row.value.count,
                    total_ns: row.value.total,
                    share: share(row.value.total.0, stalled.0),
                    max_ns: row.value.max,
                }
            })
            .collect();
        rows.order_by(|a, b| {
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| a.cgroup.cmp(&b.cgroup))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Evidence, Owner, Task};

    fn part(comm: &str, cgroup: Option<&str>, kernel: bool, net: u64) -> Part {
        let owner = Owner {
            cgroup: cgroup.map(Name::from),
            ..Owner::user(7)
        };
        let task = Task {
            comm: comm.into(),
            owner: Some(owner),
            kernel: Some(kernel),
            ..Task::default()
        };
        Part::inside(Subject::Thread(task), Nanos(net), Evidence::SwitchRecords)
    }

    #[test]
    fn time_is_summed_by_group_and_kernel_threads_have_none() {
        let cron = Some("/system.slice/cron.service");
        let stalls = [
            vec![
                part("sh", cron, false, 5),
                part("run-parts", cron, false, 7),
                part("rcu", Some("/"), true, 9),
            ],
            vec![
                part("sh", cron, false, 30),
                part("sh", Some("/user.slice"), false, 4),
            ],
            vec![part("gone", None, false, 2)],
        ];
        let mut table = OwnerTable::default();
        for parts in &stalls {
            table.add(parts.iter().map(|part| (part, part.net)));
        }
        let rows = table.finish(Nanos(100));
        let facts: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.unit.as_deref(),
                    row.count,
                    row.total_ns.0,
                    row.max_ns.0,
                    row.threads.len(),
                )
            })
            .collect();
        assert_eq!(
            facts,
            [
                (Some("cron.service"), 2, 42, 30, 2),
                (None, 1, 4, 4, 1),
                (None, 1, 2, 2, 1)
            ]
        );
        assert_eq!(
            (rows[1].cgroup.as_deref(), rows[2].cgroup.as_deref()),
            (Some("/user.slice"), None)
        );
        assert!((rows[0].share - 0.42).abs() < 1e-9 && rows[0].uid == Some(7));
    }
}
