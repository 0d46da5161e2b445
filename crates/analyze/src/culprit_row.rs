//! A culprit as it appears in reports.

use crate::ours::RecorderThread;
use jitterscope_model::{CpuId, ExecutionContext, KeyedMap, Name, Nanos, Subject};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// A report explains each culprit; only a stored summary leaves it out.
fn always_explained(schema: &mut Schema) {
    if let Some(required) = schema.get_mut("required").and_then(|of| of.as_array_mut()) {
        required.push("explanation".into());
    }
}

/// One culprit, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = always_explained)]
pub struct CulpritRow {
    /// The culprit: what all its parts have in common.
    #[serde(flatten)]
    pub subject: Subject,
    /// The number of its threads or workers: 0 if it has none, 64 for 64 or more.
    pub threads: u64,
    /// The other names of its threads; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_names: Vec<Name>,
    /// The recorder's own thread, if the culprit is one; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<RecorderThread>,
    /// In the row that collects the rest of a kind, the number of culprits with rows of their own; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_apart: Option<usize>,
    /// What the culprit is, in words.
    // `view` fills it in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// The most frequent trigger.
    pub sender: Option<SenderRow>,
    /// The number of its parts with a known trigger. The others may have had the same ones.
    pub senders_known: u64,
    /// The number of stalls in which it had a part.
    pub count: u64,
    /// Stalls per second of the run.
    pub per_sec: f64,
    pub total_ns: Nanos,
    /// The share of all stalled time.
    pub share: f64,
    /// The smallest part of a stall.
    pub min_ns: Nanos,
    /// The mean part of a stall.
    pub mean_ns: Nanos,
    /// The largest part of a stall.
    pub max_ns: Nanos,
}

/// The trigger of a culprit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SenderRow {
    /// Whether the thread itself acted, or an interrupt or softirq on top of it.
    pub context: ExecutionContext,
    /// The thread's name; null if it ended before its name was read, or if no thread acted.
    pub comm: Option<Name>,
    /// The thread id; null if there were several of that name, or if no thread acted.
    pub tid: Option<i32>,
    /// The CPU it ran on; null if there were several.
    pub cpu: Option<CpuId>,
    /// The kernel function that sent the trigger.
    pub via: Option<Name>,
    /// For a softirq, the interrupted thread, which may have raised it or be unrelated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneath: Option<Name>,
    /// The number of the culprit's parts that it triggered.
    pub count: u64,
}

/// A common property of threads with many names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Common {
    Executable(Name),
    User(u32),
}

/// The common property of the culprits with most of the time, and that time: one executable, or else one user. `None`
/// if no such group has more than half: a single disturber may use a thousand names.
pub fn common<'a>(rows: impl IntoIterator<Item = (&'a Subject, Nanos)>) -> Option<(Common, Nanos)> {
    let mut all = Nanos::ZERO;
    let mut sums: KeyedMap<Common, Nanos> = KeyedMap::default();
    for (subject, time) in rows {
        all += time;
        let Subject::Thread(task) = subject else {
            continue;
        };
        let Some(owner) = &task.owner else { continue };
        let executable = owner.executable.clone().map(Common::Executable);
        for group in executable.into_iter().chain(owner.uid.map(Common::User)) {
            *sums.entry(group).or_default() += time;
        }
    }
    // Executables are the smaller groups.
    let most = sums.into_iter().filter(|(_, time)| time.0 > all.0 / 2);
    most.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Owner, Task};

    #[test]
    fn most_of_many_names_is_one_executable_or_one_user() {
        let thread = |n: u32, uid: u32, executable: Option<&str>| {
            Subject::Thread(Task {
                comm: format!("n{n}").into(),
                owner: Some(Owner {
                    executable: executable.map(Name::from),
                    ..Owner::user(uid)
                }),
                ..Task::default()
            })
        };
        let of = |rows: &[(Subject, u64)]| common(rows.iter().map(|(of, ns)| (of, Nanos(*ns))));
        let rows = |executable| {
            let stolen = (0..9).map(move |n| (thread(n, 1000, executable), 10));
            stolen.chain([(thread(9, 0, Some("/bin/sh")), 80)])
        };
        let stolen: Vec<_> = rows(Some("/opt/thief")).collect();
        let file = Common::Executable("/opt/thief".into());
        assert_eq!(of(&stolen), Some((file, Nanos(90))));
        let stolen: Vec<_> = rows(None).collect();
        assert_eq!(of(&stolen), Some((Common::User(1000), Nanos(90))));
        let timer = Subject::Softirq(1);
        let stolen: Vec<_> = rows(None).chain([(timer, 20)]).collect();
        assert_eq!(of(&stolen), None);
        assert_eq!(of(&[]), None);
    }
}
