//! The options of a file: what it says of itself beside its pages.

use super::bytes::{Cursor, text_of};
use super::error::TraceDatError;

const DONE: u16 = 0;
const DATE: u16 = 1;
const CPUSTAT: u16 = 2;
const BUFFER: u16 = 3;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;
const OFFSET: u16 = 7;
const CPUCOUNT: u16 = 8;
const VERSION: u16 = 9;
const TSC2NSEC: u16 = 14;
const HEADER_INFO: u16 = 16;
const EVENT_FORMATS: u16 = 18;
const KALLSYMS: u16 = 19;
const CMDLINES: u16 = 21;
const BUFFER_TEXT: u16 = 22;

/// The longest option that is read, bytes: a buffer's has 20 bytes for each CPU.
const LONGEST: usize = 1 << 20;
/// A file has some dozens.
const MOST: usize = 1 << 16;

/// Where the kernel's TSC is in nanoseconds: `ticks * mult >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscScale {
    pub mult: u32,
    pub shift: u32,
}

impl TscScale {
    /// The rate of the TSC; `None` if the scale cannot be one.
    #[must_use]
    pub fn hz(&self) -> Option<u64> {
        if self.mult == 0 || self.shift > 63 {
            return None;
        }
        let scaled = 1_000_000_000_u128 << self.shift;
        let hz = (scaled + u128::from(self.mult) / 2) / u128::from(self.mult);
        u64::try_from(hz).ok().filter(|hz| *hz > 0)
    }
}

/// The places of sections that a file of version 7 names in its options.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    pub(super) header_info: Option<u64>,
    pub(super) event_formats: Option<u64>,
    pub(super) kallsyms: Option<u64>,
    pub(super) cmdlines: Option<u64>,
}

/// What the options say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kernel's name of the clock.
    pub clock: Option<String>,
    pub tsc_scale: Option<TscScale>,
    /// Ticks per second of the clock, if the file states them exactly.
    pub hz: Option<u64>,
    /// What is added to every time, nanoseconds.
    pub offset: i64,
    /// What is added to every time so that it is the time of day, microseconds.
    pub date_us: Option<i64>,
    /// `uname`: system, host, release, processor.
    pub uname: Option<String>,
    /// The program that wrote the file.
    pub program: Option<String>,
    /// Number of CPUs of the machine.
    pub cpus: Option<u32>,
    /// Records that the kernel says it lost, summed over the CPUs.
    pub overrun: u64,
    /// Buffers besides the first, as they are written.
    pub(super) buffers: Vec<Vec<u8>>,
    /// Whether the file names a clock; if not here, then after the table of pages.
    pub(super) has_clock: bool,
    /// Whether a buffer holds text.
    pub(super) has_text: bool,
    pub(super) places: Places,
}

impl Options {
    /// Reads options up to the last one of a section. Returns where the next section of them is; zero for none.
    pub(super) fn read(
        &mut self,
        from: &mut Cursor<'_>,
        has_size: bool,
    ) -> Result<u64, TraceDatError> {
        for _ in 0..MOST {
            let number = from.u16()?;
            if number == DONE && !has_size {
                return Ok(0);
            }
            let size = from.u32()?;
            if number == DONE {
                return from.u64();
            }
            if is_read(number) {
                let value = from.bytes(size.into(), LONGEST)?;
                self.take(number, value);
            } else {
                from.skip(size.into())?;
            }
        }
        Err(from.damaged("it has too many options"))
    }

    fn take(&mut self, number: u16, value: Vec<u8>) {
        let place = || value.first_chunk().copied().map(u64::from_le_bytes);
        match number {
            DATE => self.date_us = integer(&text_of(&value)),
            CPUSTAT => self.overrun = self.overrun.saturating_add(overrun(&text_of(&value))),
            BUFFER => self.buffers.push(value),
            TRACECLOCK => {
                self.clock = chosen(&text_of(&value));
                self.has_clock = true;
            }
            UNAME => self.uname = Some(text_of(&value)),
            OFFSET => self.offset = integer(&text_of(&value)).unwrap_or(0),
            CPUCOUNT => self.cpus = value.first_chunk().copied().map(u32::from_le_bytes),
            VERSION => self.program = Some(text_of(&value)),
            TSC2NSEC => {
                let word = |at: usize| {
                    let bytes = value.get(at..)?.first_chunk().copied()?;
                    Some(u32::from_le_bytes(bytes))
                };
                if let (Some(mult), Some(shift)) = (word(0), word(4)) {
                    self.tsc_scale = Some(TscScale { mult, shift });
                }
            }
            HEADER_INFO => self.places.header_info = place(),
            EVENT_FORMATS => self.places.event_formats = place(),
            KALLSYMS => self.places.kallsyms = place(),
            CMDLINES => self.places.cmdlines = place(),
            BUFFER_TEXT => self.has_text = true,
            _ => {}
        }
    }
}

fn is_read(number: u16) -> bool {
    matches!(
        number,
        DATE | CPUSTAT
            | BUFFER
            | TRACECLOCK
            | UNAME
            | OFFSET
            | CPUCOUNT
            | VERSION
            | TSC2NSEC
            | HEADER_INFO
            | EVENT_FORMATS
            | KALLSYMS
            | CMDLINES
            | BUFFER_TEXT
    )
}

/// A number as C writes it: `-5`, `0x1f`.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let number = match digits.strip_prefix("0x") {
        // The program writes the bits of a negative number.
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    number.checked_mul(sign)
}

/// The chosen clock of a list: `local [mono] boot`. A single name is itself.
pub(super) fn chosen(list: &str) -> Option<String> {
    let mut words = list.split_whitespace();
    let in_brackets = |word: &str| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    let found = words.clone().find_map(in_brackets);
    found.or_else(|| words.next().map(str::to_owned))
}

/// The records of a CPU that were overwritten or dropped, in a text of lines `overrun: 7`.
fn overrun(text: &str) -> u64 {
    let of_line = |line: &str| match line.split_once(':')? {
        ("overrun" | "commit overrun" | "dropped events", count) => {
            count.trim().parse::<u64>().ok()
        }
        _ => None,
    };
    text.lines()
        .filter_map(|line| of_line(line.trim()))
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_options_are_read_as_trace_cmd_writes_them() {
        assert_eq!(chosen("[local] global x86-tsc").as_deref(), Some("local"));
        assert_eq!(chosen("local global [x86-tsc]").as_deref(), Some("x86-tsc"));
        assert_eq!(chosen("mono").as_deref(), Some("mono"));
        assert_eq!(chosen(""), None);
        assert_eq!(integer("-1234"), Some(-1234));
        assert_eq!(integer("0x10"), Some(16));
        assert_eq!(integer("0xffffffffffffffff"), Some(-1));
        assert_eq!(integer("many"), None);
        let stats = "CPU: 1\nentries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 90\ndropped events: 2\nread events: 9\n";
        assert_eq!(overrun(stats), 10);
    }

    #[test]
    fn a_scale_gives_the_rate_that_it_was_made_of() {
        for hz in [1_000_000_000, 2_445_425_123, 3_000_000_001_u64] {
            let shift = 30;
            let mult = u32::try_from(
                ((1_000_000_000_u128 << shift) + u128::from(hz) / 2) / u128::from(hz),
            );
            let scale = TscScale {
                mult: mult.unwrap(),
                shift,
            };
            assert!(scale.hz().unwrap().abs_diff(hz) <= 4, "{hz}");
        }
        for scale in [(0, 3), (1, 64)] {
            let (mult, shift) = scale;
            assert_eq!(TscScale { mult, shift }.hz(), None);
        }
    }
}
