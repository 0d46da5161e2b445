//! Lines that begin with their time.

use super::when::When;
use super::{Line, ending, length};
use jitterscope_model::Nanos;

/// A line is a moment; with `took`, its last length of time ends at its time.
pub(super) fn line(line: &str, when: &When, took: bool) -> Line {
    let Some((at, rest)) = when.first(line.trim_start_matches([' ', '['])) else {
        return Line::Unread;
    };
    let length = match took {
        true => match length::last(rest) {
            Some(length) => length,
            None => return Line::Other,
        },
        false => Nanos::ZERO,
    };
    ending(at, name(rest), length)
}

/// The text of a line without its numbers, so that lines of one kind have one name.
fn name(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim_matches([' ', ']', '-', ':', '|']).chars() {
        match (c.is_ascii_digit(), name.ends_with('#')) {
            (true, true) => {}
            (true, false) => name.push('#'),
            (false, _) => name.push(c),
        }
    }
    name
}
