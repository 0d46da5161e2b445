//! The time of a line: the possible moments that its text can mean.

use super::MarkError;
use crate::moment::{Moment, epochs_near};
use jiff::fmt::strtime::BrokenDownTime;
use std::ops::Range;

/// The longest text of a time that is tried without a format, in words.
const WORDS: usize = 3;

/// Reads times.
pub(super) struct When {
    format: Option<String>,
    /// The run's time, nanoseconds since the epoch.
    span: Range<u64>,
}

impl When {
    pub(super) fn new(format: Option<&str>, span: Range<u64>) -> Result<When, MarkError> {
        if let Some(format) = format {
            // A format is checked on its own writing: a wrong one would make every line unreadable.
            jiff::fmt::strtime::format(format, &jiff::Zoned::now()).map_err(|error| {
                MarkError::Format {
                    format: format.to_owned(),
                    why: error.to_string(),
                }
            })?;
        }
        Ok(When {
            format: format.map(str::to_owned),
            span,
        })
    }

    /// The time at the beginning of a text, and the rest of the text. The possible moments, best first, are nanoseconds
    /// since the epoch; there may be none for a time of a day that the run does not have.
    pub(super) fn first<'t>(&self, text: &'t str) -> Option<(Vec<u64>, &'t str)> {
        if let Some(format) = &self.format {
            let (time, length) = BrokenDownTime::parse_prefix(format, text).ok()?;
            return Some((self.broken_down(&time)?, text.get(length..)?));
        }
        let mut ends: Vec<usize> = text
            .match_indices(' ')
            .map(|(at, _)| at)
            .take(WORDS)
            .collect();
        if ends.len() < WORDS {
            ends.push(text.len());
        }
        // The longest text that is a time: a date may be followed by a time of day.
        ends.iter()
            .rev()
            .find_map(|end| Some((self.whole(&text[..*end])?, &text[*end..])))
    }

    /// The moments that a text as a whole can mean.
    pub(super) fn whole(&self, text: &str) -> Option<Vec<u64>> {
        if let Some(format) = &self.format {
            return self.broken_down(&BrokenDownTime::parse(format, text).ok()?);
        }
        // A comma before the fraction, as some loggers write it.
        let text = text
            .trim_matches([',', ';', '[', ']', ':'])
            .replace(',', ".");
        let moment: Moment = text.parse().ok()?;
        Some(moment.candidates(self.span.start, self.span.end))
    }

    fn broken_down(&self, time: &BrokenDownTime) -> Option<Vec<u64>> {
        if let Ok(timestamp) = time.to_timestamp() {
            return Some(vec![u64::try_from(timestamp.as_nanosecond()).ok()?]);
        }
        let of_day = time.to_time().ok()?;
        let date = time.to_date().ok();
        Some(epochs_near(date, of_day, self.span.start, self.span.end))
    }
}
