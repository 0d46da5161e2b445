//! A record's fields: which it has, and where.

use jitterscope_model::{Comm, CpuId};

const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

const READ_TIME_ENABLED: u64 = 1 << 0;
const READ_TIME_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// How the records of an event are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// The fields of a sample, by their bits.
    pub(super) sample: u64,
    /// The fields of a counter's value within it.
    pub(super) read: u64,
    /// Whether records that are no samples end with some of these fields.
    pub(super) on_all: bool,
    pub(super) is_tracepoint: bool,
}

/// What places a sample, and the bytes of its tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    pub(super) time: u64,
    pub(super) cpu: CpuId,
    pub(super) bytes: &'a [u8],
}

/// Numbers one after another.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// The lower half of a word.
    fn half(&mut self) -> Option<u32> {
        self.u64().map(|word| word as u32)
    }

    fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl Form {
    fn has(&self, field: u64) -> bool {
        self.sample & field != 0
    }

    /// The field that the samples lack and without which they have no place.
    pub(super) fn lacks(&self) -> Option<&'static str> {
        let needed = [
            (TIME, "time"),
            (CPU, "CPU"),
            (RAW, "bytes of their tracepoints"),
        ];
        let missing = needed.into_iter().find(|(field, _)| !self.has(*field));
        missing.map(|(_, what)| what)
    }

    /// Where the number of the event is, bytes from the beginning of a sample.
    pub(super) fn number_at(&self) -> Option<usize> {
        if self.has(IDENTIFIER) {
            return Some(0);
        }
        let before = [IP, TID, TIME, ADDR]
            .into_iter()
            .filter(|field| self.has(*field));
        self.has(ID).then(|| before.count() * 8)
    }

    /// A sample; `None` if it ends too early or has no bytes.
    pub(super) fn sample<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let mut words = Words(body);
        let (mut time, mut cpu) = (None, None);
        for field in [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD] {
            if !self.has(field) {
                continue;
            }
            match field {
                TIME => time = words.u64(),
                CPU => cpu = words.half(),
                _ => drop(words.u64()?),
            }
        }
        if self.has(READ) {
            self.pass_counters(&mut words)?;
        }
        if self.has(CALLCHAIN) {
            let calls = words.u64()?;
            words.take(calls.checked_mul(8)?)?;
        }
        let (size, rest) = words.0.split_first_chunk::<4>()?;
        words.0 = rest;
        let bytes = words.take(u32::from_le_bytes(*size).into())?;
        Some(Sample {
            time: time?,
            cpu: CpuId(cpu?),
            bytes,
        })
    }

    fn pass_counters(&self, words: &mut Words<'_>) -> Option<()> {
        let has = |field: u64| u64::from(self.read & field != 0);
        let times = has(READ_TIME_ENABLED) + has(READ_TIME_RUNNING);
        let each = 1 + has(READ_ID) + has(READ_LOST);
        let rest = match self.read & READ_GROUP {
            0 => times + each,
            _ => words.u64()?.checked_mul(each)?.checked_add(times)?,
        };
        words.take(rest.checked_mul(8)?).map(drop)
    }

    /// Time and CPU of a record that is no sample: they are among its last words.
    pub(super) fn place_of_other(&self, body: &[u8]) -> Option<(u64, CpuId)> {
        if !self.on_all || !self.has(CPU) || !self.has(TIME) {
            return None;
        }
        let word = |behind: &[u64]| {
            let words = behind.iter().filter(|field| self.has(**field)).count();
            let at = body.len().checked_sub(8 * (words + 1))?;
            Words(body.get(at..)?).u64()
        };
        let cpu = word(&[IDENTIFIER])?;
        Some((word(&[ID, STREAM_ID, CPU, IDENTIFIER])?, CpuId(cpu as u32)))
    }
}

/// The thread and its new name in the record of a renaming.
pub(super) fn renamed(body: &[u8]) -> Option<(i32, Comm)> {
    let tid = body.get(4..)?.first_chunk::<4>()?;
    let name = body.get(8..)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    let tid = i32::from_le_bytes(*tid);
    (tid > 0 && end > 0).then(|| (tid, Comm::from_bytes(&name[..end])))
}
