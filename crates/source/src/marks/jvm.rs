//! The JVM's unified log (`-Xlog`, from Java 9 on): pauses of collectors, and safepoints.
//!
//! A line has decorations in brackets, then its message. The time is a decoration: `time` and `utctime` are ISO 8601,
//! `timemillis` is milliseconds since the epoch; `uptime` counts from the JVM's start. A pause's message ends with its
//! length, and is written when it ends. Other lines are no pauses.

use super::when::When;
use super::{Line, ending, length};
use jitterscope_model::Nanos;

/// Whether it looks like one: decorations, of which one is a time.
pub(super) fn is_line(line: &str) -> bool {
    let (decorations, message) = parts(line);
    !decorations.is_empty()
        && !message.is_empty()
        && decorations
            .iter()
            .any(|word| is_uptime(word) || is_time(word))
}

pub(super) fn has_only_uptime(line: &str) -> bool {
    let (decorations, _) = parts(line);
    decorations.iter().any(|word| is_uptime(word)) && !decorations.iter().any(|word| is_time(word))
}

pub(super) fn line(line: &str, when: &When) -> Line {
    let (decorations, message) = parts(line);
    let time = decorations.iter().find(|word| is_time(word));
    let Some(at) = time.and_then(|time| when.whole(time.trim_end_matches("ms"))) else {
        return Line::Unread;
    };
    match pause(message) {
        Some((name, length)) => ending(at, name, length),
        None => Line::Other,
    }
}

/// The decorations of a line, and its message.
fn parts(line: &str) -> (Vec<&str>, &str) {
    let (mut decorations, mut rest) = (Vec::new(), line.trim());
    while let Some((word, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        decorations.push(word.trim());
        rest = after;
    }
    (decorations, rest.trim())
}

/// `1.234s`: `uptime`, not a time of day.
fn is_uptime(word: &str) -> bool {
    word.strip_suffix('s')
        .is_some_and(|number| number.parse::<f64>().is_ok())
}

/// An ISO 8601 time, or milliseconds since the epoch.
fn is_time(word: &str) -> bool {
    let millis = word.strip_suffix("ms").unwrap_or_default();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    millis.len() == 13 && digits(millis)
        || word.len() > 18 && word.contains('T') && digits(&word[..word.find('-').unwrap_or(0)])
}

/// The name of a pause and its length.
fn pause(message: &str) -> Option<(String, Nanos)> {
    // `GC(17) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.456ms`
    let message = match message
        .strip_prefix("GC(")
        .and_then(|rest| rest.split_once(')'))
    {
        Some((_, rest)) => rest.trim_start(),
        None => message,
    };
    if message.starts_with("Pause ") {
        let length = length::last(message)?;
        // Up to the sizes, `24M->4M(256M)`, or the length.
        let is_figure = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let words = message.split_whitespace();
        let name: Vec<&str> = words.take_while(|word| !is_figure(word)).collect();
        let name = name.join(" ");
        // The kind, without the cause: `(Normal) (G1 Evacuation Pause)`.
        let kind = match name.split_once(") (") {
            Some((kind, _)) => format!("GC: {kind})"),
            None => format!("GC: {name}"),
        };
        return Some((kind, length));
    }
    // `Safepoint "G1CollectForAllocation", Time since last: 1 ns, ..., Total: 1234 ns`
    if let Some((name, rest)) = message
        .strip_prefix("Safepoint \"")
        .and_then(|rest| rest.split_once('"'))
    {
        let (_, total) = rest.split_once("Total:")?;
        return Some((format!("safepoint: {name}"), length::last(total)?));
    }
    // Java 9 to 13: `Total time for which application threads were stopped: 0.0012 seconds, Stopping ...`
    let rest = message.strip_prefix("Total time for which application threads were stopped:")?;
    let total = rest.split(',').next().unwrap_or_default();
    Some(("safepoint".to_owned(), length::last(total)?))
}
