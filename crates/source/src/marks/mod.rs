//! Logs of applications: the marks in them, with their times.
//!
//! A log is foreign data. Lines have a largest length, and a line that cannot be read is counted. A time without a zone
//! is UTC or local, whichever lies within the run.

mod csv;
mod jvm;
mod length;
mod log;
mod when;

use jitterscope_model::{AppMark, MarkForm, MarkLog, Nanos, PutInOrder};
use std::io::{self, BufRead, Read};
use std::ops::Range;
use when::When;

/// The longest line that is read, bytes; the rest of a longer one is skipped.
const LINE: u64 = 64 << 10;
/// The longest name of a mark, characters.
const NAME: usize = 80;

/// How a log is read.
#[derive(Clone, Debug, Default)]
pub struct MarkOptions {
    /// Its form, if it is not to be found from its first line.
    pub form: Option<MarkForm>,
    /// The format of times, as `strftime` writes them.
    pub time_format: Option<String>,
    /// The name of all marks, if not each line's own.
    pub name: Option<String>,
    /// Whether the last length of time in a line of a log is how long it took, and its time is the end.
    pub took: bool,
}

/// Why a log gives no marks.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it has no lines")]
    Empty,
    #[error(
        "its table has no column for a time: name one 'time', 'start' or 'timestamp'. Its columns: {0}"
    )]
    NoTime(String),
    #[error(
        "'{0}' is no length of time with a unit: column names may end with _ns, _us, _ms or _s"
    )]
    NoUnit(String),
    #[error(
        "its lines have only the time since the start of the JVM. Let it write the time of day: -Xlog:gc*,safepoint:file=NAME:time"
    )]
    Uptime,
    #[error("'{format}' is no format of times: {why}. An example: %Y-%m-%d %H:%M:%S%.f")]
    Format { format: String, why: String },
    #[error(
        "none of its {lines} lines begins with a time. The first: '{first}'. Name the format with --time-format"
    )]
    NothingRead { lines: u64, first: String },
}

/// The form of a log, from its first line.
fn form_of(line: &str) -> MarkForm {
    if jvm::is_line(line) {
        MarkForm::Jvm
    } else if csv::is_header(line) {
        MarkForm::Csv
    } else {
        MarkForm::Log
    }
}

/// A line of a log.
enum Line {
    /// A mark; its time may be one of several.
    Mark {
        at: Vec<u64>,
        mark: AppMark,
    },
    /// It has a time, and says nothing that is a mark.
    Other,
    Unread,
}

/// A mark whose line states when it ended: the start depends on which of the possible times it is.
fn ending(at: Vec<u64>, name: String, length: Nanos) -> Line {
    let at = at.into_iter().map(|end| end.saturating_sub(length.0));
    Line::Mark {
        at: at.collect(),
        mark: AppMark {
            name,
            start_realtime_ns: 0,
            length_ns: length,
        },
    }
}

/// Reads the marks of a log that meet `span`, nanoseconds since the epoch. `file` is its name.
///
/// # Errors
/// The log cannot be read, or no line of it has a time.
pub fn read_marks(
    input: impl BufRead,
    file: String,
    options: &MarkOptions,
    span: Range<u64>,
) -> Result<MarkLog, MarkError> {
    let mut lines = Lines { input };
    let first = loop {
        match lines.next()? {
            None => return Err(MarkError::Empty),
            Some(line) if line.trim().is_empty() => {}
            Some(line) => break line,
        }
    };
    let form = options.form.unwrap_or_else(|| form_of(&first));
    let when = When::new(options.time_format.as_deref(), span.clone())?;
    let columns = match form {
        MarkForm::Csv => Some(csv::Columns::of(&first)?),
        MarkForm::Jvm | MarkForm::Log | MarkForm::Unknown => None,
    };
    let read = |line: &str| match (form, &columns) {
        (MarkForm::Csv, Some(columns)) => columns.line(line, &when),
        (MarkForm::Jvm, _) => jvm::line(line, &when),
        _ => log::line(line, &when, options.took),
    };
    let mut found = MarkLog {
        file,
        form,
        ..MarkLog::default()
    };
    let (mut count, mut timed) = (0u64, false);
    let mut next = match columns {
        Some(_) => lines.next()?,
        None => Some(first.clone()),
    };
    while let Some(line) = next {
        next = lines.next()?;
        if line.trim().is_empty() {
            continue;
        }
        count += 1;
        match read(&line) {
            Line::Unread => found.unread += 1,
            Line::Other => timed = true,
            Line::Mark { at, mark } => {
                timed = true;
                take(&mut found, at, mark, options, &span);
            }
        }
    }
    if !timed {
        let is_uptime = form == MarkForm::Jvm && jvm::has_only_uptime(&first);
        return Err(match is_uptime {
            true => MarkError::Uptime,
            false => MarkError::NothingRead {
                lines: count,
                first: short(&first),
            },
        });
    }
    if found.marks.len() > MarkLog::MOST {
        shorten(&mut found);
    }
    found.marks.order_by_key(|mark| mark.start_realtime_ns);
    Ok(found)
}

/// Takes a mark at the one of its possible times that lies within the run.
fn take(
    found: &mut MarkLog,
    at: Vec<u64>,
    mark: AppMark,
    options: &MarkOptions,
    span: &Range<u64>,
) {
    let meets =
        |start: &u64| *start < span.end && start.saturating_add(mark.length_ns.0) >= span.start;
    let Some(start) = at.into_iter().find(meets) else {
        found.outside += 1;
        return;
    };
    let name = options.name.as_deref().unwrap_or(&mark.name);
    found.marks.push(AppMark {
        name: short(name),
        start_realtime_ns: start,
        ..mark
    });
    if found.marks.len() >= 2 * MarkLog::MOST {
        shorten(found);
    }
}

/// Keeps the longest marks.
fn shorten(found: &mut MarkLog) {
    found
        .marks
        .order_by_key(|mark| std::cmp::Reverse(mark.length_ns));
    found.beyond += (found.marks.len() - MarkLog::MOST) as u64;
    found.marks.truncate(MarkLog::MOST);
}

/// The beginning of a text, without what a terminal would obey.
fn short(text: &str) -> String {
    let visible = jitterscope_model::visible(text.trim());
    visible.chars().take(NAME).collect()
}

struct Lines<R> {
    input: R,
}

impl<R: BufRead> Lines<R> {
    /// The next line, at most [`LINE`] bytes of it; bytes that are no UTF-8 are replaced.
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let read = (&mut self.input).take(LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            self.skip()?;
        }
        let text = String::from_utf8_lossy(&line);
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// Skips the rest of a line.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let (length, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.input.consume(length);
            if ended {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
