//! Interned subjects: the same few recur, and a number is cheap to compare and look up.

use jitterscope_model::{Crowds, CulpritKey, KeyLevel, KeyedMap, Subject};

/// Maximum of subjects with a number; for further ones only the row is known.
const MOST_SUBJECTS: usize = 1 << 14;
/// Maximum of rows; further subjects share one per kind.
const MOST_ROWS: usize = 1 << 14;

/// The number of a subject: equal numbers mean equal subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubjectNo {
    /// The subject; `None` beyond the maximum.
    pub(crate) subject: Option<u32>,
    /// Its row in sums by name.
    pub(crate) row: u32,
    /// The level of that row's key.
    pub(crate) level: KeyLevel,
}

#[derive(Debug, Default)]
pub(crate) struct Subjects {
    numbers: KeyedMap<Subject, SubjectNo>,
    rows: KeyedMap<CulpritKey, u32>,
    crowds: Crowds,
}

impl Subjects {
    /// The level of rows, except for processes with very many names.
    pub(crate) const LEVEL: KeyLevel = KeyLevel::Name;

    pub(crate) fn number(&mut self, subject: &Subject) -> SubjectNo {
        if let Some(known) = self.numbers.get(subject) {
            return *known;
        }
        let (row, level) = self.row(subject);
        let mut number = SubjectNo {
            subject: None,
            row,
            level,
        };
        if self.numbers.len() < MOST_SUBJECTS {
            number.subject = u32::try_from(self.numbers.len()).ok();
            self.numbers.insert(subject.clone(), number);
        }
        number
    }

    fn row(&mut self, subject: &Subject) -> (u32, KeyLevel) {
        let (key, level) = self.crowds.key(subject, Self::LEVEL);
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if self.rows.len() < MOST_ROWS || self.rows.contains_key(&key) {
            return (*self.rows.entry(key).or_insert(next), level);
        }
        let others = CulpritKey::of(&Subject::Others(key.kind()), level);
        (*self.rows.entry(others).or_insert(next), level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Task;

    fn thread(tid: i32, comm: &str) -> Subject {
        Subject::Thread(Task {
            tid: Some(tid),
            comm: comm.into(),
            ..Task::default()
        })
    }

    #[test]
    fn equal_subjects_have_equal_numbers_and_those_of_one_name_one_row() {
        let mut all = Subjects::default();
        let [one, other, another] =
            [(1, "a"), (2, "a"), (1, "b")].map(|(tid, of)| all.number(&thread(tid, of)));
        assert_eq!(all.number(&thread(1, "a")), one);
        assert!(one != other && one.row == other.row && one.row != another.row);
    }

    #[test]
    fn beyond_the_most_nothing_grows() {
        let mut all = Subjects::default();
        for n in 0..MOST_SUBJECTS as i32 + 50 {
            all.number(&thread(n, &format!("name {n}")));
        }
        assert_eq!(all.numbers.len(), MOST_SUBJECTS);
        assert!(all.rows.len() <= MOST_ROWS + 1);
        let [one, other] =
            [(-1, "new"), (-2, "newer")].map(|(tid, of)| all.number(&thread(tid, of)));
        assert_eq!(
            (one.subject, one.row),
            (None, other.row),
            "they share the row of all other threads"
        );
    }
}
