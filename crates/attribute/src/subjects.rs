//! Subjects by number: the same few occur again and again, and a number is compared and looked up at once.

use jitterscope_model::{CulpritKey, KeyLevel, KeyedMap, Subject};

/// Subjects that have a number; of more of them only the row is known.
const MOST_SUBJECTS: usize = 1 << 14;
/// Rows told apart; more share one a kind.
const MOST_ROWS: usize = 1 << 14;

/// Stands for a subject: equal numbers, equal subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubjectNo {
    /// Which subject; `None` of those beyond the ones that have a number.
    pub(crate) subject: Option<u32>,
    /// Which row of sums by name it belongs to.
    pub(crate) row: u32,
}

/// All that were met.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    numbers: KeyedMap<Subject, SubjectNo>,
    rows: KeyedMap<CulpritKey, u32>,
}

impl Subjects {
    /// How finely rows are told apart.
    pub(crate) const LEVEL: KeyLevel = KeyLevel::Name;

    /// The number of a subject.
    pub(crate) fn number(&mut self, subject: &Subject) -> SubjectNo {
        if let Some(known) = self.numbers.get(subject) {
            return *known;
        }
        let row = self.row(subject);
        if self.numbers.len() >= MOST_SUBJECTS {
            return SubjectNo { subject: None, row };
        }
        let number = SubjectNo {
            subject: u32::try_from(self.numbers.len()).ok(),
            row,
        };
        self.numbers.insert(subject.clone(), number);
        number
    }

    fn row(&mut self, subject: &Subject) -> u32 {
        let key = CulpritKey::of(subject, Self::LEVEL);
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if self.rows.len() < MOST_ROWS || self.rows.contains_key(&key) {
            return *self.rows.entry(key).or_insert(next);
        }
        let others = CulpritKey::of(&Subject::Others(key.kind()), Self::LEVEL);
        *self.rows.entry(others).or_insert(next)
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
