//! The CPU time that the threads of a command lost, and the culprits that took it.

use jitterscope_model::{
    Attribution, CulpritSums, KeyLevel, Nanos, RunManifest, Subject, SumRow, ThreadAccount,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// What the threads of a command lost of the time in which they wanted a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Stolen {
    /// The time in which they wanted a CPU: they ran, or waited for one.
    #[serde(rename = "wanted_ns")]
    pub wanted: Nanos,
    /// The time that they waited for a CPU.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
    /// The time of their turns that interrupts took.
    #[serde(rename = "interrupted_ns")]
    pub interrupted: Nanos,
    /// The part of the waits in which threads of the same command had the CPU.
    #[serde(rename = "waited_for_own_ns")]
    pub own: Nanos,
    /// The part of the waits in which threads had the CPU that may be the command's own: of them only a name is known,
    /// which one of its threads has, too.
    #[serde(skip)]
    pub unclear: Nanos,
    /// The time of other processes' threads that have the name of one of the command's own.
    #[serde(skip)]
    pub namesakes: Nanos,
    /// The time in an unknown state.
    #[serde(rename = "unknown_ns")]
    pub unknown: Nanos,
    /// The time in which a signal or a tracer kept them stopped.
    #[serde(skip)]
    pub stopped: Nanos,
    /// Who took most; `None` if nobody took anything. In JSON, view adds it unless it is withheld.
    #[serde(skip)]
    pub thief: Option<Thief>,
}

/// Who took most of the lost time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Thief {
    #[serde(flatten)]
    pub subject: Subject,
    /// The number of its threads or workers; 0 for kinds without any.
    pub threads: u64,
    #[serde(rename = "total_ns")]
    pub total: Nanos,
    /// Whether it is the recording itself.
    pub recorder: bool,
}

/// Threads that have the name of one of the command's own, from the stalls of its run: each of their parts names one
/// thread, where it is known.
pub struct Namesakes<'a> {
    followed: Followed<'a>,
    /// The time of the command's own threads.
    own: Nanos,
    /// The time of others.
    others: CulpritSums<(), Nanos>,
}

impl<'a> Namesakes<'a> {
    #[must_use]
    pub fn new(manifest: &'a RunManifest) -> Namesakes<'a> {
        Namesakes {
            followed: Followed::of(&manifest.threads),
            own: Nanos::ZERO,
            others: CulpritSums::new(KeyLevel::Name, usize::MAX),
        }
    }

    /// Takes in a stall.
    pub fn add(&mut self, stall: &Attribution) {
        for part in &stall.parts {
            let subject = &part.culprit.subject;
            match self.followed.whose(subject) {
                Whose::Own => self.own += part.net,
                Whose::Others if self.followed.shares_name(subject) => {
                    *self.others.of((), subject) += part.net;
                }
                Whose::Others | Whose::Unclear => {}
            }
        }
    }
}

/// Whose a thread is that ran instead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Unclear,
    Others,
}

/// The followed threads: all processes of the command are among them, by their first thread.
struct Followed<'a> {
    ids: BTreeSet<i32>,
    names: BTreeSet<&'a str>,
}

impl<'a> Followed<'a> {
    fn of(threads: &'a [ThreadAccount]) -> Followed<'a> {
        Followed {
            ids: threads.iter().map(|thread| thread.tid).collect(),
            names: threads.iter().map(|thread| thread.comm.as_str()).collect(),
        }
    }

    fn whose(&self, subject: &Subject) -> Whose {
        let Subject::Thread(task) = subject else {
            return Whose::Others;
        };
        let has = |id: Option<i32>| id.is_some_and(|id| self.ids.contains(&id));
        // Without an id it stands for several processes together.
        let is_several = task.tid.is_none() && task.tgid.is_none();
        if has(task.tid) || has(task.tgid) {
            Whose::Own
        } else if is_several && self.shares_name(subject) {
            Whose::Unclear
        } else {
            Whose::Others
        }
    }

    /// Whether it is a thread with the name, or of a process with the name, of one of these.
    fn shares_name(&self, subject: &Subject) -> bool {
        let Subject::Thread(task) = subject else {
            return false;
        };
        let mut names = std::iter::once(&task.comm).chain(&task.process);
        names.any(|name| self.names.contains(&**name))
    }
}

impl Stolen {
    /// What the followed threads of a run lost. The sums of a thread may have one row for several processes of a name;
    /// [`Namesakes`] tells them apart.
    #[must_use]
    pub fn of(manifest: &RunManifest) -> Stolen {
        let threads = &manifest.threads;
        let sum = |of: fn(&ThreadAccount) -> Nanos| threads.iter().map(of).sum::<Nanos>();
        let waited = sum(|thread| thread.waiting_ns);
        let followed = Followed::of(threads);
        let mut sums: CulpritSums<(), Nanos> = CulpritSums::new(KeyLevel::Name, usize::MAX);
        let (mut own, mut unclear, mut namesakes) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        for ran in threads.iter().flat_map(|thread| &thread.ran_instead) {
            match followed.whose(&ran.subject) {
                Whose::Own => own += ran.total_ns,
                Whose::Unclear => unclear += ran.total_ns,
                Whose::Others => {
                    *sums.of((), &ran.subject) += ran.total_ns;
                    if followed.shares_name(&ran.subject) {
                        namesakes += ran.total_ns;
                    }
                }
            }
        }
        Stolen {
            wanted: sum(|thread| thread.running_ns) + waited,
            waited,
            interrupted: sum(|thread| thread.interrupted_ns),
            own: own.min(waited),
            unclear: unclear.min(waited.saturating_sub(own)),
            unknown: sum(|thread| thread.unknown_ns),
            stopped: sum(|thread| thread.stopped_ns),
            namesakes,
            thief: largest(sums.into_rows(), manifest.recorder_pid),
        }
    }

    /// The same, with what the stalls of the run show: at most what the sums leave open.
    #[must_use]
    pub(super) fn with_namesakes(self, of: Namesakes<'_>) -> Stolen {
        let open = self.own + self.unclear;
        let own = self.own.max(of.own.min(open));
        let rows = of.others.into_rows();
        let others: Nanos = rows.iter().map(|row| row.value).sum();
        // The sums have some of these under their own ids.
        let named = others.saturating_sub(self.namesakes);
        let most = largest(rows, None);
        let total = |thief: &Option<Thief>| thief.as_ref().map(|of| of.total);
        Stolen {
            own,
            unclear: open.saturating_sub(own).saturating_sub(named),
            thief: if total(&most) > total(&self.thief) {
                most
            } else {
                self.thief
            },
            ..self
        }
    }

    /// The time lost to others: waits and interruptions, without waits for threads of the same command.
    #[must_use]
    pub fn lost(&self) -> Nanos {
        (self.waited + self.interrupted).saturating_sub(self.own)
    }

    /// The lost share of the time in which they wanted a CPU.
    #[must_use]
    pub fn share(&self) -> f64 {
        share(self.lost(), self.wanted)
    }

    /// The smallest share that the evidence allows: without what may be the command's own.
    pub(super) fn least_share(&self) -> f64 {
        share(self.lost().saturating_sub(self.unclear), self.wanted)
    }

    /// The largest share that the evidence allows: with the time of which nothing is known.
    pub(super) fn most_share(&self) -> f64 {
        share(self.lost() + self.unknown, self.wanted + self.unknown)
    }
}

fn share(part: Nanos, whole: Nanos) -> f64 {
    part.0 as f64 / whole.0.max(1) as f64
}

/// Who took most.
fn largest(rows: Vec<SumRow<(), Nanos>>, recorder: Option<i32>) -> Option<Thief> {
    let rows = rows.into_iter().filter(|row| row.value > Nanos::ZERO);
    let most = rows.max_by(|a, b| (a.value, &b.subject).cmp(&(b.value, &a.subject)));
    most.map(|row| thief(row, recorder))
}

fn thief(row: SumRow<(), Nanos>, recorder: Option<i32>) -> Thief {
    let recorder = match &row.subject {
        Subject::Thread(task) => task.tgid.is_some() && task.tgid == recorder,
        _ => false,
    };
    Thief {
        threads: row.threads(),
        total: row.value,
        recorder,
        subject: row.subject,
    }
}
