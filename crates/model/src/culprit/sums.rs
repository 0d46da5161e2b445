//! Adding up by culprit, in bounded memory.

use super::{Culprit, CulpritKey, KeyLevel, MetCulprits, Subject};
use crate::{KeyedMap, Name};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::Arc;

/// Threads or workers of one row that are told apart.
const MOST_INDIVIDUALS: usize = 64;

/// Subjects whose rows are remembered; beyond it all are forgotten and looked for again.
const MOST_REMEMBERED: usize = 1024;

/// One of the threads or workers that a row is about: by its id, or its name where no id is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Individual {
    Tid(i32),
    Comm(Name),
}

/// One row of a sum.
#[derive(Clone, Debug)]
pub struct SumRow<X, V> {
    /// What else its parts have in common.
    pub extra: X,
    /// What is common to all its subjects.
    pub subject: Subject,
    /// The threads or workers in it.
    individuals: BTreeSet<Individual>,
    /// Names of threads in it that go by their process.
    names: BTreeSet<Name>,
    /// The sum.
    pub value: V,
}

impl<X, V> SumRow<X, V> {
    /// How many threads or workers of one row are told apart.
    pub const MOST_THREADS: u64 = MOST_INDIVIDUALS as u64;

    /// How many threads or workers it is about: 0 for what has none. [`SumRow::MOST_THREADS`] stands for that
    /// many or more.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.individuals.len() as u64
    }

    /// The names that its threads bear beside that of their process, [`SumRow::MOST_THREADS`] at most.
    pub fn thread_names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter()
    }
}

/// Sums by [`CulpritKey`] and something else (a phase, or `()`). Beyond `cap` rows, further culprits share a
/// row a kind: [`Subject::Others`].
#[derive(Clone, Debug)]
pub struct CulpritSums<X, V> {
    level: KeyLevel,
    cap: usize,
    index: KeyedMap<(X, CulpritKey), usize>,
    rows: Vec<SumRow<X, V>>,
    /// Rows that have taken in just this subject: the same few come again and again, and add nothing to their row.
    remembered: KeyedMap<Subject, Vec<(X, usize)>>,
    /// The same of culprits that parts share.
    met: MetCulprits<Vec<(X, usize)>>,
}

impl<X: Clone + Eq + Hash, V: Default> CulpritSums<X, V> {
    /// No rows yet.
    #[must_use]
    pub fn new(level: KeyLevel, cap: usize) -> CulpritSums<X, V> {
        CulpritSums {
            level,
            cap,
            index: KeyedMap::default(),
            rows: Vec::new(),
            remembered: KeyedMap::default(),
            met: MetCulprits::default(),
        }
    }

    /// The sum that this subject belongs to.
    pub fn of(&mut self, extra: X, subject: &Subject) -> &mut V {
        let at = self.position(extra, subject);
        &mut self.rows[at].value
    }

    /// The number of the row that this subject belongs to; made when there is none.
    pub fn position(&mut self, extra: X, subject: &Subject) -> usize {
        let known = self.remembered.get(subject);
        if let Some((_, at)) = known.and_then(|rows| rows.iter().find(|(of, _)| *of == extra)) {
            return *at;
        }
        let at = self.found(extra.clone(), subject);
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered
            .entry(subject.clone())
            .or_default()
            .push((extra, at));
        at
    }

    /// The number of the row that the subject of a culprit belongs to which parts share: found without a look at its
    /// names where it was asked for before.
    pub fn position_of(&mut self, extra: X, culprit: &Arc<Culprit>) -> usize {
        let known = self.met.get(culprit);
        if let Some((_, at)) = known.and_then(|rows| rows.iter().find(|(of, _)| *of == extra)) {
            return *at;
        }
        let at = self.position(extra.clone(), &culprit.subject);
        if self.met.len() >= MOST_REMEMBERED {
            self.met.clear();
        }
        self.met.of(culprit, |_| Vec::new()).push((extra, at));
        at
    }

    /// The number of a row by its key.
    fn found(&mut self, extra: X, subject: &Subject) -> usize {
        let place = (extra, CulpritKey::of(subject, self.level));
        if let Some(at) = self.index.get(&place).copied() {
            self.rows[at].take_in(subject, self.level);
            return at;
        }
        if self.rows.len() < self.cap {
            return self.insert(place, subject);
        }
        let others = Subject::Others(place.1.kind());
        let place = (place.0, CulpritKey::of(&others, self.level));
        match self.index.get(&place) {
            Some(at) => *at,
            None => self.insert(place, &others),
        }
    }

    /// The sum in a row.
    pub fn at(&mut self, position: usize) -> &mut V {
        &mut self.rows[position].value
    }

    /// All rows, in order of first appearance.
    #[must_use]
    pub fn into_rows(self) -> Vec<SumRow<X, V>> {
        self.rows
    }

    /// All rows, in order of first appearance.
    pub fn rows(&self) -> impl Iterator<Item = &SumRow<X, V>> {
        self.rows.iter()
    }

    fn insert(&mut self, place: (X, CulpritKey), subject: &Subject) -> usize {
        self.rows
            .push(SumRow::of(place.0.clone(), subject, self.level));
        self.index.insert(place, self.rows.len() - 1);
        self.rows.len() - 1
    }
}

/// What a row of this level is about.
fn shown(subject: &Subject, level: KeyLevel) -> Cow<'_, Subject> {
    match level {
        KeyLevel::Thread | KeyLevel::Name => Cow::Borrowed(subject),
        KeyLevel::Process | KeyLevel::Program => subject.of_process(),
    }
}

impl<X, V: Default> SumRow<X, V> {
    /// The row of a subject alone, of no value yet.
    #[must_use]
    pub fn of(extra: X, subject: &Subject, level: KeyLevel) -> SumRow<X, V> {
        let (individuals, names) = (BTreeSet::new(), BTreeSet::new());
        let shown_subject = shown(subject, level).into_owned();
        let mut row = SumRow {
            extra,
            subject: shown_subject,
            individuals,
            names,
            value: V::default(),
        };
        row.take_in(subject, level);
        row
    }
}

impl<X, V> SumRow<X, V> {
    /// It is about this subject, too, which has the same key at `level`. Once more of the same adds nothing.
    pub fn take_in(&mut self, subject: &Subject, level: KeyLevel) {
        let shown_subject = shown(subject, level);
        if self.subject != *shown_subject {
            self.subject.meet(&shown_subject);
        }
        if let Cow::Owned(_) = shown_subject
            && self.names.len() < MOST_INDIVIDUALS
            && let Some(task) = subject.task()
            && !self.names.contains(&task.comm)
        {
            self.names.insert(task.comm.clone());
        }
        if self.individuals.len() < MOST_INDIVIDUALS
            && let Some(individual) = subject.individual()
            && !self.individuals.contains(&individual)
        {
            self.individuals.insert(individual);
        }
    }
}

impl Subject {
    fn individual(&self) -> Option<Individual> {
        let one = |tid: Option<i32>, comm: Option<&Name>| match (tid, comm) {
            (Some(tid), _) => Some(Individual::Tid(tid)),
            (None, Some(comm)) => Some(Individual::Comm(comm.clone())),
            (None, None) => None,
        };
        match self {
            Subject::Work(work) => work
                .worker
                .as_ref()
                .and_then(|worker| one(worker.tid, worker.comm.as_ref())),
            other => other
                .task()
                .and_then(|task| one(task.tid, Some(&task.comm))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CulpritPool, Task};

    #[test]
    fn what_is_remembered_changes_no_sum() {
        let thread = |n: i32| {
            let process = (n % 3 == 0).then(|| Name::from(format!("process {}", n % 4)));
            let task = Task {
                tid: Some(n),
                comm: format!("comm {}", n % 7).into(),
                process,
                ..Task::default()
            };
            Subject::Thread(task)
        };
        // Fewer rows than culprits, more threads than are remembered, each of them again and again.
        let mut sums: CulpritSums<u8, u64> = CulpritSums::new(KeyLevel::Program, 5);
        let (mut plain, mut shared, mut pool) =
            (sums.clone(), sums.clone(), CulpritPool::default());
        for n in 0..3 * MOST_REMEMBERED as i32 {
            let (extra, subject) = (
                (n % 2) as u8,
                thread(n / 2 % (MOST_REMEMBERED as i32 + 100)),
            );
            for _ in 0..2 {
                *sums.of(extra, &subject) += 1;
                let at = plain.found(extra, &subject);
                *plain.at(at) += 1;
                // One value for both, or one of its own, in memory where another may have lain.
                let culprit = match n % 5 {
                    0 => Arc::new(subject.clone().into()),
                    _ => pool.share(subject.clone().into()),
                };
                let at = shared.position_of(extra, &culprit);
                *shared.at(at) += 1;
            }
            if n % 700 == 0 {
                pool = CulpritPool::default();
            }
        }
        assert!(sums.remembered.len() <= MOST_REMEMBERED && plain.remembered.is_empty());
        assert!(shared.met.len() <= MOST_REMEMBERED);
        let debug = |sums: &CulpritSums<u8, u64>| format!("{:?}", sums.rows);
        assert_eq!(debug(&sums), debug(&plain));
        assert_eq!(debug(&shared), debug(&plain));
    }
}
