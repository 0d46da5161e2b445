//! One iteration of a guarded command, and whether it was contaminated.

use super::results::Benchmark;
use super::stolen::{Namesakes, Stolen};
use jitterscope_model::{CpuId, Doubt, Nanos, RunManifest, Warning};
use schemars::JsonSchema;
use serde::Serialize;

/// Whether others disturbed an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Contamination {
    /// Others took at most the limit.
    Clean,
    /// Others took more than the limit.
    Contaminated,
    /// The evidence does not show it.
    Unknown,
}

impl Contamination {
    /// Its word, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Contamination::Clean => "clean",
            Contamination::Contaminated => "contaminated",
            Contamination::Unknown => "unknown",
        }
    }
}

/// Why the evidence of an iteration is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Unsure {
    /// The evidence of the run fails its own check.
    Doubted(Doubt),
    /// Records of the run were lost.
    RecordsLost {
        lost: u64,
    },
    /// Threads were not followed, or only for a part of their lives.
    NotFollowed {
        threads: u64,
    },
    NothingFollowed,
    /// The state of its threads is not known for this time, and it decides.
    StateUnknown {
        #[serde(rename = "time_ns")]
        time: Nanos,
    },
    /// Threads ran instead that have the name of one of its own, and they decide.
    SameName {
        #[serde(rename = "time_ns")]
        time: Nanos,
    },
    /// A signal or a tracer kept it stopped.
    Stopped {
        #[serde(rename = "time_ns")]
        time: Nanos,
    },
    DiskFull,
    /// The user ended it.
    Interrupted,
}

impl Unsure {
    /// Whether it withholds every verdict; otherwise a large loss is certain in spite of it.
    fn is_of_all(&self) -> bool {
        matches!(self, Unsure::Doubted(_) | Unsure::Interrupted)
    }
}

/// The wait for quiet CPUs before an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QuietWait {
    /// From the end of the iteration before to the begin of this one.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
    /// Whether the CPUs became quiet; otherwise the iteration was made in spite of it.
    pub quiet: bool,
    /// The CPU that was busiest in the last look.
    pub busiest_cpu: CpuId,
    /// The share of that look in which it was not idle.
    pub busy_fraction: f64,
}

/// What the series knows of an iteration besides its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Made {
    /// Whether it was made in place of a contaminated one.
    pub additional: bool,
    /// Its exit code, 128 and the signal's number if one ended it; `None` if the recorder ended it.
    pub exit_code: Option<u8>,
    /// CPU time in user mode.
    #[serde(rename = "user_ns")]
    pub user: Nanos,
    /// CPU time in the kernel.
    #[serde(rename = "system_ns")]
    pub system: Nanos,
    /// The wait for quiet before it; null if none was asked for.
    pub wait: Option<QuietWait>,
}

/// One iteration: its time, its loss, its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Iteration {
    #[serde(flatten)]
    pub made: Made,
    /// The id of its run.
    pub run: String,
    /// Its start, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// From its first thread to the end of its last.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    #[serde(flatten)]
    pub stolen: Stolen,
    pub contamination: Contamination,
    /// Why the evidence is incomplete; empty if it is complete. In JSON, view adds it with its words.
    #[serde(skip)]
    pub unsure: Vec<Unsure>,
    /// What a tool within it reports of its benchmarks; empty if none was asked for. The verdict is that of the whole
    /// iteration.
    pub benchmarks: Vec<Benchmark>,
}

impl Iteration {
    /// The iteration of a run; contaminated if others took a larger share than `limit`.
    #[must_use]
    pub fn of(manifest: &RunManifest, made: Made, limit: f64) -> Iteration {
        Iteration::judged(manifest, made, limit, Stolen::of(manifest))
    }

    /// The same, with what its stalls show; worth it if [`Iteration::is_unclear`].
    #[must_use]
    pub fn with_stalls(self, manifest: &RunManifest, of: Namesakes<'_>, limit: f64) -> Iteration {
        Iteration::judged(manifest, self.made, limit, self.stolen.with_namesakes(of))
    }

    /// Whether threads ran instead of which the sums show only a name that its own threads have, too.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.stolen.unclear > Nanos::ZERO
    }

    fn judged(manifest: &RunManifest, made: Made, limit: f64, stolen: Stolen) -> Iteration {
        let mut unsure = gaps(manifest, &stolen);
        let contamination = if unsure.iter().any(Unsure::is_of_all) {
            Contamination::Unknown
        } else if stolen.least_share() > limit {
            Contamination::Contaminated
        } else {
            if stolen.share() > limit {
                unsure.push(Unsure::SameName {
                    time: stolen.unclear,
                });
            } else if stolen.most_share() > limit {
                unsure.push(Unsure::StateUnknown {
                    time: stolen.unknown,
                });
            }
            match unsure.is_empty() {
                true => Contamination::Clean,
                false => Contamination::Unknown,
            }
        };
        Iteration {
            made,
            run: manifest.id.clone(),
            started_realtime_ns: manifest.started_realtime_ns(),
            time: manifest.duration(),
            stolen,
            contamination,
            unsure,
            benchmarks: Vec::new(),
        }
    }

    /// Whether it ran to its own end, so that its time is that of the command.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.made.exit_code.is_some()
    }

    /// Whether the command failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.made.exit_code.is_some_and(|code| code != 0)
    }
}

/// The gaps in the evidence that no limit decides.
fn gaps(manifest: &RunManifest, stolen: &Stolen) -> Vec<Unsure> {
    let mut gaps: Vec<Unsure> = Vec::new();
    if manifest.interrupted || manifest.killed {
        gaps.push(Unsure::Interrupted);
    }
    let doubts = manifest.doubts();
    let lost = manifest.sources.iter().map(|source| source.lost);
    let lost = lost.fold(0u64, u64::saturating_add);
    // A doubt about lost events names their number.
    if lost > 0
        && !doubts
            .iter()
            .any(|doubt| matches!(doubt, Doubt::EventsLost { .. }))
    {
        gaps.push(Unsure::RecordsLost { lost });
    }
    gaps.extend(doubts.into_iter().map(Unsure::Doubted));
    if manifest.threads.is_empty() {
        gaps.push(Unsure::NothingFollowed);
    }
    let not_followed = manifest.warnings.iter().map(|warning| match warning {
        Warning::TooManyThreads { refused, .. } => *refused,
        Warning::NotFollowed { late, missed } => late.saturating_add(*missed),
        _ => 0,
    });
    let threads = not_followed.fold(0u64, u64::saturating_add);
    if threads > 0 {
        gaps.push(Unsure::NotFollowed { threads });
    }
    if stolen.stopped > Nanos::ZERO {
        gaps.push(Unsure::Stopped {
            time: stolen.stopped,
        });
    }
    if manifest
        .warnings
        .iter()
        .any(|w| matches!(w, Warning::DiskFull { .. }))
    {
        gaps.push(Unsure::DiskFull);
    }
    gaps
}
