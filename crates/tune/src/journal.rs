//! The journal: what was there before, written down and synced before anything is touched.
//!
//! One JSON object a line, appended and synced; never rewritten. A line that is not whole (the machine
//! died while it was written) is the last one and is left out: what it announces was not begun.
//!
//! The last field of a line, `chain`, is a checksum ([`sealed`]) of the line and all before it, so that a
//! line that was edited, removed or put in is told from one that was torn off. It keeps mistakes out, not
//! malice: that does the folder, which only root can write to. Version 1 had no checksums. Its lines are
//! taken as they are as long as none with a checksum came before them; what is appended to them is sealed.

use crate::goal::Goal;
use crate::op::{Op, Outcome};
use jitterscope_model::CpuSet;
use jitterscope_platform::{TrustError, TrustedFolder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// The journal's file in the state folder.
pub const JOURNAL: &str = "journal.jsonl";

/// The journal that was put away last, beside it.
pub const LAST_JOURNAL: &str = "journal.last.jsonl";

/// Version of the journal's lines; version 1 is read, too. Another's is refused, never guessed at.
pub const JOURNAL_VERSION: u32 = 2;

/// The version whose lines had no checksum.
const WITHOUT_CHECKSUMS: u32 = 1;

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
        /// When, nanoseconds since the epoch; journals of earlier programs do not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_realtime_ns: Option<u64>,
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
        /// When the original was written back, nanoseconds since the epoch; `None` when that was not needed,
        /// and in journals of earlier programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored_realtime_ns: Option<u64>,
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
    /// Somebody else may have written it.
    #[error("the journal says what is written back to the machine: {0}")]
    Trust(#[from] TrustError),
    /// A whole line makes no sense, or is not as it was written.
    #[error(
        "the journal {} is damaged at line {line} ({why}); nothing was changed: it holds the original values, so put them back by hand, then move it out of the way",
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
    /// When it was taken, nanoseconds since the epoch, where that is known.
    pub done_at: Option<u64>,
    /// What was done to undo it; `None` while it stands.
    pub undone: Option<String>,
    /// When the original was written back, nanoseconds since the epoch, where it was and that is known.
    pub restored_at: Option<u64>,
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
            Record::Begin {
                version,
                boot_id,
                who,
                isolated,
                housekeeping,
            } => {
                if !(WITHOUT_CHECKSUMS..=JOURNAL_VERSION).contains(&version) {
                    return Err(format!(
                        "version {version}, this program writes {JOURNAL_VERSION}"
                    ));
                }
                let goal = Goal {
                    isolated,
                    housekeeping,
                };
                self.begins.push(Begun {
                    boot_id,
                    who,
                    goal,
                    ended: false,
                });
            }
            Record::Intend { seq, knob, op } => {
                let begin = self
                    .begins
                    .len()
                    .checked_sub(1)
                    .ok_or("a step before any beginning")?;
                if seq == u64::MAX {
                    return Err(format!("step {seq} leaves no number for the next one"));
                }
                match self.steps.iter_mut().find(|s| s.seq == seq) {
                    Some(step) => step.op = op,
                    None => self.steps.push(Step {
                        seq,
                        knob,
                        op,
                        begin,
                        outcome: None,
                        done_at: None,
                        undone: None,
                        restored_at: None,
                    }),
                }
            }
            Record::Done {
                seq,
                outcome,
                at_realtime_ns,
            } => {
                let step = self.step(seq)?;
                (step.outcome, step.done_at) = (Some(outcome), at_realtime_ns);
            }
            Record::Undone {
                seq,
                how,
                restored_realtime_ns,
            } => {
                let step = self.step(seq)?;
                (step.undone, step.restored_at) = (Some(how), restored_realtime_ns);
            }
            Record::End { .. } => {
                self.begins
                    .last_mut()
                    .ok_or("an end before any beginning")?
                    .ended = true;
            }
        }
        Ok(())
    }

    fn step(&mut self, seq: u64) -> Result<&mut Step, String> {
        self.steps
            .iter_mut()
            .find(|s| s.seq == seq)
            .ok_or_else(|| format!("no step {seq}"))
    }
}

/// A journal's text, understood.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// What it tells.
    pub state: State,
    /// The checksum so far.
    chain: u32,
    /// Bytes in whole lines; what follows is torn off.
    whole: usize,
}

/// Understands the journal's text.
///
/// # Errors
/// A whole line makes no sense, or its checksum does not fit; line number and reason.
pub fn parse(text: &[u8]) -> Result<Parsed, (usize, String)> {
    let mut parsed = Parsed::default();
    let mut any_sealed = false;
    for (i, line) in text.split_inclusive(|b| *b == b'\n').enumerate() {
        // Torn off: nothing was done on its account.
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        let fault = |why: String| (i + 1, why);
        parsed.whole += line.len() + 1;
        let line = std::str::from_utf8(line).map_err(|e| fault(e.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let (record, seal) = unsealed(line);
        parsed.chain = chained(parsed.chain, &record);
        match seal {
            Some(seal) if seal == parsed.chain => any_sealed = true,
            Some(_) => {
                let why = "its checksum does not fit: it was edited, or a line before it was removed or put in";
                return Err(fault(why.into()));
            }
            None if any_sealed => {
                return Err(fault(
                    "it has no checksum, though lines before it have".into(),
                ));
            }
            None => {}
        }
        let record: Record = serde_json::from_str(&record).map_err(|e| fault(e.to_string()))?;
        if let (Record::Begin { version, .. }, None) = (&record, seal)
            && *version > WITHOUT_CHECKSUMS
        {
            return Err(fault("it has no checksum".into()));
        }
        parsed.state.take(record).map_err(fault)?;
    }
    Ok(parsed)
}

/// CRC-32 of the checksum before it (4 bytes, the lowest first) and the record's JSON.
fn chained(before: u32, record: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&before.to_le_bytes());
    hasher.update(record.as_bytes());
    hasher.finalize()
}

const SEAL: &str = ",\"chain\":\"";

/// The record's JSON with its checksum as its last field.
fn sealed(record: &str, chain: u32) -> String {
    let open = record.strip_suffix('}').unwrap_or(record);
    format!("{open}{SEAL}{chain:08x}\"}}")
}

/// The JSON as it was before it was sealed, and the checksum; `None` when the line has none.
fn unsealed(line: &str) -> (String, Option<u32>) {
    let seal = line.strip_suffix("\"}").and_then(|rest| {
        let (open, digits) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
        let is_ours = digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let chain = is_ours.then(|| u32::from_str_radix(digits, 16).ok())??;
        Some((format!("{}}}", open.strip_suffix(SEAL)?), chain))
    });
    match seal {
        Some((record, chain)) => (record, Some(chain)),
        None => (line.to_owned(), None),
    }
}

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    chain: u32,
}

impl Journal {
    /// Reads the journal of a state folder; an empty state when there is none.
    ///
    /// # Errors
    /// It cannot be read, could be somebody else's, or is damaged.
    pub fn load(folder: &TrustedFolder) -> Result<State, JournalError> {
        Ok(Journal::parsed(folder, JOURNAL)?.state)
    }

    /// Reads the journal that was put away last; an empty state when there is none.
    ///
    /// # Errors
    /// It cannot be read, could be somebody else's, or is damaged.
    pub fn load_last(folder: &TrustedFolder) -> Result<State, JournalError> {
        Ok(Journal::parsed(folder, LAST_JOURNAL)?.state)
    }

    fn parsed(folder: &TrustedFolder, name: &str) -> Result<Parsed, JournalError> {
        let text = folder.read(name)?.unwrap_or_default();
        let damaged = |(line, why)| JournalError::Damaged {
            path: folder.path().join(name),
            line,
            why,
        };
        parse(&text).map_err(damaged)
    }

    /// Opens it to append, and cuts off a line that is not whole.
    ///
    /// # Errors
    /// It cannot be opened, could be somebody else's, or is damaged.
    pub fn open(folder: &TrustedFolder) -> Result<Journal, JournalError> {
        let path = folder.path().join(JOURNAL);
        let file = folder.open_or_make(JOURNAL, OFlags::WRONLY | OFlags::APPEND, 0o644)?;
        let Parsed { chain, whole, .. } = Journal::parsed(folder, JOURNAL)?;
        let torn = file.metadata().and_then(|m| match whole as u64 {
            whole if whole < m.len() => file.set_len(whole),
            _ => Ok(()),
        });
        torn.map_err(|source| JournalError::Io {
            path: path.clone(),
            source,
        })?;
        folder.sync()?;
        Ok(Journal { path, file, chain })
    }

    /// Appends lines and syncs them to the disk before it returns.
    ///
    /// # Errors
    /// The disk is full or broken: then nothing may be touched.
    pub fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let io_error = |source| JournalError::Io {
            path: self.path.clone(),
            source,
        };
        let (mut text, mut chain) = (String::new(), self.chain);
        for record in records {
            let record =
                serde_json::to_string(record).map_err(|e| io_error(io::Error::other(e)))?;
            chain = chained(chain, &record);
            text.push_str(&sealed(&record, chain));
            text.push('\n');
        }
        self.file.write_all(text.as_bytes()).map_err(io_error)?;
        self.file.sync_data().map_err(io_error)?;
        self.chain = chain;
        Ok(())
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
