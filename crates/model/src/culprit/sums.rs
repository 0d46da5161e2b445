//! Sums by culprit, in bounded memory.

use super::{Crowds, Culprit, CulpritKey, KeyLevel, MetCulprits, Subject};
use crate::{KeyedMap, Name};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::Arc;

/// Distinct threads or workers of one row.
const MOST_INDIVIDUALS: usize = 64;

/// Subjects whose rows are cached; beyond it all are forgotten and looked up again.
const MOST_REMEMBERED: usize = 1024;

/// One of a row's threads or workers: by its id, or by its name if the id is unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Individual {
    Tid(i32),
    Comm(Name),
}

#[derive(Clone, Debug)]
pub struct SumRow<X, V> {
    /// The other part of the key.
    pub extra: X,
    /// The facts that all its subjects share.
    pub subject: Subject,
    level: KeyLevel,
    individuals: BTreeSet<Individual>,
    /// Names of its threads that are shown under another name: of their process, their executable or their user.
    names: BTreeSet<Name>,
    pub value: V,
}

impl<X, V> SumRow<X, V> {
    /// The maximum of distinct threads or workers of one row.
    pub const MOST_THREADS: u64 = MOST_INDIVIDUALS as u64;

    /// The number of its threads or workers: 0 for kinds without any. [`SumRow::MOST_THREADS`] means that many or more.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.individuals.len() as u64
    }

    /// The other names of its threads, [`SumRow::MOST_THREADS`] at most.
    pub fn thread_names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter()
    }
}

/// Sums by [`CulpritKey`] and a further value (a phase, or `()`). A process with very many names has one row
/// ([`Crowds`]). Beyond `cap` rows, further culprits share one row per kind: [`Subject::Others`].
#[derive(Clone, Debug)]
pub struct CulpritSums<X, V> {
    level: KeyLevel,
    cap: usize,
    crowds: Crowds,
    /// [`Crowds::changes`] when the caches below were last empty.
    changes: u64,
    index: KeyedMap<(X, CulpritKey), usize>,
    rows: Vec<SumRow<X, V>>,
    /// A cache: the rows that have already taken in exactly this subject, so that it adds nothing to them.
    remembered: KeyedMap<Subject, Vec<(X, usize)>>,
    /// The same, by shared culprit.
    met: MetCulprits<Vec<(X, usize)>>,
}

impl<X: Clone + Eq + Hash, V: Default> CulpritSums<X, V> {
    #[must_use]
    pub fn new(level: KeyLevel, cap: usize) -> CulpritSums<X, V> {
        CulpritSums {
            level,
            cap,
            crowds: Crowds::default(),
            changes: 0,
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

    /// The number of this subject's row; makes the row if there is none.
    pub fn position(&mut self, extra: X, subject: &Subject) -> usize {
        let known = self.remembered.get(subject);
        if let Some((_, at)) = known.and_then(|rows| rows.iter().find(|(of, _)| *of == extra)) {
            return *at;
        }
        let at = self.found(extra.clone(), subject);
        if self.changes != self.crowds.changes() {
            self.changes = self.crowds.changes();
            self.remembered.clear();
            self.met.clear();
        }
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered
            .entry(subject.clone())
            .or_default()
            .push((extra, at));
        at
    }

    /// The number of the row of a shared culprit; a repeated call does not compare names.
    pub fn position_of(&mut self, extra: X, culprit: &Arc<Culprit>) -> usize {
        let known = self.met.get(culprit);
        if let Some((_, at)) = known.and_then(|rows| rows.iter().find(|(of, _)| *of == extra)) {
            return *at;
        }
        let at = self.position(extra.clone(), &culprit.subject);
        self.met.of(culprit, |_| Vec::new()).push((extra, at));
        at
    }

    /// Finds or makes the row by its key.
    fn found(&mut self, extra: X, subject: &Subject) -> usize {
        let (key, level) = self.crowds.key(subject, self.level);
        let place = (extra, key);
        if let Some(at) = self.index.get(&place).copied() {
            self.rows[at].take_in(subject);
            return at;
        }
        if self.rows.len() < self.cap {
            return self.insert(place, subject, level);
        }
        let others = Subject::Others(place.1.kind());
        let place = (place.0, CulpritKey::of(&others, level));
        match self.index.get(&place) {
            Some(at) => *at,
            None => self.insert(place, &others, level),
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

    fn insert(&mut self, place: (X, CulpritKey), subject: &Subject, level: KeyLevel) -> usize {
        self.rows.push(SumRow::of(place.0.clone(), subject, level));
        self.index.insert(place, self.rows.len() - 1);
        self.rows.len() - 1
    }
}

/// How a row of this level shows a subject.
fn shown(subject: &Subject, level: KeyLevel) -> Cow<'_, Subject> {
    match (level, subject) {
        (KeyLevel::Thread | KeyLevel::Name, _) => Cow::Borrowed(subject),
        (KeyLevel::Executable, Subject::Thread(task)) => {
            Cow::Owned(Subject::Thread(task.of_executable()))
        }
        (KeyLevel::User, Subject::Thread(task)) => Cow::Owned(Subject::Thread(task.of_user())),
        (KeyLevel::Unit | KeyLevel::Pod | KeyLevel::Cgroup, Subject::Thread(task)) => {
            Cow::Owned(Subject::Thread(task.of_group(level)))
        }
        _ => subject.of_process(),
    }
}

impl<X, V: Default> SumRow<X, V> {
    /// A row of a single subject, with a default value.
    #[must_use]
    pub fn of(extra: X, subject: &Subject, level: KeyLevel) -> SumRow<X, V> {
        let (individuals, names) = (BTreeSet::new(), BTreeSet::new());
        let shown_subject = shown(subject, level).into_owned();
        let mut row = SumRow {
            extra,
            subject: shown_subject,
            level,
            individuals,
            names,
            value: V::default(),
        };
        row.take_in(subject);
        row
    }
}

impl<X, V> SumRow<X, V> {
    /// Adds a subject with the same key to the row. Repeating a call changes nothing.
    pub fn take_in(&mut self, subject: &Subject) {
        let shown_subject = shown(subject, self.level);
        if self.subject != *shown_subject {
            self.rename(&shown_subject);
            self.subject.meet(&shown_subject);
        }
        if let Cow::Owned(_) = shown_subject
            && let Some(task) = subject.task()
        {
            self.add_name(&task.comm);
        }
        if self.individuals.len() < MOST_INDIVIDUALS
            && let Some(individual) = subject.individual()
            && !self.individuals.contains(&individual)
        {
            self.individuals.insert(individual);
        }
    }

    /// Shows a process with varying names by the file that it runs, if known, and keeps all its names.
    fn rename(&mut self, other: &Subject) {
        let (Subject::Thread(own), Subject::Thread(other)) = (&mut self.subject, other) else {
            return;
        };
        if own.comm == other.comm {
            return;
        }
        let names = [own.comm.clone(), other.comm.clone()];
        let executable = own.executable_name().map(crate::Name::from);
        let first = executable.unwrap_or_else(|| own.comm.clone());
        own.comm.clone_from(&first);
        for name in names.iter().filter(|name| **name != first) {
            self.add_name(name);
        }
    }

    fn add_name(&mut self, name: &Name) {
        if self.names.len() < MOST_INDIVIDUALS && !self.names.contains(name) {
            self.names.insert(name.clone());
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
    use crate::Task;
    use std::collections::HashMap;

    #[test]
    fn what_is_remembered_changes_no_sum() {
        let thread = |n: i32| {
            let process = (n % 3 == 0).then(|| Name::from(format!("process {}", n % 4)));
            let task = Task {
                tid: Some(n),
                tgid: (n % 5 > 0).then_some(n % 500),
                comm: format!("comm {}", n % 23).into(),
                process,
                ..Task::default()
            };
            Subject::Thread(task)
        };
        // Fewer rows than culprits, more threads than the cache holds, each of them repeatedly.
        let mut sums: CulpritSums<u8, u64> = CulpritSums::new(KeyLevel::Program, 5);
        let (mut plain, mut shared, mut pool) = (sums.clone(), sums.clone(), HashMap::new());
        for n in 0..3 * MOST_REMEMBERED as i32 {
            let (extra, subject) = (
                (n % 2) as u8,
                thread(n / 2 % (MOST_REMEMBERED as i32 + 100)),
            );
            for _ in 0..2 {
                *sums.of(extra, &subject) += 1;
                let at = plain.found(extra, &subject);
                *plain.at(at) += 1;
                // A value that both share, or a new one, possibly at the address of an earlier one.
                let culprit = match n % 5 {
                    0 => Arc::new(subject.clone().into()),
                    _ => Arc::clone(
                        pool.entry(subject.clone())
                            .or_insert_with(|| Arc::new(subject.clone().into())),
                    ),
                };
                let at = shared.position_of(extra, &culprit);
                *shared.at(at) += 1;
            }
            if n % 700 == 0 {
                pool.clear();
            }
        }
        assert!(sums.remembered.len() <= MOST_REMEMBERED && plain.remembered.is_empty());
        assert!(shared.met.len() <= MOST_REMEMBERED);
        let debug = |sums: &CulpritSums<u8, u64>| format!("{:?}", sums.rows);
        assert_eq!(debug(&sums), debug(&plain));
        assert_eq!(debug(&shared), debug(&plain));
    }
}
