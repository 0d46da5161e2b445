//! Records in the form of the kernel's ring buffer that we make of another tool's events.

use crate::context::FormatText;

/// The head of every record: type, flags, preemption depth, thread.
pub(crate) const HEAD: usize = 8;
pub(crate) const FLAGS: usize = 2;
pub(crate) const THREAD: usize = 4;
/// The longest text or list of bytes that is kept.
const LONGEST: usize = 512;
/// How our own pages are laid out: as the kernel's are on a machine with pages of 4 KiB.
pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
const HARD: u8 = 0x08;
const SOFT: u8 = 0x10;

/// The format of an event whose own fields `lines` describe.
pub(crate) fn format(id: u16, (system, event): (&str, &str), lines: &str) -> FormatText {
    FormatText {
        system: system.into(),
        text: format!("name: {event}\nID: {id}\nformat:\n{COMMON}\n{lines}\n"),
        event: event.into(),
    }
}

/// Whether a field's name can stand in a format.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(plain)
}

/// The line of a number of 1, 2, 4 or 8 bytes.
pub(crate) fn number_line(name: &str, (at, bytes): (usize, usize), signed: bool) -> String {
    let kind = if signed { "s" } else { "u" };
    let bits = bytes * 8;
    let signed = u8::from(signed);
    format!("\tfield:{kind}{bits} {name};\toffset:{at};\tsize:{bytes};\tsigned:{signed};\n")
}

/// The line of a text of a fixed length.
pub(crate) fn fixed_line(name: &str, (at, bytes): (usize, usize)) -> String {
    format!("\tfield:char {name}[{bytes}];\toffset:{at};\tsize:{bytes};\tsigned:0;\n")
}

/// The line of a text whose bytes are behind the record's own fields.
pub(crate) fn located_line(name: &str, at: usize) -> String {
    format!("\tfield:__data_loc char[] {name};\toffset:{at};\tsize:4;\tsigned:0;\n")
}

/// Begins a record: `length` bytes before those of located texts.
pub(crate) fn begin(record: &mut Vec<u8>, id: u16, length: usize) {
    record.clear();
    record.resize(length, 0);
    record[..2].copy_from_slice(&id.to_le_bytes());
}

/// Puts a number into its place.
pub(crate) fn put_number(record: &mut [u8], (at, bytes): (usize, usize), number: u64) {
    record[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
}

/// Puts a text into its place of a fixed length.
pub(crate) fn put_fixed(record: &mut [u8], (at, bytes): (usize, usize), text: &[u8]) {
    let length = text.len().min(bytes);
    record[at..at + length].copy_from_slice(&text[..length]);
}

/// Puts a text behind the record, with the NUL that ends it.
pub(crate) fn put_located(record: &mut Vec<u8>, at: usize, text: &[u8]) {
    let text = &text[..text.len().min(LONGEST)];
    let word = (text.len() as u32 + 1) << 16 | record.len() as u32;
    record[at..at + 4].copy_from_slice(&word.to_le_bytes());
    record.extend_from_slice(text);
    record.push(0);
}

/// An event that begins or ends an interrupt or a softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    begins: bool,
    flag: u8,
}

impl Edge {
    pub(crate) fn of(system: &str, event: &str) -> Option<Edge> {
        let (begins, flag) = match (system, event) {
            ("irq", "irq_handler_entry") => (true, HARD),
            ("irq", "irq_handler_exit") => (false, HARD),
            ("irq", "softirq_entry") => (true, SOFT),
            ("irq", "softirq_exit") => (false, SOFT),
            ("irq_vectors", name) => (name.ends_with("_entry"), HARD),
            _ => return None,
        };
        Some(Edge { begins, flag })
    }
}

/// The flags of a CPU's records, where the events do not state them: interrupts and softirqs that are open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The flags of the next record: those of the interrupts around it, its own included. After a loss, nothing is known
    /// to be open, because the end may be among what was lost.
    pub(crate) fn of_next(&mut self, edge: Option<Edge>, after_loss: bool) -> u8 {
        if after_loss {
            self.0 = 0;
        }
        match edge {
            Some(Edge { begins: true, flag }) => {
                self.0 |= flag;
                self.0
            }
            Some(Edge { flag, .. }) => {
                let flags = self.0;
                self.0 &= !flag;
                flags
            }
            None => self.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_open_interrupts() {
        let mut flags = Flags::default();
        let mut of = |system, event| flags.of_next(Edge::of(system, event), false);
        assert_eq!(of("sched", "sched_switch"), 0);
        assert_eq!(of("irq", "softirq_entry"), SOFT);
        assert_eq!(of("irq_vectors", "local_timer_entry"), SOFT | HARD);
        assert_eq!(of("sched", "sched_waking"), SOFT | HARD);
        assert_eq!(of("irq_vectors", "local_timer_exit"), SOFT | HARD);
        assert_eq!(of("irq", "softirq_exit"), SOFT);
        assert_eq!(of("sched", "sched_waking"), 0);
        let _ = of("irq", "irq_handler_entry");
        assert_eq!(flags.of_next(None, true), 0);
    }
}
