//! Processes with meaningless names: a process that renames itself all the time would fill more rows than a user can
//! read, and crowd out the others.

use super::{CulpritKey, KeyLevel, Subject};
use crate::{KeyedMap, Name};

/// Distinct names of a process at [`KeyLevel::Program`]: a shell that becomes a wrapper and then a program has a few.
/// Threads with the name of their process do not count.
const MOST_OF_PROGRAM: usize = 8;
/// The same at [`KeyLevel::Name`], where each thread's name counts.
const MOST_OF_NAME: usize = 256;
/// Names to remember of all processes together; beyond it all are forgotten. Process ids are reused, and the names of
/// an id's earlier process do not count against its new one.
const MOST_REMEMBERED: usize = 4096;

/// Assigns keys, and counts each process's names. A process with too many names gets a single key for all of them.
#[derive(Clone, Debug, Default)]
pub struct Crowds {
    /// By process id.
    names: KeyedMap<i32, Vec<Name>>,
    /// The number of names in all of them.
    remembered: usize,
    changes: u64,
}

impl Crowds {
    /// The key of a subject at `level`, and the actual level of that key: `level`, or [`KeyLevel::Process`].
    pub fn key(&mut self, subject: &Subject, level: KeyLevel) -> (CulpritKey, KeyLevel) {
        let level = if self.is_crowd(subject, level) {
            KeyLevel::Process
        } else {
            level
        };
        (CulpritKey::of(subject, level), level)
    }

    /// A counter that changes whenever a subject may have a new key.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn is_crowd(&mut self, subject: &Subject, level: KeyLevel) -> bool {
        let Subject::Thread(task) = subject else {
            return false;
        };
        let (name, most) = match level {
            KeyLevel::Program => (task.program(), MOST_OF_PROGRAM),
            KeyLevel::Name => (&task.comm, MOST_OF_NAME),
            _ => return false,
        };
        // Kernel threads do not rename themselves.
        let Some(process) = task.tgid.filter(|_| task.kernel != Some(true)) else {
            return false;
        };
        if self.remembered >= MOST_REMEMBERED {
            self.names.clear();
            self.remembered = 0;
            self.changes += 1;
        }
        let names = self.names.entry(process).or_default();
        if names.len() > most {
            return true;
        }
        if !names.contains(name) {
            names.push(name.clone());
            self.remembered += 1;
            self.changes += u64::from(names.len() > most);
        }
        names.len() > most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    fn thread(tgid: i32, comm: &str, kernel: Option<bool>) -> Subject {
        Subject::Thread(Task {
            tid: Some(tgid),
            tgid: Some(tgid),
            comm: comm.into(),
            kernel,
            ..Task::default()
        })
    }

    #[test]
    fn a_process_of_many_names_has_one_key_and_others_keep_theirs() {
        let mut crowds = Crowds::default();
        let mut level = |of: &Subject| crowds.key(of, KeyLevel::Program).1;
        for n in 0..MOST_OF_PROGRAM {
            assert_eq!(level(&thread(7, &format!("n{n}"), None)), KeyLevel::Program);
        }
        assert_eq!(level(&thread(7, "n0", None)), KeyLevel::Program, "again");
        assert_eq!(level(&thread(7, "one more", None)), KeyLevel::Process);
        // From now on, also under one of its earlier names, or under another process's name.
        assert_eq!(level(&thread(8, "bash", None)), KeyLevel::Program);
        for name in ["n0", "bash"] {
            assert_eq!(level(&thread(7, name, None)), KeyLevel::Process, "{name}");
        }
        assert_eq!(level(&thread(8, "bash", None)), KeyLevel::Program);
        for n in 0..20 {
            let own = thread(9, &format!("kernel's {n}"), Some(true));
            assert_eq!(level(&own), KeyLevel::Program);
            // A thread whose process is unknown.
            let unknown = Task {
                comm: format!("n{n}").into(),
                ..Task::default()
            };
            assert_eq!(level(&Subject::Thread(unknown)), KeyLevel::Program);
        }
    }

    #[test]
    fn what_is_remembered_of_names_is_bounded() {
        let mut crowds = Crowds::default();
        for n in 0..3 * MOST_REMEMBERED as i32 {
            crowds.key(&thread(n % 700, &format!("n{n}"), None), KeyLevel::Name);
            let remembered: usize = crowds.names.values().map(Vec::len).sum();
            assert!(remembered == crowds.remembered && remembered <= MOST_REMEMBERED);
        }
        assert!(crowds.changes() > 0);
    }
}
