//! A part of a JSON document, for programs and assistants that cannot read a long one: chosen fields, the entries since
//! a moment, the first entries of each list, or one page of a list.

mod cursor;
mod fields;
mod fit;
mod shorten;

#[cfg(test)]
pub use fields::KNOWN;

use crate::exit::UsageError;
use crate::output;
use clap::Args;
use cursor::Cursor;
use fields::Fields;
use jitterscope_model::SCHEMA_VERSION;
use jitterscope_source::Moment;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use shorten::Shortened;
use std::time::{SystemTime, UNIX_EPOCH};

/// A document that can be printed in part; its name is that of its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    Audit,
    Diff,
    Doctor,
    List,
    Report,
    Stall,
}

impl Document {
    /// Each of them.
    #[cfg(test)]
    pub const ALL: [Document; 6] = [
        Document::Audit,
        Document::Diff,
        Document::Doctor,
        Document::List,
        Document::Report,
        Document::Stall,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Document::Audit => "audit",
            Document::Diff => "diff",
            Document::Doctor => "doctor",
            Document::List => "list",
            Document::Report => "report",
            Document::Stall => "stall",
        }
    }
}

/// Which part of a JSON document is printed.
#[derive(Args, Clone, Debug, Default)]
pub struct ExcerptArgs {
    /// --json: at most N entries of each list; 'left_out' states the others, and the cursor of their page
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// --json: leave out the fields that are not named: a,b.c (in lists: of each entry)
    #[arg(long, value_name = "FIELDS", requires = "json", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// --json: the entries of one list, from where an earlier answer ended (see 'left_out' there)
    #[arg(long, value_name = "CURSOR", requires = "json")]
    pub cursor: Option<String>,
}

/// Part of a document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Excerpt {
    /// Version of the document that this is a part of.
    schema_version: u32,
    /// What the document has more; absent if nothing but unnamed fields is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The fields of the document that are left.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Entries that are left out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Where: a JSON pointer into the document.
    at: String,
    /// The number of entries that are shown before them; of a text, of its bytes.
    shown: usize,
    /// The number of all entries; of a text, of all its bytes.
    of: usize,
    /// The cursor of the next page; absent for a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

impl ExcerptArgs {
    /// Whether a part is asked for, and not the whole document.
    pub fn is_part(&self) -> bool {
        self.top.is_some() || !self.fields.is_empty() || self.cursor.is_some()
    }

    /// The part of a document, of any length.
    ///
    /// # Errors
    /// The document has no such field or list.
    pub fn of(&self, document: Document, whole: Value) -> Result<Excerpt, UsageError> {
        let (part, from) = self.chosen(document, whole)?;
        let mut left_out = Vec::new();
        let mut shortened = Shortened {
            lists: self.top(),
            maps: usize::MAX,
            texts: usize::MAX,
            left_out: &mut left_out,
        };
        let rest = match &from {
            None => shortened.of(&part.whole, &mut String::new(), 0),
            Some(cursor) => cursor.page(&part.whole, &mut shortened),
        };
        Ok(Excerpt::new(part.version, rest, left_out))
    }

    /// The part of a document in at most `bytes` of compact JSON inside a JSON string.
    ///
    /// # Errors
    /// The document has no such field or list.
    pub fn within(
        &self,
        document: Document,
        whole: Value,
        bytes: usize,
    ) -> Result<Excerpt, UsageError> {
        let (part, from) = self.chosen(document, whole)?;
        Ok(fit::fitted(&part, &from, self.top(), bytes))
    }

    /// The most entries of a list.
    fn top(&self) -> usize {
        self.top.map_or(usize::MAX, |top| top as usize)
    }

    /// The named fields, and where the page begins.
    fn chosen(
        &self,
        document: Document,
        mut whole: Value,
    ) -> Result<(Part, Option<Cursor>), UsageError> {
        let version = whole.get("schema_version").and_then(Value::as_u64);
        let version = version.and_then(|version| version.try_into().ok());
        let version = version.unwrap_or(SCHEMA_VERSION);
        if !self.fields.is_empty() {
            Fields::named(document, &self.fields)?.keep(&mut whole);
        }
        let Some(cursor) = &self.cursor else {
            return Ok((Part { version, whole }, None));
        };
        let cursor: Cursor = cursor.parse()?;
        cursor.check(&whole)?;
        Ok((Part { version, whole }, Some(cursor)))
    }

    /// Prints a document, or the part of it that is asked for.
    ///
    /// # Errors
    /// The document has no such field or list; stdout is closed.
    pub fn print(&self, document: Document, whole: &impl Serialize) -> anyhow::Result<()> {
        if !self.is_part() {
            return output::json(whole);
        }
        output::json(&self.of(document, serde_json::to_value(whole)?)?)
    }
}

impl Excerpt {
    fn new(schema_version: u32, rest: Value, left_out: Vec<LeftOut>) -> Excerpt {
        let mut rest = match rest {
            Value::Object(rest) => rest,
            // Every document is an object.
            _ => Map::new(),
        };
        rest.remove("schema_version");
        Excerpt {
            schema_version,
            left_out,
            rest,
        }
    }
}

/// A document with its chosen fields.
struct Part {
    version: u32,
    whole: Value,
}

/// Leaves out the entries of lists that began before a moment, nanoseconds since the epoch. Other entries stay.
pub fn since(document: &mut Value, moment: u64) {
    const STARTS: [&str; 2] = ["start_realtime_ns", "started_realtime_ns"];
    match document {
        Value::Array(entries) => {
            entries.retain(|entry| {
                let mut starts = STARTS.iter().filter_map(|name| entry.get(name)?.as_u64());
                starts.next().is_none_or(|start| start >= moment)
            });
            entries.iter_mut().for_each(|entry| since(entry, moment));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| since(field, moment)),
        _ => {}
    }
}

/// Only what is not older.
#[derive(Args, Clone, Debug, Default)]
pub struct SinceArgs {
    /// Only runs that began at this moment or later: 21:40 (in the last day), a date and time, or an epoch
    #[arg(long, value_name = "TIME")]
    pub since: Option<Moment>,
}

impl SinceArgs {
    /// The moment, nanoseconds since the epoch; a time of day is of the last day.
    ///
    /// # Errors
    /// There was no such time of day.
    pub fn of_runs(&self) -> Result<Option<u64>, UsageError> {
        const DAY: u64 = 86_400_000_000_000;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.within(now.saturating_sub(DAY), now)
    }

    /// The moment, nanoseconds since the epoch; a time of day is between `start` and `end`.
    ///
    /// # Errors
    /// There was no such time of day.
    pub fn within(&self, start: u64, end: u64) -> Result<Option<u64>, UsageError> {
        let Some(since) = &self.since else {
            return Ok(None);
        };
        since.since(start, end).map(Some).ok_or_else(|| {
            UsageError(format!(
                "--since {}: no such time of day is between {} and {} UTC; give the date, too",
                since.written(),
                jitterscope_view::utc(start),
                jitterscope_view::utc(end)
            ))
        })
    }
}

#[cfg(test)]
mod tests;
