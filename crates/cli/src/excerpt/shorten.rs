//! The first entries of each list.

use super::LeftOut;
use serde_json::Value;

/// Texts are cut at this length where the whole must be short, bytes: no name is as long.
pub(super) const TEXT: usize = 2048;

/// How a document is shortened.
pub(super) struct Shortened<'a> {
    /// The most entries of a list.
    pub(super) lists: usize,
    /// The most fields of an object.
    pub(super) maps: usize,
    /// The most bytes of a text.
    pub(super) texts: usize,
    pub(super) left_out: &'a mut Vec<LeftOut>,
}

impl Shortened<'_> {
    /// The value at a pointer; the first `from` entries of it are left out, too.
    pub(super) fn of(&mut self, value: &Value, at: &mut String, from: usize) -> Value {
        match value {
            Value::Array(entries) => {
                let shown = entries.iter().enumerate().skip(from).take(self.lists);
                self.rest(at, from + shown.len(), entries.len());
                let inner =
                    |(number, entry): (usize, &Value)| self.inside(entry, at, &number.to_string());
                Value::Array(shown.map(inner).collect())
            }
            Value::Object(fields) => {
                let shown: Vec<_> = fields.iter().skip(from).take(self.maps).collect();
                self.rest(at, from + shown.len(), fields.len());
                let inner = |(name, field): (&String, &Value)| {
                    (name.clone(), self.inside(field, at, &escaped(name)))
                };
                Value::Object(shown.into_iter().map(inner).collect())
            }
            Value::String(text) if text.len() > self.texts => {
                let cut = text.floor_char_boundary(self.texts);
                self.left_out.push(LeftOut {
                    at: at.clone(),
                    shown: cut,
                    of: text.len(),
                    cursor: None,
                });
                Value::String(text[..cut].to_owned())
            }
            other => other.clone(),
        }
    }

    fn inside(&mut self, value: &Value, at: &mut String, name: &str) -> Value {
        let before = at.len();
        at.push('/');
        at.push_str(name);
        let value = self.of(value, at, 0);
        at.truncate(before);
        value
    }

    fn rest(&mut self, at: &str, shown: usize, of: usize) {
        if shown < of {
            self.left_out.push(LeftOut {
                at: at.to_owned(),
                shown,
                of,
                cursor: Some(format!("{at}@{shown}")),
            });
        }
    }
}

/// A name in a JSON pointer (RFC 6901).
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
