//! What became of one thread's time.

use crate::{CpuId, CulpritSums, KeyLevel, Nanos, Subject, SumRow, Ticks};
use serde::{Deserialize, Serialize};

/// One thread while it was followed. Running, waiting, stopped, blocked and unknown time sum to the time that it
/// was followed; interrupted time is part of running, preempted time is part of waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAccount {
    /// Kernel thread id.
    pub tid: i32,
    /// Its name, as last seen.
    pub comm: String,
    /// What it does in a probe: `producer`, `accumulator`, `journaller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Followed from.
    #[serde(rename = "from_ticks", alias = "from")]
    pub from: Ticks,
    /// Followed until.
    #[serde(rename = "until_ticks", alias = "until")]
    pub until: Ticks,
    /// Whether it began while it was followed.
    pub appeared: bool,
    /// Whether it ended while it was followed.
    pub exited: bool,
    /// On a CPU, from one `sched_switch` to the next.
    pub running_ns: Nanos,
    /// Of that, under interrupts.
    pub interrupted_ns: Nanos,
    /// Runnable, and not on a CPU.
    pub waiting_ns: Nanos,
    /// Of that, after it was preempted; the rest is the wait after a wake-up.
    pub preempted_ns: Nanos,
    /// Stopped by a signal or a tracer: it was not let run, whatever it had to do.
    #[serde(default)]
    pub stopped_ns: Nanos,
    /// Asleep: it had nothing to do, or waited for something else than a CPU.
    pub blocked_ns: Nanos,
    /// Not known: before its first record, and where trace data was lost.
    pub unknown_ns: Nanos,
    /// Times it was put on a CPU.
    pub runs: u64,
    /// Times it gave up the CPU to sleep.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Times it was moved to another CPU.
    pub migrations: u64,
    /// Page faults.
    pub page_faults: u64,
    /// The longest wait for a CPU.
    pub longest_wait_ns: Nanos,
    /// The CPUs that it ran on, by number.
    pub cpus: Vec<CpuShare>,
    /// What ran instead, most time first.
    pub ran_instead: Vec<RanInstead>,
}

impl ThreadAccount {
    /// All the time that it was followed.
    #[must_use]
    pub fn followed_ns(&self) -> Nanos {
        self.running_ns + self.waiting_ns + self.stopped_ns + self.blocked_ns + self.unknown_ns
    }
}

/// What stops a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// A signal, as `SIGSTOP` is.
    Signal,
    /// A tracer, as debuggers are.
    Tracer,
}

/// A thread on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuShare {
    /// The CPU.
    pub cpu: CpuId,
    /// Times the thread was put on it.
    pub runs: u64,
    /// For how long in all.
    pub running_ns: Nanos,
}

/// What ran while a thread waited or was interrupted, clipped to that; threads of one name together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanInstead {
    /// What.
    #[serde(flatten)]
    pub subject: Subject,
    /// How many threads or workers these were; 0 for what has none, 64 for that many or more.
    #[serde(default)]
    pub threads: u64,
    /// How often.
    pub count: u64,
    /// The shortest time.
    pub min_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
    /// All of it.
    pub total_ns: Nanos,
}

impl RanInstead {
    /// The same by program, most time first.
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
        rows.sort_by(|a, b| (b.total_ns, &a.subject).cmp(&(a.total_ns, &b.subject)));
        rows
    }

    /// The average time; zero for none.
    #[must_use]
    pub fn average_ns(&self) -> Nanos {
        Nanos(self.total_ns.0.checked_div(self.count).unwrap_or(0))
    }
}
