//! The time account of one thread.

use crate::{BlockedOn, CpuId, CulpritSums, KeyLevel, Nanos, PutInOrder, Subject, SumRow, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thread while it was followed. Running, waiting, stopped, blocked and unknown time sum to the followed time;
/// interrupted time is part of running, preempted time is part of waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadAccount {
    pub tid: i32,
    /// Its name, as last seen.
    pub comm: String,
    /// Its role in a probe: `producer`, `accumulator`, `journaller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Start of the followed time.
    #[serde(rename = "from_ticks")]
    pub from: Ticks,
    /// End of the followed time.
    #[serde(rename = "until_ticks")]
    pub until: Ticks,
    /// Whether it began while it was followed.
    pub appeared: bool,
    /// Whether it ended while it was followed.
    pub exited: bool,
    /// On a CPU, from one `sched_switch` to the next.
    pub running_ns: Nanos,
    /// The part of `running_ns` under interrupts.
    pub interrupted_ns: Nanos,
    /// Runnable, but not on a CPU.
    pub waiting_ns: Nanos,
    /// The part of `waiting_ns` after it was preempted; the remainder is the wait after a wake-up.
    pub preempted_ns: Nanos,
    /// Stopped by a signal or a tracer.
    #[serde(default)]
    pub stopped_ns: Nanos,
    /// Asleep: it had nothing to do, or waited for something other than a CPU.
    pub blocked_ns: Nanos,
    /// Unknown: before its first record, and after lost trace data.
    pub unknown_ns: Nanos,
    /// How often it got a CPU.
    pub runs: u64,
    /// How often it gave up the CPU to sleep.
    pub voluntary_switches: u64,
    /// How often it was preempted.
    pub involuntary_switches: u64,
    /// How often it was moved to another CPU.
    pub migrations: u64,
    pub page_faults: u64,
    /// The longest wait for a CPU.
    pub longest_wait_ns: Nanos,
    /// The CPUs that it ran on, by number.
    pub cpus: Vec<CpuShare>,
    /// What ran instead, most time first.
    pub ran_instead: Vec<RanInstead>,
    /// What it waited for while it was blocked, most time first. The times sum to `blocked_ns`. Empty if an older
    /// version recorded the run.
    #[serde(default)]
    pub blocked_on: Vec<BlockedOn>,
}

impl ThreadAccount {
    /// The whole followed time.
    #[must_use]
    pub fn followed_ns(&self) -> Nanos {
        self.running_ns + self.waiting_ns + self.stopped_ns + self.blocked_ns + self.unknown_ns
    }
}

/// What stops a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// A signal such as `SIGSTOP`.
    Signal,
    /// A tracer such as a debugger.
    Tracer,
    /// The freezer of a control group.
    Freezer,
}

/// A thread on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuShare {
    pub cpu: CpuId,
    /// How often the thread got it.
    pub runs: u64,
    /// The total time on it.
    pub running_ns: Nanos,
}

/// What ran while a thread waited or was interrupted, clipped to that time; threads of one name together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RanInstead {
    #[serde(flatten)]
    pub subject: Subject,
    /// The number of threads or workers; 0 for kinds without any, 64 for that many or more.
    #[serde(default)]
    pub threads: u64,
    /// The number of times.
    pub count: u64,
    pub min_ns: Nanos,
    pub max_ns: Nanos,
    pub total_ns: Nanos,
}

impl RanInstead {
    /// The same rows, summed by program; most time first.
    #[must_use]
    pub fn by_program(rows: &[RanInstead]) -> Vec<RanInstead> {
        let mut sums: CulpritSums<(), Option<RanInstead>> =
            CulpritSums::new(KeyLevel::Program, usize::MAX);
        for row in rows {
            let sum = sums.of((), &row.subject);
            *sum = Some(match sum.take() {
                None => row.clone(),
                Some(sum) => RanInstead {
                    threads: sum.threads.saturating_add(row.threads),
                    count: sum.count.saturating_add(row.count),
                    min_ns: sum.min_ns.min(row.min_ns),
                    max_ns: sum.max_ns.max(row.max_ns),
                    total_ns: sum.total_ns + row.total_ns,
                    ..sum
                },
            });
        }
        let ran = |row: SumRow<(), Option<RanInstead>>| {
            row.value.map(|sum| RanInstead {
                subject: row.subject,
                ..sum
            })
        };
        let mut rows: Vec<RanInstead> = sums.into_rows().into_iter().filter_map(ran).collect();
        rows.order_by(|a, b| (b.total_ns, &a.subject).cmp(&(a.total_ns, &b.subject)));
        rows
    }

    /// The average time; zero if there is none.
    #[must_use]
    pub fn average_ns(&self) -> Nanos {
        Nanos(self.total_ns.0.checked_div(self.count).unwrap_or(0))
    }
}
