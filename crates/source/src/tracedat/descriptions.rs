//! The descriptions of pages, events, functions and threads. Both versions write them alike.

use super::bytes::{Cursor, ReadAt};
use super::error::TraceDatError;
use crate::context::FormatText;
use crate::symbols::{Symbols, SymbolsError};
use jitterscope_model::Comm;
use std::io::{self, BufReader, Read};

/// Limits of what is read: real files have a tenth of them at most.
const LONGEST_HEADER: usize = 1 << 16;
const LONGEST_FORMAT: usize = 1 << 18;
const LONGEST_NAME: usize = 256;
const MOST_EVENTS: u32 = 1 << 16;
const LONGEST_FUNCTIONS: u64 = 64 << 20;
const LONGEST_THREADS: usize = 8 << 20;
const MOST_THREADS: usize = 1 << 14;

/// The text of `events/header_page`.
pub(super) fn header_page(from: &mut Cursor<'_>) -> Result<String, TraceDatError> {
    from.next("description of its pages");
    from.expect(b"header_page\0")?;
    let length = from.u64()?;
    let text = from.bytes(length, LONGEST_HEADER)?;
    from.expect(b"header_event\0")?;
    let length = from.u64()?;
    from.skip(length)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Passes over the formats of ftrace's own records.
pub(super) fn skip_own_formats(from: &mut Cursor<'_>) -> Result<(), TraceDatError> {
    from.next("list of ftrace's formats");
    for _ in 0..counted(from, MOST_EVENTS)? {
        let length = from.u64()?;
        from.skip(length)?;
    }
    Ok(())
}

/// The formats of events, those that `wanted` says (`system`, `event`).
pub(super) fn formats(
    from: &mut Cursor<'_>,
    wanted: impl Fn(&str, &str) -> bool,
) -> Result<Vec<FormatText>, TraceDatError> {
    from.next("list of event formats");
    let mut found = Vec::new();
    let mut left = MOST_EVENTS;
    for _ in 0..counted(from, MOST_EVENTS)? {
        let system = from.text(LONGEST_NAME)?;
        let events = counted(from, left)?;
        left -= events;
        for _ in 0..events {
            let length = from.u64()?;
            if length > LONGEST_FORMAT as u64 {
                from.skip(length)?;
                continue;
            }
            let text = from.bytes(length, LONGEST_FORMAT)?;
            let text = String::from_utf8_lossy(&text);
            if let Some(event) = name_in(&text).filter(|event| wanted(&system, event)) {
                found.push(FormatText {
                    system: system.clone(),
                    event: event.to_owned(),
                    text: text.clone().into_owned(),
                });
            }
        }
    }
    Ok(found)
}

/// The number of things that follow.
fn counted(from: &mut Cursor<'_>, most: u32) -> Result<u32, TraceDatError> {
    match from.u32()? {
        count if count <= most => Ok(count),
        _ => Err(from.damaged("it counts more things than there can be")),
    }
}

/// The event's name in its format.
fn name_in(format: &str) -> Option<&str> {
    let name = format.lines().next()?.strip_prefix("name:")?.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(plain)).then_some(name)
}

/// Reads a part of a file.
struct Part<'f> {
    file: &'f dyn ReadAt,
    at: u64,
    left: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(into.len(), |left| left.min(into.len()));
        let read = self.file.read_at(self.at, &mut into[..most])?;
        self.at = self.at.saturating_add(read as u64);
        self.left -= read as u64;
        Ok(read)
    }
}

/// The kernel's functions, a text like `/proc/kallsyms`.
pub(super) fn functions(file: &dyn ReadAt, at: u64, length: u64) -> Result<Symbols, SymbolsError> {
    let left = length.min(LONGEST_FUNCTIONS);
    Symbols::parse(BufReader::with_capacity(1 << 16, Part { file, at, left }))
}

/// The names of threads, a text like `saved_cmdlines`.
pub(super) fn threads(from: &mut Cursor<'_>) -> Result<Vec<(i32, Comm)>, TraceDatError> {
    from.next("list of threads");
    let length = from.u64()?;
    let text = from.bytes(length, LONGEST_THREADS)?;
    let of_line = |line: &[u8]| {
        let gap = line.iter().position(|byte| *byte == b' ')?;
        let tid: i32 = std::str::from_utf8(&line[..gap]).ok()?.parse().ok()?;
        let comm = Comm::from_bytes(&line[gap + 1..]);
        // The kernel's word for a thread whose name it has forgotten.
        (tid > 0 && comm != Comm::new("<...>") && !comm.is_empty()).then_some((tid, comm))
    };
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(of_line).take(MOST_THREADS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_name_in_its_format() {
        assert_eq!(name_in("name: sched_switch\nID: 3\n"), Some("sched_switch"));
        assert_eq!(name_in("ID: 3\nname: sched_switch\n"), None);
        assert_eq!(name_in("name: a b\n"), None);
        assert_eq!(name_in("name: \n"), None);
    }

    #[test]
    fn threads_without_a_name_are_left_out() {
        let text = b"12 bash\n0 swapper\n77 <...>\nx y\n13 Web Content\n14\n";
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text);
        let mut from = Cursor::new(&bytes, 0, "").unwrap();
        let named = threads(&mut from).unwrap();
        assert_eq!(
            named,
            [(12, Comm::new("bash")), (13, Comm::new("Web Content"))]
        );
    }
}
