//! The page of a list that an earlier answer left out.

use super::shorten::Shortened;
use crate::exit::UsageError;
use jitterscope_model::visible;
use serde_json::{Map, Value};
use std::str::FromStr;

/// The field of a page in its document: the shape of all else is left out.
pub(super) const PAGE: &str = "page";

/// A list, by its JSON pointer, and the first entry of the page: `/worst@10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) pointer: String,
    pub(super) from: usize,
}

impl FromStr for Cursor {
    type Err = UsageError;

    fn from_str(text: &str) -> Result<Cursor, UsageError> {
        let parsed = text.rsplit_once('@').and_then(|(pointer, from)| {
            Some(Cursor {
                pointer: pointer.to_owned(),
                from: from.parse().ok()?,
            })
        });
        let is_pointer = |of: &Cursor| of.pointer.starts_with('/');
        parsed.filter(is_pointer).ok_or_else(|| {
            UsageError(format!(
                "--cursor {}: a cursor is a list and a position, such as /worst@10; answers state theirs in 'left_out'",
                visible(text)
            ))
        })
    }
}

impl Cursor {
    /// Checks that the document has the list.
    ///
    /// # Errors
    /// It has not, or the list ends earlier.
    pub(super) fn check(&self, whole: &Value) -> Result<(), UsageError> {
        let length = match whole.pointer(&self.pointer) {
            Some(Value::Array(entries)) => entries.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => {
                return Err(UsageError(format!(
                    "--cursor {}@{}: there is no such list; use a cursor of an answer to the same command with the same \
                     options",
                    visible(&self.pointer),
                    self.from
                )));
            }
        };
        if self.from < length {
            return Ok(());
        }
        Err(UsageError(format!(
            "--cursor {}@{}: the list has {length} entries, counted from 0",
            visible(&self.pointer),
            self.from
        )))
    }

    /// The page as a document with nothing else.
    pub(super) fn page(&self, whole: &Value, shortened: &mut Shortened<'_>) -> Value {
        let list = whole.pointer(&self.pointer);
        let page = list.map(|list| shortened.of(list, &mut self.pointer.clone(), self.from));
        let mut document = Map::new();
        document.insert(PAGE.into(), page.unwrap_or_default());
        Value::Object(document)
    }
}
