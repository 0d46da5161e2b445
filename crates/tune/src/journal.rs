//! The journal: the original values, written and synced before anything is changed.
//!
//! One JSON object per line, appended and synced, never rewritten. An incomplete line is the last one, because the
//! machine died while writing it. It is ignored: the step that it announces was not begun.
//!
//! The last field of a line, `chain`, is a checksum ([`sealed`]) of the line and everything before it. It distinguishes
//! an edited, removed or inserted line from a torn one. It protects against mistakes, not against attacks; the folder,
//! which only root can write to, does that.

use crate::goal::Goal;
use crate::op::{Op, Outcome};
use jitterscope_model::{CpuSet, Nanos};
use jitterscope_platform::{TrustError, TrustedFolder};
use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// The journal's file in the state folder.
pub const JOURNAL: &str = "journal.jsonl";

/// The previous journal, in the same folder.
pub const LAST_JOURNAL: &str = "journal.last.jsonl";

/// Version of the journal's lines. Other versions are refused.
pub const JOURNAL_VERSION: u32 = 3;

/// The user who requested a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Who {
    pub uid: u32,
    /// Login name, if known; under sudo, the user who called it.
    pub name: Option<String>,
    pub pid: u32,
    pub command: String,
    /// Nanoseconds since the epoch.
    pub at_realtime_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    Begin {
        /// [`JOURNAL_VERSION`].
        version: u32,
        /// The kernel's id of this boot.
        boot_id: String,
        who: Who,
        isolated: CpuSet,
        housekeeping: CpuSet,
        /// Time since the boot, if known.
        #[serde(default)]
        uptime: Option<Nanos>,
    },
    /// A step that is about to be made; the last one with a number counts.
    Intend {
        /// Its number in this journal.
        seq: u64,
        /// The knob it belongs to.
        knob: String,
        /// The change, with the original.
        op: Op,
    },
    /// A step was made.
    Done {
        seq: u64,
        #[serde(flatten)]
        outcome: Outcome,
        /// When, nanoseconds since the epoch, if the clock is available.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_realtime_ns: Option<u64>,
    },
    /// An apply is complete.
    End {
        /// Whether it stopped at a refusal.
        stopped: bool,
    },
    /// A step was undone, or needs no undoing any more.
    Undone {
        seq: u64,
        /// How it was settled.
        how: String,
        /// When the original was written back, nanoseconds since the epoch; `None` if that was unnecessary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored_realtime_ns: Option<u64>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("the journal {}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Another user may have written it.
    #[error("the journal determines what is written back to the machine: {0}")]
    Trust(#[from] TrustError),
    /// A complete line is invalid or was changed.
    #[error(
        "the journal {} is damaged at line {line} ({why}); nothing was changed. It contains the original values: restore them manually, then move the journal away",
        path.display()
    )]
    Damaged {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        why: String,
    },
}

/// One step from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub seq: u64,
    pub knob: String,
    pub op: Op,
    /// Its index in [`State::begins`].
    pub begin: usize,
    /// Its result; `None` if it was not made, or the machine died during it.
    pub outcome: Option<Outcome>,
    /// When it was made, nanoseconds since the epoch, if known.
    pub done_at: Option<u64>,
    /// How it was undone; `None` while it stands.
    pub undone: Option<String>,
    /// When the original was written back, nanoseconds since the epoch, if it was and the time is known.
    pub restored_at: Option<u64>,
}

/// One apply from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The boot in which it happened.
    pub boot_id: String,
    pub who: Who,
    pub goal: Goal,
    /// Whether it is complete.
    pub ended: bool,
    /// Time from the boot to it, if known.
    pub uptime: Option<Nanos>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub begins: Vec<Begun>,
    /// Steps, in the intended order.
    pub steps: Vec<Step>,
}

impl State {
    /// Steps that have not been undone, latest first.
    pub fn standing(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev().filter(|s| s.undone.is_none())
    }

    #[must_use]
    pub fn is_active(&self) -> bool {
        self.standing().next().is_some()
    }

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
                uptime,
            } => {
                if version != JOURNAL_VERSION {
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
                    uptime,
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

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub state: State,
    /// The checksum so far.
    chain: u32,
    /// Bytes in complete lines; the rest is torn.
    whole: usize,
}

/// Parses the journal's text.
///
/// # Errors
/// A complete line is invalid, or its checksum does not match: line number and reason.
pub fn parse(text: &[u8]) -> Result<Parsed, (usize, String)> {
    let mut parsed = Parsed::default();
    for (i, line) in text.split_inclusive(|b| *b == b'\n').enumerate() {
        // A torn line: its step was not begun.
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
            Some(seal) if seal == parsed.chain => {}
            Some(_) => {
                let why = "its checksum does not fit: it was edited, or a line before it was removed or put in";
                return Err(fault(why.into()));
            }
            None => return Err(fault("it has no checksum".into())),
        }
        let record: Record = serde_json::from_str(&record).map_err(|e| fault(e.to_string()))?;
        parsed.state.take(record).map_err(fault)?;
    }
    Ok(parsed)
}

/// CRC-32 of the previous checksum (4 bytes, lowest first) and the record's JSON.
fn chained(before: u32, record: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&before.to_le_bytes());
    hasher.update(record.as_bytes());
    hasher.finalize()
}

const SEAL: &str = ",\"chain\":\"";

/// The record's JSON with its checksum as the last field.
fn sealed(record: &str, chain: u32) -> String {
    let open = record.strip_suffix('}').unwrap_or(record);
    format!("{open}{SEAL}{chain:08x}\"}}")
}

/// The JSON without its checksum, and the checksum; `None` if the line has none.
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

#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    chain: u32,
}

impl Journal {
    /// Reads the journal of a state folder; an empty state if there is none.
    ///
    /// # Errors
    /// It cannot be read, could be another user's, or is damaged.
    pub fn load(folder: &TrustedFolder) -> Result<State, JournalError> {
        Ok(Journal::parsed(folder, JOURNAL)?.state)
    }

    /// Reads the previous journal; an empty state if there is none.
    ///
    /// # Errors
    /// It cannot be read, could be another user's, or is damaged.
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

    /// Opens it for appending, and cuts off an incomplete line.
    ///
    /// # Errors
    /// It cannot be opened, could be another user's, or is damaged.
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
    /// The disk is full or broken: then nothing may be changed.
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
