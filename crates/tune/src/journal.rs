//! The journal: what was there before, written down and synced before anything is touched.
//!
//! One JSON object a line, appended and synced; never rewritten. A line that is not whole (the machine
//! died while it was written) is the last one and is left out: what it announces was not begun.

use crate::goal::Goal;
use crate::op::{Op, Outcome};
use jitterscope_model::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Version of the journal's lines. Another version's journal is refused, never guessed at.
pub const JOURNAL_VERSION: u32 = 1;

/// Who asked for a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// User id.
    pub uid: u32,
    /// Login name, where known; the one behind sudo.
    pub name: Option<String>,
    /// Process id.
    pub pid: u32,
    /// Command line.
    pub command: String,
    /// Nanoseconds since the epoch.
    pub at_realtime_ns: u64,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// An apply begins.
    Begin {
        /// [`JOURNAL_VERSION`].
        version: u32,
        /// The kernel's id of this boot.
        boot_id: String,
        /// Who asked.
        who: Who,
        /// CPUs to be quiet.
        isolated: CpuSet,
        /// CPUs that do the work.
        housekeeping: CpuSet,
    },
    /// A step that is about to be taken; the last of one number counts.
    Intend {
        /// Its number in this journal.
        seq: u64,
        /// The knob it belongs to.
        knob: String,
        /// The change, with what there is before it.
        op: Op,
    },
    /// A step was taken.
    Done {
        /// Its number.
        seq: u64,
        /// How it ended.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// An apply has come to its end.
    End {
        /// Whether it stopped at a refusal.
        stopped: bool,
    },
    /// A step was undone, or needs no undoing any more.
    Undone {
        /// Its number.
        seq: u64,
        /// What was done about it.
        how: String,
    },
}

/// What went wrong with the journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("the journal {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A line in the middle makes no sense.
    #[error(
        "the journal {} is damaged at line {line} ({why}); nothing was changed: keep the file, it holds the original values",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// One step as the journal tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub seq: u64,
    /// Its knob.
    pub knob: String,
    /// The change.
    pub op: Op,
    /// Which of [`State::begins`] it belongs to.
    pub begin: usize,
    /// How it ended; `None` when it was not taken, or the machine died over it.
    pub outcome: Option<Outcome>,
    /// What was done to undo it; `None` while it stands.
    pub undone: Option<String>,
}

/// One apply as the journal tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The boot it happened in.
    pub boot_id: String,
    /// Who asked.
    pub who: Who,
    /// For which CPUs.
    pub goal: Goal,
    /// Whether it came to its end.
    pub ended: bool,
}

/// The journal, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Applies, oldest first.
    pub begins: Vec<Begun>,
    /// Steps, in the order in which they were to be taken.
    pub steps: Vec<Step>,
}

impl State {
    /// Steps that have not been undone, latest first.
    pub fn standing(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev().filter(|s| s.undone.is_none())
    }

    /// Whether anything is in force.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.standing().next().is_some()
    }

    /// The number of the next step.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.steps.iter().map(|s| s.seq + 1).max().unwrap_or(0)
    }

    fn take(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Begin { version, boot_id, who, isolated, housekeeping } => {
                if version != JOURNAL_VERSION {
                    return Err(format!("version {version}, this program writes {JOURNAL_VERSION}"));
                }
                let goal = Goal { isolated, housekeeping };
                self.begins.push(Begun { boot_id, who, goal, ended: false });
            }
            Record::Intend { seq, knob, op } => {
                let begin = self.begins.len().checked_sub(1).ok_or("a step before any beginning")?;
                match self.steps.iter_mut().find(|s| s.seq == seq) {
                    Some(step) => step.op = op,
                    None => self.steps.push(Step { seq, knob, op, begin, outcome: None, undone: None }),
                }
            }
            Record::Done { seq, outcome } => self.step(seq)?.outcome = Some(outcome),
            Record::Undone { seq, how } => self.step(seq)?.undone = Some(how),
            Record::End { .. } => {
                self.begins.last_mut().ok_or("an end before any beginning")?.ended = true;
            }
        }
        Ok(())
    }

    fn step(&mut self, seq: u64) -> Result<&mut Step, String> {
        self.steps.iter_mut().find(|s| s.seq == seq).ok_or_else(|| format!("no step {seq}"))
    }
}

/// Understands the journal's text.
///
/// # Errors
/// A whole line makes no sense; line number and reason.
pub fn parse(text: &str) -> Result<State, (usize, String)> {
    let mut state = State::default();
    let mut steps: BTreeMap<usize, &str> = BTreeMap::new();
    for (i, line) in text.split_inclusive('\n').enumerate() {
        match line.strip_suffix('\n') {
            Some(whole) if !whole.trim().is_empty() => {
                steps.insert(i + 1, whole);
            }
            // Torn off, or empty: nothing was done on its account.
            _ => {}
        }
    }
    for (number, line) in steps {
        let record: Record = serde_json::from_str(line).map_err(|e| (number, e.to_string()))?;
        state.take(record).map_err(|why| (number, why))?;
    }
    Ok(state)
}

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Reads the journal at `path`; an empty state when there is none.
    ///
    /// # Errors
    /// It cannot be read or is damaged.
    pub fn load(path: &Path) -> Result<State, JournalError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
            Err(source) => return Err(JournalError::Io { path: path.to_owned(), source }),
        };
        parse(&text).map_err(|(line, why)| JournalError::Damaged { path: path.to_owned(), line, why })
    }

    /// Opens it to append, and cuts off a line that is not whole.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let file = OpenOptions::new().create(true).append(true).read(true).open(path).map_err(io_error)?;
        let text = std::fs::read(path).map_err(io_error)?;
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(io_error)?;
        }
        if let Some(folder) = path.parent() {
            File::open(folder).and_then(|f| f.sync_all()).map_err(io_error)?;
        }
        Ok(Journal { path: path.to_owned(), file })
    }

    /// Appends lines and syncs them to the disk before it returns.
    ///
    /// # Errors
    /// The disk is full or broken: then nothing may be touched.
    pub fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let io_error = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = String::new();
        for record in records {
            text.push_str(&serde_json::to_string(record).map_err(|e| io_error(io::Error::other(e)))?);
            text.push('\n');
        }
        self.file.write_all(text.as_bytes()).map_err(io_error)?;
        self.file.sync_data().map_err(io_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ValueKind;
    use proptest::prelude::*;

    fn text() -> String {
        let records = [
            Record::Begin {
                version: JOURNAL_VERSION,
                boot_id: "b".into(),
                who: Who { uid: 0, name: None, pid: 1, command: "x".into(), at_realtime_ns: 5 },
                isolated: "1".parse().unwrap(),
                housekeeping: "0".parse().unwrap(),
            },
            Record::Intend {
                seq: 0,
                knob: "vmstat".into(),
                op: Op::Write {
                    path: "/proc/sys/vm/stat_interval".into(),
                    kind: ValueKind::Number,
                    from: Some("1\n".into()),
                    to: "3600".into(),
                    effective: None,
                },
            },
            Record::Done { seq: 0, outcome: Outcome::Applied { reads: "3600".into() } },
            Record::End { stopped: false },
            Record::Undone { seq: 0, how: "restored".into() },
        ];
        records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect()
    }

    #[test]
    fn a_journal_cut_anywhere_is_understood_and_never_forgets_a_step_begun() {
        let text = text();
        for cut in 0..=text.len() {
            let state = parse(&text[..cut]).unwrap();
            // Once a step's line is whole it stands until its undoing is whole.
            let lines = text[..cut].matches('\n').count();
            assert_eq!(state.is_active(), (2..5).contains(&lines), "cut at {cut}");
        }
    }

    #[test]
    fn opening_cuts_off_the_torn_line_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let text = text();
        std::fs::write(&path, &text[..text.len() - 3]).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&[Record::Undone { seq: 0, how: "again".into() }]).unwrap();
        let state = Journal::load(&path).unwrap();
        assert_eq!(state.steps[0].undone.as_deref(), Some("again"));
    }

    #[test]
    fn damage_and_other_versions_are_refused_with_their_line() {
        let damaged = text().replacen("\"record\":\"done\"", "\"record\":\"dnoe\"", 1);
        assert_eq!(parse(&damaged).unwrap_err().0, 3);
        let other = text().replacen("\"version\":1", "\"version\":2", 1);
        assert_eq!(parse(&other).unwrap_err().0, 1);
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "[ -~\n]{0,200}") {
            let _ = parse(&text);
        }
    }
}
