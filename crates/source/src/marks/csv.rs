//! Tables with a line of column names: one mark a row.

use super::when::When;
use super::{Line, MarkError, length};
use jitterscope_model::{AppMark, Nanos};

const STARTS: [&str; 6] = ["start", "begin", "time", "timestamp", "ts", "date"];
const ENDS: [&str; 3] = ["end", "stop", "finish"];
const LENGTHS: [&str; 7] = [
    "duration", "length", "latency", "took", "elapsed", "dur", "response",
];
const NAMES: [&str; 8] = [
    "name",
    "event",
    "what",
    "request",
    "url",
    "path",
    "message",
    "operation",
];

/// Whether a line names columns, with one for a time.
pub(super) fn is_header(line: &str) -> bool {
    Columns::of(line).is_ok()
}

/// Where the values are in a row.
pub(super) struct Columns {
    separator: u8,
    start: Option<Column>,
    end: Option<Column>,
    length: Option<Column>,
    name: Option<usize>,
}

/// A column of times or lengths.
#[derive(Clone, Copy)]
struct Column {
    at: usize,
    /// The nanoseconds of its unit, where its name states one.
    unit: Option<f64>,
}

impl Columns {
    pub(super) fn of(header: &str) -> Result<Columns, MarkError> {
        let separator = *[b',', b';', b'\t']
            .iter()
            .max_by_key(|of| header.bytes().filter(|byte| byte == *of).count())
            .unwrap_or(&b',');
        let names = values(header, separator);
        let find = |known: &[&str]| {
            known.iter().find_map(|known| {
                let at = names.iter().position(|name| base(name) == *known)?;
                let unit = unit(&names[at]);
                Some(Column { at, unit })
            })
        };
        let columns = Columns {
            separator,
            start: find(&STARTS),
            end: find(&ENDS),
            length: find(&LENGTHS),
            name: find(&NAMES).map(|column| column.at),
        };
        if columns.start.is_none() && columns.end.is_none() {
            return Err(MarkError::NoTime(super::short(header)));
        }
        Ok(columns)
    }

    pub(super) fn line(&self, line: &str, when: &When) -> Line {
        self.mark(line, when).unwrap_or(Line::Unread)
    }

    fn mark(&self, line: &str, when: &When) -> Option<Line> {
        let values = values(line, self.separator);
        let value = |column: Column| values.get(column.at).map(String::as_str);
        let time = |column: Column| moment(value(column)?, column.unit, when);
        let length = match self.length {
            Some(column) => Some(self.length(value(column)?, column)?),
            None => None,
        };
        let name = self.name.and_then(|at| values.get(at).cloned());
        let (at, length) = match (self.start, self.end, length) {
            (Some(start), _, Some(length)) => (time(start)?, length),
            (Some(start), Some(end), None) => {
                let (start, end) = (time(start)?, time(end)?);
                let length = end.first()?.saturating_sub(*start.first()?);
                (start, Nanos(length))
            }
            (Some(start), None, None) => (time(start)?, Nanos::ZERO),
            (None, Some(end), length) => {
                let length = length.unwrap_or(Nanos::ZERO);
                let starts = time(end)?
                    .into_iter()
                    .map(|end| end.saturating_sub(length.0));
                (starts.collect(), length)
            }
            (None, None, _) => return None,
        };
        Some(Line::Mark {
            at,
            mark: AppMark {
                name: name.unwrap_or_else(|| "row".to_owned()),
                start_realtime_ns: 0,
                length_ns: length,
            },
        })
    }

    /// A length: with its own unit, or that of its column.
    fn length(&self, value: &str, column: Column) -> Option<Nanos> {
        match column.unit {
            Some(unit) => length::of(value, unit),
            None => length::last(value),
        }
    }
}

/// A time: a number in the unit of its column, counted from the epoch, or a text.
fn moment(value: &str, unit: Option<f64>, when: &When) -> Option<Vec<u64>> {
    let Some(unit) = unit else {
        return when.whole(value.trim());
    };
    let (whole, fraction) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    // In integers: a double has 53 bits, and nanoseconds since the epoch need 61.
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit as u64)?;
    let fraction = match fraction {
        "" => 0.0,
        digits => format!("0.{digits}").parse::<f64>().ok()? * unit,
    };
    Some(vec![whole.checked_add(fraction as u64)?])
}

/// A column's name without its unit: `duration` of `duration_ms` and of `Duration (ms)`.
fn base(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let (base, unit) = split(&name);
    match length::unit(unit) {
        Some(_) => base.to_owned(),
        None => name,
    }
}

/// The unit in a column's name.
fn unit(name: &str) -> Option<f64> {
    length::unit(split(&name.trim().to_lowercase()).1)
}

fn split(name: &str) -> (&str, &str) {
    let name = name.trim_end_matches(')');
    name.rsplit_once(['_', '(', ' ', '.'])
        .map_or((name, ""), |(base, unit)| {
            (base.trim_end_matches([' ', '_', '(']), unit)
        })
}

/// The values of a row. A value in quotes may contain the separator; a doubled quote in it is a quote.
fn values(line: &str, separator: u8) -> Vec<String> {
    let (mut values, mut value, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                value.push('"');
            }
            '"' => quoted = !quoted,
            c if c == char::from(separator) && !quoted => values.push(std::mem::take(&mut value)),
            c => value.push(c),
        }
    }
    values.push(value);
    values
}
