//! What the threads of a command lost, and to whom.

use jitterscope_model::{
    Attribution, CulpritSums, KeyLevel, Name, Nanos, RunManifest, Subject, SumRow, Task,
    ThreadAccount,
};
use std::collections::BTreeSet;

/// What the threads of a command lost of the time in which they wanted a CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stolen {
    /// The time in which they wanted a CPU: they ran, or waited for one.
    pub wanted: Nanos,
    /// The time that they waited for a CPU.
    pub waited: Nanos,
    /// The time of their turns that interrupts took.
    pub interrupted: Nanos,
    /// The part of the waits in which threads of the same command had the CPU.
    pub own: Nanos,
    /// The part of the waits in which threads had the CPU that may be the command's own: of them only a name is known,
    /// which one of its threads has, too.
    pub unclear: Nanos,
    /// The time in an unknown state.
    pub unknown: Nanos,
    /// The time in which a signal or a tracer kept them stopped.
    pub stopped: Nanos,
    /// Who took most; `None` if nobody took anything.
    pub thief: Option<Thief>,
}

/// Who took most of the lost time.
#[derive(Clone, Debug, PartialEq)]
pub struct Thief {
    pub subject: Subject,
    /// The number of its threads or workers; 0 for kinds without any.
    pub threads: u64,
    pub total: Nanos,
    /// Whether it is the recording itself.
    pub recorder: bool,
}

/// The time in which threads of the command ran instead of others of it, from the stalls of its run: each of their
/// parts names one thread, where it is known.
pub struct OwnTime<'a> {
    followed: Followed<'a>,
    total: Nanos,
}

impl<'a> OwnTime<'a> {
    #[must_use]
    pub fn new(manifest: &'a RunManifest) -> OwnTime<'a> {
        OwnTime {
            followed: Followed::of(&manifest.threads),
            total: Nanos::ZERO,
        }
    }

    /// Takes in a stall.
    pub fn add(&mut self, stall: &Attribution) {
        let own = stall.parts.iter();
        let own = own.filter(|part| self.followed.whose(&part.culprit.subject) == Whose::Own);
        self.total += own.map(|part| part.net).sum();
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
        let named = |name: Option<&Name>| name.is_some_and(|name| self.names.contains(&**name));
        match task {
            task if has(task.tid) || has(task.tgid) => Whose::Own,
            // Several processes together, which share a name.
            Task {
                tid: None,
                tgid: None,
                ..
            } if named(Some(&task.comm)) || named(task.process.as_ref()) => Whose::Unclear,
            _ => Whose::Others,
        }
    }
}

impl Stolen {
    /// What the followed threads of a run lost. The sums of a thread may have one row for several processes of a name;
    /// [`OwnTime`] tells them apart.
    #[must_use]
    pub fn of(manifest: &RunManifest) -> Stolen {
        let threads = &manifest.threads;
        let sum = |of: fn(&ThreadAccount) -> Nanos| threads.iter().map(of).sum::<Nanos>();
        let waited = sum(|thread| thread.waiting_ns);
        let followed = Followed::of(threads);
        let mut sums: CulpritSums<(), Nanos> = CulpritSums::new(KeyLevel::Name, usize::MAX);
        let (mut own, mut unclear) = (Nanos::ZERO, Nanos::ZERO);
        for ran in threads.iter().flat_map(|thread| &thread.ran_instead) {
            match followed.whose(&ran.subject) {
                Whose::Own => own += ran.total_ns,
                Whose::Unclear => unclear += ran.total_ns,
                Whose::Others => *sums.of((), &ran.subject) += ran.total_ns,
            }
        }
        let rows = sums.into_rows().into_iter();
        let most = rows.max_by(|a, b| (a.value, &b.subject).cmp(&(b.value, &a.subject)));
        Stolen {
            wanted: sum(|thread| thread.running_ns) + waited,
            waited,
            interrupted: sum(|thread| thread.interrupted_ns),
            own: own.min(waited),
            unclear: unclear.min(waited.saturating_sub(own)),
            unknown: sum(|thread| thread.unknown_ns),
            stopped: sum(|thread| thread.stopped_ns),
            thief: most
                .filter(|row| row.value > Nanos::ZERO)
                .map(|row| thief(row, manifest.recorder_pid)),
        }
    }

    /// The same, with what the stalls of the run show of its own threads. They are at most what the sums leave open.
    #[must_use]
    pub(super) fn with_own(self, own: &OwnTime<'_>) -> Stolen {
        let open = self.own + self.unclear;
        let own = self.own.max(own.total.min(open));
        Stolen {
            own,
            unclear: open.saturating_sub(own),
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
