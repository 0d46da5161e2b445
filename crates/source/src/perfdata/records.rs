//! The records of a file, one after another, in bounded memory.

use super::error::PerfDataError;
use super::header::Header;
use super::sample::{Form, Sample, renamed};
use crate::tracedat::ReadAt;
use jitterscope_model::{Comm, CpuId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is read at once, bytes: more than the longest record.
const AT_ONCE: usize = 1 << 20;
/// The head of a record: type, flags, length.
const HEAD: usize = 8;

const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED_2: u32 = 83;

/// What a record says.
pub(super) enum Found<'a> {
    Sample(Sample<'a>),
    /// A sample that ends too early, or without a tracepoint's bytes.
    NoBytes,
    /// All records before the end of the previous round are read.
    Round,
    /// The kernel lost records.
    Lost {
        at: Option<(u64, CpuId)>,
        count: u64,
    },
    /// The sum of an event's losses, which perf writes at the end: records of `Lost` are in it.
    LostInAll {
        count: u64,
    },
    /// A thread has a new name.
    Name {
        tid: i32,
        comm: Comm,
    },
}

/// The records.
pub(super) struct Records<'f> {
    file: &'f dyn ReadAt,
    stop: &'f AtomicBool,
    forms: &'f [Form],
    numbers: &'f HashMap<u64, usize>,
    /// Where the event's number is in each sample; `None`: all have the same form.
    number_at: Option<usize>,
    /// The next byte of the file to read, and the end of the records.
    at: u64,
    end: u64,
    ready: Vec<u8>,
    used: usize,
    cut: bool,
}

impl<'f> Records<'f> {
    /// Reads until `stop` becomes true.
    pub(super) fn new(
        file: &'f dyn ReadAt,
        header: &'f Header,
        stop: &'f AtomicBool,
    ) -> Records<'f> {
        let forms = &header.forms;
        let alike = forms.iter().all(|form| Some(form) == forms.first());
        Records {
            file,
            stop,
            forms,
            numbers: &header.numbers,
            number_at: forms.first().filter(|_| !alike).and_then(Form::number_at),
            at: header.data.at,
            end: header.data.at.saturating_add(header.data.size),
            ready: Vec::new(),
            used: 0,
            cut: false,
        }
    }

    /// Whether the records end in the middle of one, or with one that cannot be.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// The next record that says something; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, is compressed, or its samples lack what places them; the user ended it.
    pub(super) fn next(&mut self) -> Result<Option<Found<'_>>, PerfDataError> {
        loop {
            let Some((kind, from, to)) = self.locate()? else {
                return Ok(None);
            };
            match kind {
                COMPRESSED | COMPRESSED_2 => return Err(PerfDataError::Compressed),
                FINISHED_ROUND => return Ok(Some(Found::Round)),
                AUXTRACE => {
                    // Its data follow the record.
                    let size = word(&self.ready[from..to], 0).unwrap_or(0);
                    self.pass(size);
                    continue;
                }
                SAMPLE => {
                    let body = &self.ready[from..to];
                    let Some(form) = self.form(word(body, self.number_at.unwrap_or(0))) else {
                        return Ok(Some(Found::NoBytes));
                    };
                    if !form.is_tracepoint {
                        continue;
                    }
                    if let Some(what) = form.lacks() {
                        return Err(PerfDataError::Lacks { what });
                    }
                    let sample = form.sample(&self.ready[from..to]);
                    return Ok(Some(sample.map_or(Found::NoBytes, Found::Sample)));
                }
                LOST => {
                    let body = &self.ready[from..to];
                    let count = word(body, 8).unwrap_or(1);
                    // It begins with the number of its event.
                    let form = self.form(word(body, 0));
                    let at = form.and_then(|form| form.place_of_other(body));
                    return Ok(Some(Found::Lost { at, count }));
                }
                LOST_SAMPLES => {
                    let count = word(&self.ready[from..to], 0).unwrap_or(1);
                    return Ok(Some(Found::LostInAll { count }));
                }
                COMM => {
                    if let Some((tid, comm)) = renamed(&self.ready[from..to]) {
                        return Ok(Some(Found::Name { tid, comm }));
                    }
                }
                _ => {}
            }
        }
    }

    /// The form of a sample, whose number is given where forms differ.
    fn form(&self, number: Option<u64>) -> Option<Form> {
        match self.number_at {
            None => self.forms.first().copied(),
            Some(_) => self.forms.get(*self.numbers.get(&number?)?).copied(),
        }
    }

    /// The type of the next record and where its body is among the bytes that are ready.
    fn locate(&mut self) -> Result<Option<(u32, usize, usize)>, PerfDataError> {
        if !self.has(HEAD)? {
            return Ok(None);
        }
        let head = &self.ready[self.used..][..HEAD];
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = usize::from(u16::from_le_bytes([head[6], head[7]]));
        if length < HEAD {
            // Nothing says where the next record begins.
            self.give_up();
            return Ok(None);
        }
        if !self.has(length)? {
            return Ok(None);
        }
        let from = self.used + HEAD;
        self.used += length;
        Ok(Some((kind, from, self.used)))
    }

    /// Whether so many bytes of records follow; reads them if necessary. Short of them, the records are cut off.
    fn has(&mut self, wanted: usize) -> Result<bool, PerfDataError> {
        if self.ready.len() - self.used >= wanted {
            return Ok(true);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(PerfDataError::Stopped);
        }
        self.ready.drain(..self.used);
        self.used = 0;
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let begin = self.ready.len();
        self.ready.resize(begin + left.min(AT_ONCE), 0);
        let read = self.file.read_at(self.at, &mut self.ready[begin..])?;
        self.at = self.at.saturating_add(read as u64);
        self.ready.truncate(begin + read);
        if self.ready.len() >= wanted {
            return Ok(true);
        }
        // The end of the file before that of its records is a cut, too.
        if !self.ready.is_empty() || self.at < self.end {
            self.give_up();
        }
        Ok(false)
    }

    /// Passes over bytes.
    fn pass(&mut self, bytes: u64) {
        let ready = self.ready.len() - self.used;
        let here = usize::try_from(bytes).map_or(ready, |bytes| bytes.min(ready));
        self.used += here;
        self.at = self.at.saturating_add(bytes - here as u64);
    }

    fn give_up(&mut self) {
        self.cut = true;
        self.ready.clear();
        self.used = 0;
        self.at = self.end;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}
